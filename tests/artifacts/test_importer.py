"""Tests of `rocwheel.artifacts.importer`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.import_table import load_import_table
from rocwheel.artifacts.importer import cmake_checked_files, importing, script_interpreter
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"#!/bin/sh\nexec true\n", "/bin/sh"),
        (b"#! /usr/bin/perl -w\n", "/usr/bin/perl"),
        (b"#!\t/usr/bin/python3\t-u\n", "/usr/bin/python3"),
        (b"#!/usr/bin/env python3\n", "python3"),
        (b"#!/bin/env -S python3 -u\n", "python3"),
        (b"#!/usr/bin/env -Spython3 -u\n", "python3"),
        (b"#!/usr/bin/env -iS LANG=C python3\n", "python3"),
        (b"#!/usr/bin/env --split-string=perl -w\n", "perl"),
        (b"#!/usr/bin/env\n", "/usr/bin/env"),
        (b"#!" + b"/x" * 200, "/x" * 127),
        (b"#!\n/bin/sh", None),
        (b"\x7fELF", None),
        (b"", None),
    ],
)
def test_the_interpreter_of_a_script_is_found(head: bytes, expected: str | None) -> None:
    assert script_interpreter(head) == expected


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (
            'list(APPEND _IMPORT_CHECK_FILES_FOR_hip::amdhip64 "${_IMPORT_PREFIX}/lib/libamdhip64.so.5.2" )\n',
            ["lib/libamdhip64.so.5.2"],
        ),
        (
            """list(APPEND _cmake_import_check_files_for_roc::a "${_IMPORT_PREFIX}/lib/a" "${_IMPORT_PREFIX}/b" )
list(APPEND _cmake_import_check_files_for_roc::c "${_IMPORT_PREFIX}/lib/./c" "${_IMPORT_PREFIX}//lib/d" )
""",
            ["lib/a", "b", "lib/c", "lib/d"],
        ),
        ('IMPORTED_LOCATION_RELEASE "${_IMPORT_PREFIX}/lib/liba.so.1"\n', []),
        ('foreach(_file IN LISTS "_cmake_import_check_files_for_${_cmake_target}")\n', []),
    ],
    ids=["until 3.24", "since 3.25", "location alone", "check itself"],
)
def test_files_checked_by_cmake_targets_files_are_found(text: str, paths: list[str]) -> None:
    assert cmake_checked_files("lib/cmake/a/a-targets.cmake", text.encode()) == paths


@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("lib/llvm/lib/cmake/clang/ClangTargets.cmake", ["lib/llvm/lib/libclang.so"]),
        ("lib/cmake/a/sub/a-targets.cmake", ["lib/libclang.so"]),
        ("share/cmake/a/a-targets.cmake", ["lib/libclang.so"]),
        ("share/a/a-targets.cmake", []),
    ],
)
def test_checked_files_are_relative_to_the_prefix_of_the_cmake_file(path: str, files: list[str]) -> None:
    assert (
        cmake_checked_files(path, b'list(APPEND _IMPORT_CHECK_FILES_FOR_a "${_IMPORT_PREFIX}/lib/libclang.so" )')
        == files
    )


ROCM = load_import_table("prefix.toml")


def test_a_symlink_to_an_empty_folder_is_kept_as_the_output(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    dest = tmp_path / "artifacts"
    dest.symlink_to("disk")
    with importing(ROCM, dest) as importer:
        assert importer
    assert dest.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["artifacts", "disk"]


def test_the_current_folder_is_refused_as_output_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = f"{tmp_path}: is the current folder, which the output would replace. Pass a new folder inside it."
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"), importing(ROCM, tmp_path):
        pytest.fail("the sources are read")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a disk")
def test_a_mount_point_is_refused_as_output_at_once(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from rocwheel.artifacts.import_table import load_import_table
from rocwheel.artifacts.importer import importing
from rocwheel.core.errors import InputError
try:
    with importing(load_import_table("prefix.toml"), Path(sys.argv[1])):
        print("the sources are read")
except InputError as e:
    print(e)
"""
    command = f"mount -t tmpfs tmpfs {tmp_path} && exec {sys.executable} -B -c '{program}' {tmp_path}"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", command], capture_output=True, text=True, check=False)
    if "ermitted" in done.stderr:
        pytest.skip(f"no mount here: {done.stderr.strip()}")
    assert done.stdout == (
        f"{tmp_path}: is a mount point, which the output would replace. Pass a new folder inside it.\n"
    )
