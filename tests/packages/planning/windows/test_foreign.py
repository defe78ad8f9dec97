"""Warnings about files that compilers and loaders of Windows don't take as they stand."""

from __future__ import annotations

import msgspec
import pytest

from rocwheel.packages.planning.windows.foreign import foreign_binaries, import_libraries
from tests.packages.trees import make_facts


@pytest.mark.parametrize(
    ("paths", "subject", "found", "remedy"),
    [
        pytest.param(
            ["lib/libhipblaslt.dll.a"],
            "lib/libhipblaslt.dll.a",
            "stands in the place of hipblaslt.lib, and has the name that GNU linkers alone look for",
            "Have the build make hipblaslt.lib, which MSVC, clang-cl and CMake look for.",
            id="instead",
        ),
        pytest.param(
            ["lib/libx.dll.a", "lib/x.lib"],
            "lib/libx.dll.a",
            "stands beside lib/x.lib, and has the name that GNU linkers alone look for",
            "Nothing needs to be done if both are of the same DLL.",
            id="beside",
        ),
        pytest.param(
            ["lib/x.dll.a", "bin/x.lib"],
            "lib/x.dll.a",
            "stands in the place of x.lib, and has the name that GNU linkers alone look for",
            "Have the build make x.lib, which MSVC, clang-cl and CMake look for.",
            id="another folder",
        ),
    ],
)
def test_import_libraries_of_gnu_linkers_are_told(paths: list[str], subject: str, found: str, remedy: str) -> None:
    [warning] = import_libraries(paths)
    assert (warning.kind, warning.subject, warning.found, warning.remedy) == ("import-library", subject, found, remedy)


def test_import_libraries_of_msvc_are_fine() -> None:
    assert list(import_libraries(["lib/amdhip64.lib", "lib/libz.a"])) == []


def test_binaries_that_nothing_loads_are_one_warning() -> None:
    facts = msgspec.structs.replace(make_facts(), foreign=("lib/python/t64.exe", "lib/python/w64.exe"))
    [warning] = foreign_binaries(facts)
    assert (warning.kind, warning.subject) == ("foreign-binary", "lib/python/t64.exe and 1 more")
    assert warning.found == "ship as data: Linux on these packages' machine loads none of them"
    assert warning.files == ("lib/python/t64.exe", "lib/python/w64.exe")
    assert list(foreign_binaries(make_facts())) == []
