"""Exec stubs and forwarding libraries under attack: what they lead to is where they lie, whatever a caller pretends."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.stubs import make_exec_stub, make_forwarding_library

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

MACHINE = {"x86_64": 62, "aarch64": 183}.get(platform.machine(), 0)
LINKS = 40
"""The most symlinks that Linux follows for one path (path_resolution(7))."""


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    """Return a stub in ``site/bin`` for ``../lib/real``."""
    if not MACHINE:
        pytest.skip("there are stubs for x86-64 and AArch64 alone")
    write_program(tmp_path / "site/lib/real", "true one")
    stub = tmp_path / "site/bin/tool"
    stub.parent.mkdir()
    stub.write_bytes(make_exec_stub(MACHINE, "../lib/real"))
    stub.chmod(0o755)
    return stub


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a working directory from which ``../lib/real`` is another program, as is every other guess."""
    folder = tmp_path / "hostile/bin"
    folder.mkdir(parents=True)
    for place in (folder.parent / "lib/real", folder / "real", folder / "lib/real", folder / "tool"):
        write_program(place, "planted one")
    return folder


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    "name",
    [
        "tool",
        "./tool",
        "{hostile}/tool",
        "../lib/real",
        "",
        "/proc/self/exe",
        "-tool",
        "x" * 100_000,
        "\n\x1b[2J",
        "%s%n",
    ],
    ids=lambda name: name[:12].encode("unicode_escape").decode(),
)
def test_argv0_does_not_redirect_a_stub(stub: Path, hostile: Path, name: str) -> None:
    done = subprocess.run(
        [name.format(hostile=hostile) if "{" in name else name],
        executable=stub,
        cwd=hostile,
        env={"PATH": ".", "_": f"{hostile}/tool", "PWD": str(hostile)},
        capture_output=True,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == (b"true one\n", b"", 0)


@pytest.mark.parametrize("links", [1, LINKS])
def test_a_chain_of_links_in_hostile_folders_runs_the_target_of_the_stub(stub: Path, hostile: Path, links: int) -> None:
    before = stub
    for number in range(links):
        link = hostile / f"link{number}"
        link.symlink_to(before)
        before = link
    done = subprocess.run([before], cwd=hostile, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("true one\n", 0)


def test_the_system_refuses_a_longer_chain(stub: Path, hostile: Path) -> None:
    before = stub
    for number in range(LINKS + 1):
        (hostile / f"link{number}").symlink_to(before)
        before = hostile / f"link{number}"
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        subprocess.run([before], check=False)


def test_the_error_for_a_target_that_is_a_link_loop_names_the_target(stub: Path) -> None:
    real = stub.parents[1] / "lib/real"
    real.unlink()
    real.symlink_to("real")
    done = subprocess.run([stub], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (127, f"{stub}: cannot run {stub.parent}/../lib/real: errno 40\n")


def test_a_forwarding_library_loads_the_library_beside_its_own_file(tmp_path: Path) -> None:
    # Given libraries of one name in the package, the working directory and a folder with a link to the package's
    if not shutil.which("gcc"):
        pytest.skip("needs gcc (Debian package build-essential)")
    for folder, number in (("site", 1), ("cwd", 2), ("path", 3)):
        (tmp_path / folder).mkdir()
        source = tmp_path / f"{folder}.c"
        source.write_text(f"int which(void) {{ return {number}; }}\n")
        library = tmp_path / folder / "libx.so.1"
        subprocess.run(["gcc", "-shared", "-fPIC", "-Wl,-soname,libx.so.1", "-o", library, source], check=True)
    (tmp_path / "site/libx.so").write_bytes(make_forwarding_library("libx.so.1", MACHINE, RunpathTag.RUNPATH))
    code = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).which())"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(tmp_path / "site/libx.so")],
        cwd=tmp_path / "cwd",
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("1\n", "")
