"""What the self tests share: finding shared libraries, loading one safely, finding the usable GPUs."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import struct
from fnmatch import fnmatch

from .. import _build_info
from .._dlls.check import check_dll, is_native_dll
from .._gpus.detect import survey_gpus
from .._gpus.system import System
from .._platform import this_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["TIME_LIMIT", "check_load", "needs_its_program", "shared_libraries", "usable_gpus"]

TIME_LIMIT = 60
"""Seconds after which a program or a library that is being loaded counts as hanging."""

LOADED = "\0"
"""What a child process writes once a library is loaded; the loader has no such message."""

PLUGIN_ENTRY = b"\0llvmGetPassPluginInfo\0"
"""The name of the function by which LLVM's programs know their plug-ins ("Writing an LLVM Pass")."""

NATIVE_MACHINE = {"x86_64": 62, "aarch64": 183, "ppc64le": 21, "riscv64": 243}
"""ELF's ``e_machine`` by the name of a machine; libraries for GPUs have others."""


def shared_libraries(root: Path) -> Iterator[Path]:
    """Yield the shared libraries below a folder that this machine can load, without those known not to load alone."""
    platform = this_platform()
    is_native = is_native_dll if platform.is_windows else _is_native_library
    for path in sorted(root.rglob(platform.libraries)):
        relative = path.relative_to(root).as_posix()
        known = any(fnmatch(relative, pattern) for pattern in _build_info.UNLOADABLE)
        if not known and path.is_file() and not path.is_symlink() and is_native(path):
            yield path


def check_load(path: Path) -> str:
    """Load a library in a child process, where it can neither hang nor break this one; return what went wrong.

    Only a child that says so has loaded it: a library may also end its process, with any status.
    """
    if this_platform().is_windows:
        return check_dll(path, TIME_LIMIT)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _load_and_exit(path, writing)
    os.close(writing)
    with open(reading, "rb") as pipe:  # noqa: PTH123 (it is a descriptor)
        text = pipe.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if text == LOADED:
        return ""
    ended = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    return text or f"the process ended {ended} while it was loaded"


def needs_its_program(path: Path, problem: str) -> bool:
    """Return whether a library is a plug-in of LLVM that lacks nothing but symbols, which ``opt`` has for it."""
    if "undefined symbol" not in problem:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(PLUGIN_ENTRY) >= 0


def _load_and_exit(path: Path, writing: int) -> None:
    signal.alarm(TIME_LIMIT)
    try:
        ctypes.CDLL(str(path))
        os.write(writing, LOADED.encode())
    except OSError as e:
        os.write(writing, str(e).encode())
    finally:
        os._exit(0)  # without the destructors of what was loaded


def usable_gpus() -> list[str]:
    """Return the targets of the GPUs that this process may use."""
    system = System()
    is_refused = not this_platform().is_windows and system.device_refusal("/dev/kfd")
    return [] if is_refused else [gpu.target for gpu in survey_gpus(system)[0]]


def _is_native_library(path: Path) -> bool:
    with path.open("rb") as file:
        header = file.read(20)
    if header[:6] != b"\x7fELF\x02\x01" or len(header) < 20:
        return False
    kind, machine = struct.unpack_from("<HH", header, 16)
    return bool(kind == 3 and machine == NATIVE_MACHINE.get(os.uname().machine, machine))
