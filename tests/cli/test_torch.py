"""``rocwheel torch init``, ``requirements`` and ``runpath``."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel, run_json

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.parametrize("command", ["init", "requirements"])
def test_a_malformed_version_is_a_usage_error(command: str, tmp_path: Path) -> None:
    failed = rocwheel("torch", command, "--rocm", "seven", cwd=tmp_path)
    assert (failed.returncode, failed.stdout, failed.stderr) == (
        2,
        "",
        "error: --rocm: is 'seven'; expected a version such as 7.14.0 (PEP 440)\n",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "arguments"),
    [("init", ["--rocm", "7.0"]), ("requirements", ["--rocm", "7.0"]), ("runpath", [])],
)
def test_json_has_the_same_text(command: str, arguments: list[str], tmp_path: Path) -> None:
    text = rocwheel("torch", command, *arguments, cwd=tmp_path).stdout
    value = run_json("torch", command, *arguments, cwd=tmp_path)
    assert value == {"schema": f"rocwheel.torch.{command}/1", "text": text}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["init", "requirements", "runpath"])
def test_the_help_of_each_command_has_an_example(command: str, tmp_path: Path) -> None:
    assert "Example:" in rocwheel("torch", command, "--help", cwd=tmp_path).stdout


@pytest.mark.slow
def test_init_prints_a_python_module(tmp_path: Path) -> None:
    made = rocwheel("torch", "init", "--rocm", "7.14.0", cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    compile(made.stdout, "_rocm_init.py", "exec")
    assert r"7\.14(\.0)*" in made.stdout
    assert "fail_on_version_mismatch=True" in made.stdout


@pytest.mark.slow
def test_init_can_print_a_module_that_only_warns(tmp_path: Path) -> None:
    made = rocwheel("torch", "init", "--rocm", "7.14.0", "--mismatch", "warn", cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    assert "fail_on_version_mismatch=False" in made.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "requirement"),
    [
        ([], "rocm[libraries,device]==7.14.0"),
        (["--pin", "minor", "gfx942", "gfx1100"], "rocm[libraries,device-gfx942,device-gfx1100]==7.14.*"),
    ],
    ids=["exact", "minor"],
)
def test_a_shell_can_evaluate_the_requirements(options: list[str], requirement: str, tmp_path: Path) -> None:
    made = rocwheel("torch", "requirements", "--rocm", "7.14.0", *options, cwd=tmp_path)
    script = f'export {made.stdout.strip()}; printf %s "$PYTORCH_EXTRA_INSTALL_REQUIREMENTS"'
    assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout == requirement


@pytest.mark.slow
def test_unknown_targets_are_reported_by_name(tmp_path: Path) -> None:
    failed = rocwheel("torch", "requirements", "--rocm", "7.14.0", "gfx9999", cwd=tmp_path)
    assert failed.returncode == 2
    assert "gfx9999" in failed.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "start"),
    [
        ([], "LDFLAGS='-Wl,--enable-new-dtags -Wl,-rpath,\\$ORIGIN -Wl,-rpath,"),
        (["--at", "my/lib"], "'-DCMAKE_INSTALL_RPATH=$ORIGIN;$ORIGIN/../../_rocm_sdk_libraries/lib;"),
        (["--tool", "plain"], "$ORIGIN:$ORIGIN/../../_rocm_sdk_libraries/lib:"),
    ],
    ids=["pytorch", "extension", "other tool"],
)
def test_the_run_path_is_quoted_for_its_consumer(options: list[str], start: str, tmp_path: Path) -> None:
    made = rocwheel("torch", "runpath", *options, cwd=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith(start)


@pytest.mark.slow
def test_a_family_has_its_own_libraries_package(tmp_path: Path) -> None:
    made = rocwheel("torch", "runpath", "--family", "gfx94X-dcgpu", cwd=tmp_path)
    assert "/_rocm_sdk_libraries_gfx94X_dcgpu/lib" in made.stdout


@pytest.mark.slow
def test_a_folder_outside_site_packages_is_a_usage_error(tmp_path: Path) -> None:
    failed = rocwheel("torch", "runpath", "--at", "/usr/lib", cwd=tmp_path)
    assert (failed.returncode, failed.stderr) == (
        2,
        "error: --at: is '/usr/lib'; expected a folder in site-packages, such as torch/lib\n",
    )
