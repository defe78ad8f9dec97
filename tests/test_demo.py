"""The main job from end to end on the sample SDK."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.platform import Platform
from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.python import module_command
from rocwheel.demo import run_command, run_demo
from tests.support import quick_venv

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytestmark = pytest.mark.slow

REQUIREMENT = "rocm[libraries,devel,profiler,device-gfx906]==7.0.0"


class Recorder:
    """Notes commands instead of running them; the one with ``failing`` among its words fails."""

    def __init__(self, failing: str = "") -> None:
        self.commands: list[list[str]] = []
        self.environment: dict[str, str] = {}
        self._failing = failing

    def __call__(self, command: Sequence[str], environment: dict[str, str]) -> tuple[int, str]:
        """Note and answer."""
        self.commands.append([*command])
        self.environment = environment
        return (1, "no such thing\n") if self._failing in command else (0, f"output of {command[-1]}\n")


def quickly(command: Sequence[str], environment: dict[str, str]) -> tuple[int, str]:
    """Run a command as a demo does; an environment is made faster, since tests of the command make a usual one."""
    if command[3:4] == ["venv"]:
        command = [sys.executable, quick_venv.__file__, command[3]]
    return run_command(command, environment)


def test_the_sample_is_built_indexed_installed_and_tested(tmp_path: Path) -> None:
    report = run_demo(tmp_path / "demo", runner=quickly)
    assert re.search(r"^\d+ checks: \d+ passed, 0 failed, \d+ left out$", report.test_output, re.MULTILINE)
    assert "gfx906" in run_command([f"{report.environment}/bin/rocm-sdk", "targets"], dict(os.environ))[1]


def test_the_demo_runs_the_commands_a_user_would_run(tmp_path: Path) -> None:
    runner = Recorder()
    report = run_demo(tmp_path, runner=runner)
    environment = tmp_path / "env"
    pip = [*module_command(f"{environment}/bin/python", "pip"), "install", "--no-cache-dir"]
    assert runner.commands == [
        [*module_command(sys.executable, "venv"), str(environment)],
        [*pip, REQUIREMENT, "--index-url", f"file://{tmp_path}/simple"],
        [f"{environment}/bin/rocm-sdk", "test"],
    ]
    assert (report.requirement, report.test_output) == (REQUIREMENT, "output of test\n")
    assert (report.index, report.environment) == (f"file://{tmp_path}/simple", str(environment))
    assert f"{tmp_path}/dist/rocm-7.0.0.tar.gz" in [built.path for built in report.build.distributions]


@pytest.mark.deep
@pytest.mark.parametrize(
    "variable", ["PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_INDEX_URL", "LD_LIBRARY_PATH", "ROCM_PATH", "HIP_PATH"]
)
def test_the_environment_of_the_calling_shell_does_not_affect_the_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "/elsewhere")
    monkeypatch.setenv("EDITOR", "kept")
    runner = Recorder()
    run_demo(tmp_path, runner=runner)
    assert variable not in runner.environment
    assert runner.environment["EDITOR"] == "kept"


def test_a_failing_step_is_reported_with_its_output(tmp_path: Path) -> None:
    expected = f"{tmp_path}/env/bin/rocm-sdk test: failed with exit status 1:\nno such thing\n"
    with pytest.raises(WorkError, match=f"^{re.escape(expected)}$") as error:
        run_demo(tmp_path, runner=Recorder(failing="test"))
    assert error.value.lines == tuple(expected.split("\n"))


def test_non_text_output_stays_readable() -> None:
    program = "import sys; sys.stdout.buffer.write(b'a\\xffb')"
    assert run_command([sys.executable, "-c", program], {}) == (0, "a\N{REPLACEMENT CHARACTER}b")


def test_the_environment_of_an_earlier_demo_is_replaced(tmp_path: Path) -> None:
    run_demo(tmp_path, runner=Recorder())
    (tmp_path / "env" / "old").touch()
    run_demo(tmp_path, runner=Recorder())
    assert [path.name for path in (tmp_path / "env").iterdir()] == [".rocwheel-demo"]


def test_an_environment_left_by_a_failed_demo_is_replaced(tmp_path: Path) -> None:
    with pytest.raises(WorkError):
        run_demo(tmp_path, runner=Recorder(failing="venv"))
    run_demo(tmp_path, runner=Recorder())


def test_an_interrupted_demo_leaves_no_partial_environment(tmp_path: Path) -> None:
    def interrupt(command: Sequence[str], environment: dict[str, str]) -> tuple[int, str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_demo(tmp_path, runner=interrupt)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["SHA256SUMS", "dist", "rocwheel-build.json", "simple"]


def make_environment(place: Path) -> None:
    place.mkdir()
    (place / "pyvenv.cfg").touch()


def make_link(place: Path) -> None:
    place.with_name("elsewhere").mkdir()
    place.symlink_to("elsewhere")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make_environment, id="somebody's environment"),
        pytest.param(make_link, id="link"),
        pytest.param(lambda place: place.write_text("A=1"), id="file of settings"),
        pytest.param(lambda place: place.symlink_to("gone"), id="link to nothing"),
    ],
)
def test_an_environment_not_made_by_the_demo_is_refused_and_kept(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    place = tmp_path / "env"
    make(place)
    before = sorted(tmp_path.rglob("*"))
    expected = (
        f"{place}: isn't an earlier demo's environment, so it can't be replaced. Change --dest-dir, or remove "
        "this folder."
    )
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        run_demo(tmp_path, runner=Recorder())
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    expected = (
        f"{tmp_path}: contains files that aren't from a demo: thesis.tex; expected a new or empty folder. Change "
        "--dest-dir."
    )
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        run_demo(tmp_path, runner=Recorder())


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "env").mkdir()
    run_demo(tmp_path, runner=Recorder())
    assert (tmp_path / "env" / ".rocwheel-demo").is_file()


def test_the_windows_sample_is_built_indexed_and_installed_for_windows(tmp_path: Path) -> None:
    find_uv()
    report = run_demo(tmp_path / "demo", platform=Platform.WINDOWS)
    names = [Path(built.path).name for built in report.build.distributions]
    wheels = ["core", "devel", "device_gfx1030", "device_gfx1100", "libraries"]
    assert names == [*(f"rocm_sdk_{name}-7.0.0-py3-none-win_amd64.whl" for name in wheels), "rocm-7.0.0.tar.gz"]
    site = Path(report.environment)
    found = sorted(path.name.partition("-")[0] for path in site.glob("*.dist-info"))
    assert found == ["rocm", *(f"rocm_sdk_{name}" for name in wheels)]
    assert (site / "_rocm_sdk_core/bin/amdhip64_7.dll").is_file()
    assert " + rocm-sdk-libraries==7.0.0\n" in report.test_output


def test_the_windows_sample_can_replace_an_earlier_demo(tmp_path: Path) -> None:
    find_uv()
    runner = Recorder()
    run_demo(tmp_path, runner=runner)
    report = run_demo(tmp_path, platform=Platform.WINDOWS, runner=runner)
    command = runner.commands[-1]
    assert command[1:7] == [
        "--no-cache",
        "--no-config",
        "pip",
        "install",
        "--python-platform",
        "x86_64-pc-windows-msvc",
    ]
    assert command[9:] == ["--target", f"{tmp_path}/env", "--index-url", report.index, report.requirement]
    assert report.requirement == "rocm[libraries,devel,device-all]==7.0.0"


def test_nothing_is_written_without_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(InputError, match=r"uv: isn't installed; .* pip install uv"):
        run_demo(tmp_path / "demo", platform=Platform.WINDOWS)
    assert not (tmp_path / "demo").exists()


def find_uv() -> None:
    folders = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    if shutil.which("uv", path=folders) is None:
        pytest.skip("needs uv")
