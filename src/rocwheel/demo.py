"""Runs the main steps on a sample SDK that is part of rocwheel: build, index, install, and self-test.

The sample for Windows is installed for Windows on any system. Its self-test would require Windows.
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
"""Artifact archives of a small SDK with real ELF files, which were written for rocwheel."""

SAMPLE_WINDOWS = SAMPLE_SDK / "windows"
"""Artifact archives of a small SDK for Windows."""


class _FailedCommandError(WorkError):
    """A command failed. The lines after the first one are its output."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The command and its exit status, and the lines of its output."""
        return tuple(str(self).split("\n"))


_EXTRAS = "libraries,devel,profiler,device-gfx906"
_WINDOWS_EXTRAS = "libraries,devel,device-all"
_WINDOWS_TRIPLE = "x86_64-pc-windows-msvc"
_MARKER = ".rocwheel-demo"
"""A file that marks an environment as created by a demo, so that the next demo can replace the environment."""
_FOREIGN = ("PIP_", "UV_", "LD_", "ROCM", "HIP", "PYTHON", "VIRTUAL_ENV")
"""Variables that could help the packages find libraries, or could make pip install other packages."""


class DemoReport(msgspec.Struct, frozen=True):
    """The files that the demo created, and the output of the installed SDK."""

    build: BuildResult
    index: str
    environment: str
    requirement: str
    test_output: str
    """The output of the self-test, or of the installer for Windows."""
    platform: Platform = Platform.LINUX


class Runner(Protocol):
    """Runs a command with an environment. Returns the exit status and the output."""

    def __call__(self, command: Sequence[str], environment: dict[str, str]) -> tuple[int, str]:
        """Run the command and wait until it ends."""


def run_command(command: Sequence[str], environment: dict[str, str]) -> tuple[int, str]:
    """Run a command until it ends. The result contains standard output and standard error as a single text."""
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
    """Build the sample SDK into ``dest_dir``, install it from an index into a clean environment, and test it.

    For Windows, uv installs the sample into a folder, as it would on Windows. The sample isn't tested.

    Before anything is written, raises `InputError` if the environment's folder contains anything except for an earlier
    demo's environment, or if uv is needed but missing. Raises `WorkError` with the output of a step that fails.
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
    """Return the path of uv, in this environment or in ``PATH``. Raises `InputError` if uv is missing."""
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    found = shutil.which("uv", path=folders)
    if found is None:
        program, expected = "uv", "uv, because pip can install only for its own system"
        raise InputError(program, "isn't installed", expected=expected, remedy="Run: pip install uv")
    return found


_MADE = frozenset({"dist", "simple", "env", MANIFEST_NAME, "SHA256SUMS"})
"""Files that a demo creates in its folder."""


def _check_folder(dest_dir: Path) -> None:
    """Raise `InputError` for a folder that contains other files, so that the demo's files aren't mixed with them."""
    try:
        names = sorted(path.name for path in dest_dir.iterdir() if not path.name.startswith("."))
    except FileNotFoundError:
        return
    except OSError as e:
        raise read_error(dest_dir, e, remedy="Change --dest-dir.") from e
    if others := [name for name in names if name not in _MADE]:
        found = f"contains files that aren't from a demo: {first_of(others)}"
        raise InputError(dest_dir, found, expected="a new or empty folder", remedy="Change --dest-dir.")


def _check_replaceable(environment: Path) -> None:
    if not os.path.lexists(environment) or _is_own(environment):
        return
    found = "isn't an earlier demo's environment, so it can't be replaced"
    raise InputError(environment, found, remedy="Change --dest-dir, or remove this folder.")


def _is_own(environment: Path) -> bool:
    """Return whether a demo created this environment, or whether the folder is empty."""
    if environment.is_symlink() or not environment.is_dir():
        return False
    try:
        return (environment / _MARKER).exists() or not any(environment.iterdir())
    except OSError as e:
        raise read_error(environment, e, remedy="Change --dest-dir.") from e


def _make_empty(environment: Path) -> None:
    """Create the environment's folder. First, mark it as the environment of a demo. Raises `WorkError`."""
    try:
        if environment.exists():
            shutil.rmtree(environment)
        environment.mkdir(parents=True)
        (environment / _MARKER).touch()
    except OSError as e:
        raise WorkError(
            environment, f"can't be created again ({e.strerror})", remedy="Check the folder's permissions."
        ) from e


class _Steps:
    def __init__(self, environment: Path, runner: Runner, progress: Progress) -> None:
        self.environment = environment
        self._runner = runner
        self._progress = progress
        # The caller's shell must not help the packages, because they must find all files themselves.
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        self._variables = kept | {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}

    def install(self, requirement: str, index_url: str, uv: str) -> str:
        """Install with pip, or, for Windows, with ``uv``. Return the last output."""
        _make_empty(self.environment)
        try:
            fill = self._fill_for_windows if uv else self._fill
            return fill(requirement, index_url, uv)
        except (KeyboardInterrupt, SystemExit):  # if a signal ended the command, the incomplete environment is useless
            shutil.rmtree(self.environment, ignore_errors=True)
            raise

    def _fill(self, requirement: str, index_url: str, _: str) -> str:
        self._run("creating an environment", *module_command(sys.executable, "venv"), str(self.environment))
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
