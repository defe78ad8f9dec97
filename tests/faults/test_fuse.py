"""Disks of a FUSE server that fail under a few commands; ``make faults`` has all of them meet more."""

from __future__ import annotations

import errno
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT
from trials.faults.fuse.choice import LACKS, all_disk_faults, late_faults, sample_faults
from trials.faults.fuse.mount import why_no_fuse
from trials.faults.fuse.plan import DiskFault, Manner, SharedPlan
from trials.faults.runner import run_on_fuse, texts
from trials.faults.shim import why_not

if TYPE_CHECKING:
    from pathlib import Path

_REASON = why_not() or why_no_fuse()

needs_fuse = pytest.mark.skipif(bool(_REASON), reason=_REASON or "such disks can be mounted")

_PROGRAM = """
import errno, os, sys
from pathlib import Path
from trials.faults.fuse.mount import Mount
from trials.faults.fuse.plan import DiskFault, Manner, SharedPlan
folder, fault, is_late = Path(sys.argv[1]), eval(sys.argv[2]), sys.argv[3] == "late"
plan = SharedPlan()
mount = Mount(folder / "files", folder / "disk", plan)
mount.begin(is_late=is_late)
place = folder / "disk"
(place / "old").write_bytes(b"old bytes")
plan.arm(fault)
def attempt(what, do):
    try:
        print(what, do(), flush=True)
    except OSError as e:
        print(what, "gone" if e.errno in {errno.ENOTCONN, errno.ECONNABORTED} else e.strerror, flush=True)
descriptor = os.open(place / "new", os.O_WRONLY | os.O_CREAT)
attempt("write", lambda: os.write(descriptor, b"new"))
attempt("close", lambda: os.close(descriptor))
attempt("read", lambda: os.read(os.open(place / "old", os.O_RDONLY), 8))
attempt("rename", lambda: os.rename(place / "old", place / "other"))
attempt("list", lambda: os.listdir(place))
plan.disarm()
print(plan.hit)
mount.end()
print(sorted(os.listdir(folder / "files")))
"""


def run(folder: Path, fault: str, when: str = "at once") -> list[str]:
    words = ["unshare", "--mount", sys.executable, "-c", _PROGRAM, str(folder), fault, when]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


@needs_fuse
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "when", "differs"),
    [
        ("None", "at once", {}),
        ("DiskFault('write', 1, Manner.FAIL, 28)", "at once", {"write": "No space left on device"}),
        ("DiskFault('write', 1, Manner.FAIL, 28)", "late", {"close": "No space left on device"}),
        ("DiskFault('flush', 1, Manner.FAIL, 122)", "at once", {"close": "Disk quota exceeded"}),
        ("DiskFault('read', 1, Manner.FAIL, 116)", "at once", {}),
        ("DiskFault('read', 1, Manner.STAY, 116, ('read',))", "at once", {"read": "Stale file handle"}),
        ("DiskFault('read', 1, Manner.HALF)", "at once", {"read": "b'old '"}),
        ("DiskFault('rename', 1, Manner.DONE, 5)", "at once", {"rename": "Input/output error"}),
        ("DiskFault('readdir', 1, Manner.TURNED)", "at once", {"list": "['other', 'new']"}),
        (
            "DiskFault('read', 1, Manner.STAY, 5, ('read', 'rename'))",
            "at once",
            {"read": "Input/output error", "rename": "Input/output error", "list": "['new', 'old']"},
        ),
        (
            "DiskFault('rename', 1, Manner.DIE)",
            "at once",
            {"rename": "gone", "list": "gone"},
        ),
    ],
)
def test_the_chosen_operation_fails_as_planned(tmp_path: Path, fault: str, when: str, differs: dict[str, str]) -> None:
    usual = {"write": "3", "close": "None", "read": "b'old byte'", "rename": "None", "list": "['new', 'other']"}
    *told, hit, left = run(tmp_path, fault, when)
    assert told == [f"{what} {text}" for what, text in (usual | differs).items()]
    assert hit.startswith("None" if fault == "None" else "Hit(number=1, call=")
    assert left == str(["new", "old" if "rename" in differs and "DONE" not in fault else "other"])


@needs_fuse
@pytest.mark.slow
def test_a_failing_disk_leaves_consistent_files(tmp_path: Path) -> None:
    row = run_on_fuse("index", 4, tmp_path)
    assert texts(row) == []
    assert row.failed + row.late >= 5, "most of the operations are met"
    assert row.unusual >= 2


def test_operations_are_counted_by_name_once_the_plan_is_armed() -> None:
    plan = SharedPlan()
    plan.meet("write", "/a")
    plan.arm(DiskFault("write", 2, Manner.FAIL, errno.EDQUOT))
    plan.meet("write", "/a")
    plan.meet("read", "/a")
    assert plan.hit is None
    with pytest.raises(OSError, match="Disk quota exceeded"):
        plan.meet("write", "/b")
    assert plan.hit == (2, "write", "/b")
    assert plan.meet("write", "/b") == Manner.COUNT


def test_a_persistent_error_also_affects_related_operations() -> None:
    plan = SharedPlan()
    plan.arm(DiskFault("write", 1, Manner.STAY, errno.EDQUOT, ("write", "mkdir")))
    for operation in ("write", "mkdir", "write"):
        with pytest.raises(OSError, match="Disk quota exceeded"):
            plan.meet(operation, "/a")
    assert plan.meet("read", "/a") == Manner.COUNT
    plan.disarm()
    assert plan.meet("write", "/a") == Manner.COUNT


def test_an_unreadable_unlinked_file_is_noted_because_it_may_be_mapped() -> None:
    plan = SharedPlan()
    plan.arm(DiskFault("read", 1, Manner.STAY, errno.EIO, ("read",)))
    for path, has_lost in (("/a", False), ("/tmp/.fuse_hidden0000000600000001", True)):
        with pytest.raises(OSError, match="Input/output error"):
            plan.meet("read", path)
        assert plan.has_lost_map == has_lost


def test_operations_on_the_module_and_its_parent_folder_are_not_counted() -> None:
    plan = SharedPlan()
    plan.arm(apart="/out/module")
    for path in ("/out", "/out/module", "/out/module/a", "/out/modules", "/in"):
        plan.meet("getattr", path)
    assert plan.operations() == [("getattr", "/out/modules"), ("getattr", "/in")]


def test_only_the_first_middle_and_last_operation_on_a_path_fail() -> None:
    operations = [("readlink", "/.fuse_hidden0000000600000001")] * 2 + [
        ("readlink", "/.fuse_hidden0000000700000002")
    ] * 7
    faults = all_disk_faults(operations)
    assert [(fault.at, fault.manner) for fault in faults] == [
        (at, manner) for at in (1, 5, 9) for manner in (Manner.FAIL, Manner.STAY)
    ]
    assert {fault.error for fault in faults} == {errno.EIO}


def test_unlinking_a_temporary_file_is_not_made_to_fail() -> None:
    operations = [("create", "/tmp/rocwheel-12345678"), ("unlink", "/tmp/rocwheel-12345678")]
    assert {fault.operation for fault in all_disk_faults(operations)} == {"create"}


def test_only_writes_get_late_faults() -> None:
    faults = late_faults([("create", "/a"), ("write", "/a"), ("read", "/a")])
    assert {(fault.operation, fault.at) for fault in faults} == {("write", 1)}
    assert {fault.error for fault in faults} == {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE}


def test_a_disk_dies_only_when_allowed() -> None:
    operations = [("write", "/a"), ("chmod", "/a")]
    assert {fault.operation for fault in all_disk_faults(operations) if fault.manner == Manner.DIE} == {"write"}
    assert not any(fault.manner == Manner.DIE for fault in all_disk_faults(operations, may_die=False))


def test_a_sample_has_every_kind_of_fault_and_is_deterministic() -> None:
    faults = [DiskFault("write", at, Manner.FAIL, errno.EIO) for at in range(50)]
    faults += [DiskFault("link", 1, Manner.FAIL, errno.EIO), DiskFault("link", 1, Manner.DONE, errno.EIO)]
    chosen = sample_faults(faults, 3, "index")
    assert {(fault.operation, fault.manner) for fault in chosen} == {
        ("write", Manner.FAIL),
        ("link", Manner.FAIL),
        ("link", Manner.DONE),
    }
    assert chosen == sample_faults(faults, 3, "index")
    assert len(sample_faults(faults, 100, "index")) == 52


def test_an_unsupported_operation_always_fails_and_other_operations_do_not() -> None:
    assert all(one.fault.spread == (one.fault.operation,) and one.fault.at == 1 for one in LACKS)
    assert {one.fault.operation for one in LACKS} == {"link", "symlink", "chmod", "utimens", "fsync", "statfs"}


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (DiskFault("write", 3, Manner.FAIL, errno.EDQUOT), "write 3: EDQUOT"),
        (DiskFault("write", 3, Manner.STAY, errno.EIO, ("write",)), "write 3: EIO from there on"),
        (DiskFault("rename", 1, Manner.DONE, errno.EIO), "rename 1: EIO though it was done"),
        (DiskFault("read", 1, Manner.DIE), "read 1: the disk dies"),
        (DiskFault("read", 1, Manner.HALF), "read 1: half"),
    ],
)
def test_a_disk_fault_is_printed_with_its_operation_and_effect(fault: DiskFault, text: str) -> None:
    assert str(fault) == text
