"""``rocwheel torch runpath`` as a user runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ([], "LDFLAGS='-Wl,--enable-new-dtags -Wl,-rpath,\\$ORIGIN -Wl,-rpath,"),
        (["--folder", "my/lib"], "'-DCMAKE_INSTALL_RPATH=$ORIGIN;$ORIGIN/../../_rocm_sdk_libraries/lib;"),
        (["--spell", "plain"], "$ORIGIN:$ORIGIN/../../_rocm_sdk_libraries/lib:"),
    ],
    ids=["pytorch", "extension", "other tool"],
)
def test_the_run_path_is_spelled_for_who_takes_it(options: list[str], start: str, tmp_path: Path) -> None:
    made = rocwheel("torch", "runpath", *options, cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith(start)


def test_a_family_has_its_own_libraries(tmp_path: Path) -> None:
    made = rocwheel("torch", "runpath", "--family", "gfx94X-dcgpu", cwd=tmp_path)
    assert "/_rocm_sdk_libraries_gfx94X_dcgpu/lib" in made.stdout


def test_a_folder_outside_of_site_packages_is_bad_usage(tmp_path: Path) -> None:
    failed = rocwheel("torch", "runpath", "--folder", "/usr/lib", cwd=tmp_path)
    assert (failed.returncode, failed.stderr) == (
        2,
        "error: --folder: is '/usr/lib'; expected a folder in site-packages, such as torch/lib\n",
    )
