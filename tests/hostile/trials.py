"""Runs a command on a hostile input in a process with little memory and time, and tells how it ended."""

from __future__ import annotations

import os
import resource
import signal
import stat
import sys
import time
import traceback
from pathlib import Path
from typing import NamedTuple

from rocwheel.cli import load_commands, main
from tests.hostile.inputs import INPUTS, NAMES
from tests.hostile.members import NOTHING

__all__ = ["COMMANDS", "MEMORY", "SECONDS", "WORDS", "Ended", "make_inputs", "run_trials"]

MEMORY = 3 << 30
"""Bytes of addresses: threads reserve many that they don't use."""
SECONDS = 20
"""Of processor time."""
PATIENCE = 120
"""Seconds after which a command counts as waiting for what never comes."""
SETTINGS = '[tool.rocwheel.audit]\nignore = ["undefined-symbol"]\n'
"""The library comes without those that it needs."""
LARGEST = 1300 << 20
"""Bytes of a file that a command may write: more than any may unpack, so that this never helps."""

WORDS: dict[str, dict[str, str]] = {
    "wheel": {
        "inspect": "inspect FILE",
        "audit": "audit FILE --config SETTINGS",
        "diff": "diff FILE FILE",
        "verify": "verify FILE",
        "report": "report FILE --output OUT/page.html",
        "repair": "repair FILE --output OUT --config SETTINGS",
        "index": "index HERE --output OUT --files copy",
        "publish": "publish HERE OUT",
        "promote": "promote HERE --to 2.0 --output OUT",
        "device list": "device list FILE",
        "device extract": "device extract FILE --output OUT",
        "device split": "device split FILE --output OUT",
        "device compress": "device compress FILE --output OUT",
        "device prune": "device prune FILE --targets gfx906 --output OUT",
        "device retarget": "device retarget gfx906=gfx900 FILE --output OUT --force --compress",
        "runpath show": "runpath show FILE",
        "targets coherent": "targets coherent FILE",
        "targets runs-on": "targets runs-on gfx906 FILE",
    },
    "sdist": {
        "index": "index HERE --output OUT --files copy",
        "publish": "publish HERE OUT",
        "promote": "promote HERE --to 2.0 --output OUT",
        "verify": "verify FILE",
        "diff": "diff FILE FILE",
        "selector merge": "selector merge FILE FILE --output OUT",
        "targets coherent": "targets coherent FILE",
    },
    "deb": {
        "artifacts import": "artifacts import FILE --output OUT",
        "targets coherent": "targets coherent FILE",
    },
    "archive": {
        "artifacts list": "artifacts list HERE",
        "artifacts extract": "artifacts extract FILE --output OUT",
        "artifacts archive": "artifacts archive HERE --output OUT",
        "artifacts merge": "artifacts merge HERE GOOD --primary HERE --output OUT",
        "artifacts fetch": "artifacts fetch HERE --output OUT",
        "build": "build --artifact-dir HERE --dest-dir OUT --version 1.0",
        "report": "report HERE --output OUT/page.html",
    },
    "tree": {
        "artifacts list": "artifacts list HERE",
        "artifacts archive": "artifacts archive HERE --output OUT",
        "artifacts merge": "artifacts merge HERE GOOD --primary HERE --output OUT",
        "build": "build --artifact-dir HERE --dest-dir OUT --version 1.0",
        "artifacts import": "artifacts import STAGE --output OUT",
        "inspect": "inspect STAGE",
        "audit": "audit STAGE --config SETTINGS",
        "report": "report HERE --output OUT/page.html",
        "diff": "diff STAGE STAGE",
        "device list": "device list STAGE",
        "device split": "device split STAGE --output OUT",
        "device compress": "device compress STAGE --output OUT/tree",
        "device prune": "device prune STAGE --targets gfx906 --output OUT/tree",
        "runpath show": "runpath show STAGE",
    },
    "page": {"index mirror": "index mirror PAGE --project a --output OUT"},
}
"""The command lines by kind of input and name."""

_COPYING = ("device split", "device compress", "device prune")
"""What makes copies of trees, with their links as they are."""

COMMANDS = [(kind, command) for kind, commands in WORDS.items() for command in commands]
"""Every kind of input with each command that takes it."""


class Ended(NamedTuple):
    """How a command ended on an input."""

    status: int
    """The exit status; -1 for a traceback, -2 for a signal."""

    text: str
    """What it printed, to both outputs."""

    seconds: float
    """Processor time."""

    memory: int
    """Most bytes in memory at a time, those of the process that it was forked from among them."""

    escaped: list[str]
    """What lies in its output that points out of it or is no file, folder or link."""


def make_inputs(kind: str, place: Path) -> None:
    """Make every input of a kind, each in a folder of its number below ``place``, and one without fault in ``good``."""
    (place / "good").mkdir()
    INPUTS[kind][NOTHING](place / "good")
    (place / "settings.toml").write_text(SETTINGS)
    for number, make in enumerate(INPUTS[kind].values()):
        (place / str(number)).mkdir()
        make(place / str(number))


def run_trials(kind: str, command: str, place: Path, outputs: Path) -> dict[str, Ended]:
    """Run a command on every input of a kind that `make_inputs` has put below ``place``; it writes to ``outputs``."""
    load_commands()  # once, not in each trial
    found = {}
    for number, name in enumerate(INPUTS[kind]):
        out = outputs / f"out{number}"
        out.mkdir()
        kept = _links(place / str(number)) if command in _COPYING else set()
        found[name] = _run(_words(kind, command, place / str(number), out), outputs / f"log{number}", out, kept)
    return found


def _words(kind: str, command: str, here: Path, out: Path) -> list[str]:
    places = {
        "FILE": here / NAMES[kind],
        "HERE": here,
        "STAGE": here / NAMES["tree"] / "stage",
        "OUT": out,
        "SETTINGS": here.parent / "settings.toml",
        "GOOD": here.parent / "good",
        "PAGE": f"file://{here}/{NAMES['page']}",
        "OUT/page.html": out / "page.html",
        "OUT/tree": out / "tree",
    }
    return [str(places.get(word, word)) for word in WORDS[kind][command].split()]


def _run(words: list[str], log: Path, out: Path, kept: set[str]) -> Ended:
    child = os.fork()
    if not child:
        _be_command(words, log)
    status, usage = _wait(child)
    text = log.read_text(errors="replace") if log.exists() else ""
    return Ended(status, text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10, _escaped(out, kept))


def _wait(child: int) -> tuple[int, resource.struct_rusage]:
    end = time.monotonic() + PATIENCE
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    code = os.waitstatus_to_exitcode(status)
    return (-2 if code < 0 else -1 if code == 99 else code), usage


def _be_command(words: list[str], log: Path) -> None:
    """Become a command line that writes what it prints to a file; never returns."""
    status = 99
    try:
        descriptor = os.open(log, os.O_CREAT | os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False, errors="backslashreplace")  # as Python itself has it
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, LARGEST))
        sys.argv = ["rocwheel", *words]
        status = _status_of_main()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _status_of_main() -> int:
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def _links(tree: Path) -> set[str]:
    """Return the texts of the links of a tree, which the copy that `device split` makes has too."""
    paths = [Path(folder, name) for folder, folders, files in os.walk(tree) for name in (*folders, *files)]
    return {str(path.readlink()) for path in paths if len(str(path)) < 4096 and path.is_symlink()}


def _escaped(out: Path, kept: set[str]) -> list[str]:
    found = []
    for folder, folders, files in os.walk(out):
        for name in (*folders, *files):
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                inside = Path(os.path.realpath(path)).is_relative_to(out.resolve())
                if not inside and str(path.readlink()) not in kept:
                    found.append(f"{path.relative_to(out)} -> {path.readlink()}")
            elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or mode & 0o6000:
                found.append(f"{path.relative_to(out)} of mode {mode:o}")
    return found
