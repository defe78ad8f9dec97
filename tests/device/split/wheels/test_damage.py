"""Damaged wheels are split and joined, or refused; nothing is left of what failed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.core.errors import RocwheelError
from rocwheel.device.extract import extract_code
from rocwheel.device.split.join_wheels import join_wheels
from rocwheel.device.split.split_wheel import split_wheel
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.wheels.sdist import SourceDate
from tests.support.damage import damaged
from tests.support.example_counts import examples
from tests.support.fat_libraries import build_fat_library, code_of, make_bundle
from tests.support.wheels import make_wheel

pytestmark = pytest.mark.slow

MANY = settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
ORDER = WheelSplitOrder(choice=SplitChoice())
CODE = sorted(code_of(unit, "gfx906") for unit in range(2))
HOST, DEVICE = "demo-1.0-py3-none-linux_x86_64.whl", "demo_device_gfx906-1.0-py3-none-linux_x86_64.whl"


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a fat wheel in ``fat``, and its host wheel and device wheel in ``split``."""
    folder = tmp_path_factory.mktemp("damage")
    library = build_fat_library(folder / "libx.so", [make_bundle(unit, "gfx906") for unit in range(2)])
    wheel = make_wheel(folder / "fat", "demo", {"demo/libx.so": library})
    split_wheel(wheel, folder / "split", ORDER, SourceDate())
    return folder


def emptied(parts: Path) -> Path:
    work = parts / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    return work


def code_in(wheels: list[Path], work: Path) -> list[bytes]:
    return sorted(Path(found.path).read_bytes() for found in extract_code(wheels, work / "code", ()))


@MANY
@given(st.data())
def test_a_damaged_wheel_is_split_or_refused(parts: Path, data: st.DataObject) -> None:
    work = emptied(parts)
    wheel = work / HOST
    wheel.write_bytes(data.draw(damaged([(parts / "fat" / HOST).read_bytes()])))
    try:
        split_wheel(wheel, work / "made", ORDER, SourceDate())
    except RocwheelError:
        assert list(work.iterdir()) == [wheel]
        return
    assert code_in(sorted((work / "made").iterdir()), work) == CODE


@MANY
@given(st.data(), st.sampled_from([HOST, DEVICE]))
def test_damaged_host_and_device_wheels_are_joined_or_refused(parts: Path, data: st.DataObject, name: str) -> None:
    work = emptied(parts)
    for path in (parts / "split").iterdir():
        shutil.copy(path, work)
    (work / name).write_bytes(data.draw(damaged([(parts / "split" / name).read_bytes()])))
    try:
        join_wheels(work / HOST, [work / DEVICE], work / "made", SourceDate())
    except RocwheelError:
        assert sorted(path.name for path in work.iterdir()) == sorted([HOST, DEVICE])
        return
    assert code_in([work / "made" / HOST], work) == CODE
