"""What a command says of a fault: one error, with the path and the reason, or none at all."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trials.faults.case import Case, Place
    from trials.faults.forked import Ended

__all__ = ["Expected", "check_messages", "is_uncaught"]

_UNCAUGHT = ("Traceback", "Exception ignored", "Logging error", "Fatal Python error")
_ERROR = re.compile(r"^(?:rocm-sdk: )?error: ", re.MULTILINE)
_OTHER_WORDS = {
    errno.EACCES: ("the current user is not allowed to read this file",),
    errno.ENOSPC: ("is full", "bytes to write"),
    errno.EDQUOT: ("the quota on its disk",),
    errno.EROFS: ("where no file can be made",),
}
"""What messages may say in place of the words of the C library."""


@dataclass(frozen=True)
class Expected:
    """How a command may end after a fault."""

    errors: tuple[int, ...] = ()
    """The reasons that an error may give; none where the command is killed, or has to end well."""
    path: str = ""
    """What was met."""
    must_end_well: bool = False
    signals: tuple[int, ...] = ()
    """By which it may die."""


def is_uncaught(messages: str) -> bool:
    """Return whether a traceback or the like is in the messages of a command."""
    return any(text in messages for text in _UNCAUGHT)


def check_messages(case: Case, place: Place, ended: Ended, expected: Expected) -> list[str]:
    """Return what is wrong with how a command ended, each as a line."""
    if -ended.status in expected.signals:
        return []
    problems = [f"{text!r} is in its messages" for text in _UNCAUGHT if text in ended.messages]
    if expected.must_end_well:
        return problems + ([f"ends with {ended.status}"] if ended.status else [])
    if not expected.errors:
        return problems
    if ended.status not in {0, 1, 2}:
        problems.append(f"ends with {ended.status}")
    return problems + (_check_errors(case, place, ended, expected) if ended.status else [])


def _check_errors(case: Case, place: Place, ended: Ended, expected: Expected) -> list[str]:
    messages = ended.messages + (ended.text if case.is_report else "")
    number, problems = len(_ERROR.findall(messages)), []
    if number != (0 if case.is_report and ended.text else 1):
        problems.append(f"has {number} errors in its messages")
    text = " ".join(messages.split())
    reasons = {reason for error in expected.errors for reason in (os.strerror(error), *_OTHER_WORDS.get(error, ()))}
    if not any(reason in text for reason in reasons):
        problems.append(f"doesn't give the reason, {' or '.join(map(os.strerror, expected.errors))}")
    name = Path(expected.path).name  # none for a disk's own folder
    if str(place.root) not in text and (not name or name not in text):
        problems.append("names no path")
    return problems
