"""A stand-in for libamdhip64 that prints what libraries register with it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.tools import RunTool

__all__ = ["build_runtime", "registered", "runtime_source"]

_SOURCE = r"""
#include <stdio.h>
struct wrapper { unsigned magic, version; const unsigned char *binary; unsigned index, zero; };
void **__hipRegisterFatBinary(const struct wrapper *w) {
    static void *handle;
    unsigned size = @SIZE@;
    @PRINT@
    for (unsigned i = 0; i < size; i++) printf("%02x", w->binary[i]);
    printf("\n");
    return &handle;
}
void __hipRegisterFunction(void) {}
void __hipRegisterVar(void) {}
void __hipRegisterManagedVar(void) {}
void __hipRegisterSurface(void) {}
void __hipRegisterTexture(void) {}
void __hipUnregisterFatBinary(void) {}
int __hipPushCallConfiguration(void) { return 0; }
int __hipPopCallConfiguration(void) { return 0; }
int hipLaunchKernel(void) { return 0; }
int atexit(void (*function)(void)) { return 0; }
"""
_LOAD = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
ctypes.CDLL(sys.argv[2])
ctypes.CDLL(None).fflush(None)
"""


def runtime_source(print_wrapper: str, size: str) -> str:
    """Return the stand-in in C: for each wrapper ``w`` it prints what ``print_wrapper`` does, then its first bytes.

    ``size`` is a C expression for how many these are.
    """
    return _SOURCE.replace("@PRINT@", print_wrapper).replace("@SIZE@", size)


def build_runtime(run_tool: RunTool, folder: Path, source: str) -> Path:
    """Compile a stand-in into ``folder``, and return its path."""
    (folder / "runtime.c").write_text(source)
    library = folder / "libruntime.so"
    run_tool(["gcc", "-w", "-shared", "-fPIC", "-o", str(library), str(folder / "runtime.c")])
    return library


def registered(runtime: Path, library: Path) -> str:
    """Load a library in a process of its own, and return what the stand-in prints of it."""
    command = [sys.executable, "-c", _LOAD, str(runtime), str(library)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
