"""``rocwheel runpath show``, ``set`` and ``for``."""

from __future__ import annotations

import json
import shutil
import stat
from functools import partial
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.facts import read_elf
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.places import ELF_FIXTURES as FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


@pytest.fixture
def run(run: Run) -> Run:
    """Return a function that runs ``rocwheel runpath``."""
    return partial(run, "runpath")


@pytest.mark.slow
def test_show_lists_the_fields_that_affect_library_search(run: Run) -> None:
    finished = run("show", FIXTURES / "program-pie", FIXTURES / "librpath.so", FIXTURES / "static")
    assert finished.status == 0
    rows = [line.split() for line in finished.stdout.splitlines() if str(FIXTURES) in line]
    assert [row[1:] for row in rows] == [
        ["executable", "-", "RUNPATH", "/opt/answer", "libanswer.so.1"],
        ["shared", "object", "libanswer.so.1", "RPATH", "/opt/rocm/lib", "-"],
        ["executable", "-", "-", "-", "-"],
    ]


@pytest.mark.slow
def test_show_prints_the_same_facts_as_json(run: Run) -> None:
    path = FIXTURES / "program-pie"
    assert json.loads(run("show", "--json", path).stdout) == {
        "schema": "rocwheel.runpath.show/1",
        "files": [
            {
                "file": str(path),
                "kind": "executable",
                "soname": None,
                "tag": "runpath",
                "run_path": "/opt/answer",
                "needed": ["libanswer.so.1"],
            }
        ],
    }


@pytest.mark.slow
def test_show_looks_inside_wheels_and_folders(run: Run, tmp_path: Path) -> None:
    files = {"demo/librpath.so": FIXTURES / "librpath.so", "demo/gfx906.co": FIXTURES / "gfx906.co"}
    wheel = make_wheel(tmp_path / "dist", "demo", {**files, "demo/text.txt": b"text"})
    name = f"{wheel}!demo/librpath.so"
    for path in (wheel, wheel.parent):
        [file] = json.loads(run("show", "--json", path).stdout)["files"]
        assert (file["file"], file["run_path"]) == (name, "/opt/rocm/lib")


@pytest.mark.slow
def test_show_refuses_a_wheel_without_elf_files(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", {"demo/text.txt": b"text"})
    expected = f"error: {wheel}: no ELF files; expected ELF files, or wheels or folders with ELF files\n"
    assert run("show", wheel) == (2, "", expected)


@pytest.mark.slow
def test_set_writes_changed_copies_and_leaves_the_originals_unchanged(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "program-pie"
    shutil.copy(FIXTURES / "program-pie", source)
    source.chmod(0o750)
    before = source.read_bytes()
    target = tmp_path / "fixed/program-pie"
    finished = run("set", "$ORIGIN/../lib", source, "--output", target.parent)
    assert finished == (0, f"{target}: changed\n", "")
    assert source.read_bytes() == before
    assert read_elf(target.read_bytes(), name="copy").runpath == "$ORIGIN/../lib"
    assert stat.S_IMODE(target.stat().st_mode) == 0o750


@pytest.mark.slow
def test_a_run_path_that_is_not_utf8_is_written_and_shown(run: Run, tmp_path: Path) -> None:
    assert run("set", "/opt/caf\udce9", FIXTURES / "libplain.so", "--output", tmp_path).status == 0
    assert b"\0/opt/caf\xe9\0" in (tmp_path / "libplain.so").read_bytes()
    shown = run("show", "--json", tmp_path / "libplain.so")
    assert shown.status == 0
    assert json.loads(shown.stdout)["files"][0]["run_path"] == "/opt/caf\udce9"


@pytest.mark.slow
def test_a_copy_loses_the_setuid_bit(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "program-pie"
    shutil.copy(FIXTURES / "program-pie", source)
    source.chmod(0o6755)
    assert run("set", "/opt/new", source, "--output", tmp_path / "fixed").status == 0
    assert stat.S_IMODE((tmp_path / "fixed/program-pie").stat().st_mode) == 0o755


@pytest.mark.slow
def test_set_can_write_rpath_instead_of_runpath(run: Run, tmp_path: Path) -> None:
    run("set", "/opt/new", FIXTURES / "program-pie", "--output", tmp_path, "--rpath", "--quiet")
    elf = read_elf((tmp_path / "program-pie").read_bytes(), name="copy")
    assert (elf.rpath, elf.runpath) == ("/opt/new", None)


@pytest.mark.slow
def test_set_copies_an_already_correct_file_byte_for_byte(run: Run, tmp_path: Path) -> None:
    source = FIXTURES / "program-pie"
    finished = run("set", "/opt/answer", source, "--output", tmp_path)
    assert finished.stdout == f"{tmp_path / 'program-pie'}: already correct, copied unchanged\n"
    assert (tmp_path / "program-pie").read_bytes() == source.read_bytes()


@pytest.mark.slow
def test_an_empty_value_removes_the_run_path(run: Run, tmp_path: Path) -> None:
    run("set", "", FIXTURES / "program-pie", "--output", tmp_path)
    assert read_elf((tmp_path / "program-pie").read_bytes(), name="copy").runpath is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("/../lib", "has '/../lib': a shell or make removed $ORIGIN"),
        ("RIGIN/../lib", "has 'RIGIN/../lib': a shell or make removed $ORIGIN"),
        ("lib", "searches 'lib' relative to the working directory"),
        ("$$ORIGIN/..", "searches '$$ORIGIN/..' relative to the working directory"),
        ("\\$ORIGIN", r"searches '\\$ORIGIN' relative to the working directory"),
        ("@loader_path/..", "searches '@loader_path/..' relative to the working directory"),
        ("$ORIGIN:", "searches '' relative to the working directory"),
        ("$ORIGIN/\x01lib", r"has control characters in '$ORIGIN/\x01lib'"),
        ("/home/me/lib", "searches '/home/me/lib' from the build machine"),
    ],
)
def test_a_run_path_that_audit_rejects_requires_force(run: Run, tmp_path: Path, value: str, found: str) -> None:
    arguments = ("set", value, FIXTURES / "libplain.so", "--output", tmp_path / "fixed")
    refused = run(*arguments)
    assert (refused.status, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"error: RUNPATH: {found}; expected $ORIGIN, $ORIGIN/FOLDER, or an absolute path")
    assert refused.stderr.endswith("To set it anyway, add --force.\n")
    assert not (tmp_path / "fixed").exists()
    forced = run(*arguments, "--force")
    assert (forced.status, forced.stderr) == (0, f"warning: the run path {found}\n")
    assert read_elf((tmp_path / "fixed/libplain.so").read_bytes(), name="copy").runpath == value


@pytest.mark.slow
@pytest.mark.parametrize("value", ["$ORIGIN", "${ORIGIN}/../lib", "$ORIGIN/../../_rocm_sdk_core/lib", ""])
def test_a_valid_run_path_is_set_without_a_message(run: Run, tmp_path: Path, value: str) -> None:
    assert run("set", value, FIXTURES / "libplain.so", "--output", tmp_path, "--quiet") == (0, "", "")
    assert run("set", value, FIXTURES / "libplain.so", "--output", tmp_path).stderr == ""


@pytest.mark.slow
def test_an_absolute_folder_is_set_with_a_warning(run: Run, tmp_path: Path) -> None:
    done = run("set", "/opt/rocm/lib", FIXTURES / "libplain.so", "--output", tmp_path)
    assert done.stderr == "warning: the run path searches '/opt/rocm/lib' on the host\n"


@pytest.mark.slow
def test_set_prints_the_written_files_as_json(run: Run, tmp_path: Path) -> None:
    source = FIXTURES / "librpath.so"
    finished = run("set", "/opt/rocm", source, "--output", tmp_path, "--json")
    assert json.loads(finished.stdout) == {
        "schema": "rocwheel.runpath.set/1",
        "tag": "runpath",
        "run_path": "/opt/rocm",
        "files": [{"file": str(source), "written": str(tmp_path / "librpath.so"), "size": 13352, "is_changed": True}],
    }


@pytest.mark.slow
def test_every_file_that_cannot_be_changed_is_reported_and_no_file_is_written(run: Run, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no program\n")
    good, static, missing = FIXTURES / "libplain.so", FIXTURES / "static", tmp_path / "missing"
    finished = run("set", "/opt/rocm", good, text, static, missing, "--output", tmp_path / "fixed")
    assert finished.status == 2
    assert finished.stderr == (
        "error: files that can't be used: 3 problems\n"
        f"  {text}: not an ELF file (the file begins with b'no p'); expected an ELF file, which begins with "
        f"b'\\x7fELF'\n"
        f"  {static}: no dynamic section, so no space for a run path; expected a shared library or a dynamically "
        "linked program. Leave the file unchanged: static programs and object files don't search for libraries.\n"
        f"  {missing}: can't be read (No such file or directory). Check whether it exists and is readable.\n"
    )
    assert not (tmp_path / "fixed").exists()


@pytest.mark.slow
def test_two_files_with_the_same_output_name_are_refused(run: Run, tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "libplain.so", tmp_path)
    first, second = FIXTURES / "libplain.so", tmp_path / "libplain.so"
    finished = run("set", "/opt/rocm", first, second, "--output", tmp_path / "fixed")
    assert finished == (
        2,
        "",
        f"error: {second}: has the same name as {first}; expected a unique name for each copy\n",
    )


@pytest.mark.slow
def test_an_unwritable_folder_results_in_exit_status_1(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    target = tmp_path / "file" / "libplain.so"
    finished = run("set", "/opt/rocm", FIXTURES / "libplain.so", "--output", target.parent)
    assert finished.status == 1
    assert finished.stderr.startswith(f"error: {target}: can't be written (")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@pytest.mark.slow
@needs_compiler
def test_runpath_for_prints_the_entries_and_their_libraries(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7", "libhipblas.so.3")))
    options = ["--at", "site-packages/demo/", "--with", "rocm-sdk-core", "--with", "rocm-sdk-libraries"]
    lines = [line.split() for line in run("for", tree / "a.so", *options).stdout.splitlines()]
    assert [line for line in lines if line and line[0].startswith("$ORIGIN")] == [
        ["$ORIGIN/../_rocm_sdk_core/lib", "libamdhip64.so.7"],
        ["$ORIGIN/../_rocm_sdk_libraries/lib", "libhipblas.so.3"],
    ]
    plain = run("for", tree / "a.so", *options, "--tool", "plain").stdout
    assert plain == "$ORIGIN/../_rocm_sdk_core/lib:$ORIGIN/../_rocm_sdk_libraries/lib\n"


@pytest.mark.slow
@needs_compiler
def test_runpath_for_prints_a_library_name_that_looks_like_markup(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("lib[/l].so",)))
    finished = run("for", tree / "a.so", "--at", "demo/")
    assert (finished.status, finished.stderr) == (1, "lib[/l].so: neither in the packages nor on every system\n")


@pytest.mark.slow
@needs_compiler
def test_runpath_for_fails_if_a_library_cannot_be_found(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libfoo.so.1",)))
    finished = run("for", tree / "a.so", "--at", "demo/", "--json")
    assert finished.status == 1
    assert json.loads(finished.stdout) == {
        "schema": "rocwheel.runpath.for/1",
        "entries": [],
        "system": [],
        "missing": ["libfoo.so.1"],
        "spellings": {},
    }
    assert finished.stderr == "libfoo.so.1: neither in the packages nor on every system\n"


@pytest.mark.slow
@needs_compiler
def test_runpath_for_finds_libraries_for_a_given_cpu_level(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libb.so",)), Lib("sdk/glibc-hwcaps/x86-64-v2/libb.so"))
    command = ("for", tree / "a.so", "--at", "demo/", "--with", tree / "sdk", "--tool", "plain")
    assert run(*command).status == 1
    assert run(*command, "--cpu-level", "x86-64-v2") == (0, "$ORIGIN/..\n", "")


@pytest.mark.slow
@needs_compiler
def test_runpath_for_refuses_an_unknown_package(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so"))
    finished = run("for", tree / "a.so", "--at", "demo/", "--with", "rocm-sdk-cor")
    expected = "a wheel, a folder, or one of rocm-sdk-core, rocm-sdk-libraries"
    assert finished == (2, "", f"error: --with rocm-sdk-cor: doesn't exist; expected {expected}\n")


def test_swapped_file_and_run_path_are_recognized(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(b"")
    done = run("set", path, "$ORIGIN", "-o", tmp_path / "out")
    assert done.status == 2
    assert done.stderr == (
        f"error: {path}: is a file; expected the run path before the files: rocwheel runpath set RUNPATH FILE...\n"
    )
