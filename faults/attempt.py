"""One run of a case with a fault in it, and the run after that: what of both is wrong."""

from __future__ import annotations

import errno
import os
import re
import shutil
import traceback
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

from faults.folder_state import State, differences, leftovers, read_state, without_hidden, wrong_files
from faults.forked import Running, run
from faults.shim import Fault, Hit, Mode, Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from faults.case import Case, Place
    from faults.forked import Command, Ended

__all__ = [
    "Attempt",
    "Undisturbed",
    "attempt",
    "attempt_by",
    "attempt_kill",
    "begin",
    "check_rest",
    "in_child",
    "is_uncaught",
    "look_at",
    "prepare",
]

_UNCAUGHT = ("Traceback", "Exception ignored", "Logging error", "Fatal Python error")
_ERROR = re.compile(r"^(?:rocm-sdk: )?error: ", re.MULTILINE)
_OTHER_WORDS = {errno.ENOSPC: ("is full", "bytes to write"), errno.EROFS: ("where no file can be made",)}
"""What messages may say in place of the words of the C library."""


@dataclass(frozen=True)
class Undisturbed:
    """A run without faults, to which others are held."""

    given: State
    before: State
    """What stood where it writes."""
    after: State
    without: tuple[State, ...]
    """What it makes without one of the files that it may leave out."""
    seconds: float
    trace: str
    """A line for each call: number, name, needs and path."""


@dataclass(frozen=True)
class Attempt:
    """What a run with a fault came to."""

    fault: str
    hit: Hit | None
    status: int
    problems: tuple[str, ...]
    messages: str


def prepare(make: Callable[[Place], None], place: Place) -> None:
    """Make what commands read, in a process that ends with it: they must not find what it has noted."""
    place.root.mkdir(parents=True, exist_ok=True)
    for path in place.root.iterdir():
        shutil.rmtree(path)
    place.clear()
    in_child(make, place)
    place.clear()


def in_child(make: Callable[[Place], None], place: Place) -> None:
    """Call a function in a process that ends with it."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            make(place)
            status = 0
        except BaseException:  # a process of its own has to show it
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"{place.root}: what the case reads could not be made"


def begin(case: Case, place: Place) -> None:
    """Have all be as before a run."""
    place.clear()
    in_child(case.begin, place)


def look_at(case: Case, place: Place) -> Undisturbed:
    """Run a case without faults, twice, and return what it made; both have to make the same."""
    begin(case, place)
    given, before = read_state(place.given), _made(case, place)
    trace = os.memfd_create("trace")
    ended = run(case.command(place), Plan(case.watched(place), trace=trace))
    assert ended.status == 0, ended.messages
    after = _made(case, place)
    begin(case, place)
    ended = run(case.command(place))
    assert (ended.status, differences(_made(case, place), after)) == (0, []), ended.messages
    without = tuple(_made_without(case, place, name) for name in case.may_leave_out)
    with os.fdopen(trace, "rb") as file:
        file.seek(0)
        return Undisturbed(given, before, after, without, ended.seconds, file.read().decode(errors="surrogateescape"))


def _made(case: Case, place: Place) -> State:
    return read_state(place.out, case.varies)


def _made_without(case: Case, place: Place, name: str) -> State:
    """Return what is made without one of the files that are read."""
    begin(case, place)
    aside = (place.given / name).rename(place.root / "aside")
    ended = run(case.command(place))
    aside.rename(place.given / name)
    assert ended.status == 0, ended.messages
    return _made(case, place)


def attempt(case: Case, place: Place, calm: Undisturbed, fault: Fault) -> Attempt:
    """Run a case with a fault, then without; return what was wrong."""
    begin(case, place)
    plan = Plan(case.watched(place), fault)
    ended = run(case.command(place), plan)
    problems = _check_messages(case, place, ended, fault, plan.hit) if plan.hit else []
    return _finish(case, place, calm, ended, str(fault), plan.hit, problems)


def attempt_by(
    case: Case, place: Place, calm: Undisturbed, run_there: Callable[[Command], Ended], error: int
) -> Attempt:
    """Run a case where all it does may end in an error, then without; return what was wrong."""
    begin(case, place)
    ended = run_there(case.command(place))
    fault, hit = Fault("write", 0, Mode.FAIL, error), Hit(0, "write", str(place.root))
    problems = _check_messages(case, place, ended, fault, hit)
    return _finish(case, place, calm, ended, str(fault), hit, problems)


def attempt_kill(case: Case, place: Place, calm: Undisturbed, after: float) -> Attempt:
    """Kill a case after so many seconds, then run it to its end; return what was wrong."""
    begin(case, place)
    ended = Running(case.command(place)).wait(after)
    return _finish(case, place, calm, ended, f"killed after {after:.3f} s", None, [])


def _finish(
    case: Case, place: Place, calm: Undisturbed, ended: Ended, fault: str, hit: Hit | None, problems: list[str]
) -> Attempt:
    state, after = _lasting(case, _made(case, place)), _lasting(case, calm.after)
    problems += case.check(place)
    if ended.status == 0:
        problems += [f"ends well, but {line}" for line in differences(without_hidden(state), without_hidden(after))]
    else:
        problems += wrong_files(state, calm.before, calm.after, *calm.without)
    again = run(case.command(place))
    if _is_refused(again):  # it writes over nothing, and had done its work
        _take_away(place)
        again = run(case.command(place))
    if again.status or is_uncaught(again.messages):
        problems.append(f"the next run ends with {again.status}: {again.messages}")
    rest = differences(_made(case, place), calm.after) + check_rest(place, calm.given)
    problems += [f"after the next run {line}" for line in rest]
    return Attempt(fault, hit, ended.status, tuple(problems), ended.messages)


def _is_refused(ended: Ended) -> bool:
    return ended.status == 2 and ("already exists" in ended.messages or "exists already" in ended.messages)


def _take_away(place: Place) -> None:
    """Remove what was made, but not what is hidden in the folder where a file of it would be."""
    if not leftovers(read_state(place.out)):
        shutil.rmtree(place.out)
        return
    for path in place.out.iterdir():
        if not path.name.startswith("."):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def check_rest(place: Place, given: State) -> list[str]:
    """Return what is left in the cache and the folder for temporary files, and what of the inputs has changed."""
    left = leftovers(read_state(place.cache)) + [f"{path} is left" for path in read_state(place.temporary)]
    return left + differences(read_state(place.given), given)


def is_uncaught(messages: str) -> bool:
    """Return whether a traceback or the like is in the messages of a command."""
    return any(text in messages for text in _UNCAUGHT)


def _lasting(case: Case, state: State) -> State:
    """Return a state without what stands there only meanwhile."""
    return {path: text for path, text in state.items() if not any(fnmatch(path, one) for one in case.between)}


def _check_messages(case: Case, place: Place, ended: Ended, fault: Fault, hit: Hit) -> list[str]:
    """Return what is wrong with how a command ended: one error, with the path and the reason, or none at all."""
    problems = [f"{text!r} is in its messages" for text in _UNCAUGHT if text in ended.messages]
    if fault.mode in {Mode.KILL_BEFORE, Mode.KILL_AFTER}:
        return problems
    if fault.mode == Mode.SHORT and ended.status:
        return [*problems, f"ends with {ended.status} as fewer bytes were moved at once"]
    if ended.status not in {0, 1, 2}:
        problems.append(f"ends with {ended.status}")
    if not ended.status:
        return problems
    text = ended.messages + (ended.text if case.is_report else "")
    number = len(_ERROR.findall(text))
    if number != (0 if case.is_report and ended.text else 1):
        problems.append(f"has {number} errors in its messages")
    return problems + _check_error(place, text, fault, hit)


def _check_error(place: Place, messages: str, fault: Fault, hit: Hit) -> list[str]:
    text = " ".join(messages.split())
    problems = []
    reasons = (os.strerror(fault.error), *_OTHER_WORDS.get(fault.error, ()))
    if not any(reason in text for reason in reasons):
        problems.append(f"doesn't give the reason, {os.strerror(fault.error)}")
    if str(place.root) not in text and Path(hit.path).name not in text:
        problems.append("names no path")
    return problems
