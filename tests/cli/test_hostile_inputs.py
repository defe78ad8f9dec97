"""Every command that takes wheels, given what no builder writes: a message or a finding, never an accident."""

from __future__ import annotations

import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.hostile_wheels import HOSTILE_WHEELS, WHEEL_NAME

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

MEMORY = 3 << 30
"""Bytes of addresses: threads reserve many that they don't use."""
UNREADABLE = (
    *("empty", "symlink loop", "link to nothing", "noise", "text", "cut off", "a member without a name"),
    *("an offset of 2^63", "a member that calls itself otherwise"),
)
"""What no command can make anything of."""
HANGS = 300
"""Seconds; none of these commands takes more than two."""

COMMANDS = {
    "inspect": ["inspect", "WHEEL"],
    "audit": ["audit", "WHEEL"],
    "repair": ["repair", "WHEEL", "--dest-dir", "OUT"],
    "coherent": ["targets", "coherent", "WHEEL"],
    "runpath for": ["runpath", "for", "ELF", "--at", "site-packages/p/", "--with", "WHEEL"],
    "torch init": ["torch", "init", "--sdk-version", "7.0.0", "WHEEL"],
    "device list": ["device", "list", "WHEEL"],
    "runpath show": ["runpath", "show", "WHEEL"],
    "index": ["index", "FOLDER", "--output", "OUT", "--files", "copy"],
}
RUN = """
import sys, traceback
from rocwheel.cli import main
for line in sys.stdin.read().splitlines():
    sys.argv = ["rocwheel", *line.split("\\t")]
    try:
        main()
        status = 0
    except SystemExit as e:
        status = e.code
    except BaseException:
        traceback.print_exc()
        status = -1
    sys.stdout.flush()
    sys.stderr.flush()
    print(f"status\\t{status}", file=sys.stderr, flush=True)
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_hostile_wheels_are_refused_or_reported(command: str, tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(len(HOSTILE_WHEELS))]
    for folder, make in zip(folders, HOSTILE_WHEELS.values(), strict=True):
        folder.mkdir()
        make(folder / WHEEL_NAME)
    before = [names_in(folder) for folder in folders]
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input="\n".join(command_line(command, folder) for folder in folders),
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    assert "Traceback" not in done.stderr
    ended = [line.partition("\t")[2] for line in done.stderr.splitlines() if line.startswith("status\t")]
    statuses = dict(zip(HOSTILE_WHEELS, ended, strict=True))
    assert {name: status for name, status in statuses.items() if status not in ("0", "1", "2")} == {}
    assert {name for name in UNREADABLE if statuses[name] == "0"} == set()
    assert [names_in(folder) for folder in folders] == before


def command_line(command: str, folder: Path) -> str:
    output = folder.with_name(f"out{folder.name}")
    places = {"WHEEL": folder / WHEEL_NAME, "FOLDER": folder, "OUT": output, "ELF": sys.executable}
    return "\t".join(str(places.get(word, word)) for word in COMMANDS[command])


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
