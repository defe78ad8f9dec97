"""What runs need of this machine: chroots, interpreters, and the distributions that are installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.environments.matrix import Interpreter, Release
from scripts.find_python import find_python

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    _Command: TypeAlias = list[str | Path]

__all__ = ["ObstacleError", "build_packages", "enter", "fetch_tool", "find_interpreters", "make_release"]

ROOT = Path(__file__).resolve().parents[2]
_HERE = Path(__file__).parent
_CACHE = ROOT / ".cache"
_BIN = Path(sys.executable).parent
_RUN_LIMIT = 900  # seconds
_CHROOT_PACKAGES = ("python3", "python3-venv")
_FACTS = (
    "import os, sys; print(os.confstr('CS_GNU_LIBC_VERSION').split()[1], '%d.%d' % sys.version_info[:2], sep='\\n')"
)
# What all supported releases can load; pip takes each tag by itself alone.
_PLATFORMS = ("manylinux_2_34_x86_64", "manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")


class ObstacleError(Exception):
    """Something that this machine lacks for a run, in words for people."""


def make_release(name: str, limit: int | None) -> Release:
    """Return a release of Debian in a chroot, which is made unless it is there. ``limit`` is in seconds.

    Raises `ObstacleError` when it can't be made, or not within the limit.
    """
    chroot = _CACHE / "chroots" / name
    timeout = ["timeout", "--kill-after=30", str(limit)] if limit else []
    command: _Command = [*timeout, "bash", ROOT / "scripts/make-chroot.sh", name, chroot, *_CHROOT_PACKAGES]
    made = _run(command)
    if made.returncode:
        slow = f"its chroot was not there within {limit} seconds"
        raise ObstacleError(slow if limit and made.returncode in (124, 137) else made.stdout.strip()[-1000:])
    facts = _run(["chroot", chroot, "/usr/bin/python3", "-c", _FACTS])
    if facts.returncode:
        raise ObstacleError(facts.stdout.strip())
    return Release(name, chroot, *facts.stdout.split())


def find_interpreters(versions: Iterable[str]) -> tuple[list[Interpreter], list[str]]:
    """Return this machine's interpreters of these versions, and notes on those that it lacks.

    One in ``/usr`` is none: a chroot has its own there.
    """
    found, notes = [], []
    for version in versions:
        program = find_python(version)
        if program is None or (prefix := program.parent.parent) in (Path("/usr"), Path("/")):
            notes.append(f"Python {version} is not on this machine outside of /usr (uv python install {version})")
        else:
            found.append(Interpreter(version, prefix, program))
    return found, notes


def build_packages() -> tuple[Path, str]:
    """Build the packages of the sample SDK; return their folder and their version."""
    folder = _CACHE / "environments/packages"
    sample = ROOT / "src/rocwheel/sample"
    _demand([_BIN / "rocwheel", "build", "--quiet", "--artifact-dir", sample, "--dest-dir", folder])
    (selector,) = (folder / "dist").glob("rocm-*.tar.gz")
    return folder / "dist", selector.name.removeprefix("rocm-").removesuffix(".tar.gz")


def fetch_tool(python: str) -> Path:
    """Build rocwheel's wheel, download wheels of all that it needs on a Python, and return their folder.

    Raises `ObstacleError` with the words of uv or pip when something has no wheel for this Python.
    """
    folder = _CACHE / "environments" / f"rocwheel-{python}"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("rocwheel-*.whl"):
        old.unlink()
    pip: _Command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    _demand([*pip, "wheel", "--no-deps", "--wheel-dir", folder, ROOT])
    pins = folder / "pins.txt"
    uv: _Command = [_BIN / "uv", "--quiet", "pip", "compile", "--no-header", "--no-annotate", "--only-binary", ":all:"]
    _demand([*uv, "--python-version", python, "--python-platform", "x86_64-manylinux_2_34",
             ROOT / "pyproject.toml", "--output-file", pins])  # fmt: skip
    wanted = [part for tag in _PLATFORMS for part in ("--platform", tag)]
    _demand([*pip, "download", "--no-deps", "--only-binary=:all:", "--python-version", python, *wanted,
             "--find-links", folder, "--dest", folder, "--requirement", pins])  # fmt: skip
    return folder


def enter(
    release: Release, dist: Path, check: str, user: str, *arguments: str, prefix: Path | None = None
) -> tuple[int, str]:
    """Run a check in a chroot as a user; return its status and output; the chroot sees a ``prefix`` where it is."""
    shown = [f"-sdist={dist}", f"-schecks={_HERE}", *([f"-p{prefix}"] if prefix else [])]
    command: _Command = ["bash", ROOT / "scripts/enter-chroot.sh", *shown, release.chroot, user]
    done = _run([*command, "sh", f"/mnt/checks/{check}", *arguments])
    return done.returncode, done.stdout


def _demand(command: _Command) -> None:
    """Run a command; raises `ObstacleError` with its output when it fails."""
    done = _run(command)
    if done.returncode:
        raise ObstacleError(done.stdout.strip()[-2000:])


def _run(command: _Command) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, at most as long as a run may take; both of its outputs in one text."""
    try:
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            check=False,
            timeout=_RUN_LIMIT,
        )
    except subprocess.TimeoutExpired as e:
        said = e.stdout.decode(errors="replace") if isinstance(e.stdout, bytes) else ""
        return subprocess.CompletedProcess(command, 124, f"{said}\nended after {_RUN_LIMIT} seconds")
