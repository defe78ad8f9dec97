"""Frameworks find the development tree, expanded, whole and up to date."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.sdk.devel.trees import REINSTALL, TREE, describe, member, replace_archive

if TYPE_CHECKING:
    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow


def test_the_archive_is_removed_after_expansion(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    assert not (environment.site / "rocm_sdk_devel/_devel.tar").exists()


def test_a_second_call_changes_nothing(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    times = {name: os.lstat(environment.site / name).st_mtime_ns for name in environment.files()}
    environment.run("rocm-sdk", "init")
    assert {name: os.lstat(environment.site / name).st_mtime_ns for name in environment.files()} == times


def test_programs_find_their_prefix_in_the_tree(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    assert environment.run("hipcc", "-x").stdout == f"script {environment.root}/bin -x\n"
    assert environment.run("amdclang++").stdout.splitlines()[0] == f"{environment.root}/lib/llvm/bin/clang"


def test_a_library_reachable_through_both_trees_is_loaded_once(environment: Installed) -> None:
    code = f"""
import ctypes, rocm_sdk
rocm_sdk.preload_libraries("hipsparse")
ctypes.CDLL({str(environment.root)!r} + "/lib/libhipsparse.so")
maps = open("/proc/self/maps").read().splitlines()
print(len({{line.split()[-1] for line in maps if "libhipsparse" in line}}))
"""
    environment.run("rocm-sdk", "init")
    assert environment.evaluate(code) == "1"


def test_a_reinstalled_archive_replaces_the_tree(environment: Installed) -> None:
    # Given a tree with a change, of which another archive comes
    environment.run("rocm-sdk", "init")
    (environment.root / "lib/note.txt").write_text("changed")
    replace_archive(environment, member("_rocm_sdk_devel/new.txt"))
    record = next(environment.site.glob("rocm_sdk_devel-*/RECORD"))
    record.write_text(record.read_text().replace("_devel.tar,sha256=", "_devel.tar,sha256=other"))
    environment.run("rocm-sdk", "init")
    assert describe(environment.root) == {"new.txt": "file"}
    assert "note.txt" not in record.read_text()


def test_an_unpacked_wheel_without_record_is_expanded(environment: Installed) -> None:
    next(environment.site.glob("rocm_sdk_devel-*/RECORD")).unlink()
    environment.run("rocm-sdk", "init")
    assert describe(environment.root) == TREE


def test_a_tree_removed_by_hand_is_explained(environment: Installed) -> None:
    environment.run("rocm-sdk", "init")
    (environment.root / ".expanded.json").unlink()
    message = (
        f"rocm-sdk: error: {environment.root}: the tree is incomplete, and its archive is missing. "
        f"Reinstall: {REINSTALL}\n"
    )
    assert environment.run("rocm-sdk", "init", check=False).stderr == message
