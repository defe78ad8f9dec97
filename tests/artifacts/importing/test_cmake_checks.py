"""Files that CMake's exported targets check for."""

from __future__ import annotations

import pytest

from rocwheel.artifacts.importing.cmake_checks import checked_files


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
def test_the_files_that_exported_targets_check_for_are_read(text: str, paths: list[str]) -> None:
    assert checked_files("lib/cmake/a/a-targets.cmake", text.encode()) == paths


@pytest.mark.parametrize(
    ("path", "files"),
    [
        ("lib/llvm/lib/cmake/clang/ClangTargets.cmake", ["lib/llvm/lib/libclang.so"]),
        ("lib/cmake/a/sub/a-targets.cmake", ["lib/libclang.so"]),
        ("share/cmake/a/a-targets.cmake", ["lib/libclang.so"]),
        ("share/a/a-targets.cmake", []),
    ],
)
def test_they_are_in_the_prefix_that_the_cmake_file_is_in(path: str, files: list[str]) -> None:
    assert checked_files(path, b'list(APPEND _IMPORT_CHECK_FILES_FOR_a "${_IMPORT_PREFIX}/lib/libclang.so" )') == files
