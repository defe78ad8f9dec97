"""A disk that fails while the tree is made: what is told, and what the next process makes of it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.sdk.devel.trees import TREE, describe, member, replace_archive
from tests.support.record_check import record_faults

if TYPE_CHECKING:
    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow

KERNELS = "lib/rocblas/library/kernels_gfx906.co"
READY = "The ROCm development files are ready in {}\n"


def listed(environment: Installed) -> list[str]:
    """Return the paths that RECORD of rocm-sdk-devel has."""
    [record] = environment.site.glob("rocm_sdk_devel-*.dist-info/RECORD")
    return [line.partition(",")[0] for line in record.read_text().splitlines()]


_SHORT = """
import io, pathlib
from rocm_sdk._cli import main
class Short(io.FileIO):
    def write(self, data):
        return super().write(data[:len(data) // 2])
plain = pathlib.Path.open
def open(path, mode="r", buffering=-1, **options):
    return Short(path, mode) if buffering == 0 and path.name == "RECORD" else plain(path, mode, buffering, **options)
pathlib.Path.open = open
main(["init"])
"""


def test_init_continues_after_a_partial_write_to_record(environment: Installed) -> None:
    done = environment.run("python", "-c", _SHORT, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, READY.format(environment.root), "")
    assert record_faults(environment.site) == []
    assert {"_rocm_sdk_devel", "_rocm_sdk_devel/lib/note.txt"} <= set(listed(environment))


_FULL = """
import os, resource, sys
from rocm_sdk._cli import main
record, room = sys.argv[1], int(sys.argv[2])
size = os.path.getsize(record) + room
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
main(["init"])
"""


def test_record_is_restored_if_no_more_fits_on_the_disk(environment: Installed) -> None:
    [record] = environment.site.glob("rocm_sdk_devel-*.dist-info/RECORD")
    before = record.read_bytes()
    done = environment.run("python", "-c", _FULL, str(record), "20", check=False, PYTHONDONTWRITEBYTECODE="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"rocm-sdk: error: The ROCm development files can't be expanded in {environment.site} (File too large)."
    )
    assert record.read_bytes() == before
    assert [path.name for path in (environment.site / "rocm_sdk_devel").glob("_record*")] == []
    environment.run("rocm-sdk", "init")
    assert describe(environment.root) == TREE


_STOPPED = """
import errno, os, signal, sys
from pathlib import Path
import rocm_sdk._devel, rocm_sdk._devel_expansion, lzma, tarfile
package = Path(rocm_sdk.__file__).parents[1] / "rocm_sdk_devel"
def stop(event, arguments):
    if event == "open" and "_record." in str(arguments[0]) and not list(package.glob("_devel.tar*")):
        {what}
sys.addaudithook(stop)
rocm_sdk._devel.get_devel_root()
"""
_KILL = "os.kill(os.getpid(), signal.SIGKILL)"
_REFUSE = "raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), arguments[0])"


@pytest.mark.parametrize(("what", "status"), [(_KILL, -9), (_REFUSE, 0)], ids=["killed", "full disk"])
def test_the_next_process_writes_the_last_record_if_the_previous_process_could_not_start(
    environment: Installed, what: str, status: int
) -> None:
    done = environment.run("python", "-c", _STOPPED.format(what=what), check=False)
    assert done.returncode == status
    assert record_faults(environment.site) == []
    assert "rocm_sdk_devel" in listed(environment)
    environment.run("rocm-sdk", "init")
    assert record_faults(environment.site) == []
    assert "rocm_sdk_devel" not in listed(environment)
    assert [path.name for path in (environment.site / "rocm_sdk_devel").glob("_record*")] == []


_UNREADABLE = """
import os, sys
from rocm_sdk._cli import main
error, number = map(int, sys.argv[1:3])
reading = os.open
def fail(path, *arguments, **options):
    global number
    if str(path).endswith(".expanded.json"):
        number -= 1
        if number == 0:
            raise OSError(error, os.strerror(error), str(path))
    return reading(path, *arguments, **options)
os.open = fail
main(["init"])
"""


@pytest.mark.parametrize("reason", ["Input/output error", "Too many open files"])
def test_an_unreadable_note_is_not_treated_as_missing(environment: Installed, reason: str) -> None:
    environment.run("rocm-sdk", "init")
    error = {os.strerror(number): number for number in (5, 24)}[reason]
    done = environment.run("python", "-c", _UNREADABLE, str(error), "1", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"rocm-sdk: error: {environment.root}/.expanded.json: can't be read ({reason}). Check the disk, "
        "and try again.\n"
    )
    assert environment.run("rocm-sdk", "init").stdout == READY.format(environment.root)


def test_the_tree_note_is_kept_if_it_cannot_be_read_before_linking(
    environment: Installed,
) -> None:
    environment.run("rocm-sdk", "init")
    environment.install("rocm-sdk-device-gfx906")
    note = environment.root / ".expanded.json"
    before = note.read_bytes()
    assert environment.run("python", "-c", _UNREADABLE, "5", "2", check=False).returncode == 1
    assert note.read_bytes() == before
    environment.run("rocm-sdk", "init")
    assert {**json.loads(note.read_bytes()), "devices": {}} == json.loads(before)
    assert (environment.root / KERNELS).exists()


_REFUSED = """
import errno, os, sys
from rocm_sdk._cli import main
number, link = int(sys.argv[1]), os.link
def refuse(source, path):
    global number
    number -= 1
    if number >= 0:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), source, None, path)
    link(source, path)
os.link = refuse
main(["init"])
"""


@pytest.mark.parametrize(
    ("number", "is_symlink"), [(1, False), (1000, True)], ids=["refused once", "refused each time"]
)
def test_a_symlink_replaces_a_hard_link_that_is_refused_again(
    environment: Installed, number: int, *, is_symlink: bool
) -> None:
    environment.run("rocm-sdk", "init")
    environment.install("rocm-sdk-device-gfx906")
    environment.run("python", "-c", _REFUSED, str(number))
    links = [path for path in environment.root.rglob("*gfx906*") if path.parent.name != ".device_links"]
    assert {path.is_symlink() for path in links} == {is_symlink}
    assert (environment.root / KERNELS).read_text() == "gfx906"


_OVER_QUOTA = """
import errno, os, shutil
from rocm_sdk._cli import main
def fail(*_):
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
shutil.copyfileobj = fail
main(["init"])
"""


def test_an_exceeded_quota_is_reported_and_leaves_nothing(environment: Installed) -> None:
    before = environment.files()
    done = environment.run("python", "-c", _OVER_QUOTA, check=False, PYTHONDONTWRITEBYTECODE="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"rocm-sdk: error: The ROCm development files can't be expanded in {environment.site} (Disk quota exceeded). "
        "Run `rocm-sdk init` once as a user with write access and with enough free space, before you use "
        "the files read-only.\n"
    )
    assert environment.files() == before
    assert environment.run("rocm-sdk", "init").stdout == READY.format(environment.root)


_NO_RECORD = """
import errno, os
from rocm_sdk._cli import main
from rocm_sdk import _devel_expansion as expansion
def fail(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
expansion.list_folders = fail
main(["init"])
"""


def test_no_folder_is_left_that_record_could_not_list(environment: Installed) -> None:
    assert environment.run("python", "-c", _NO_RECORD, check=False).returncode == 1
    assert not environment.root.exists()


_REPLACED = """
from pathlib import Path
from rocm_sdk._cli import main
from rocm_sdk import _devel_expansion as expansion
fill = expansion._fill
def install_meanwhile(place, tree, archive):
    fill(place, tree, archive)
    data = archive.read_bytes()
    archive.unlink()
    archive.write_bytes(data + b"\\0" * 10240)
expansion._fill = install_meanwhile
main(["init"])
"""


def test_an_archive_installed_during_an_expansion_is_expanded_next(environment: Installed) -> None:
    replace_archive(environment, member("_rocm_sdk_devel/new.txt"))
    archive = environment.site / "rocm_sdk_devel/_devel.tar"
    done = environment.run("python", "-c", _REPLACED, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"rocm-sdk: error: {archive}: was replaced by another program, such as an installer. Run `rocm-sdk init` "
        "again.\n"
    )
    assert archive.exists()
    replace_archive(environment, member("_rocm_sdk_devel/newer.txt"))
    assert environment.run("rocm-sdk", "init").stdout == READY.format(environment.root)
    assert describe(environment.root) == {"newer.txt": "file"}
    assert not archive.exists()


_CLOSED = """
import errno, os, sys
from rocm_sdk._cli import main
import lzma, tarfile
site = sys.argv[1]
def fail(call):
    def look(path="."):
        if str(path) == site:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), site)
        return call(path)
    return look
os.scandir, os.listdir = fail(os.scandir), fail(os.listdir)
main(["init"])
"""


def test_record_is_not_treated_as_missing_if_its_folder_cannot_be_listed(environment: Installed) -> None:
    done = environment.run("python", "-c", _CLOSED, str(environment.site), check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"rocm-sdk: error: The ROCm development files can't be expanded in {environment.site} (Permission denied: "
        f"{environment.site}). Run `rocm-sdk init` once as a user with write access and "
    )
    environment.run("rocm-sdk", "init")
    assert record_faults(environment.site) == []
    assert "_rocm_sdk_devel/lib/note.txt" in listed(environment)


_FAILING = """
import errno, os, pathlib, sys
from rocm_sdk._cli import main
from rocm_sdk import _devel_expansion as expansion
name, stat = sys.argv[1], os.stat
def fail(path, *arguments, **options):
    if str(path).endswith(name):
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
    return stat(path, *arguments, **options)
pathlib.Path.exists = lambda path: os.path.exists(path)
pathlib.Path.is_file = lambda path: os.path.isfile(path)
pathlib.Path.is_dir = lambda path: os.path.isdir(path)
os.stat = fail
main(["init"])
"""
"""A disk fails for a name; `pathlib` takes that for a path that leads nowhere, as that of Python 3.14 does."""


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("/rocm_sdk_devel-7.2.0.dist-info/METADATA", 0),
        ("/rocm_sdk_devel-7.2.0.dist-info/RECORD", 1),
        ("/rocm_sdk_devel/_devel.tar", 1),
        ("/_rocm_sdk_core/__init__.py", 1),
        ("/_rocm_sdk_libraries/lib/libhipsparse.so.1", 1),
    ],
)
def test_a_file_that_the_disk_cannot_read_is_not_treated_as_missing(
    environment: Installed, name: str, status: int
) -> None:
    done = environment.run("python", "-c", _FAILING, name, check=False, PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == status
    assert done.stderr.count("rocm-sdk: error: ") == status
    assert "Input/output error" in done.stderr or not status
    assert record_faults(environment.site) == []
    environment.run("rocm-sdk", "init")
    assert record_faults(environment.site) == []
    assert "_rocm_sdk_devel/lib/note.txt" in listed(environment)
    assert describe(environment.root) == TREE


_NO_LINK = """
import errno, os
from rocm_sdk._cli import main
lstat = os.lstat
def fail(path, *arguments, **options):
    if str(path).endswith("/_rocm_sdk_devel/llvm"):
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
    return lstat(path, *arguments, **options)
os.lstat = fail
main(["init"])
"""


def test_record_lists_nothing_through_a_link_that_the_disk_does_not_report_as_a_link(environment: Installed) -> None:
    environment.run("python", "-c", _NO_LINK)
    environment.run("rocm-sdk", "init")
    assert [name for name in listed(environment) if name.startswith("_rocm_sdk_devel/llvm")] == ["_rocm_sdk_devel/llvm"]
