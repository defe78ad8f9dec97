"""``rocwheel runpath for`` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.libraries import Lib, build_tree, needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


pytestmark = [pytest.mark.slow, needs_compiler]


def test_runpath_for_prints_the_entries_and_what_they_are_for(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7", "libhipblas.so.3")))
    options = ["--at", "site-packages/demo/", "--with", "rocm-sdk-core", "--with", "rocm-sdk-libraries"]
    lines = [line.split() for line in run("runpath", "for", tree / "a.so", *options).stdout.splitlines()]
    assert [line for line in lines if line and line[0].startswith("$ORIGIN")] == [
        ["$ORIGIN/../_rocm_sdk_core/lib", "libamdhip64.so.7"],
        ["$ORIGIN/../_rocm_sdk_libraries/lib", "libhipblas.so.3"],
    ]
    plain = run("runpath", "for", tree / "a.so", *options, "--spell", "plain").stdout
    assert plain == "$ORIGIN/../_rocm_sdk_core/lib:$ORIGIN/../_rocm_sdk_libraries/lib\n"


def test_runpath_for_names_a_library_that_looks_like_markup(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("lib[/l].so",)))
    finished = run("runpath", "for", tree / "a.so", "--at", "demo/")
    assert (finished.status, finished.stderr) == (1, "lib[/l].so: neither in the packages nor on every system\n")


def test_runpath_for_fails_where_a_library_is_nowhere(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libfoo.so.1",)))
    finished = run("runpath", "for", tree / "a.so", "--at", "demo/", "--json")
    assert finished.status == 1
    assert json.loads(finished.stdout) == {
        "schema": "rocwheel.runpath.for/1",
        "entries": [],
        "system": [],
        "missing": ["libfoo.so.1"],
        "spellings": {},
    }
    assert finished.stderr == "libfoo.so.1: neither in the packages nor on every system\n"


def test_runpath_for_finds_what_a_processor_alone_finds(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libb.so",)), Lib("sdk/glibc-hwcaps/x86-64-v2/libb.so"))
    command = ("runpath", "for", tree / "a.so", "--at", "demo/", "--with", tree / "sdk", "--spell", "plain")
    assert run(*command).status == 1
    assert run(*command, "--cpu-level", "x86-64-v2") == (0, "$ORIGIN/..\n", "")


def test_runpath_for_names_packages_that_it_does_not_know(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so"))
    finished = run("runpath", "for", tree / "a.so", "--at", "demo/", "--with", "rocm-sdk-cor")
    expected = "a wheel, a folder, or one of rocm-sdk-core, rocm-sdk-libraries"
    assert finished == (2, "", f"error: --with rocm-sdk-cor: does not exist; expected {expected}\n")
