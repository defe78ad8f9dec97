"""The main job from end to end on a sample SDK that ships with rocwheel: build, index, install, self-test.

That for Windows is installed for Windows, whichever system this is; the self-test would need Windows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from rocwheel.binary.platform import Platform
from rocwheel.build.building import BuildResult
from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.planning.options import PlanOptions
from rocwheel.core.errors import InputError, WorkError, read_error
from rocwheel.core.messages import first_of
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.python import as_typed, module_command
from rocwheel.index.front_content import front_page
from rocwheel.index.write_index import IndexOptions, write_index
from rocwheel.wheels.build_manifest import MANIFEST_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

SAMPLE_SDK = Path(__file__).parent / "sample"
"""Artifact archives of a small SDK: real ELF files, written for rocwheel."""

SAMPLE_WINDOWS = SAMPLE_SDK / "windows"
"""Artifact archives of a small SDK for Windows."""


class _FailedCommandError(WorkError):
    """A command that failed, and below that what it printed."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The command and its status, and the lines that it printed."""
        return tuple(str(self).split("\n"))


_EXTRAS = "libraries,devel,profiler,device-gfx906"
_WINDOWS_EXTRAS = "libraries,devel,device-all"
_WINDOWS_TRIPLE = "x86_64-pc-windows-msvc"
_MARKER = ".rocwheel-demo"
"""A file in each environment that a demo has made, and that the next demo may replace."""
_FOREIGN = ("PIP_", "UV_", "LD_", "ROCM", "HIP", "PYTHON", "VIRTUAL_ENV")
"""Variables that could help the packages to find libraries, or make pip install something else."""


class DemoReport(msgspec.Struct, frozen=True):
    """What the demo made and where, and what the installed SDK said about itself."""

    build: BuildResult
    index: str
    environment: str
    requirement: str
    test_output: str
    """Of the self-test; for Windows, of the installer."""
    platform: Platform = Platform.LINUX


class Runner(Protocol):
    """Runs a command with an environment; returns its exit status and output."""

    def __call__(self, command: Sequence[str], environment: dict[str, str]) -> tuple[int, str]:
        """Run and wait."""


def run_command(command: Sequence[str], environment: dict[str, str]) -> tuple[int, str]:
    """Run a command to its end; both of its outputs in one text."""
    done = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    return done.returncode, done.stdout


def run_demo(
    dest_dir: Path,
    *,
    platform: Platform = Platform.LINUX,
    progress: Progress = SILENT,
    runner: Runner = run_command,
) -> DemoReport:
    """Build the sample SDK into ``dest_dir``, install it from an index into a clean environment and test it there.

    The sample for Windows is installed by uv into a folder, as it would be on Windows, and not tested.

    Raises `InputError`, before anything is written, when the environment's folder holds anything but the environment of
    an earlier demo, or when uv is needed and missing, and `WorkError` with the output of a step that fails.
    """
    environment = dest_dir.resolve() / "env"
    _check_replaceable(environment)
    _check_folder(dest_dir)
    is_windows = platform is Platform.WINDOWS
    uv = _find_uv() if is_windows else ""
    sample = SAMPLE_WINDOWS if is_windows else SAMPLE_SDK
    _, built = BuildJob(PlanJob(sample, options=PlanOptions(platform=platform)), dest_dir).run(progress=progress)
    index = dest_dir.resolve() / "simple"
    write_index(dest_dir / "dist", index, options=IndexOptions(progress=progress, extras=front_page()))
    steps = _Steps(environment, runner, progress)
    requirement = f"rocm[{_WINDOWS_EXTRAS if is_windows else _EXTRAS}]=={built.version}"
    output = steps.install(requirement, index.as_uri(), uv)
    output = output if is_windows else steps.self_test()
    return DemoReport(built, index.as_uri(), str(steps.environment), requirement, output, platform)


def _find_uv() -> str:
    """Return the path of uv, in this environment or in ``PATH``; raise `InputError` where it is missing."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    found = shutil.which("uv", path=folders)
    if found is None:
        program, expected = "uv", "it, as pip installs for the system that it runs on alone"
        raise InputError(program, "is not installed", expected=expected, remedy="pip install uv")
    return found


_MADE = frozenset({"dist", "simple", "env", MANIFEST_NAME, "SHA256SUMS"})
"""What a demo leaves in its folder."""


def _check_folder(dest_dir: Path) -> None:
    """Raise `InputError` for a folder with files that no demo makes, so that it is not mixed with theirs."""
    try:
        names = sorted(path.name for path in dest_dir.iterdir() if not path.name.startswith("."))
    except FileNotFoundError:
        return
    except OSError as e:
        raise read_error(dest_dir, e, remedy="Change --dest-dir.") from e
    if others := [name for name in names if name not in _MADE]:
        found = f"has files that no demo makes: {first_of(others)}"
        raise InputError(dest_dir, found, expected="a new or empty folder", remedy="Change --dest-dir.")


def _check_replaceable(environment: Path) -> None:
    if not os.path.lexists(environment) or _is_own(environment):
        return
    found = "is not the environment of an earlier demo, which could be replaced"
    raise InputError(environment, found, remedy="Change --dest-dir, or remove it.")


def _is_own(environment: Path) -> bool:
    """Return whether a demo made this environment, or the folder is empty."""
    if environment.is_symlink() or not environment.is_dir():
        return False
    try:
        return (environment / _MARKER).exists() or not any(environment.iterdir())
    except OSError as e:
        raise read_error(environment, e, remedy="Change --dest-dir.") from e


def _make_empty(environment: Path) -> None:
    """Make the folder of the environment, marked before anything else is in it. Raises `WorkError`."""
    try:
        if environment.exists():
            shutil.rmtree(environment)
        environment.mkdir(parents=True)
        (environment / _MARKER).touch()
    except OSError as e:
        raise WorkError(environment, f"can't be made again ({e.strerror})", remedy="Check its permissions.") from e


class _Steps:
    def __init__(self, environment: Path, runner: Runner, progress: Progress) -> None:
        self.environment = environment
        self._runner = runner
        self._progress = progress
        # Whatever the caller's shell points at must not help: the packages have to find everything themselves.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        self._variables = kept | {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def install(self, requirement: str, index_url: str, uv: str) -> str:
        """Install with pip, or for Windows with ``uv``; return the last output."""
        _make_empty(self.environment)
        try:
            fill = self._fill_for_windows if uv else self._fill
            return fill(requirement, index_url, uv)
        except (KeyboardInterrupt, SystemExit):  # ended by a signal: half an environment is of no use
            shutil.rmtree(self.environment, ignore_errors=True)
            raise

    def _fill(self, requirement: str, index_url: str, _: str) -> str:
        self._run("making an environment", *module_command(sys.executable, "venv"), str(self.environment))
        pip = [*module_command(self.environment / "bin" / "python", "pip"), "install", "--no-cache-dir"]
        return self._run(f"installing {requirement}", *pip, requirement, "--index-url", index_url)

    def _fill_for_windows(self, requirement: str, index_url: str, uv: str) -> str:
        words = ["--no-cache", "--no-config", "pip", "install", "--python-platform", _WINDOWS_TRIPLE]
        words += ["--python", sys.executable, "--target", str(self.environment), "--index-url", index_url]
        return self._run(f"installing {requirement} for Windows", uv, *words, requirement)

    def self_test(self) -> str:
        return self._run("testing the installed SDK", str(self.environment / "bin" / "rocm-sdk"), "test")

    def _run(self, label: str, *command: str) -> str:
        self._progress.begin(label, 0)
        status, output = self._runner(command, self._variables)
        self._progress.end()
        if status != 0:
            raise _FailedCommandError(as_typed(command), f"failed with exit status {status}:\n{output}")
        return output
