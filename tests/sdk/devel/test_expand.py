"""The tree appears whole or not at all, whichever processes expand it or are killed meanwhile."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from tests.sdk.devel.trees import KILLER, TREE, describe
from tests.sdk.installed import FROM_INDEX
from tests.support.record_check import record_faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sdk.installed import Installed, MakeEnvironment, MakeSet

pytestmark = pytest.mark.slow

OVER = f'pip install "rocm[devel]==7.2.0" --ignore-installed {FROM_INDEX}'
INTERRUPTER = """
import os, signal, sys
sys.argv = ["rocm-sdk", "init"]
def interrupt(event, arguments):
    if event == "os.link":
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
"""


def read_record(environment: Installed) -> list[list[str]]:
    with next(environment.site.glob("rocm_sdk_devel-*/RECORD")).open(newline="") as file:
        return list(csv.reader(file))


def test_record_lists_the_tree_as_csv(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    rows = read_record(environment)
    assert {len(row) for row in rows} == {3}
    names = [row[0] for row in rows]
    assert len(names) == len(set(names))
    assert {"_rocm_sdk_devel", "_rocm_sdk_devel/.expanded.json", "_rocm_sdk_devel/__init__.py"} <= set(names)
    assert {f"_rocm_sdk_devel/{name}" for name in TREE} <= set(names)


def test_record_of_the_tree_is_correct_and_complete(environment: Installed) -> None:
    assert record_faults(environment.site) == []
    environment.run("rocm-sdk", "init")
    assert record_faults(environment.site) == []
    environment.run("rocm-sdk", "path", "--root")
    assert record_faults(environment.site) == []
    absent = [row[0] for row in read_record(environment) if not (environment.site / row[0]).exists()]
    assert absent == []


def test_record_has_the_hash_of_each_file_that_the_tree_owns(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    rows = {row[0].partition("/")[2]: row[1:] for row in read_record(environment)}
    assert rows["lib/note.txt"] == ["sha256=RPXmarNtOWQ0xvmbG7z7RrVNxlsCszgDCYG5mQH1hdY", "15"]
    assert [name for name, kind in TREE.items() if not kind.startswith("->") and not rows[name][0]] == []
    assert [name for name, kind in TREE.items() if kind.startswith("->") and rows[name] != ["", ""]] == []


def test_standard_tools_accept_an_expanded_tree(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    for tool in ("pip", "uv"):
        msgspec.structs.replace(environment, tool=tool).installer("check")
    code = (
        "from importlib.metadata import files; print([f for f in files('rocm-sdk-devel') if not f.locate().exists()])"
    )
    assert environment.evaluate(code) == "[]"


def test_audit_of_an_expanded_environment_finds_no_record_errors(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    audit = [sys.executable, "-m", "rocwheel", "audit", str(environment.path), "--json"]
    report = subprocess.run(audit, capture_output=True, text=True, check=False)
    assert [f["found"] for f in json.loads(report.stdout)["findings"] if f["rule"] == "record-wrong"] == []


def test_verify_accepts_expanded_files_and_reports_a_changed_file(environment: Installed) -> None:
    words = [sys.executable, "-m", "rocwheel", "verify", str(environment.path), "--quiet"]
    assert subprocess.run(words, capture_output=True, check=False).stdout == b""
    environment.run("rocm-sdk", "init")
    assert subprocess.run(words, capture_output=True, check=False).stdout == b""
    note = environment.root / "lib/note.txt"
    note.unlink()
    note.write_text("x")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, f"changed {note}: has 1 byte; expected 15, as in RECORD\n")


@pytest.mark.parametrize("link", [Path.hardlink_to, Path.symlink_to], ids=["hard link", "symlink"])
def test_a_second_link_to_record_is_unchanged(environment: Installed, link: Callable[[Path, Path], None]) -> None:
    # Given RECORD as an installer leaves it that links files from its cache
    record, cached = next(environment.site.glob("rocm_sdk_devel-*/RECORD")), environment.path / "cached"
    record.rename(cached)
    link(record, cached)
    before = cached.read_bytes()
    environment.run("rocm-sdk", "init")
    assert cached.read_bytes() == before
    assert record_faults(environment.site) == []


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(b"\xff\xfe", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte", id="utf-8"),
        pytest.param(b'"' + b"x" * 200_000, "field larger than field limit (131072)", id="endless cell"),
    ],
)
def test_an_invalid_record_is_reported(environment: Installed, data: bytes, why: str) -> None:
    record = next(environment.site.glob("rocm_sdk_devel-*/RECORD"))
    record.write_bytes(data)
    done = environment.run("rocm-sdk", "init", check=False)
    assert done.returncode == 1
    assert done.stderr == (f"rocm-sdk: error: {record}: is not a CSV list of files ({why}). Reinstall: {OVER}\n")


def test_a_record_that_is_a_named_pipe_is_reported(environment: Installed) -> None:
    record = next(environment.site.glob("rocm_sdk_devel-*/RECORD"))
    record.unlink()
    os.mkfifo(record)
    done = environment.run("rocm-sdk", "init", check=False)
    assert done.returncode == 1
    assert done.stderr == (f"rocm-sdk: error: {record} is a named pipe, not a file. Remove it, and reinstall: {OVER}\n")


def test_concurrent_processes_all_succeed(environment: Installed) -> None:
    command = [str(environment.path / "bin/hipcc"), "--version"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(8)]
    outcomes = [(*process.communicate(), process.returncode) for process in processes]
    assert outcomes == [(f"script {environment.root}/bin --version\n".encode(), b"", 0)] * 8
    assert describe(environment.root) == TREE


@pytest.mark.deep
def test_the_next_process_finishes_after_a_kill_at_any_step(environment: Installed) -> None:
    # Given a process that is killed after 1, 2, 3 ... system calls that change or open files
    stages = set()
    for steps in range(1, 400):
        done = environment.run("python", "-c", KILLER, str(steps), check=False)
        begun = (environment.site / "rocm_sdk_devel/.tree").exists()
        whole = environment.root.exists() and any(environment.root.iterdir())
        stages.add((whole, begun))
        # Then RECORD is true, and the tree is either whole or empty
        assert record_faults(environment.site) == [], steps
        assert not whole or describe(environment.root) == TREE
        if done.returncode == 0:
            break
        assert done.returncode == -9
    assert steps > 40
    assert stages == {(False, False), (False, True), (True, False)}
    assert describe(environment.root) == TREE
    assert sorted(path.name for path in (environment.site / "rocm_sdk_devel").glob("[!_]*")) == []
    assert [row[0] for row in read_record(environment) if "/" not in row[0]] == ["_rocm_sdk_devel"]


def test_the_next_process_finishes_after_a_kill_during_the_last_record_write(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    (environment.site / "rocm_sdk_devel/_record.scratch").touch()
    environment.run("rocm-sdk", "path", "--root")
    assert record_faults(environment.site) == []
    assert describe(environment.root) == TREE


@pytest.mark.parametrize(
    ("command", "call"),
    [
        pytest.param("rocm-sdk", "from rocm_sdk._cli import main; main()", id="rocm-sdk init"),
        pytest.param("hipcc", "from rocm_sdk_core._cli import hipcc; hipcc()", id="hipcc"),
    ],
)
def test_an_interrupted_expansion_prints_one_line_and_leaves_no_partial_tree(
    environment: Installed, command: str, call: str
) -> None:
    done = environment.run("python", "-c", INTERRUPTER + call, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == f"{command}: interrupted; the next run starts over\n"
    assert record_faults(environment.site) == []
    assert list(environment.site.glob("_rocm_sdk_devel*")) == []
    assert environment.run("rocm-sdk", "path", "--root").stdout == f"{environment.root}\n"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("tool", "steps"), [*(("pip", n) for n in (4, 9, 40)), *(("uv", n) for n in (2, 4, 6, 9, 12, 20, 40))]
)
def test_uninstalling_after_a_kill_leaves_no_file(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str, steps: int
) -> None:
    environment = make_environment(make_set(), tool)
    before = environment.files()
    environment.install("rocm[devel]")
    killed = environment.run("python", "-c", KILLER, str(steps), check=False)
    assert killed.returncode == -9
    assert record_faults(environment.site) == []
    environment.uninstall("rocm-sdk-core", "rocm-sdk-devel", "rocm-sdk-libraries", "rocm")
    # The tree's folder exists for a moment before RECORD says so: a line of what isn't there would be worse.
    assert set(environment.files()) - set(before) <= {"_rocm_sdk_devel"}


_LATE = """
import errno, os
from rocm_sdk import _devel_expansion as expansion
from rocm_sdk._devel import get_devel_root
def fail(*_):
    raise OSError(errno.EIO, os.strerror(errno.EIO))
expansion.list_tree = fail
print(get_devel_root())
"""


def test_record_has_no_device_links_if_an_error_delayed_its_update(environment: Installed) -> None:
    """RECORD would name what is not there as soon as the device package goes."""
    environment.install("rocm-sdk-device-gfx906")
    assert environment.run("python", "-c", _LATE).stdout == f"{environment.root}\n"
    assert list(environment.root.rglob("*gfx906*"))
    environment.run("rocm-sdk", "init")
    [record] = environment.site.glob("rocm_sdk_devel-*.dist-info/RECORD")
    assert [line for line in record.read_text().splitlines() if "gfx906" in line or ".device_links" in line] == []
    assert record_faults(environment.site) == []


_UNLISTED = """
import errno, os
from rocm_sdk import _devel_expansion as expansion
from rocm_sdk._devel import get_devel_root
scandir = os.scandir
def fail(folder="."):
    if str(folder).endswith("_rocm_sdk_devel/lib"):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)
    return scandir(folder)
os.scandir = fail
print(get_devel_root())
"""
_OPEN_LINE = """
import errno, os
from rocm_sdk import _devel_expansion as expansion
from rocm_sdk._devel import get_devel_root
def fail(place, *names):
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
expansion.unlist = fail
print(get_devel_root())
"""


@pytest.mark.parametrize("program", [_UNLISTED, _OPEN_LINE], ids=["a folder can't be listed", "no more files"])
def test_the_next_process_completes_a_record_left_incomplete(environment: Installed, program: str) -> None:
    assert environment.run("python", "-c", program).stdout == f"{environment.root}\n"
    assert record_faults(environment.site) == []
    environment.run("rocm-sdk", "init")
    [record] = environment.site.glob("rocm_sdk_devel-*.dist-info/RECORD")
    listed = [line.partition(",")[0] for line in record.read_text().splitlines()]
    assert "rocm_sdk_devel" not in listed
    assert {"_rocm_sdk_devel/lib/note.txt", "_rocm_sdk_devel/lib/llvm/bin/clang"} <= set(listed)
    assert not (environment.site / "rocm_sdk_devel/_devel.tar.xz").exists()
    assert sorted(path.name for path in (environment.site / "rocm_sdk_devel").glob("_rec*")) == []


_UNINSTALLED = """
import pathlib
from rocm_sdk._devel import get_devel_root
rename = pathlib.Path.replace
def replace(path, target):
    if target.name == "RECORD":
        for other in target.parent.iterdir():
            other.unlink()
    return rename(path, target)
pathlib.Path.replace = replace
get_devel_root()
"""


def test_record_does_not_reappear_while_the_package_is_uninstalled(environment: Installed) -> None:
    """Installers can't install a package of which RECORD alone is there."""
    environment.run("python", "-c", _UNINSTALLED)
    assert list(environment.site.glob("rocm_sdk_devel-*")) == []


_LOST = """
import errno, os, sys
from rocm_sdk._devel import DevelError, get_devel_root
def fail(*_):
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
os.fsync = fail
sys.addaudithook(lambda event, arguments: event == "open" and "_record.new" in str(arguments[0]) and fail())
try:
    get_devel_root()
except (DevelError, OSError) as e:
    print(e)
"""


def test_record_keeps_no_line_that_the_disk_lost(environment: Installed) -> None:
    """Some disks tell only at the sync of bytes that they have taken; nothing, or zeros, would stand in their place.

    Nor do they have room for a file in place of RECORD.
    """
    [record] = environment.site.glob("rocm_sdk_devel-*.dist-info/RECORD")
    before = record.read_bytes()
    assert "Disk quota exceeded" in environment.run("python", "-c", _LOST).stdout
    assert record.read_bytes() == before
    assert not environment.root.exists()
    environment.run("rocm-sdk", "init")
    assert record_faults(environment.site) == []


_FAILING = """
import errno, io, os
from rocm_sdk._devel import DevelError, get_devel_root
from rocm_sdk import _files, _record
class Failing(io.BytesIO):
    def read(self, *_):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
def fail(path):
    if path.name in NAMES:
        return Failing()
    return open(path, "rb")
_files.open_regular = fail
try:
    get_devel_root()
except (DevelError, OSError) as e:
    print(e)
"""


def test_a_disk_error_is_reported_with_a_path(environment: Installed) -> None:
    [record] = environment.site.glob("rocm_sdk_devel-*/RECORD")
    told = environment.run("python", "-c", f"NAMES = ['RECORD']\n{_FAILING}").stdout
    assert told.startswith(
        f"The ROCm development files can't be expanded in {environment.site} (Stale file handle: {record}). "
    )


def test_a_tree_is_not_reported_as_incomplete_if_its_disk_fails(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    told = environment.run("python", "-c", f"NAMES = ['.expanded.json']\n{_FAILING}").stdout
    expected = f"{environment.root}/.expanded.json: can't be read (Stale file handle). Check the disk, and try again.\n"
    assert told == expected
