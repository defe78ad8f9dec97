"""Tests of device wheels whose archives are damaged or gone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import RocwheelError
from rocwheel.device.split.join_wheels import join_wheels, resplit_wheels
from rocwheel.device.split.split_wheel import split_wheel
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.wheels.sdist import SourceDate
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel, members, write_wheel

if TYPE_CHECKING:
    from collections.abc import Callable

ORDER = WheelSplitOrder(choice=SplitChoice())


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[:-40], id="truncated"),
        pytest.param(lambda data: data[:4] + b"\2" + data[5:], id="another version"),
        pytest.param(lambda data: data[:8] + b"\xff" * 8 + data[16:], id="contents beyond the end"),
        pytest.param(None, id="gone"),
    ],
)
def test_a_damaged_archive_is_refused_by_name_and_nothing_is_written(
    tmp_path: Path, damage: Callable[[bytes], bytes] | None
) -> None:
    wheel = make_wheel(tmp_path / "in", "demo", {"demo/libtwo.so": FIXTURES / "v22/libtwo.plain.so"})
    report = split_wheel(wheel, tmp_path / "split", ORDER, SourceDate())
    host, device = Path(report.host), Path(report.devices[0].path)
    files = members(device)
    [info] = {name.partition("/")[0] for name in files if ".dist-info/" in name}
    [archive] = [name for name in files if name.endswith(".kpack")]
    data = files.pop(archive)
    files.pop(f"{info}/RECORD")
    write_wheel(device, info, files if damage is None else {**files, archive: damage(data)})
    # Without its archive, a library is known by its marker; a damaged one is named itself.
    named = "libtwo.so" if damage is None else Path(archive).name
    with pytest.raises(RocwheelError, match=named):
        join_wheels(host, [device], tmp_path / "out", SourceDate())
    if damage is not None:
        with pytest.raises(RocwheelError, match=named):
            resplit_wheels([host, device], tmp_path / "out", ORDER, SourceDate())
    assert not (tmp_path / "out").exists()
