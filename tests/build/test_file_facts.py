"""Tests of `rocwheel.build.file_facts`."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from struct import pack_into
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.artifact import ArtifactName, FileKind
from rocwheel.artifacts.catalog import Catalog, Entry, open_catalog
from rocwheel.binary.platform import Platform
from rocwheel.build.file_facts import Facts, PlatformSign, decide_platform, glance_platform, read_facts, with_plain_bin
from rocwheel.build.job import PlanJob
from rocwheel.build.plan import PlannedSdist
from rocwheel.build.planning.options import PlanOptions
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from tests.build.selectors import literals
from tests.build.trees import file_entry, link_entry, make_catalog
from tests.support.artifacts import artifact
from tests.support.pe_files import pe_file
from tests.support.windows_trees import DLL, EXE, write_windows_sdk

if TYPE_CHECKING:
    from collections.abc import Iterator


LINUX, WINDOWS = Platform.LINUX, Platform.WINDOWS
ELF = Path(sys.executable).resolve().read_bytes()


def sign(path: str, platform: Platform) -> PlatformSign:
    return PlatformSign(file_entry(path), platform)


def read(folder: Path, files: dict[str, bytes], platform: Platform | None = None) -> Facts:
    artifact(folder / "in", "base_lib_generic", files)
    with ThreadPoolExecutor(1) as executor, open_catalog(folder / "in") as catalog:
        return read_facts(catalog, executor, platform)


def for_machine(machine: int) -> bytes:
    """Return a DLL whose header names another machine."""
    data = bytearray(DLL)
    pack_into("<H", data, int.from_bytes(data[0x3C:0x40], "little") + 4, machine)
    return bytes(data)


@pytest.mark.parametrize(
    ("signs", "given", "expected"),
    [
        pytest.param([], None, LINUX, id="nothing tells"),
        pytest.param([], WINDOWS, WINDOWS, id="nothing tells but somebody says"),
        pytest.param([("bin/a.dll", WINDOWS)], None, WINDOWS, id="DLL"),
        pytest.param([("bin/a.dll", WINDOWS)], WINDOWS, WINDOWS, id="DLL as somebody says"),
        pytest.param([("lib/a.so", LINUX)], None, LINUX, id="library"),
        pytest.param([("lib/a.so", LINUX), ("lib/python/w64.exe", WINDOWS)], None, LINUX, id="EXE as data of Linux"),
        pytest.param([("lib/python/w64.exe", WINDOWS)], None, WINDOWS, id="EXE elsewhere, and nothing for Linux"),
        pytest.param([("lib/llvm/bin/a.exe", WINDOWS)], None, WINDOWS, id="EXE in a bin folder below"),
        pytest.param([("BIN/a.dll", WINDOWS)], None, WINDOWS, id="DLL in a bin folder in another case"),
    ],
)
def test_the_platform_is_determined_by_programs_and_libraries(
    signs: list[tuple[str, Platform]], given: Platform | None, expected: Platform
) -> None:
    assert decide_platform("in", [sign(*one) for one in signs], given) is expected


def test_a_tree_for_both_platforms_is_refused_with_a_file_for_each() -> None:
    with pytest.raises(InputError) as caught:
        decide_platform("in", [sign("bin/a.dll", WINDOWS), sign("lib/a.so", LINUX), sign("lib/b.so", LINUX)])
    assert str(caught.value) == (
        "in: contains files for two systems: lib/a.so from base_lib_generic is for Linux, bin/a.dll from "
        "base_lib_generic is for Windows; expected artifacts for one system. Put the artifacts of each system's build "
        "into a separate folder, and build them separately."
    )


@pytest.mark.parametrize(
    ("path", "found", "given"), [("bin/a.dll", WINDOWS, LINUX), ("lib/a.so", LINUX, WINDOWS)], ids=["linux", "windows"]
)
def test_a_platform_option_that_contradicts_the_files_is_refused(path: str, found: Platform, given: Platform) -> None:
    with pytest.raises(InputError) as caught:
        decide_platform("in", [sign(path, found)], given)
    assert str(caught.value) == (
        f"--platform: is {given}; expected {found}, because {path} from base_lib_generic is for {found.label}. "
        "Omit the option."
    )


def test_a_tree_for_both_platforms_is_refused_before_its_broken_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains files for two systems"):
        read(tmp_path, {"bin/a.dll": DLL, "bin/python": ELF, "lib/broken.so": ELF[:100]})


def test_folders_for_two_platforms_are_refused_before_comparing_artifacts(tmp_path: Path) -> None:
    linux, windows, data = (tmp_path / name for name in ("linux", "windows", "data"))
    artifact(linux, "base_lib_generic", {"bin/python": ELF})
    artifact(windows, "base_lib_generic", {"bin/a.dll": DLL})
    artifact(data, "doc_lib_generic", {"share/a.txt": b"text" * 20})
    with pytest.raises(InputError) as caught:
        PlanJob(data, more_dirs=(windows, linux)).run()
    assert str(caught.value) == (
        f"{data} and {windows} and {linux}: contains files for two systems: bin/python from base_lib_generic in "
        f"{linux} is for Linux, bin/a.dll from base_lib_generic in {windows} is for Windows; expected artifacts for "
        "one system. Put the artifacts of each system's build into a separate folder, and build them separately."
    )


def test_files_are_read_according_to_the_platform_of_their_tree(tmp_path: Path) -> None:
    facts = read(tmp_path, {"bin/a.dll": DLL, "share/a.txt": b"MZ and so on, a text of more than sixty-four bytes" * 2})
    assert facts.platform is WINDOWS
    assert [pe.is_dll for pe in facts.images.values()] == [True]
    assert facts.foreign == ()


def test_dlls_in_a_linux_tree_are_listed_as_foreign(tmp_path: Path) -> None:
    facts = read(tmp_path, {"bin/python": ELF, "lib/python/w64.exe": DLL, "lib/python/t32.exe": for_machine(0xAA64)})
    assert facts.platform is LINUX
    assert (facts.images, facts.foreign) == ({}, ("lib/python/t32.exe", "lib/python/w64.exe"))


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        pytest.param("bin/b.dll", for_machine(0xAA64), "is for ARM64; expected x86-64", id="ARM64"),
        pytest.param("Bin/b.dll", for_machine(0xAA64), "is for ARM64; expected x86-64", id="ARM64 in Bin"),
        pytest.param("bin/b.dll", DLL[:700], "truncated", id="cut off"),
        pytest.param("bin/b.dll", DLL[:20], "truncated", id="cut off in the first header"),
        pytest.param("bin/b.exe", b"", "empty", id="empty"),
        pytest.param("bin/B.DLL", b"version https://git-lfs" * 9, "not a Windows DLL or program", id="text"),
    ],
)
def test_a_file_that_windows_cannot_load_is_reported_by_name(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        read(tmp_path, {"bin/a.dll": DLL, name: data})
    assert f"base_lib_generic: {name}: " in str(caught.value)
    assert said in str(caught.value)


def test_a_32_bit_dll_is_refused_with_its_machine(tmp_path: Path) -> None:
    data = bytearray(for_machine(0x14C))
    pack_into("<H", data, int.from_bytes(data[0x3C:0x40], "little") + 24, 0x10B)
    with pytest.raises(ProblemsError, match=r"bin/b\.dll: a 32-bit PE file for x86 \(32 bits\)"):
        read(tmp_path, {"bin/b.dll": bytes(data)})


def test_all_files_that_windows_cannot_load_are_reported_together(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError) as caught:
        read(tmp_path, {"bin/a.dll": DLL, "bin/b.dll": DLL[:20], "bin/c.exe": b""})
    assert [str(problem)[:34] for problem in caught.value.problems] == [
        "base_lib_generic: bin/b.dll: the o",
        "base_lib_generic: bin/c.exe: empty",
    ]


def test_targets_are_read_from_device_code_in_dlls(tmp_path: Path) -> None:
    two = (Path(__file__).parents[1] / "fixtures/pe/two.dll").read_bytes()
    facts = read(tmp_path, {"bin/two.dll": two, "bin/a.dll": DLL})
    assert list(facts.targets.values()) == [("gfx1030", "gfx906", "gfx90a:xnack+")]


def test_launchers_for_other_machines_outside_bin_folders_are_data(tmp_path: Path) -> None:
    facts = read(tmp_path, {"bin/a.dll": DLL, "lib/python/t64-arm.exe": for_machine(0xAA64)})
    assert (facts.platform, facts.foreign) == (WINDOWS, ("lib/python/t64-arm.exe",))


@pytest.mark.parametrize(
    ("files", "given", "expected"),
    [
        pytest.param({"bin/a.dll": DLL}, None, WINDOWS, id="DLL"),
        pytest.param({"Bin/a.dll": DLL}, None, WINDOWS, id="DLL in Bin"),
        pytest.param({"bin/python": ELF, "lib/python/w64.exe": DLL}, None, LINUX, id="program"),
        pytest.param({"lib/python/w64.exe": DLL}, None, LINUX, id="data"),
        pytest.param({"share/a.txt": b"text" * 20}, WINDOWS, WINDOWS, id="nothing"),
    ],
)
def test_the_platform_can_be_determined_from_the_first_conclusive_file(
    tmp_path: Path, files: dict[str, bytes], given: Platform | None, expected: Platform
) -> None:
    artifact(tmp_path / "in", "base_lib_generic", files)
    with open_catalog(tmp_path / "in") as catalog:
        assert glance_platform(catalog.entries, given) is expected


@contextmanager
def plain(folder: Path, files: dict[str, bytes]) -> Iterator[Catalog]:
    artifact(folder / "in", "base_lib_generic", files)
    with open_catalog(folder / "in") as catalog:
        yield with_plain_bin(catalog)


def paths(catalog: Catalog) -> list[str]:
    return [entry.path for entry in catalog.entries if entry.kind is FileKind.FILE]


def test_only_folders_named_exactly_bin_in_any_case_are_lowercased(tmp_path: Path) -> None:
    dlls = ["BIN/a.dll", "Bin/b.dll", "bin/c.dll", "lib/llvm/Bin/d.exe"]
    others = ["share/Binary/e", "share/MyBin/f", "tool/Bin"]
    with plain(tmp_path, dict.fromkeys(dlls, DLL) | dict.fromkeys(others, b"data")) as catalog:
        assert paths(catalog) == ["bin/a.dll", "bin/b.dll", "bin/c.dll", "lib/llvm/bin/d.exe", *others]


def test_dlls_only_in_a_capitalized_bin_folder_make_a_windows_tree(tmp_path: Path) -> None:
    with plain(tmp_path, {"Bin/a.dll": DLL}) as catalog:
        assert paths(catalog) == ["bin/a.dll"]


def test_bin_folder_entries_and_links_to_bin_folders_are_also_lowercased() -> None:
    folder = Entry("lib/Bin", FileKind.DIRECTORY, ArtifactName.parse("base_lib_generic"), 0o755)
    catalog = make_catalog(folder, link_entry("lib/a.dll", "../Bin/a.dll"))
    spelled = with_plain_bin(catalog, Platform.WINDOWS)
    assert [(entry.path, entry.link) for entry in spelled.entries] == [("lib/a.dll", "../bin/a.dll"), ("lib/bin", None)]


def test_a_linux_tree_keeps_folders_that_differ_in_case(tmp_path: Path) -> None:
    program = Path(sys.executable).resolve().read_bytes()
    with plain(tmp_path, {"Bin/a": program, "bin/a": program}) as catalog:
        assert paths(catalog) == ["Bin/a", "bin/a"]


def test_a_plan_includes_libraries_and_programs_from_bin_folders_in_any_case(tmp_path: Path) -> None:
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


def test_different_files_that_get_the_same_path_are_reported(tmp_path: Path) -> None:
    write_windows_sdk(tmp_path, {"blas_lib_generic": {"Bin/rocblas.dll": EXE}})
    with pytest.raises(ProblemsError) as caught:
        PlanJob(tmp_path, options=PlanOptions(version="7.1")).run()
    said = "occurs more than once in the artifact blas_lib_generic, below bin folders whose names differ only in case"
    remedy = "Remove all but one of the files, because they have the same path on Windows."
    assert f"bin/rocblas.dll: {said}. {remedy}" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "data", "mode", "expected"),
    [
        pytest.param("bin/smi", b"#!/bin/sh\n", 0o755, True, id="script"),
        pytest.param("bin/tool", b"\x7fELF\1\1\1", 0o755, True, id="program of 32 bits"),
        pytest.param("bin/smi", b"#!/bin/sh\n", 0o644, False, id="script that may not be run"),
        pytest.param("share/table.txt", b"1 2 3\n", 0o755, False, id="data marked executable"),
        pytest.param("share/empty", b"", 0o755, False, id="nothing marked executable"),
        pytest.param("lib/libclang_rt.so", b"\x7fELF\1\1\1".ljust(64), 0o755, False, id="library of 32 bits"),
    ],
)
def test_only_a_file_that_the_kernel_can_run_is_a_program(
    tmp_path: Path, name: str, data: bytes, mode: int, *, expected: bool
) -> None:
    artifact = tmp_path / "base_run_generic"
    path = artifact / "base/stage" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    path.chmod(mode)
    (artifact / "artifact_manifest.txt").write_text("base/stage\n")
    with ThreadPoolExecutor(1) as executor, open_catalog(tmp_path) as catalog:
        facts = read_facts(catalog, executor)
        entry = next(entry for entry in catalog.entries if entry.path == name)
        assert facts.is_program(entry) is expected


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "is empty; expected a shared library"),
        (b"\x7fELF", "the ELF header would span 0x0 to 0x40, but the file ends at 0x4; expected a whole ELF file"),
    ],
)
def test_a_truncated_library_is_refused(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "base_lib_generic/base/stage/lib/libx.so.1"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    (tmp_path / "base_lib_generic/artifact_manifest.txt").write_text("base/stage\n")
    with ThreadPoolExecutor(1) as executor, open_catalog(tmp_path) as catalog:
        with pytest.raises(RocwheelError) as caught:
            read_facts(catalog, executor)
        assert found in str(caught.value)
