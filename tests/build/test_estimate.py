"""Estimated sizes, beside those of what is built."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.estimate import Estimate, PlannedSize, estimate, planned_sizes
from rocwheel.build.job import PlanJob
from rocwheel.build.plan import FileMember, Plan, PlannedSdist, PlannedWheel
from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileRange
from rocwheel.demo import SAMPLE_SDK
from rocwheel.wheels.metadata import CoreMetadata
from rocwheel.wheels.writing import WheelName

if TYPE_CHECKING:
    from pathlib import Path

NAME = WheelName("demo", "1.0", "py3-none-any")
MIB = 1 << 20


def plan_of(*contents: bytes, folder: Path) -> Plan:
    """Return the plan of a wheel with these files."""
    members = []
    for number, content in enumerate(contents):
        path = folder / f"{number}.bin"
        path.write_bytes(content)
        members.append(FileMember(path.name, 0o644, FileRange.whole(path), "demo_lib_generic", path.name))
    metadata = CoreMetadata("demo", "1.0")
    wheel = PlannedWheel("demo", NAME, metadata, tuple(members))
    sdist = PlannedSdist("chooser", "1.0", metadata, {"setup.py": "x" * 1000})
    return Plan("1.0", "neutral", (), (wheel,), (sdist,))


def estimated(plan: Plan) -> Estimate:
    with ThreadPoolExecutor(2) as executor:
        return estimate(plan, executor)


def test_files_and_their_bytes_are_counted(tmp_path: Path) -> None:
    plan = plan_of(b"1234", b"56", folder=tmp_path)
    assert planned_sizes(plan) == (PlannedSize("demo", "", 2, 6), PlannedSize("chooser", "", 1, 1000))


@pytest.mark.parametrize(
    ("contents", "least", "most"),
    [
        pytest.param((os.urandom(MIB),), MIB, 1.01 * MIB, id="noise, read whole"),
        pytest.param((os.urandom(20 * MIB),), 20 * MIB, 20.2 * MIB, id="noise, by samples"),
        pytest.param((bytes(20 * MIB),), 0, 0.1 * MIB, id="zeros"),
        pytest.param((bytes(10 * MIB), os.urandom(10 * MIB)), 9 * MIB, 11 * MIB, id="zeros and noise"),
        pytest.param(tuple(os.urandom(1000) for _ in range(4000)), 4_000_000, 5_000_000, id="small files"),
        pytest.param((b"", b""), 0, 1000, id="empty files"),
        pytest.param((), 0, 0, id="no file"),
    ],
)
def test_the_size_of_a_wheel_is_estimated_from_samples(
    tmp_path: Path, contents: tuple[bytes, ...], least: float, most: float
) -> None:
    packed = estimated(plan_of(*contents, folder=tmp_path)).sizes[0].packed
    assert packed is not None
    assert least <= packed <= most


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    plan = plan_of(b"1234", folder=tmp_path)
    (tmp_path / "0.bin").unlink()
    with pytest.raises(InputError, match=r"0\.bin"):
        estimated(plan)


@pytest.mark.slow
def test_the_estimated_sizes_of_the_sample_sdk_are_close_to_the_built_sizes(sample_dist: Path) -> None:
    _, found = PlanJob(SAMPLE_SDK).run_estimated()
    built = {path.name.partition("-7")[0].replace("_", "-"): path.stat().st_size for path in sample_dist.iterdir()}
    assert {size.distribution for size in found.sizes} == set(built)
    # The files of the sample are small, and what a wheel says of each of them counts as much as they do.
    for size in found.sizes:
        assert size.packed == pytest.approx(built[size.distribution], rel=0.4), size
