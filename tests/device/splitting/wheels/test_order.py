"""Tests of what is asked for when wheels are split."""

from __future__ import annotations

import pytest

from rocwheel.core.errors import ProblemsError
from rocwheel.device.splitting.files import SplitChoice
from rocwheel.device.splitting.wheels.order import WheelSplitOrder, check_order


def test_everything_that_no_wheel_can_have_is_told_together() -> None:
    order = WheelSplitOrder(
        choice=SplitChoice(), device_prefix="bad name!", host_requires=("bad ===",), device_requires=("no requirement",)
    )
    with pytest.raises(ProblemsError) as raised:
        check_order(order)
    assert [str(problem).partition(":")[0] for problem in raised.value.problems] == [
        "--device-name",
        "--host-requires-dist",
        "--device-requires-dist",
    ]


def test_an_order_that_asks_for_nothing_special_is_fine() -> None:
    check_order(WheelSplitOrder(choice=SplitChoice(), device_requires=("rocm-sdk-device-@GFXARCH@ == 7.14",)))
