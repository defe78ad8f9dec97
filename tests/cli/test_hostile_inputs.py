"""Every command that takes files, given what no builder writes: a message or a finding, never an accident."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.demo import SAMPLE_SDK
from tests.support.hostile_files import HOSTILE_FILES, NAMES
from tests.support.hostile_wheels import HOSTILE_WHEELS, WHEEL_NAME
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Iterable
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
    "diff": ["diff", "WHEEL", "WHEEL"],
    "verify": ["verify", "WHEEL"],
    "report": ["report", "WHEEL", "--output", "OUT"],
    "repair": ["repair", "WHEEL", "--output", "OUT"],
    "coherent": ["targets", "coherent", "WHEEL"],
    "runpath for": ["runpath", "for", "ELF", "--at", "site-packages/p/", "--with", "WHEEL"],
    "torch init": ["torch", "init", "--rocm", "7.0.0", "WHEEL"],
    "device list": ["device", "list", "WHEEL"],
    "device extract": ["device", "extract", "WHEEL", "--output", "OUT"],
    "device split": ["device", "split", "WHEEL", "--output", "OUT"],
    "runs-on": ["targets", "runs-on", "gfx906", "WHEEL"],
    "runpath show": ["runpath", "show", "WHEEL"],
    "index": ["index", "FOLDER", "--output", "OUT", "--files", "copy"],
}
SAMPLE = str(SAMPLE_SDK)
FILE_COMMANDS = {
    "index": ("sdist", ["index", "FOLDER", "--output", "OUT"]),
    "coherent": ("sdist", ["targets", "coherent", "FILE"]),
    "coherent deb": ("deb", ["targets", "coherent", "FILE"]),
    "from-deb": ("deb", ["artifacts", "import", "FILE", "--output", "OUT"]),
    "artifacts list": ("artifact", ["artifacts", "list", "FOLDER"]),
    "artifacts extract": ("artifact", ["artifacts", "extract", "FILE", "--output", "OUT"]),
    "artifacts merge": ("artifact", ["artifacts", "merge", "FOLDER", SAMPLE, "--primary", SAMPLE, "--output", "OUT"]),
    "artifacts archive": ("artifact", ["artifacts", "archive", "FOLDER", "--output", "OUT"]),
    "build": ("artifact", ["build", "--artifact-dir", "FOLDER", "--dest-dir", "OUT"]),
    "inspect": ("binary", ["inspect", "--deep", "FILE"]),
    "device list": ("binary", ["device", "list", "FILE"]),
    "device extract": ("binary", ["device", "extract", "FILE", "--output", "OUT"]),
    "device compress": ("binary", ["device", "compress", "FILE", "-o", "OUT"]),
    "device prune": ("binary", ["device", "prune", "FILE", "--targets", "gfx906", "-o", "OUT"]),
    "device retarget": ("binary", ["device", "retarget", "gfx1030=gfx1031", "FILE", "--compress", "-o", "OUT"]),
    "inspect kpack": ("kpack", ["inspect", "FILE"]),
    "list kpack": ("kpack", ["device", "list", "FILE"]),
    "extract kpack": ("kpack", ["device", "extract", "FILE", "--output", "OUT"]),
    "compress kpack": ("kpack", ["device", "compress", "FILE", "-o", "OUT"]),
    "runs-on kpack": ("kpack", ["targets", "runs-on", "gfx906", "FILE"]),
    "inspect frames": ("kpack frames", ["inspect", "--deep", "FILE"]),
    "extract frames": ("kpack frames", ["device", "extract", "FILE", "--output", "OUT"]),
    "compress frames": ("kpack frames", ["device", "compress", "--level", "1", "FILE", "-o", "OUT"]),
    "runpath show": ("binary", ["runpath", "show", "FILE"]),
    "runpath set": ("binary", ["runpath", "set", "$ORIGIN", "FILE", "--output", "OUT"]),
}
"""Commands with the kind of file that they take; each refuses all of that kind."""
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
    ended = run_all(command_line(COMMANDS[command], folder, WHEEL_NAME) for folder in folders)
    statuses = dict(zip(HOSTILE_WHEELS, ended, strict=True))
    assert {name: status for name, status in statuses.items() if status not in ("0", "1", "2")} == {}
    assert {name for name in UNREADABLE if statuses[name] == "0"} == set()
    assert [names_in(folder) for folder in folders] == before


@pytest.mark.parametrize("command", FILE_COMMANDS)
def test_hostile_files_are_refused(command: str, tmp_path: Path) -> None:
    kind, words = FILE_COMMANDS[command]
    folders = [tmp_path / str(number) for number in range(len(HOSTILE_FILES[kind]))]
    for folder, data in zip(folders, HOSTILE_FILES[kind].values(), strict=True):
        folder.mkdir()
        (folder / NAMES[kind]).write_bytes(data)
    ended = run_all(command_line(words, folder, NAMES[kind]) for folder in folders)
    statuses = dict(zip(HOSTILE_FILES[kind], ended, strict=True))
    assert {name: status for name, status in statuses.items() if status not in ("1", "2")} == {}
    assert [path for path in tmp_path.glob("out*/**/*") if path.is_file()] == []
    assert {name for folder in folders for name in names_in(folder)} == {NAMES[kind]}


def test_the_same_commands_accept_a_valid_file(tmp_path: Path) -> None:
    commands = [name for name, (kind, _) in FILE_COMMANDS.items() if kind == "binary"]
    lines = []
    for command in commands:
        folder = tmp_path / command.replace(" ", "-")
        folder.mkdir()
        shutil.copy(FIXTURES / "v22/libtwo.plain.so", folder / NAMES["binary"])
        lines.append(command_line(FILE_COMMANDS[command][1], folder, NAMES["binary"]))
    assert dict(zip(commands, run_all(lines), strict=True)) == dict.fromkeys(commands, "0")


def run_all(lines: Iterable[str]) -> list[str]:
    """Run command lines in a process of their own, with little memory, and return how each ended."""
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    assert "Traceback" not in done.stderr
    return [line.partition("\t")[2] for line in done.stderr.splitlines() if line.startswith("status\t")]


def command_line(words: Iterable[str], folder: Path, name: str) -> str:
    output = folder.with_name(f"out{folder.name}")
    file = folder / name
    places = {"WHEEL": file, "FILE": file, "FOLDER": folder, "OUT": output, "ELF": sys.executable}
    return "\t".join(str(places.get(word, word)) for word in words)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
