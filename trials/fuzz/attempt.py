"""One run of a harness over one input, within bounds of time and memory."""

from __future__ import annotations

import resource
import signal
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

import trials.fuzz.harness
from rocwheel.core.errors import limit_remedy
from tests.support.places import ROOT
from trials.fuzz.harness import WrongAnswerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trials.fuzz.harness import Harness

__all__ = ["MOST_MEMORY", "MOST_SECONDS", "Fault", "attempt"]

MOST_SECONDS = 5
"""Processor time of one input: unlike time on the clock, it doesn't depend on what else the machine does."""
MOST_MEMORY = 512 << 20
"""Bytes that the process may grow by for one input."""
_NO_PLACES = (__file__, trials.fuzz.harness.__file__)
"""Each fault leads through the first, and each wrong answer through the second, whichever comparison it is of."""


class Fault(msgspec.Struct, frozen=True):
    """What went wrong: its kind, the place in the project where it shows, and a text."""

    kind: str
    """``crash``, ``hang``, ``memory`` or ``wrong answer``."""
    place: str
    text: str


class _HangError(BaseException):
    """An input that takes too long; not an `Exception`, so that no parser takes it for one of its own."""


def attempt(harness: Harness, data: bytes) -> Fault | None:
    """Run a harness over one input; return what went wrong, none where all is well."""
    before = _peak()
    try:
        with _limited_time():
            fault = _run(harness, data)
    except _HangError as e:
        fault = _fault("hang", e)
    grown = _peak() - before
    if fault is None and grown > MOST_MEMORY:
        return Fault("memory", harness.name, f"{grown >> 20} MiB for an input of {len(data)} bytes")
    return fault


def _run(harness: Harness, data: bytes) -> Fault | None:
    try:
        harness.run(data)
    except harness.expected as e:
        return _check_refusal(harness, e)
    except WrongAnswerError as e:
        return _fault("wrong answer", e)
    except MemoryError as e:
        return _fault("memory", e)
    except Exception as e:  # any other is what is looked for
        return _fault("crash", e)
    return None


def _check_refusal(harness: Harness, error: Exception) -> Fault | None:
    """Return what is wrong with a typed error: that there was no memory, or that it says nothing."""
    chain: BaseException | None = error if MemoryError not in harness.expected else None
    while chain is not None:
        if limit_remedy(chain):
            return _fault("memory", error)
        chain = chain.__cause__
    return None if str(error).strip() else _fault("wrong answer", error)


def _fault(kind: str, error: BaseException) -> Fault:
    text = "".join(traceback.format_exception(error))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(str(ROOT))]
    own = [frame for frame in frames if frame.filename not in _NO_PLACES] or frames
    place = f"{Path(own[-1].filename).relative_to(ROOT)}:{own[-1].lineno}" if own else "?"
    return Fault(kind, f"{type(error).__name__} at {place}", text)


@contextmanager
def _limited_time() -> Iterator[None]:
    def stop(*_: object) -> NoReturn:
        raise _HangError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _peak() -> int:
    """Return the most memory that the process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
