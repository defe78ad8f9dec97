"""Folders called bin in another case, which Windows takes for the same."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.artifact import ArtifactName, FileKind
from rocwheel.artifacts.catalog import Catalog, Entry, open_catalog
from rocwheel.binary.platform import Platform
from rocwheel.core.errors import ProblemsError
from rocwheel.packages.job import PlanJob
from rocwheel.packages.layout.bin_folders import with_plain_bin
from rocwheel.packages.plan import PlannedSdist
from rocwheel.packages.planning.options import PlanOptions
from tests.packages.selectors import literals
from tests.packages.trees import link_entry, make_catalog
from tests.support.artifacts import artifact
from tests.support.pe_files import pe_file
from tests.support.windows_trees import DLL, EXE, write_windows_sdk

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def plain(folder: Path, files: dict[str, bytes]) -> Iterator[Catalog]:
    artifact(folder / "in", "base_lib_generic", files)
    with open_catalog(folder / "in") as catalog:
        yield with_plain_bin(catalog)


def paths(catalog: Catalog) -> list[str]:
    return [entry.path for entry in catalog.entries if entry.kind is FileKind.FILE]


def test_whole_names_of_folders_are_spelled_in_lower_case(tmp_path: Path) -> None:
    dlls = ["BIN/a.dll", "Bin/b.dll", "bin/c.dll", "lib/llvm/Bin/d.exe"]
    others = ["share/Binary/e", "share/MyBin/f", "tool/Bin"]
    with plain(tmp_path, dict.fromkeys(dlls, DLL) | dict.fromkeys(others, b"data")) as catalog:
        assert paths(catalog) == ["bin/a.dll", "bin/b.dll", "bin/c.dll", "lib/llvm/bin/d.exe", *others]


def test_dlls_in_such_a_folder_alone_make_a_tree_one_for_windows(tmp_path: Path) -> None:
    with plain(tmp_path, {"Bin/a.dll": DLL}) as catalog:
        assert paths(catalog) == ["bin/a.dll"]


def test_folders_themselves_and_links_to_them_follow() -> None:
    folder = Entry("lib/Bin", FileKind.DIRECTORY, ArtifactName.parse("base_lib_generic"), 0o755)
    catalog = make_catalog(folder, link_entry("lib/a.dll", "../Bin/a.dll"))
    spelled = with_plain_bin(catalog, Platform.WINDOWS)
    assert [(entry.path, entry.link) for entry in spelled.entries] == [("lib/a.dll", "../bin/a.dll"), ("lib/bin", None)]


def test_a_tree_for_linux_has_two_folders(tmp_path: Path) -> None:
    program = Path(sys.executable).resolve().read_bytes()
    with plain(tmp_path, {"Bin/a": program, "bin/a": program}) as catalog:
        assert paths(catalog) == ["Bin/a", "bin/a"]


def test_a_plan_has_the_libraries_and_programs_of_such_a_folder(tmp_path: Path) -> None:
    rocsolver = pe_file("rocsolver.dll", "rocblas.dll")
    more = {"blas_lib_generic": {"Bin/rocsolver.dll": rocsolver}, "core-hip_run_generic": {"BIN/hipInfo.exe": EXE}}
    write_windows_sdk(tmp_path, more)
    plan = PlanJob(tmp_path, options=PlanOptions(version="7.1")).run()
    members = {member.path for wheel in plan.wheels for member in wheel.members}
    assert "_rocm_sdk_libraries/bin/rocsolver.dll" in members
    [sdist] = [one for one in plan.sdists if isinstance(one, PlannedSdist)]
    libraries = literals(sdist.files["src/rocm_sdk/_build_info.py"])["LIBRARIES"]
    assert (libraries["rocsolver"]["directory"], libraries["rocsolver"]["needs"]) == ("bin", ["rocblas"])
    assert "hipInfo" in {name for wheel in plan.wheels for name in wheel.console_scripts}


def test_different_files_that_become_one_are_told(tmp_path: Path) -> None:
    write_windows_sdk(tmp_path, {"blas_lib_generic": {"Bin/rocblas.dll": EXE}})
    with pytest.raises(ProblemsError) as caught:
        PlanJob(tmp_path, options=PlanOptions(version="7.1")).run()
    said = "is in the artifact blas_lib_generic more than once, with different content, below bin in different cases"
    assert f"bin/rocblas.dll: {said}. Remove one: for Windows they are one file." in str(caught.value)
