"""``scripts/apt-get.sh``: apt-get that waits for another apt to end."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Return a folder with an apt-get that fails while ``locked`` has lines, and a sleep that takes no time."""
    apt_get = (
        f'#!/bin/sh\ncd {tmp_path}\necho "$@" >>calls\nif [ -s locked ]; then\n  head -n 1 locked >&2\n'
        "  sed -i 1d locked\n  exit 100\nfi\necho done\n"
    )
    for name, text in (("apt-get", apt_get), ("sleep", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def apt_get(machine: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(ROOT / "scripts/apt-get.sh"), *arguments]
    environ = {**os.environ, "PATH": f"{machine}:{os.environ['PATH']}"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ)


def test_a_locked_apt_database_is_waited_for(machine: Path) -> None:
    (machine / "locked").write_text(f"{LOCKED}\n" * 2)
    done = apt_get(machine, "update", "-qq")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "waiting for another apt to end\n")
    assert (machine / "calls").read_text() == "-o DPkg::Lock::Timeout=600 update -qq\n" * 3


def test_other_failures_are_reported_at_once(machine: Path) -> None:
    (machine / "locked").write_text("E: Unable to locate package none\n" * 2)
    done = apt_get(machine, "install", "none")
    assert (done.returncode, done.stderr) == (100, "E: Unable to locate package none\n")
    assert len((machine / "calls").read_text().splitlines()) == 1


def test_no_other_script_calls_apt_get_directly() -> None:
    call = re.compile(r"""^[^#\n]*\bapt-get(?:",|\s+(?:-o|-q|-y|update|install|download)\b)""", re.MULTILINE)
    places = [
        path
        for name in ("scripts", "examples", "trials/benchmarks", ".ci", ".github")
        for path in (ROOT / name).rglob("*")
    ]
    scripts = [
        path for path in [ROOT / "Makefile", *places] if path.suffix in {".sh", ".py", ".yml", ""} and path.is_file()
    ]
    assert [path.name for path in scripts if call.search(path.read_text())] == ["apt-get.sh"]
