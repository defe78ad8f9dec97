"""Expanding the development files: what the tree is like, kills, many processes, bad archives, read-only places."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sdk.installed import read_only

if TYPE_CHECKING:
    from tests.sdk.installed import Installed, MakeEnvironment, MakeSet


TREE = {
    "bin/amdclang++": "-> ../lib/llvm/bin/clang",
    "bin/hipcc": "hard link",
    "include/hip/hip, runtime.h": "file",
    "lib/cmake/hip/hip-config.cmake": "file",
    "lib/libamdhip64.so": "-> libamdhip64.so.6",
    "lib/libamdhip64.so.6": "-> ../../_rocm_sdk_core/lib/libamdhip64.so.6",
    "lib/libhipsparse.so": "-> libhipsparse.so.1",
    "lib/libhipsparse.so.1": "-> ../../_rocm_sdk_libraries/lib/libhipsparse.so.1",
    "lib/llvm/bin/clang": "hard link",
    "lib/note.txt": "file",
    "libexec/tool": "program",
    "llvm": "-> lib/llvm",
    "share/a,b.txt": "-> ../../_rocm_sdk_core/share/a,b.txt",
}

LINK = "_rocm_sdk_devel/link"
REINSTALL = 'pip install "rocm[devel]==7.2.0" --force-reinstall'
KILLER = """
import os, signal, sys
from rocm_sdk._devel import get_devel_root
import rocm_sdk._expand, tarfile, lzma
steps = int(sys.argv[1])
def count(event, arguments):
    global steps
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "fcntl.flock"):
        steps -= 1
        if steps < 0:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
get_devel_root()
"""

INTERRUPTER = """
import os, signal, sys
sys.argv = ["rocm-sdk", "init"]
def interrupt(event, arguments):
    if event == "os.link":
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
"""


def describe(root: Path) -> dict[str, str]:
    """Tell what each path of a tree is, apart from what the expansion adds for itself."""
    own = ("__init__.py", ".expanded.json")
    paths = [path for path in root.rglob("*") if path.is_symlink() or not path.is_dir()]
    names = {path.relative_to(root).as_posix(): path for path in paths if path.name not in own}
    return {name: describe_one(path) for name, path in sorted(names.items()) if not name.startswith(".device_links")}


def describe_one(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    if path.stat().st_nlink > 1:
        return "hard link"
    return "program" if os.access(path, os.X_OK) else "file"


@pytest.fixture
def environment(make_set: MakeSet, make_environment: MakeEnvironment) -> Installed:
    environment = make_environment(make_set())
    environment.install("rocm[devel]", "--link-mode=copy")
    return environment


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def replace_archive(environment: Installed, *members: tarfile.TarInfo) -> None:
    with tarfile.open(environment.site / "rocm_sdk_devel/_devel.tar", "w") as archive:
        for info in members:
            archive.addfile(info, io.BytesIO())


def fail_to_expand(environment: Installed) -> str:
    """Return the message of a failing expansion, after checking that it left nothing and kept the archive."""
    before = environment.files()
    done = environment.run("rocm-sdk", "init", check=False, PYTHONDONTWRITEBYTECODE="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert set(before) - set(environment.files()) <= {"rocm_sdk_devel/_record.scratch"}
    assert set(environment.files()) <= set(before)
    return done.stderr


@pytest.mark.parametrize("reverse", [False, True], ids=["as packed", "reversed"])
@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_tree_does_not_depend_on_order_or_compression(
    make_set: MakeSet, make_environment: MakeEnvironment, suffix: str, reverse: bool
) -> None:
    environment = make_environment(make_set(devel=suffix, reverse_devel=reverse))
    environment.install("rocm[devel]", "--link-mode=copy")
    environment.run("rocm-sdk", "init", "--quiet")
    assert describe(environment.root) == TREE


def test_zstd_archive_is_expanded_where_python_can(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    environment = make_environment(make_set(devel=".zst"))
    environment.install("rocm[devel]", "--link-mode=copy")
    if sys.version_info < (3, 14):
        archive = environment.site / "rocm_sdk_devel/_devel.tar.zst"
        message = f"rocm-sdk: error: {archive}: reading it needs Python 3.14, or: pip install backports.zstd\n"
        assert fail_to_expand(environment) == message
        environment.run("python", "-c", "pass")
    path = (
        ""
        if sys.version_info >= (3, 14)
        else str(Path(sys.executable).parents[1] / environment.site.relative_to(environment.path))
    )
    environment.run("rocm-sdk", "init", PYTHONPATH=path)
    assert describe(environment.root) == TREE


def test_archive_is_gone_after_expansion(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    assert not (environment.site / "rocm_sdk_devel/_devel.tar").exists()


def test_second_call_changes_nothing(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    times = {name: os.lstat(environment.site / name).st_mtime_ns for name in environment.files()}
    environment.run("rocm-sdk", "init")
    assert {name: os.lstat(environment.site / name).st_mtime_ns for name in environment.files()} == times


def test_programs_find_their_prefix_in_the_tree(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    assert environment.run("hipcc", "-x").stdout == f"script {environment.root}/bin -x\n"
    assert environment.run("amdclang++").stdout.splitlines()[0] == f"{environment.root}/lib/llvm/bin/clang"


def test_library_reached_by_both_trees_is_loaded_once(environment: Installed) -> None:
    code = f"""
import ctypes, rocm_sdk
rocm_sdk.preload_libraries("hipsparse")
ctypes.CDLL({str(environment.root)!r} + "/lib/libhipsparse.so")
maps = open("/proc/self/maps").read().splitlines()
print(len({{line.split()[-1] for line in maps if "libhipsparse" in line}}))
"""
    environment.run("rocm-sdk", "init")
    assert environment.evaluate(code) == "1"


def test_record_lists_the_tree_and_its_files_in_the_form_of_csv(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    with next(environment.site.glob("rocm_sdk_devel-*/RECORD")).open(newline="") as file:
        rows = list(csv.reader(file))
    assert {len(row) for row in rows} == {3}
    names = [row[0] for row in rows]
    assert len(names) == len(set(names))
    assert {"_rocm_sdk_devel", "_rocm_sdk_devel.partial", "_rocm_sdk_devel/include/hip/hip, runtime.h"} <= set(names)
    assert {f"_rocm_sdk_devel/{name}" for name in TREE} <= set(names)


def test_many_processes_at_once_all_succeed(environment: Installed) -> None:
    command = [str(environment.path / "bin/hipcc"), "--version"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(8)]
    outcomes = [(*process.communicate(), process.returncode) for process in processes]
    assert outcomes == [(f"script {environment.root}/bin --version\n".encode(), b"", 0)] * 8
    assert describe(environment.root) == TREE


def test_kill_at_any_step_leaves_what_the_next_process_finishes(environment: Installed) -> None:
    # Given a process that is killed after 1, 2, 3 ... system calls that change or open files
    stages = set()
    for steps in range(1, 400):
        done = environment.run("python", "-c", KILLER, str(steps), check=False)
        stages.add((environment.root.exists(), environment.root.with_suffix(".partial").exists()))
        if done.returncode == 0:
            break
        assert done.returncode == -9
        # Then the tree is either whole or absent
        assert not environment.root.exists() or describe(environment.root) == TREE
    assert steps > 40
    assert stages == {(False, False), (False, True), (True, False)}
    assert describe(environment.root) == TREE


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("from rocm_sdk._cli import main; main()", id="rocm-sdk init"),
        pytest.param("from rocm_sdk_core._cli import hipcc; hipcc()", id="hipcc"),
    ],
)
def test_interrupt_while_expanding_ends_without_a_word_and_leaves_no_half_tree(
    environment: Installed, call: str
) -> None:
    command = [str(environment.python), "-c", INTERRUPTER + call]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
    assert list(environment.site.glob("_rocm_sdk_devel*")) == []
    assert environment.run("rocm-sdk", "path", "--root").stdout == f"{environment.root}\n"


@pytest.mark.parametrize(
    ("tool", "steps"), [*(("pip", n) for n in (4, 9, 40)), *(("uv", n) for n in (2, 4, 6, 9, 12, 20, 40))]
)
def test_uninstall_after_a_kill_leaves_nothing(
    make_set: MakeSet, make_environment: MakeEnvironment, tool: str, steps: int
) -> None:
    environment = make_environment(make_set(), tool)
    before = environment.files()
    environment.install("rocm[devel]")
    killed = environment.run("python", "-c", KILLER, str(steps), check=False)
    assert killed.returncode == -9
    environment.uninstall("rocm-sdk-devel", "rocm-sdk-core", "rocm-sdk-libraries", "rocm")
    assert environment.files() == before


def test_reinstalled_archive_replaces_the_tree(environment: Installed) -> None:
    # Given a tree with a change, of which another archive comes
    environment.run("rocm-sdk", "init")
    (environment.root / "lib/note.txt").write_text("changed")
    replace_archive(environment, member("_rocm_sdk_devel/new.txt"))
    record = next(environment.site.glob("rocm_sdk_devel-*/RECORD"))
    record.write_text(record.read_text().replace("_devel.tar,sha256=", "_devel.tar,sha256=other"))
    environment.run("rocm-sdk", "init")
    assert describe(environment.root) == {"new.txt": "file"}
    assert "note.txt" not in record.read_text()


def test_unpacked_wheel_without_record_is_expanded(environment: Installed) -> None:
    next(environment.site.glob("rocm_sdk_devel-*/RECORD")).unlink()
    environment.run("rocm-sdk", "init")
    assert describe(environment.root) == TREE


def test_tree_that_was_removed_by_hand_is_explained(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    (environment.root / ".expanded.json").unlink()
    message = (
        f"rocm-sdk: error: {environment.root}: incomplete, and the archive it is made from is gone. "
        f"Reinstall: {REINSTALL}\n"
    )
    assert environment.run("rocm-sdk", "init", check=False).stderr == message


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (member("/etc/passwd"), "'/etc/passwd' is not below _rocm_sdk_devel/."),
        (member("_rocm_sdk_devel/../x"), "'_rocm_sdk_devel/../x' is not below _rocm_sdk_devel/."),
        (member("rocm_sdk/x.py"), "'rocm_sdk/x.py' is not below _rocm_sdk_devel/."),
        (member(LINK, tarfile.SYMTYPE, "/etc"), f"{LINK!r} links to '/etc', which is outside site-packages."),
        (member(LINK, tarfile.SYMTYPE, "../../x"), f"{LINK!r} links to '../../x', which is outside site-packages."),
        (member(LINK, tarfile.LNKTYPE, "_rocm_sdk_devel/x"), f"{LINK!r} is neither a file, a folder nor a symlink."),
        (member(LINK, tarfile.CHRTYPE), f"{LINK!r} is neither a file, a folder nor a symlink."),
    ],
    ids=["absolute", "dots", "other package", "absolute link", "link out", "hard link", "device"],
)
def test_unsafe_member_is_refused(environment: Installed, bad: tarfile.TarInfo, message: str) -> None:
    replace_archive(environment, member("_rocm_sdk_devel/fine"), bad)
    complete = f"rocm-sdk: error: The archive of the ROCm development files has an unsafe member: {message}\n"
    assert fail_to_expand(environment) == complete


def test_file_below_a_link_is_refused(environment: Installed) -> None:
    link = member("_rocm_sdk_devel/lib", tarfile.SYMTYPE, "../_rocm_sdk_core/lib")
    replace_archive(environment, link, member("_rocm_sdk_devel/lib/x"))
    assert fail_to_expand(environment) == (
        "rocm-sdk: error: The archive of the ROCm development files has an unsafe member: '_rocm_sdk_devel/lib/x' "
        "lies below something that is no folder.\n"
    )
    assert not (environment.site / "_rocm_sdk_core/lib/x").exists()


def test_member_that_is_there_twice_is_refused(environment: Installed) -> None:
    replace_archive(environment, member("_rocm_sdk_devel/x"), member("_rocm_sdk_devel/x"))
    assert "'_rocm_sdk_devel/x' is there twice." in fail_to_expand(environment)


@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_damaged_archive_is_refused(make_set: MakeSet, make_environment: MakeEnvironment, suffix: str) -> None:
    environment = make_environment(make_set(devel=suffix))
    environment.install("rocm[devel]", "--link-mode=copy")
    archive = environment.site / f"rocm_sdk_devel/_devel.tar{suffix}"
    data = archive.read_bytes()
    archive.write_bytes(data[: len(data) // 2 + 7])
    message = fail_to_expand(environment)
    assert message.startswith(f"rocm-sdk: error: {archive}: damaged (")
    assert message.endswith(f"Reinstall: {REINSTALL}\n")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        pytest.param(b"\xff" * 512, "a header is damaged: bad checksum", id="no header"),
        pytest.param(bytes(512), "a block of zeros stands amid its members", id="zeros"),
    ],
)
def test_a_damaged_header_is_not_taken_for_the_end(environment: Installed, damage: bytes, why: str) -> None:
    replace_archive(environment, *(member(f"_rocm_sdk_devel/{name}") for name in "abc"))
    archive = environment.site / "rocm_sdk_devel/_devel.tar"
    data = archive.read_bytes()
    archive.write_bytes(data[:512] + damage + data[1024:])
    complete = f"rocm-sdk: error: {archive}: damaged ({why}). Reinstall: {REINSTALL}\n"
    assert fail_to_expand(environment) == complete


def test_an_archive_that_is_cut_between_two_members_is_refused(environment: Installed) -> None:
    replace_archive(environment, *(member(f"_rocm_sdk_devel/{name}") for name in "abc"))
    archive = environment.site / "rocm_sdk_devel/_devel.tar"
    archive.write_bytes(archive.read_bytes()[:1024])
    complete = f"rocm-sdk: error: {archive}: damaged (it has no end). Reinstall: {REINSTALL}\n"
    assert fail_to_expand(environment) == complete


def run_privately(environment: Installed, *command: str) -> None:
    """Run a command of the environment under an umask that gives others nothing."""
    line = ["sh", "-c", 'umask 077; exec "$@"', "sh", str(environment.path / "bin" / command[0]), *command[1:]]
    subprocess.run(line, check=True, capture_output=True)


def modes(environment: Installed) -> dict[str, str]:
    paths = [
        path for path in environment.site.rglob("*") if not path.is_symlink() and path.parent.name != "__pycache__"
    ]
    return {path.relative_to(environment.site).as_posix(): f"{path.stat().st_mode & 0o7777:o}" for path in paths}


def test_tree_is_open_to_those_who_may_use_the_packages_whatever_the_umask(environment: Installed) -> None:
    before = modes(environment)
    run_privately(environment, "rocm-sdk", "init")
    after = modes(environment)
    tree = {name: mode for name, mode in after.items() if name.startswith("_rocm_sdk_devel")}
    programs = {f"_rocm_sdk_devel/{name}" for name in ("libexec/tool", "bin/hipcc", "lib/llvm/bin/clang")}
    folders = {name for name in tree if (environment.site / name).is_dir()}
    assert tree == {name: "755" if name in programs | folders else "644" for name in tree}
    assert {name for name in before if name in after and before[name] != after[name]} == set()


def test_links_that_come_later_are_open_to_those_who_may_use_the_packages(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    environment.install("rocm-sdk-device-gfx906")
    before = modes(environment)
    run_privately(environment, "rocm-sdk", "path", "--root")
    after = modes(environment)
    assert {name: after[name] for name in after if after[name] != before.get(name)} == {
        "_rocm_sdk_devel/.device_links": "755",
        "_rocm_sdk_devel/.device_links/gfx906.json": "644",
        "_rocm_sdk_devel/.kpack": "755",
        "_rocm_sdk_devel/lib/rocblas": "755",
        "_rocm_sdk_devel/lib/rocblas/library": "755",
    }


def test_tree_belongs_to_the_group_that_maintains_the_packages(environment: Installed) -> None:
    (environment.site / "rocm_sdk_devel").chmod(0o2775)
    environment.run("rocm-sdk", "init")
    tree = modes(environment)
    assert tree["_rocm_sdk_devel/include/hip"] == "2775"
    assert tree["_rocm_sdk_devel/include/hip/hip, runtime.h"] == "664"


@pytest.mark.parametrize("closed", ["", ".expanded.json"], ids=["tree", "state"])
def test_tree_that_may_not_be_read_is_named_as_such(environment: Installed, closed: str) -> None:
    environment.run("rocm-sdk", "init")
    state = environment.root / ".expanded.json"
    message = (
        f"{state}: this user may not read it. As the owner of {environment.root}: chmod -R a+rX {environment.root}\n"
    )
    with read_only(environment) as prefix:
        (environment.root / closed).chmod(0)
        tools = [[*prefix, str(environment.path / "bin" / name)] for name in ("hipcc", "rocm-sdk", "rocminfo")]
        done = [
            subprocess.run([*tool, *arguments], capture_output=True, text=True, check=False)
            for tool, arguments in zip(tools, ([], ["path", "--root"], []), strict=True)
        ]
        (environment.root / closed).chmod(0o755)
    assert [(one.returncode, one.stderr) for one in done] == [
        (1, f"hipcc: {message}"),
        (1, f"rocm-sdk: error: {message}"),
        (0, ""),
    ]
    assert done[2].stdout == f"script {environment.site}/_rocm_sdk_core/bin\n"


def test_program_in_a_folder_that_may_not_be_read_is_named(environment: Installed) -> None:
    folder = environment.site / "_rocm_sdk_core/bin"
    with read_only(environment) as prefix:
        folder.chmod(0)
        command = [*prefix, str(environment.path / "bin/rocminfo")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        folder.chmod(0o755)
    assert (done.returncode, done.stderr) == (1, f"rocminfo: [Errno 13] Permission denied: '{folder}/rocminfo'\n")


def test_read_only_environment_is_explained(environment: Installed) -> None:
    with read_only(environment) as prefix:
        command = [*prefix, str(environment.path / "bin/hipcc"), "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        f"hipcc: The ROCm development files cannot be expanded in {environment.site} (Permission denied: "
        f"{environment.site}/rocm_sdk_devel/__init__.py). Run `rocm-sdk init` once as a user who may write there, "
        "with enough free space, before using them read-only.\n"
    )


def test_expanded_tree_is_used_read_only(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    with read_only(environment) as prefix:
        command = [*prefix, str(environment.path / "bin/hipcc"), "--version"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_link_to_a_file_that_its_package_lacks_is_refused(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    environment = make_environment(make_set(extra_devel=(("lib/x", "../../_rocm_sdk_core/lib/gone.so.2"),)))
    environment.install("rocm[devel]", "--link-mode=copy")
    assert fail_to_expand(environment) == (
        "rocm-sdk: error: The ROCm development files link to 1 files that installed packages lack, such as "
        "_rocm_sdk_core/lib/gone.so.2. All packages must be of version 7.2.0; reinstall them together.\n"
    )
