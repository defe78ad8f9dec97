"""``scripts/make-chroot.sh``: a folder with a release of Debian in it is complete or not there."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

PROGRAMS = {
    "apt-get": 'case "$1" in indextargets) cat "$MACHINE/archives";; *) echo "$@" >>"$MACHINE/calls";; esac',
    "apt-config": "echo 'Acquire::Retries \"3\";'",
    "id": 'cat "$MACHINE/uid"',
    "unshare": 'shift; exec "$@"',
    "chroot": 'echo "$@" >>"$MACHINE/calls"',
    "mmdebstrap": (
        'echo "$@" >>"$MACHINE/calls"\nfor last; do before=${here:-}; here=$last; done\n'
        'mkdir "$before/root" "$before/etc"\n'
        '[ ! -e "$MACHINE/broken" ]'
    ),
}


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Return a folder with a machine's programs, whose user is root and whose apt has one archive of Debian."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "uid").write_text("0\n")
    (tmp_path / "archives").write_text("http://example.org/debian-security/\nhttp://example.org/debian/\n")
    return tmp_path


def make_chroot(machine: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(ROOT / "scripts/make-chroot.sh"), *arguments]
    environ = {**os.environ, "PATH": f"{machine}:{os.environ['PATH']}", "MACHINE": str(machine)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ)


def made(machine: Path) -> int:
    """Return how many times a system was made."""
    calls = machine / "calls"
    return calls.read_text().count("--variant=minbase") if calls.exists() else 0


def test_the_release_comes_from_the_mirror_that_apt_uses(machine: Path) -> None:
    assert make_chroot(machine, "--mirror").stdout == "http://example.org/debian/\n"
    assert make_chroot(machine, "trixie", f"{machine}/made/sid", "python3", "g++").returncode == 0
    call = next(line for line in (machine / "calls").read_text().splitlines() if "minbase" in line)
    assert "--include=python3,g++ " in call
    assert " trixie " in call
    assert call.endswith(" http://example.org/debian/")


def test_a_folder_with_the_requested_packages_is_kept(machine: Path) -> None:
    for packages, times in ((["python3"], 1), (["python3"], 1), (["python3", "g++"], 2)):
        assert make_chroot(machine, "sid", f"{machine}/made/sid", *packages).returncode == 0
        assert made(machine) == times


def test_a_failure_leaves_nothing_and_keeps_the_previous_folder(machine: Path) -> None:
    make_chroot(machine, "sid", f"{machine}/made/sid", "python3")
    (machine / "broken").touch()
    assert make_chroot(machine, "sid", f"{machine}/made/sid", "python3", "g++").returncode == 1
    assert (machine / "made/sid/.made-of").read_text() == "sid python3\n"
    assert not list(machine.glob("made/sid.new.*"))


def test_leftovers_of_a_killed_run_are_removed(machine: Path) -> None:
    (machine / "made/sid.new.abc").mkdir(parents=True)
    assert make_chroot(machine, "sid", f"{machine}/made/sid", "python3").returncode == 0
    assert not list(machine.glob("made/sid.new.*"))


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("uid", "1000\n", "no chroot can be made here: that takes root\n"),
        ("archives", "", "no chroot can be made here: apt knows no archive of Debian\n"),
        (
            "unshare",
            "#!/bin/sh\nexit 1\n",
            "no chroot can be made here: this machine allows no mounts (unshare --mount)\n",
        ),
    ],
)
def test_a_machine_that_cannot_make_a_chroot_gives_the_reason(machine: Path, file: str, text: str, reason: str) -> None:
    (machine / file).write_text(text)
    done = make_chroot(machine, "sid", f"{machine}/made/sid", "python3")
    assert (done.returncode, done.stderr) == (3, reason)
    assert not (machine / "made/sid").exists()
