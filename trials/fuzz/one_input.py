"""One input that was found, run again: ``python -m trials.fuzz --input FILE``.

It runs in a process of its own, for it may take all memory, never end, or end the process.
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from trials.fuzz.attempt import Fault, attempt

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

    from trials.fuzz.harness import Harness

__all__ = ["choose_harness", "run_again", "take_file"]

ADDRESS_SPACE = 2 << 30
"""Bytes; as many as the fuzzer lets a process have in memory, so that no input takes all of the machine's."""
STUCK = 30
"""Seconds on the clock: for what waits, or what Python can't interrupt."""
_OPTION = "--input"


def take_file(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """Return the file behind ``--input``, none without this option, and the other words.

    Raises `ValueError` for a file that isn't given or can't be read, and for the note about an input.
    """
    if _OPTION not in words:
        return None, [*words]
    place = words.index(_OPTION)
    rest = [*words[:place], *words[place + 2 :]]
    if place + 1 == len(words) or words[place + 1].startswith("-"):
        msg = f"{_OPTION}: no file is given; expected an input, such as .cache/fuzz/found/elf.join-0123456789ab"
        raise ValueError(msg)
    path = Path(words[place + 1])
    _require_input(path)
    return path, rest


def _require_input(path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as e:
        msg = f"{_OPTION}: {path} can't be read ({e.strerror}); expected the file of an input"
        raise ValueError(msg) from e
    if path.suffix == ".txt" and path.with_suffix("").exists():
        msg = f"{_OPTION}: {path} is the note about an input; give {path.with_suffix('')}"
        raise ValueError(msg)


def choose_harness(path: Path, wanted: Sequence[str], names: Sequence[str]) -> str:
    """Return the harness of an input: the one among ``wanted``, without any the one its file name begins with.

    Raises `ValueError` for several, and for a file that is named after none of ``names``.
    """
    if len(wanted) > 1:
        msg = f"{_OPTION}: {', '.join(wanted)} are {len(wanted)} harnesses; give one"
        raise ValueError(msg)
    name = wanted[0] if wanted else path.name.partition("-")[0]
    if name not in names:
        msg = f"{_OPTION}: {path.name} is named after no harness; name one behind it; there are {', '.join(names)}"
        raise ValueError(msg)
    return name


def run_again(harness: Harness, data: bytes) -> Fault | None:
    """Run a harness over one input in a process of its own with little memory; return what is wrong, or none."""
    context = multiprocessing.get_context("fork")  # a harness is functions, which no new process could be sent
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_attempt, args=(harness, data, sender))
    process.start()
    sender.close()
    try:
        if not receiver.poll(STUCK):
            return Fault("hang", harness.name, f"the process did not end within {STUCK} seconds")
        fault: Fault | None = receiver.recv()
    except EOFError:
        process.join()
        return Fault("crash", harness.name, f"the process ended {_end_of(process.exitcode or 0)}")
    finally:
        process.kill()
        process.join()
    return fault


def _attempt(harness: Harness, data: bytes, sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    sender.send(attempt(harness, data))


def _end_of(status: int) -> str:
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
