"""Exec stubs: tiny static ELF executables that stand in for symlinks to programs, which no wheel can hold."""

from __future__ import annotations

import struct
from functools import cache
from importlib.resources import files

from rocwheel.foundation.errors import InputError

__all__ = ["EXEC_STUB_MACHINES", "make_exec_stub"]

EXEC_STUB_MACHINES = {62: "x86_64", 183: "aarch64"}
"""ELF ``e_machine`` values that stubs exist for, and the names of their templates."""

_PATH_MAX = 4096
_BASE_ADDRESS = 0x400000
_ELF_HEADER = struct.Struct("<16s2HI3QI6H")
_PROGRAM_HEADER = struct.Struct("<2I6Q")
_IDENT = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
_ET_EXEC, _PT_LOAD, _PT_GNU_STACK = 2, 1, 0x6474E551
_READ, _WRITE, _EXECUTE = 4, 2, 1
_CODE_OFFSET = _ELF_HEADER.size + 2 * _PROGRAM_HEADER.size

# The largest page of any Linux kernel on the machine.
_PAGE_SIZES = {62: 0x1000, 183: 0x10000}


def make_exec_stub(machine: int, target: str) -> bytes:
    """Return a program that replaces itself by the program at ``target``, a path relative to the stub's own folder.

    ``machine`` is an ELF ``e_machine``, one of `EXEC_STUB_MACHINES`. The stub finds its folder through
    ``/proc/self/exe``, so symlinks to it, ``PATH`` and the working directory play no part; arguments, ``argv[0]``
    among them, and environment pass on untouched. The target may be a script. When it can't be run, the stub writes
    ``ARGV0: cannot run PATH: errno N`` to standard error and exits with 126 for EACCES, else with 127.

    Layout: ELF header, one read-only executable segment over the whole file, a stack that isn't executable, the code,
    the target with a final NUL. No libc, no dynamic section, no section headers.

    Raises `InputError` for a machine without a template and for a target that no symlink of a package could have.
    """
    path = _encode_target(target)
    template = _read_template(machine)
    size = _CODE_OFFSET + len(template) + len(path)
    entry = _BASE_ADDRESS + _CODE_OFFSET
    header = _ELF_HEADER.pack(
        _IDENT, _ET_EXEC, machine, 1, entry, _ELF_HEADER.size, 0, 0, _ELF_HEADER.size, _PROGRAM_HEADER.size, 2, 0, 0, 0
    )
    load = _PROGRAM_HEADER.pack(
        _PT_LOAD, _READ | _EXECUTE, 0, _BASE_ADDRESS, _BASE_ADDRESS, size, size, _PAGE_SIZES[machine]
    )
    stack = _PROGRAM_HEADER.pack(_PT_GNU_STACK, _READ | _WRITE, 0, 0, 0, 0, 0, 16)
    return header + load + stack + template + path


@cache
def _read_template(machine: int) -> bytes:
    name = EXEC_STUB_MACHINES.get(machine)
    if name is None:
        source, found = "exec stub", f"no template for ELF machine {machine}"
        raise InputError(source, found, expected=f"one of {sorted(EXEC_STUB_MACHINES)}")
    return (files("rocwheel.binary.stubs") / "exec_stubs" / f"{name}.bin").read_bytes()


def _encode_target(target: str) -> bytes:
    encoded = target.encode("utf-8", "surrogateescape")
    if problem := _find_problem(encoded):
        source = f"exec stub for {target[:80]!r}"
        raise InputError(source, problem, expected="a path relative to the folder of the stub")
    return encoded + b"\0"


def _find_problem(target: bytes) -> str:
    if not target:
        return "the target is empty"
    if b"\0" in target:
        return "the target holds a NUL byte"
    if target.startswith(b"/"):
        return "the target is absolute"
    # One byte of PATH_MAX is the final NUL, one the slash of the shortest folder.
    if len(target) > _PATH_MAX - 2:
        return f"the target is {len(target)} bytes long, more than the {_PATH_MAX - 2} that Linux can open"
    return ""
