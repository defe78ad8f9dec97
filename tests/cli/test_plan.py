"""``rocwheel build --dry-run`` as its users call it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rocwheel.demo import SAMPLE_SDK
from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow


SAMPLE = str(SAMPLE_SDK)


def test_plan_warns_about_a_platform_tag_that_the_files_exceed() -> None:
    command = ["build", "--dry-run", "--artifact-dir", SAMPLE, "--platform-tag", "manylinux_2_12_x86_64"]
    assert (
        "warning: rocm_sdk_core-7.0.0-py3-none-manylinux_2_12_x86_64.whl: promises glibc 2.12, but needs "
        "glibc 2.17 (lib/libhsa-runtime64.so.1.18.0: GLIBC_2.17)\n"
        "  Build without a platform tag, or with manylinux_2_17_x86_64.\n"
    ) in rocwheel(*command).stderr
    (warning,) = json.loads(rocwheel(*command, "--json").stdout)["warnings"]
    assert warning["kind"] == "platform-tag"


def test_plan_json_lists_every_file_and_its_edits() -> None:
    plan = json.loads(rocwheel("build", "--dry-run", "--json", "--quiet", "--artifact-dir", SAMPLE).stdout)
    core = next(wheel for wheel in plan["wheels"] if wheel["name"]["distribution"] == "rocm-sdk-core")
    hip = next(member for member in core["members"] if member["path"] == "_rocm_sdk_core/lib/libamdhip64.so.7")
    assert plan["schema"] == "rocwheel.plan/1"
    assert (hip["type"], hip["artifact"], hip["origin"]) == (
        "file",
        "core-hip_lib_generic",
        "lib/libamdhip64.so.7.0.0",
    )
    assert hip["run_path"]["tag"] == "rpath"


def test_plan_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rocwheel("build", "--dry-run", "--artifact-dir", SAMPLE).returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_quiet_plan_prints_nothing() -> None:
    done = rocwheel("build", "--dry-run", "--quiet", "--artifact-dir", SAMPLE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_verbose_plan_lists_files_that_are_not_shipped() -> None:
    done = rocwheel("build", "--dry-run", "-v", "--artifact-dir", SAMPLE)
    assert (
        "left out: llvm in base_run_generic: a symlink to the folder lib/llvm, which wheels can't contain; "
        "only the devel package may contain it\n"
    ) in done.stderr
