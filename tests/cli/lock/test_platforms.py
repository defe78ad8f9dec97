"""Lock files for several platforms."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from packaging.markers import Environment, default_environment
from packaging.pylock import Pylock
from packaging.tags import parse_tag

from rocwheel.index.write_index import write_index
from tests.support.command_line import rocwheel
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

LINUX, WINDOWS = "py3-none-manylinux_2_17_x86_64", "py3-none-win_amd64"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Return the folder of an index whose packages require others on Linux than on Windows."""
    requires = ('rocm-linux==7.0.0 ; sys_platform == "linux"', 'rocm-windows==7.0.0 ; sys_platform == "win32"')
    make_wheel(tmp_path / "dist", "rocm-sdk", {}, version="7.0.0", tag="py3-none-any", requires=requires)
    make_wheel(tmp_path / "dist", "rocm-linux", {}, version="7.0.0", tag=LINUX)
    make_wheel(tmp_path / "dist", "rocm-windows", {}, version="7.0.0", tag=WINDOWS)
    write_index(tmp_path / "dist", tmp_path / "simple")
    return tmp_path


def lock(run: Run, there: Path, *words: str) -> Pylock:
    index = ("--index-url", (there / "simple").as_uri())
    assert run("lock", "rocm-sdk", *index, "-o", there / "pylock.toml", "-q", *words) == (0, "", "")
    return Pylock.from_dict(msgspec.toml.decode((there / "pylock.toml").read_bytes()))


def test_a_lock_file_for_all_platforms_has_markers(run: Run, there: Path) -> None:
    locked = lock(run, there, "--universal")
    assert [(package.name, str(package.marker or "")) for package in locked.packages] == [
        ("rocm-linux", 'sys_platform == "linux"'),
        ("rocm-sdk", ""),
        ("rocm-windows", 'sys_platform == "win32"'),
    ]
    first = (there / "pylock.toml").read_bytes()
    lock(run, there, "--universal")
    assert (there / "pylock.toml").read_bytes() == first
    assert chosen(locked, "linux", LINUX) == ["rocm-linux", "rocm-sdk"]
    assert chosen(locked, "win32", WINDOWS) == ["rocm-sdk", "rocm-windows"]


def chosen(locked: Pylock, system: str, tag: str) -> list[str]:
    """Return what an installer takes on another platform."""
    environment = cast("Environment", {**default_environment(), "sys_platform": system})
    tags = [*parse_tag(tag), *parse_tag("py3-none-any")]
    return [package.name for package, _ in locked.select(environment=environment, tags=tags)]


@pytest.mark.skipif(sys.platform != "linux", reason="locks for Linux")
def test_a_lock_file_is_for_this_platform_unless_told_otherwise(run: Run, there: Path) -> None:
    assert [package.name for package in lock(run, there).packages] == ["rocm-linux", "rocm-sdk"]


@pytest.mark.parametrize("version", ["abc", "2.7", "3", "3.12.x"])
def test_a_python_that_is_none_is_told_by_its_option(run: Run, there: Path, version: str) -> None:
    index = ("--index-url", (there / "simple").as_uri())
    done = run("lock", "rocm-sdk", *index, "-o", there / "pylock.toml", "--python-version", version)
    expected = "a version of Python 3 such as 3.12"
    assert (done.status, done.stderr) == (2, f"error: --python-version: is {version!r}; expected {expected}\n")


def test_a_folder_for_temporary_files_that_is_not_there_is_told_by_its_variable(there: Path) -> None:
    words = ("rocm-sdk", "--index-url", (there / "simple").as_uri(), "-o", there / "pylock.toml")
    done = rocwheel("lock", *words, environ={"TMPDIR": "/nowhere"})
    told = "error: TMPDIR: names /nowhere, where no file can be made. Correct or unset it.\n"
    assert (done.returncode, done.stderr) == (1, told)
