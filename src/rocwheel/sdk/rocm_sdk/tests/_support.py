"""Helpers for the self-tests, which check that shared libraries load and that console scripts run."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import struct
import subprocess
import sys
import sysconfig
from fnmatch import fnmatch
from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from .. import _build_info, find_libraries
from .._distributions import find_distribution
from .._dlls import check_dll, is_native_dll
from .._gpus import survey_gpus
from .._packages import SITE, find_module, find_root
from .._platform import this_platform
from .._system import System

TYPE_CHECKING = False
if TYPE_CHECKING:
    import unittest
    from collections.abc import Iterator
    from typing import Any

TIME_LIMIT = 60
"""The time limit for a program or for loading a library, in seconds."""

LOADED = "\0"
"""The text that the child process writes after it loads a library. The loader itself never prints this text."""

PLUGIN_ENTRY = b"\0llvmGetPassPluginInfo\0"
"""The entry point of plug-ins for LLVM programs ("Writing an LLVM Pass")."""

NATIVE_MACHINE = {"x86_64": 62, "aarch64": 183, "ppc64le": 21, "riscv64": 243}
"""ELF's ``e_machine`` values, keyed by machine name. Libraries for GPUs have other values."""


def check_public_libraries(test: unittest.TestCase, package: str) -> None:
    """Find and load the public libraries of a package."""
    for name, info in _build_info.LIBRARIES.items():
        if info["package"] != package:
            continue
        with test.subTest(library=name):
            for path in find_libraries(name):
                require_load(test, path)


def check_all_libraries(test: unittest.TestCase, package: str) -> None:
    """Load every shared library of a package."""
    root = find_root(package)
    for path in shared_libraries(root) if root else ():
        with test.subTest(library=str(path)):
            require_load(test, path)


def require_load(test: unittest.TestCase, path: Path) -> None:
    """Fail a test unless a library loads, either by itself or into the program that uses it as a plug-in."""
    problem = check_load(path)
    if problem and not needs_its_program(path, problem):
        test.fail(problem if str(path) in problem else f"{path}: {problem}")


def shared_libraries(root: Path) -> Iterator[Path]:
    """Yield shared libraries below a folder, except libraries that are known not to load by themselves."""
    platform = this_platform()
    is_native = is_native_dll if platform.is_windows else _is_native_library
    for path in sorted(root.rglob(platform.libraries)):
        relative = path.relative_to(root).as_posix()
        known = any(fnmatch(relative, pattern) for pattern in _build_info.UNLOADABLE)
        if not known and path.is_file() and not path.is_symlink() and is_native(path):
            yield path


def _is_native_library(path: Path) -> bool:
    with path.open("rb") as file:
        header = file.read(20)
    if header[:6] != b"\x7fELF\x02\x01" or len(header) < 20:
        return False
    kind, machine = struct.unpack_from("<HH", header, 16)
    return bool(kind == 3 and machine == NATIVE_MACHINE.get(os.uname().machine, machine))


def check_load(path: Path) -> str:
    """Load a library in a child process, so that it can't hang or crash this process. Return the error.

    The child must confirm the load, because a library may also end the process with any exit status.
    """
    if this_platform().is_windows:
        return check_dll(path, TIME_LIMIT)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(TIME_LIMIT)
        try:
            ctypes.CDLL(str(path))
            os.write(writing, LOADED.encode())
        except OSError as e:
            os.write(writing, str(e).encode())
        finally:
            os._exit(0)  # exit without running the destructors of the loaded libraries
    os.close(writing)
    with open(reading, "rb") as pipe:  # noqa: PTH123 (it is a descriptor)
        text = pipe.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if text == LOADED:
        return ""
    ended = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"exited with status {status}"
    return text or f"the process {ended} during loading"


def needs_its_program(path: Path, problem: str) -> bool:
    """Return whether a library is an LLVM plug-in whose only missing symbols are those that ``opt`` provides."""
    if "undefined symbol" not in problem:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(PLUGIN_ENTRY) >= 0


def check_scripts(test: unittest.TestCase, package: str) -> None:
    """Run the console scripts of a package that are safe to run."""
    system, left_out = System(), []
    is_refused = not this_platform().is_windows and system.device_refusal("/dev/kfd")
    without_gpu = is_refused or not survey_gpus(system)[0]
    for name, info in read_scripts(package).items():
        with test.subTest(script=name):
            script = find_script(package, name)
            if script is None:
                test.fail(f"the console script {name} doesn't exist, or doesn't belong to {package}")
            if info.get("gpu") and without_gpu:
                left_out.append(name)
            elif "check" in info and (problem := run_script(script, info["check"])):
                test.fail(problem)
    if left_out:
        test.skipTest(f"not run because they need a GPU: {', '.join(left_out)}")


def read_scripts(package: str) -> dict[str, Any]:
    """Return information about the console scripts of a package (``core``, ``profiler``), keyed by name.

    The function reads the file by its path, because an import could run code in the working directory. Raises
    `ImportError` if the file is missing.
    """
    name = f"{_build_info.PACKAGES[package]['module']}._build_info"
    folder = find_module(name.partition(".")[0])
    spec = spec_from_file_location(name, folder / "_build_info.py") if folder else None
    if folder is None or not (folder / "_build_info.py").is_file() or spec is None or spec.loader is None:
        msg = f"No module named {name!r}"
        raise ModuleNotFoundError(msg)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    scripts: dict[str, Any] = module.SCRIPTS
    return scripts


def find_script(package: str, name: str) -> Path | None:
    """Return the path of a package's console script (``core``, ``profiler``), or `None`.

    The script must import the package's entry points. A system-wide ROCm has other programs with the same names.
    """
    entry_points = f"{_build_info.PACKAGES[package]['module']}._cli".encode()
    name += this_platform().program_suffix
    # With pip's --target, no scheme has the folder, and RECORD has a wrong folder. Use the folder of `rocm-sdk`.
    places = [folder / name for folder in (SITE / "bin", *_starting_folder())]
    recorded = [path for path in _recorded_files(package) if path.name == name]
    places = [*recorded, *places] if recorded else [*places, *(folder / name for folder in _scheme_folders())]
    return next((path for path in places if _contains(path, entry_points)), None)


def _starting_folder() -> list[Path]:
    """Return the folder of the running program, or an empty list for ``python -c``, whose name is not a path."""
    folder = os.path.dirname(sys.argv[0])  # noqa: PTH120 (the parent of a Path without folder is the working one)
    return [Path(folder)] if folder else []


@lru_cache(maxsize=None)
def _recorded_files(package: str) -> list[Path]:
    """Return the files outside site-packages that RECORD lists."""
    try:
        files = find_distribution(_build_info.PACKAGES[package]["dist"]).files or []
    except PackageNotFoundError:
        return []
    outside = (Path(str(file.locate())) for file in files if file.parts[0] in ("..", os.sep))
    return [path.parent.resolve() / path.name for path in outside]


def _scheme_folders() -> list[Path]:
    """Return the script folders of Python's installation schemes, for packages without RECORD."""
    user = "nt_user" if this_platform().is_windows else "posix_user"
    schemes = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", user)]
    return [Path(sys.executable).parent, *map(Path, schemes)]


def _contains(path: Path, text: bytes) -> bool:
    try:
        return text in path.read_bytes()
    except OSError:
        return False


def run_script(script: Path, arguments: list[str]) -> str:
    """Run a console script in its own folder, and return the error, if any.

    In the working directory, an empty or relative entry in PATH or PYTHONPATH could point to other files. An entry that
    points to these packages still works.
    """
    command = [os.path.abspath(script), *arguments]  # noqa: PTH100 (Path.resolve would follow links)
    folder = os.path.dirname(command[0])  # noqa: PTH120
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False, cwd=folder, env=_environment()
        )
    except subprocess.TimeoutExpired:
        return f"`{' '.join(command)}` timed out after {TIME_LIMIT} seconds"
    except OSError as e:
        return f"`{' '.join(command)}` can't be run ({e.strerror})"
    if done.returncode == 0:
        return ""
    return f"`{' '.join(command)}` exited with status {done.returncode}: {done.stderr.strip()[-2000:]}"


def _environment() -> dict[str, str]:
    """Return the environment variables, with the absolute path of the packages' folder in PYTHONPATH."""
    listed = os.environ.get("PYTHONPATH")
    if listed is None:
        return dict(os.environ)
    site = str(SITE)
    entries = [
        site if entry and os.path.realpath(entry) == os.path.realpath(site) else entry
        for entry in listed.split(os.pathsep)
    ]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(entries)}
