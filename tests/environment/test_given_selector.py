"""The SDK's selector, an sdist, beside the wheels that are given to an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.build.merging.selectors import write_selector
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow


def findings(run: Run, wheel: Path, *given: Path) -> list[str]:
    """Return what a strict audit says about the requirements of a wheel."""
    places = [word for path in given for word in ("--with", path)]
    done = run("audit", wheel, *places, "--closed", "--select", "requirement-*")
    assert done.status in {0, 1}, done.stderr
    return [line.strip() for line in done.stdout.splitlines() if "requires" in line]


@pytest.mark.parametrize("requirement", ["rocm==7.0.0", "rocm[libraries]==7.0.0", "rocm[libraries,device-gfx906]>=7"])
def test_a_selector_in_a_given_folder_provides_rocm(
    requirement: str, run: Run, sample_dist: Path, tmp_path: Path
) -> None:
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/__init__.py": b""}, requires=(requirement,), tag="py3-none-any")
    assert findings(run, wheel, sample_dist) == []
    assert findings(run, wheel, sample_dist / "rocm-7.0.0.tar.gz") == []


@pytest.mark.parametrize(
    ("requirement", "found"),
    [
        ("rocm==7.1.0", "requires rocm==7.1.0, but version 7.0.0 is given"),
        (
            "rocm[nothing]==7.0.0",
            "requires rocm[nothing]==7.0.0, but rocm 7.0.0 has no extra nothing: installers ignore the extras",
        ),
    ],
)
def test_a_version_or_extra_that_the_selector_lacks_is_reported(
    requirement: str, found: str, run: Run, sample_dist: Path, tmp_path: Path
) -> None:
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/__init__.py": b""}, requires=(requirement,), tag="py3-none-any")
    assert findings(run, wheel, sample_dist) == [f"ext-1.0-py3-none-any.whl {found}"]


def test_a_folder_without_the_selector_does_not_provide_rocm(run: Run, sample_dist: Path, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/__init__.py": b""}, requires=("rocm",), tag="py3-none-any")
    (core,) = sample_dist.glob("rocm_sdk_core-*.whl")
    assert findings(run, wheel, core) == [
        "ext-1.0-py3-none-any.whl requires rocm, but no given package provides it",
    ]


def test_an_empty_extra_is_still_an_extra(run: Run, tmp_path: Path) -> None:
    sdist = write_selector(tmp_path / "sdk")
    make_wheel(tmp_path / "sdk", "rocm-sdk-core", {"x.py": b""}, version="7.0.0", tag="py3-none-any")
    wheel = make_wheel(tmp_path / "dist", "ext", {"y.py": b""}, requires=("rocm[device]",), tag="py3-none-any")
    assert findings(run, wheel, sdist) == []
