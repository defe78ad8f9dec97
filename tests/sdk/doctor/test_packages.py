"""``rocm-sdk doctor`` finds packages that don't fit each other, and development files that can't be used."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.sdk.installed import FROM_INDEX, read_only

pytestmark = pytest.mark.slow

Make = Callable[..., Any]


def test_a_missing_core_is_reported_with_the_install_command(environment: Any, diagnose: Make) -> None:
    environment.uninstall("rocm-sdk-core")
    assert diagnose(environment, 90006) == [
        ["error", "the ROCm core is not installed", f'pip install "rocm==7.2.0" {FROM_INDEX}']
    ]


@pytest.mark.parametrize("tag", ["win_amd64", "win_arm64"])
def test_packages_for_another_system_are_reported_before_missing_dependencies(
    tag: str, environment: Any, diagnose: Make
) -> None:
    [wheel] = environment.site.glob("rocm_sdk_core-*.dist-info/WHEEL")
    text = wheel.read_text()
    changed = re.sub("Tag: .*", f"Tag: py3-none-{tag}", text)
    wheel.unlink()
    wheel.write_text(changed)
    first, *rest = diagnose(environment, 90006)
    assert first == [
        "error",
        "rocm-sdk-core is for Windows, but this is Linux",
        "Run rocm-sdk doctor on the system that uses the packages, or install the packages for this system",
    ]
    assert [text.partition(":")[0] for _, text, _ in rest] == ["rocm-sdk-core has modified files"] * (
        len(text) != len(changed)
    )


def test_packages_of_different_releases_are_reported(
    make_set: Make, make_environment: Make, environment: Any, diagnose: Make
) -> None:
    newer = make_set(version="7.3.0")
    environment.installer("install", "--no-index", "--no-deps", "--find-links", str(newer), "rocm-sdk-core==7.3.0")
    assert diagnose(environment, 90006) == [
        [
            "error",
            "rocm has version 7.2.0, but rocm-sdk-core has version 7.3.0",
            f'pip install "rocm[device-gfx906,libraries]==7.2.0" {FROM_INDEX}',
        ]
    ]


def test_repacked_files_belong_to_the_same_release(make_set: Make, environment: Any, diagnose: Make) -> None:
    again = make_set(version="7.2.0.post1")
    environment.installer(
        "install", "--no-index", "--no-deps", "--find-links", str(again), "rocm-sdk-core==7.2.0.post1"
    )
    assert diagnose(environment, 90006) == []


def test_expandable_development_files_cause_no_finding(environment: Any, diagnose: Make) -> None:
    environment.install("rocm[devel]")
    assert diagnose(environment, 90006) == []
    assert not environment.root.exists()


def test_development_files_in_a_read_only_environment_are_reported(environment: Any) -> None:
    environment.install("rocm[devel]", "--link-mode=copy")
    with read_only(environment) as prefix:
        command = [*prefix, str(environment.path / "bin/rocm-sdk"), "doctor", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    lock = environment.site / "rocm_sdk_devel/__init__.py"
    assert {
        "level": "error",
        "text": f"the development files are not expanded yet, and {lock} isn't writable: compilers and CMake fail",
        "remedy": "As a user with write access, run: rocm-sdk init",
    } in json.loads(done.stdout)["findings"]
    assert done.returncode == 1


def test_a_development_tree_removed_by_hand_is_reported(environment: Any, diagnose: Make) -> None:
    environment.install("rocm[devel]", "--link-mode=copy")
    environment.run("rocm-sdk", "init")
    shutil.rmtree(environment.root)
    (_, lacking, _), (level, text, _) = diagnose(environment, 90006)
    assert lacking.startswith("rocm-sdk-devel lacks _rocm_sdk_devel, ")
    assert level == "error"
    assert text.startswith(f"{environment.root}: the tree is incomplete, and its archive is missing. Reinstall: ")
