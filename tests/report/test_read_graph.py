"""Tests of what loads what, and what the audit finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.report.make_report import make_report
from rocwheel.report.read_graph import read_graph
from rocwheel.report.values.graph import Graph, Load, Loading
from tests.support.libraries import Lib, build_tree, needs_compiler
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


def test_nothing_to_read_has_no_graph() -> None:
    assert read_graph([]) == Graph()


def test_a_folder_without_packages_has_no_problem(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    assert make_report([tmp_path], unread=[]).graph == Graph()


def test_what_cannot_be_read_is_the_problem_of_the_graph(tmp_path: Path) -> None:
    assert "does not exist" in read_graph([tmp_path / "absent"]).problem
