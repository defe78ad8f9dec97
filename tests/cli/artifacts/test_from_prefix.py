"""``rocwheel artifacts from-prefix`` as a user runs it."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import as_user, needs_setpriv, rocwheel

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


run = partial(rocwheel, "artifacts")


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    root = tmp_path / "rocm"
    (root / "bin").mkdir(parents=True)
    (root / "bin/hipcc").write_text("#!/usr/bin/perl\n")
    (root / "bin/absent").symlink_to("nowhere")
    (root / "unknown").write_text("?")
    return root


def test_import_tells_what_was_made_and_what_is_needed(prefix: Path, tmp_path: Path) -> None:
    finished = run("from-prefix", prefix, "--dest-dir", tmp_path / "artifacts", "-v")

    assert finished.returncode == 0
    assert [line.split() for line in finished.stdout.splitlines() if "_run_" in line] == [
        ["amd-llvm_run_generic", "1", "0", "16"],
        ["unsorted_run_generic", "1", "0", "1"],
    ]
    assert finished.stdout.endswith(
        "dropped links to files that are not among the sources: 1\n"
        "  bin/absent\n"
        "files that no rule matches, put into the catch-all artifact: 2\n"
        "  bin/absent\n"
        "  unknown\n"
        "programs required from the system:\n"
        "  /usr/bin/perl  by bin/hipcc\n"
    )


def test_lists_are_counted_unless_asked_for(prefix: Path, tmp_path: Path) -> None:
    finished = run("from-prefix", prefix, "--dest-dir", tmp_path / "artifacts")

    assert "files that no rule matches, put into the catch-all artifact: 2 (-v lists them)\n" in finished.stdout
    assert "  unknown\n" not in finished.stdout


def test_report_is_given_as_json(prefix: Path, tmp_path: Path) -> None:
    finished = run("from-prefix", prefix, "--dest-dir", tmp_path / "artifacts", "--json", "--quiet")

    report = json.loads(finished.stdout)
    assert finished.stderr == ""
    assert report["schema"] == "rocwheel.artifact-import/1"
    assert report["artifacts"] == [
        {"name": "amd-llvm_run_generic", "files": 1, "links": 0, "size": 16},
        {"name": "unsorted_run_generic", "files": 1, "links": 0, "size": 1},
    ]
    assert report["programs"] == [{"name": "/usr/bin/perl", "needed_by": ["bin/hipcc"]}]


def test_strict_import_of_unknown_files_fails(prefix: Path, tmp_path: Path) -> None:
    finished = run("from-prefix", prefix, "--dest-dir", tmp_path / "artifacts", "--strict", "--quiet")

    assert (finished.returncode, finished.stdout) == (2, "")
    assert f"unknown of {prefix}: no rule of the table matches it." in finished.stderr


@needs_setpriv
def test_everything_that_may_not_be_read_is_told_at_once(prefix: Path, tmp_path: Path) -> None:
    for name in ("lib", "share"):
        (prefix / name).mkdir(mode=0)
    (prefix / "bin/hipcc").chmod(0)
    dest = tmp_path / "artifacts"
    finished = run("from-prefix", prefix, "--dest-dir", dest, before=as_user())
    (prefix / "lib").rmdir()
    (prefix / "share").rmdir()
    alone = run("from-prefix", prefix, "--dest-dir", dest, before=as_user())

    found = "3 files and folders in it can't be read (Permission denied): bin/hipcc, lib, share"
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == f"error: {prefix}: {found}. Import it as a user who may read them.\n"
    reason = "can't be read (Permission denied). Check that it exists and may be read."
    assert (alone.returncode, alone.stderr) == (2, f"error: {prefix}/bin/hipcc: {reason}\n")
    assert not dest.exists()
