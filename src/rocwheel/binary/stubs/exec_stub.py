"""Exec stubs: tiny static ELF executables that stand in for symlinks to programs, which no wheel can hold."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from rocwheel.binary.elf.header import (
    EM_AARCH64,
    EM_X86_64,
    ET_EXEC,
    HEADER_SIZE,
    PF_R,
    PF_W,
    PF_X,
    PT_LOAD,
    SEGMENT_LAYOUT,
    Segment,
    pack_header,
)
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count

__all__ = ["EXEC_STUB_MACHINES", "make_exec_stub"]

EXEC_STUB_MACHINES = {EM_X86_64: "x86_64", EM_AARCH64: "aarch64"}
"""ELF ``e_machine`` values that stubs exist for, and the names of their templates."""

_PATH_MAX = 4096
_BASE_ADDRESS = 0x400000
_PT_GNU_STACK = 0x6474E551
_CODE_OFFSET = HEADER_SIZE + 2 * SEGMENT_LAYOUT.size

# The largest page of any Linux kernel on the machine.
_PAGE_SIZES = {EM_X86_64: 0x1000, EM_AARCH64: 0x10000}


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
    header = pack_header(ET_EXEC, machine, entry=entry, segment_count=2)
    load = Segment(PT_LOAD, PF_R | PF_X, 0, _BASE_ADDRESS, _BASE_ADDRESS, size, size, _PAGE_SIZES[machine])
    stack = Segment(_PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 0, 16)
    return header + load.pack() + stack.pack() + template + path


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
        return f"the target is {count(len(target), 'byte')} long, more than the {_PATH_MAX - 2} that Linux can open"
    return ""
