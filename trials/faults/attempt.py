"""One run of a case with a fault in it, and the run after that: what of both is wrong."""

from __future__ import annotations

import os
import shutil
import traceback
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import TYPE_CHECKING, NamedTuple

from trials.faults.folder_state import State, differences, leftovers, read_state, without_hidden, wrong_files
from trials.faults.forked import Running, run
from trials.faults.messages import Expected, check_messages, is_uncaught
from trials.faults.shim import Mode, Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from trials.faults.case import Case, Place
    from trials.faults.forked import Command, Ended
    from trials.faults.shim import Fault, Hit

    Reader = Callable[[Path, Iterable[str]], State]

__all__ = [
    "Attempt",
    "Met",
    "Undisturbed",
    "attempt",
    "attempt_by",
    "attempt_kill",
    "begin",
    "check_rest",
    "in_child",
    "look_at",
    "prepare",
]


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
    read: Reader = read_state
    """How the states were read."""


class Met(NamedTuple):
    """A run in which something went wrong, as far as it came to that."""

    ended: Ended
    hit: Hit | None = None
    expected: Expected = Expected()


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


def look_at(
    case: Case, place: Place, run_first: Callable[[Command], Ended] = run, read: Reader = read_state
) -> Undisturbed:
    """Run a case without faults, twice, and return what it made, as ``read`` has it; both have to make the same."""
    begin(case, place)
    given, before = read_state(place.given), _made(case, place, read)
    ended = run_first(case.command(place))
    assert ended.status == 0, ended.messages
    after = _made(case, place, read)
    begin(case, place)
    ended = run(case.command(place))
    assert (ended.status, differences(_made(case, place, read), after)) == (0, []), ended.messages
    without = tuple(_made_without(case, place, name, read) for name in case.may_leave_out)
    return Undisturbed(given, before, after, without, ended.seconds, read)


def _made(case: Case, place: Place, read: Reader) -> State:
    return read(place.out, case.varies)


def _made_without(case: Case, place: Place, name: str, read: Reader) -> State:
    """Return what is made without one of the files that are read."""
    begin(case, place)
    aside = (place.given / name).rename(place.root / "aside")
    ended = run(case.command(place))
    aside.rename(place.given / name)
    assert ended.status == 0, ended.messages
    return _made(case, place, read)


def attempt(case: Case, place: Place, calm: Undisturbed, fault: Fault) -> Attempt:
    """Run a case with a fault, then without; return what was wrong."""

    def meet(command: Command) -> Met:
        plan = Plan(case.watched(place), fault)
        ended = run(command, plan)
        return Met(ended, plan.hit, _expected(fault, plan.hit))

    return attempt_by(case, place, calm, meet, str(fault))


def _expected(fault: Fault, hit: Hit | None) -> Expected:
    if fault.mode in {Mode.KILL_BEFORE, Mode.KILL_AFTER}:
        return Expected()
    is_short = fault.mode == Mode.SHORT
    return Expected(() if is_short else (fault.error,), hit.path if hit else "", must_end_well=is_short)


def attempt_by(case: Case, place: Place, calm: Undisturbed, meet: Callable[[Command], Met], fault: str) -> Attempt:
    """Run a case as ``meet`` does, in which something goes wrong, then without that; return what was wrong."""
    begin(case, place)
    met = meet(case.command(place))
    problems = check_messages(case, place, met.ended, met.expected) if met.hit else []
    found = _finish(case, place, calm, met, problems)
    return Attempt(fault, met.hit, met.ended.status, found, met.ended.messages)


def attempt_kill(case: Case, place: Place, calm: Undisturbed, after: float) -> Attempt:
    """Kill a case after so many seconds, then run it to its end; return what was wrong."""

    def meet(command: Command) -> Met:
        return Met(Running(command).wait(after))

    return attempt_by(case, place, calm, meet, f"killed after {after:.3f} s")


def _finish(case: Case, place: Place, calm: Undisturbed, met: Met, problems: list[str]) -> tuple[str, ...]:
    state, after = _lasting(case, _made(case, place, calm.read)), _lasting(case, calm.after)
    problems += case.check(place)
    if met.ended.status == 0:
        problems += [f"ends well, but {line}" for line in differences(without_hidden(state), without_hidden(after))]
    else:
        problems += wrong_files(state, calm.before, calm.after, *calm.without)
    again = run(case.command(place))
    if _is_refused(again):  # it writes over nothing, and had done its work
        _take_away(place)
        again = run(case.command(place))
    if again.status or is_uncaught(again.messages):
        problems.append(f"the next run ends with {again.status}: {again.messages}")
    rest = differences(_made(case, place, calm.read), calm.after) + check_rest(place, calm.given)
    return (*problems, *(f"after the next run {line}" for line in rest))


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


def _lasting(case: Case, state: State) -> State:
    """Return a state without what stands there only meanwhile."""
    return {path: text for path, text in state.items() if not any(fnmatch(path, one) for one in case.between)}
