"""``rocwheel targets coherent`` over damaged packages and good ones: each damaged one is named, the others compared."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.bundles import bundle_of
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

BRACKETS = f"a; {'(' * 5000}python_version > '3'{')' * 5000}"


def _requiring(requirement: str) -> Callable[[Path], Path]:
    return lambda folder: make_wheel(folder, "bad", {}, tag="py3-none-any", requires=(requirement,))


def _truncated(folder: Path) -> Path:
    path = make_wheel(folder, "bad", {"bad/kernels.hipfb": bundle_of("gfx906")}, tag="py3-none-any")
    path.write_bytes(path.read_bytes()[:-30])
    return path


def _without_dist_info(folder: Path) -> Path:
    path = folder / "bad-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bad/__init__.py", "")
    return path


DAMAGES = {
    "thousands of brackets": (_requiring(BRACKETS), "has a malformed Requires-Dist (more than 32 brackets"),
    "no requirement": (_requiring("= 1"), "has a malformed Requires-Dist ("),
    "a marker without order": (_requiring("a; sys_platform > 'a' and extra ~= 'b'"), "has a "),
    "truncated": (_truncated, "a damaged archive ("),
    "without .dist-info": (_without_dist_info, "has no .dist-info folder"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_wheel_does_not_keep_the_others_from_being_compared(
    run_targets: Run, tmp_path: Path, damage: str
) -> None:
    damaged, said = DAMAGES[damage]
    for name in ("blas", "fft"):
        files = {f"{name}/kernels.hipfb": bundle_of("gfx906")}
        make_wheel(tmp_path, name, files, tag="py3-none-any")
    path = damaged(tmp_path)
    status, printed, errors = run_targets("coherent", tmp_path)
    assert (status, printed) == (
        2,
        "blas: gfx906\nfft: gfx906\ncoherent, of what could be read; served by all: gfx906\n",
    )
    assert errors.startswith(f"error: {path}: {said}")


def test_all_damaged_wheels_are_named_at_once(run_targets: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path, "blas", {"blas/kernels.hipfb": bundle_of("gfx906")}, tag="py3-none-any")
    paths = []
    for number, (damaged, _) in enumerate(DAMAGES.values()):
        (tmp_path / str(number)).mkdir()
        paths.append(damaged(tmp_path / str(number)))
    status, printed, errors = run_targets("coherent", tmp_path)
    assert (status, printed) == (2, "blas: gfx906\ncoherent, of what could be read; served by all: gfx906\n")
    assert [str(path) in errors for path in paths] == [True] * len(DAMAGES)


def test_wheels_of_one_package_that_differ_are_named_beside_damaged_ones(run_targets: Run, tmp_path: Path) -> None:
    for version in ("1.0", "2.0"):
        make_wheel(tmp_path, "blas", {}, version=version, tag="py3-none-any")
    path = _truncated(tmp_path)
    status, printed, errors = run_targets("coherent", tmp_path)
    assert (status, printed) == (2, "")
    assert f"{path}: a damaged archive (" in errors
    assert "blas-1.0-py3-none-any.whl: is version 1.0 of blas, but" in errors
