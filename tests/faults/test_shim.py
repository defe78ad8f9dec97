"""The shim that has calls fail, in processes that are forked for it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT
from trials.faults.shim import Fault, Mode, build_shim, why_not

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(why_not()), reason=why_not() or "gcc is there")]

_PROGRAM = """
import os, sys
from pathlib import Path
from trials.faults.shim import Fault, Mode, Plan, Watched
folder, fault = Path(sys.argv[1]), eval(sys.argv[2])
plan = Plan(Watched(folder, folder / 'apart'), fault, trace=1 if fault is None else -1)
pid = os.fork()
if pid == 0:
    plan.arm()
    try:
        (folder.parent / "other").write_bytes(b"abcdef")
        (folder / "apart").mkdir()
        descriptor = os.open(folder / "file", os.O_RDWR | os.O_CREAT)
        print(os.write(descriptor, b"abcdef"), flush=True)
        print(os.write(descriptor, b"abcdef"), flush=True)
        os.rename(folder / "file", folder / "new")
        print(os.pread(descriptor, 100, 0), flush=True)
    except OSError as e:
        print(e.strerror, flush=True)
        try:
            (folder / "more").mkdir()
        except OSError as e:
            print("and again", flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), plan.hit)
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_shim(tmp_path_factory.mktemp("shim"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "watched").mkdir()
    return tmp_path / "watched"


def run(shim: Path, folder: Path, fault: str) -> list[str]:
    command = [sys.executable, "-c", _PROGRAM, str(folder), fault]
    environ = {**os.environ, "LD_PRELOAD": str(shim)}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True).stdout.split("\n")


def test_only_calls_inside_the_folder_are_counted(shim: Path, folder: Path) -> None:
    lines = [line.split("\t") for line in run(shim, folder, "None") if "\t" in line]
    assert [(number, call, path) for number, call, _, path in lines] == [
        ("1", "open64", f"{folder}/file"),
        ("2", "write", f"{folder}/file"),
        ("3", "write", f"{folder}/file"),
        ("4", "rename", f"{folder}/new"),
        ("5", "pread64", f"{folder}/new"),
    ]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("Fault('write', 3, Mode.FAIL, 28)", ["6", "No space left on device", "0 Hit(number=3, call='write'"]),
        ("Fault('write', 3, Mode.FAIL_ON, 28)", ["6", "No space left on device", "and again", "0 Hit(number=3"]),
        ("Fault('write', 3, Mode.FAIL_ON, 24)", ["6", "Too many open files", "0 Hit(number=3"]),
        ("Fault('write', 2, Mode.SHORT)", ["3", "6", "b'abcabcdef'", "0 Hit(number=2"]),
        ("Fault('pread64', 5, Mode.SHORT)", ["6", "6", "b'abcdefabcdef'", "0 Hit(number=5"]),
        ("Fault('rename', 1, Mode.FAIL, 30)", ["6", "6", "Read-only file system", "0 Hit(number=4, call='rename'"]),
        ("Fault('write', 3, Mode.KILL_BEFORE)", ["6", "-9 Hit(number=3"]),
        ("Fault('write', 9, Mode.FAIL, 28)", ["6", "6", "b'abcdefabcdef'", "0 None"]),
    ],
)
def test_the_chosen_call_fails_as_planned(shim: Path, folder: Path, fault: str, told: list[str]) -> None:
    lines = [line for line in run(shim, folder, fault) if line]
    assert len(lines) == len(told)
    assert [line[: len(start)] for line, start in zip(lines, told, strict=True)] == told


@pytest.mark.parametrize(("mode", "is_there"), [("KILL_BEFORE", False), ("KILL_AFTER", True)])
def test_a_process_is_killed_before_or_after_a_call(shim: Path, folder: Path, mode: str, is_there: bool) -> None:
    assert run(shim, folder, f"Fault('rename', 4, Mode.{mode})")[2].startswith("-9 ")
    assert (folder / "new").exists() == is_there


def test_a_call_fault_is_printed_with_its_call_and_effect() -> None:
    assert str(Fault("write", 3, Mode.FAIL, errno.ENOSPC)) == "call 3: ENOSPC"
    assert str(Fault("write", 3, Mode.FAIL_ON, errno.EROFS)) == "call 3: EROFS from there on"
    assert str(Fault("write", 3, Mode.KILL_AFTER)) == "call 3: kill after"
