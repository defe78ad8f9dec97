"""``rocwheel promote`` as its users call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel, run_json

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_a_release_is_listed_with_its_version(sample_dist: Path, tmp_path: Path) -> None:
    done = rocwheel("promote", sample_dist, "--to", "7.0.1", "--dest-dir", "release", cwd=tmp_path)
    assert done.returncode == 0
    listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith((" release/", "  release/"))}
    assert listed == {f"release/{path.name}" for path in (tmp_path / "release").iterdir()}
    assert done.stderr.splitlines()[-1] == "version 7.0.0 is now 7.0.1"


def test_a_release_s_name_begins_no_line(sample_dist: Path, tmp_path: Path) -> None:
    done = rocwheel("promote", sample_dist, "--to", "7.0.1", "--dest-dir", "a\n::error::b", cwd=tmp_path)
    assert done.returncode == 0
    assert "a\\n::error::b/rocm-7.0.1.tar.gz" in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("::")] == []


def test_what_is_left_out_and_what_is_kept_is_said(sample_dist: Path, tmp_path: Path) -> None:
    options = ["--to", "7.0.1", "--dest-dir", "release", "--targets", "gfx906,gfx1030"]
    done = rocwheel("promote", sample_dist, *options, cwd=tmp_path)
    left_out, last = done.stderr.splitlines()[-2:]
    assert left_out.startswith(f"left out: {sample_dist}/rocm_sdk_device_gfx90a-7.0.0-")
    assert last == "version 7.0.0 is now 7.0.1, GPU targets: gfx906, gfx1030"


def test_quiet_leaves_the_table_alone(sample_dist: Path, tmp_path: Path) -> None:
    done = rocwheel("promote", sample_dist, "--to", "7.0.1", "--dest-dir", "release", "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stderr, "rocm-7.0.1.tar.gz" in done.stdout) == (0, "", True)


def test_a_release_is_told_to_machines(sample_dist: Path, tmp_path: Path) -> None:
    value = run_json("promote", sample_dist, "--to", "7.0.1", "--dest-dir", "release", cwd=tmp_path)
    made = value.pop("distributions")
    assert {row["path"]: row["size"] for row in made} == {
        f"release/{path.name}": path.stat().st_size for path in (tmp_path / "release").iterdir()
    }
    assert {row["source"] for row in made} == {str(path) for path in sample_dist.iterdir() if path.is_file()}
    assert value == {
        "schema": "rocwheel.promote/1", "old_version": "7.0.0", "version": "7.0.1", "left_out": [], "targets": [],
    }  # fmt: skip


def test_no_targets_are_wrong_usage(sample_dist: Path, tmp_path: Path) -> None:
    done = rocwheel("promote", sample_dist, "--to", "7.0.1", "--dest-dir", "out", "--targets", "", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --targets: names no GPU target; expected at least one, such as gfx1100\n"
    assert list(tmp_path.iterdir()) == []
