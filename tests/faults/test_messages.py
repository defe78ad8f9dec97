"""What a command may say of a fault."""

from __future__ import annotations

import errno
import signal
from pathlib import Path

import pytest

from trials.faults.case import Case, Place, nothing
from trials.faults.forked import Ended
from trials.faults.messages import Expected, check_messages

_CASE, _REPORT = Case("a", lambda _: (), nothing), Case("b", lambda _: (), nothing, is_report=True)
_PLACE = Place(Path("/place"))
_QUOTA = Expected((errno.EDQUOT,), "/out/file")


def check(status: int, messages: str, expected: Expected = _QUOTA, text: str = "", case: Case = _CASE) -> list[str]:
    return check_messages(case, _PLACE, Ended(status, messages, text, 0), expected)


@pytest.mark.parametrize(
    ("status", "messages", "problems"),
    [
        (0, "", []),
        (1, "error: /place/out: can't be written (Disk quota exceeded).\n", []),
        (1, "warning: a\nerror: file: can't be written (Disk quota\n  exceeded).\n", []),
        (1, "error: /place: can't be written because the quota on its disk, /, is used up.\n", []),
        (1, "error: /place/out: is full\n", ["doesn't give the reason, Disk quota exceeded"]),
        (1, "error: it: Disk quota exceeded\n", ["names no path"]),
        (3, "error: /place/out: Disk quota exceeded\n", ["ends with 3"]),
        (-signal.SIGBUS, "error: /place/out: Disk quota exceeded\n", ["ends with -7"]),
        (
            1,
            "error: /place/out: Disk quota exceeded\nerror: /place/out: Disk quota exceeded\n",
            ["has 2 errors in its messages"],
        ),
        (
            1,
            "Traceback (most recent call last):\n /place: Disk quota exceeded\n",
            ["'Traceback' is in its messages", "has 0 errors in its messages"],
        ),
    ],
)
def test_a_fault_needs_one_error_with_path_and_reason(status: int, messages: str, problems: list[str]) -> None:
    assert check(status, messages) == problems


def test_a_fault_in_the_root_folder_of_a_disk_is_reported_with_the_path_of_the_disk() -> None:
    met = Expected((errno.EIO,), "/")
    assert check(1, "error: it can't be read (Input/output error)\n", met) == ["names no path"]
    assert check(1, "error: /place can't be read (Input/output error)\n", met) == []


@pytest.mark.parametrize(("status", "problems"), [(0, []), (1, ["ends with 1"])])
def test_a_command_that_must_succeed_may_not_fail(status: int, problems: list[str]) -> None:
    assert check(status, "", Expected(must_end_well=True)) == problems


def test_a_killed_command_may_not_print_anything() -> None:
    assert check(-signal.SIGKILL, "", Expected()) == []
    assert check(-signal.SIGKILL, "Traceback", Expected()) == ["'Traceback' is in its messages"]


def test_an_expected_signal_is_not_a_problem() -> None:
    assert check(-signal.SIGBUS, "", Expected((errno.EIO,), "/a", signals=(signal.SIGBUS,))) == []


def test_a_report_may_contain_the_reason_in_its_result() -> None:
    assert check(1, "", text="/place/cache: can't be read (Disk quota exceeded)", case=_REPORT) == []
