"""Console scripts: which program they become, and that nothing of them shows in it."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.sdk_source import script_function

if TYPE_CHECKING:
    from tests.sdk.installed import Installed, MakeEnvironment, MakeSet

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def core(make_set: MakeSet, make_environment: MakeEnvironment) -> Installed:
    environment = make_environment(make_set())
    environment.install("rocm[profiler]", "--link-mode=copy")
    return environment


def test_a_core_program_runs_without_devel(core: Installed) -> None:
    assert core.run("hipcc", "-v").stdout == f"script {core.site}/_rocm_sdk_core/bin -v\n"


def test_arguments_are_passed_unchanged(core: Installed) -> None:
    arguments = ["-DX=a b", "", "*", "--", "ä\udcff"]
    command = [str(core.path / "bin/amdclang++"), *arguments]
    lines = subprocess.run(command, capture_output=True, check=True).stdout.splitlines()
    program = str(core.site / "_rocm_sdk_core/lib/llvm/bin/clang")
    expected = [program, f"[{program}]", "[-DX=a b]", "[]", "[*]", "[--]", "[ä\udcff]"]
    assert lines == [line.encode(errors="surrogateescape") for line in expected]


def test_the_exit_status_of_the_program_is_returned(core: Installed) -> None:
    assert core.run("amdclang++", "exit", "42", check=False).returncode == 42


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGTERM, signal.SIGPIPE])
def test_the_caller_sees_the_signal_that_ended_the_program(core: Installed, number: signal.Signals) -> None:
    assert core.run("amdclang++", "kill", str(int(number)), check=False).returncode == -number


def test_a_program_that_writes_to_a_closed_pipe_ends_quietly(core: Installed) -> None:
    command = f"'{core.path}/bin/amdclang++' spin | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("y\n", "", 128 + signal.SIGPIPE)


def test_the_process_is_replaced_by_the_program(core: Installed) -> None:
    with subprocess.Popen([str(core.path / "bin/amdclang++"), "spin"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "y\n"
        executable = subprocess.check_output(["readlink", f"/proc/{process.pid}/exe"], text=True).strip()
        process.kill()
    assert executable == str(core.site / "_rocm_sdk_core/lib/llvm/bin/clang")


def test_a_tool_that_is_not_a_compiler_does_not_expand_devel(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm[devel]")
    assert environment.run("rocminfo").stdout == f"script {environment.site}/_rocm_sdk_core/bin\n"
    assert not environment.root.exists()


def test_an_expanded_tree_is_used_without_the_rocm_package(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm[devel]")
    environment.run("hipcc")
    environment.uninstall("rocm")
    assert environment.run("hipcc").stdout == f"script {environment.root}/bin\n"


def test_unexpanded_devel_without_the_rocm_package_falls_back_to_core_programs(
    make_set: MakeSet, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(make_set())
    environment.install("rocm-sdk-devel")
    assert environment.run("hipcc").stdout == f"script {environment.site}/_rocm_sdk_core/bin\n"


def test_a_program_that_cannot_run_is_reported(make_set: MakeSet, make_environment: MakeEnvironment) -> None:
    environment = make_environment(make_set())
    environment.install("rocm", "--link-mode=copy")
    program = environment.site / "_rocm_sdk_core/bin/hipcc"
    program.chmod(0o644)
    done = environment.run("hipcc", check=False)
    assert (done.returncode, done.stderr) == (1, f"hipcc: {program} can't be run (Permission denied)\n")
    program.unlink()
    done = environment.run("hipcc", check=False)
    assert (done.returncode, done.stderr) == (1, f"hipcc: {program} is missing. Reinstall the package.\n")


def test_the_profiler_gets_its_folders_ahead_of_the_user_folders(core: Installed) -> None:
    done = core.run("rocprof-compute", "a", LD_LIBRARY_PATH="/mine", PYTHONPATH="/python")
    assert done.stdout == f"{core.site}/_rocm_profiler/lib:{core.site}/_rocm_sdk_core/lib:/mine|/python|a\n"


@pytest.mark.parametrize(
    ("script", "function"),
    [("hipcc", "hipcc"), ("amdclang++", "amdclangpp"), ("hipify-clang", "hipify_clang"), ("rocpd2csv", "rocpd2csv")],
)
def test_entry_points_match_the_names_that_packaging_writes(script: str, function: str) -> None:
    assert script_function(script) == function
