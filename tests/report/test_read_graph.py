"""Tests of what loads what, and what the audit finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.report.make_report import make_report, read_graph
from rocwheel.report.values import Graph, Load, Loading
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.pe_files import pe_file
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path


@needs_compiler
def test_libraries_are_found_across_packages_and_missing_ones_are_findings(tmp_path: Path) -> None:
    tree = build_tree(
        tmp_path / "tree",
        Lib("lib/libone.so.1", ("libtwo.so.1", "libc.so.6", "libabsent.so.1"), "$ORIGIN/../../b/lib"),
        Lib("lib/libtwo.so.1"),
    )
    make_wheel(tmp_path / "dist", "alpha", {"a/lib/libone.so.1": tree / "lib/libone.so.1"}, requires=("beta",))
    make_wheel(tmp_path / "dist", "beta", {"b/lib/libtwo.so.1": tree / "lib/libtwo.so.1"})
    graph = make_report([tmp_path / "dist"], unread=[]).graph
    assert graph.files == (
        Loading(
            "a/lib/libone.so.1",
            "alpha",
            True,
            (
                Load("libtwo.so.1", "b/lib/libtwo.so.1", "beta"),
                Load("libc.so.6"),
                Load("libabsent.so.1", is_missing=True),
            ),
        ),
        Loading("b/lib/libtwo.so.1", "beta", True, ()),
    )
    found = [(one.rule, one.package, one.path) for one in graph.findings if one.severity == "error"]
    assert ("unresolved-library", "alpha", "a/lib/libone.so.1") in found


@needs_compiler
def test_a_program_is_named_as_in_its_package(tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("bin/tool", ("libabsent.so.1",)))
    make_wheel(tmp_path / "dist", "demo", {"demo-1.0.data/scripts/tool": tree / "bin/tool"})
    report = make_report([tmp_path / "dist"], unread=[])
    name = "demo-1.0.data/scripts/tool"
    assert [one.path for one in report.graph.files] == [name]
    assert {one.path for one in report.graph.findings} == {"", name}
    assert name in {file.path for file in report.files}


def test_dlls_of_windows_are_found_as_its_loader_finds_them(tmp_path: Path) -> None:
    imports = ("B.dll", "KERNEL32.dll", "absent.dll", "rocblas.dll", "OpenCL.dll")
    files = {
        "_rocm_sdk_core/bin/a.dll": pe_file("a.dll", *imports),
        "_rocm_sdk_core/bin/b.dll": pe_file("b.dll"),
        "_rocm_sdk_core/bin/tool.exe": pe_file("tool.exe", "b.dll", is_dll=False),
    }
    make_wheel(tmp_path / "dist", "rocm-sdk-core", files, tag="py3-none-win_amd64")
    graph = make_report([tmp_path / "dist"], unread=[]).graph
    b = "_rocm_sdk_core/bin/b.dll"
    assert graph.files == (
        Loading(
            "_rocm_sdk_core/bin/a.dll",
            "rocm-sdk-core",
            True,
            (
                Load("B.dll", b, "rocm-sdk-core"),
                Load("KERNEL32.dll"),
                Load("absent.dll", is_missing=True),
                Load("rocblas.dll", "_rocm_sdk_libraries/bin/rocblas.dll", "rocm-sdk-libraries"),
                Load("OpenCL.dll"),
            ),
        ),
        Loading(b, "rocm-sdk-core", True, ()),
        Loading("_rocm_sdk_core/bin/tool.exe", "rocm-sdk-core", False, (Load("b.dll", b, "rocm-sdk-core"),)),
    )


def test_nothing_to_read_has_no_graph() -> None:
    assert read_graph([]) == Graph()


def test_a_folder_without_packages_has_no_problem(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    assert make_report([tmp_path], unread=[]).graph == Graph()


def test_what_cannot_be_read_is_the_problem_of_the_graph(tmp_path: Path) -> None:
    assert "does not exist" in read_graph([tmp_path / "absent"]).problem
