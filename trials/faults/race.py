"""Commands that run at the same time on the same folders, some of which are killed: what is wrong then and after it."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trials.faults.attempt import check_rest, in_child
from trials.faults.case import nothing
from trials.faults.folder_state import State, differences, read_state
from trials.faults.forked import Running, run
from trials.faults.messages import is_uncaught

if TYPE_CHECKING:
    from collections.abc import Callable

    from trials.faults.case import Place
    from trials.faults.forked import Command, Ended

__all__ = ["Race", "Round", "race", "run_calmly"]


@dataclass(frozen=True)
class Race:
    """Commands that are started at once."""

    name: str
    commands: Callable[[Place], list[Command]]
    prepare: Callable[[Place], None]
    begin: Callable[[Place], None] = nothing
    """Makes what stands where they write, before each round."""
    most_killed: int = 1
    varies: tuple[str, ...] = ()
    """Files that tell of times, as in `trials.faults.case.Case`."""
    refusal: str = ""
    """The message with which a command may refuse to run while another one does. The next run must not."""
    look: Callable[[Place], list[str]] | None = None
    """Returns what is wrong in the eyes of a reader, at any time."""


@dataclass(frozen=True)
class Round:
    """What one round came to."""

    killed: int
    looks: int
    """How often a reader has looked meanwhile."""
    problems: tuple[str, ...]


class _Reader:
    """Looks again and again, in a thread of its own."""

    def __init__(self, one: Race, place: Place) -> None:
        self.looks, self.problems = 0, dict[str, None]()
        self._look, self._place = one.look, place
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        while self._look and not self._is_over.is_set():
            # What is wrong stays so; else a file was changed between two glances of one look.
            if found := set(self._look(self._place)):
                again = self._look(self._place)
                self.problems |= dict.fromkeys(line for line in found if line in again)
            self.looks += 1

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._is_over.set()
        self._thread.join()


def run_calmly(one: Race, place: Place) -> tuple[State, State, float]:
    """Run the commands one after another; return what was read, what they made, and the seconds of the longest."""
    _begin(one, place)
    given = read_state(place.given)
    ended = [run(command) for command in one.commands(place)]
    assert [end.status for end in ended] == [0] * len(ended), ended
    assert not one.look or one.look(place) == []
    return given, read_state(place.out, one.varies), max(end.seconds for end in ended)


def race(one: Race, place: Place, calm: tuple[State, State, float], seed: str) -> Round:
    """Run the commands at once and kill some; then one after another, to make what they make without a race."""
    given, after, seconds = calm
    choice = random.Random(seed)
    _begin(one, place)
    processes = [Running(command) for command in one.commands(place)]
    killed = choice.sample(range(len(processes)), choice.randint(1, one.most_killed))
    reader = _Reader(one, place)
    reader.start()
    for number in killed:
        processes[number].kill_after(choice.uniform(0, 2 * seconds))
    ended = [process.wait() for process in processes]
    reader.stop()
    problems = [*reader.problems, *(line for end in ended for line in _faults_of(end, one.refusal))]
    for command in one.commands(place):
        problems += [f"the next run: {line}" for line in _faults_of(run(command))]
    state = read_state(place.out, one.varies)
    problems += [f"after the next run {line}" for line in differences(state, after) + check_rest(place, given)]
    return Round(sum(end.status == -9 for end in ended), reader.looks, tuple(problems))


def _begin(one: Race, place: Place) -> None:
    place.clear()
    in_child(one.begin, place)


def _faults_of(ended: Ended, refusal: str = "") -> list[str]:
    if ended.status == -9 or (ended.status == 1 and refusal and refusal in ended.messages):
        return []
    if ended.status or is_uncaught(ended.messages):
        return [f"a command ends with {ended.status}: {ended.messages}"]
    return []
