"""Creates small files: exec stubs and relays that replace programs, and forwarding libraries that replace libraries.

``dlopen("libx.so")`` finds nothing if a library ships only as ``libx.so.1``. A second copy under the plain name would
be loaded in addition to the first. A forwarding library is only a few hundred bytes long; its NEEDED entry is
``libx.so.1``, and its run path is ``$ORIGIN``. Opening it loads the one real library, and ``dlsym`` finds the symbols
of its dependencies (gABI, chapter 5).

Windows builds use copies where Linux builds use links: ``clang++.exe`` is another copy of ``clang.exe``, and takes up a
hundred megabytes. A wheel can't contain links, or one file under two names. ``relays/x86_64.c`` explains relays.
"""

from __future__ import annotations

import re
import struct
import subprocess
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from rocwheel.binary.elf.dynamic import (
    DT_HASH,
    DT_NEEDED,
    DT_NULL,
    DT_SONAME,
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMTAB,
    ENTRY_LAYOUT,
    RUN_PATH_TAGS,
)
from rocwheel.binary.elf.header import (
    EM_AARCH64,
    EM_X86_64,
    ET_DYN,
    ET_EXEC,
    HEADER_SIZE,
    PF_R,
    PF_W,
    PF_X,
    PT_DYNAMIC,
    PT_LOAD,
    SEGMENT_LAYOUT,
    Segment,
    pack_header,
)
from rocwheel.binary.elf.symbols import SYMBOL_LAYOUT
from rocwheel.binary.pe.facts import CHECKSUM, Pe, checksum_of, read_pe
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.names import windows_name_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.binary.elf.dynamic import RunpathTag


EXEC_STUB_MACHINES = {EM_X86_64: "x86_64", EM_AARCH64: "aarch64"}
"""The ELF ``e_machine`` values that have stubs, and the names of their templates."""

_PATH_MAX = 4096
_BASE_ADDRESS = 0x400000
_PT_GNU_STACK = 0x6474E551
_CODE_OFFSET = HEADER_SIZE + 2 * SEGMENT_LAYOUT.size

# The largest page size that any Linux kernel uses on the machine.
_PAGE_SIZES = {EM_X86_64: 0x1000, EM_AARCH64: 0x10000}


def make_exec_stub(machine: int, target: str) -> bytes:
    """Return a program that replaces itself with the program at ``target``, a path relative to the stub's folder.

    ``machine`` is an ELF ``e_machine``, one of `EXEC_STUB_MACHINES`. The stub finds its folder through
    ``/proc/self/exe``, so symlinks to it, ``PATH``, and the working directory don't matter. Arguments, including
    ``argv[0]``, and the environment pass through unchanged. The target may be a script. If the target can't run, the
    stub writes ``ARGV0: cannot run PATH: errno N`` to standard error, and exits with 126 for EACCES or with 127 for
    other errors.

    Layout: ELF header, one read-only executable segment for the entire file, a non-executable stack, the code, and the
    target with a final NUL. There is no libc, no dynamic section, and no section headers.

    Raises `InputError` for a machine without a template, and for a target that no symlink in a package can have.
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
    return (files(__package__) / "exec_stubs" / f"{name}.bin").read_bytes()


def _encode_target(target: str) -> bytes:
    encoded = target.encode("utf-8", "surrogateescape")
    if problem := _find_problem(encoded):
        source = f"exec stub for {target[:80]!r}"
        raise InputError(source, problem, expected="a path relative to the stub's folder")
    return encoded + b"\0"


def _find_problem(target: bytes) -> str:
    if not target:
        return "the target is empty"
    if b"\0" in target:
        return "the target contains a NUL byte"
    if target.startswith(b"/"):
        return "the target is absolute"
    # One byte of PATH_MAX is the final NUL, and one is the slash of the shortest folder.
    if len(target) > _PATH_MAX - 2:
        return f"the target is {count(len(target), 'byte')} long, but Linux can open at most {_PATH_MAX - 2} bytes"
    return ""


_DT_SYMENT = 11
_PAGE = 0x1000
# One bucket and one symbol, the undefined symbol: the table is empty.
_HASH = struct.pack("<4I", 1, 1, 0, 0)


def forwarding_name(soname: str) -> str:
    """Return a SONAME without its version: ``libx.so`` for ``libx.so.1``."""
    return re.sub(r"\.so\.[0-9.]+$", ".so", soname)


def make_forwarding_library(soname: str, machine: int, tag: RunpathTag) -> bytes:
    """Return an ELF shared library for ``machine`` whose only purpose is to load ``soname``.

    Its run path, stored under ``tag``, is the library's folder.

    Layout: ELF header, three program headers, hash table, symbol table, strings, dynamic section. The program headers
    are a readable and writable segment for the entire file, the dynamic section, and a non-executable stack. There are
    no section headers.
    """
    names = [soname.encode(), forwarding_name(soname).encode(), b"$ORIGIN"]
    strings = b"\0" + b"\0".join(names) + b"\0"
    needed, own = 1, 2 + len(names[0])
    run_path = own + len(names[1]) + 1
    hash_at = HEADER_SIZE + 3 * SEGMENT_LAYOUT.size
    symbols_at = hash_at + len(_HASH)
    strings_at = symbols_at + SYMBOL_LAYOUT.size
    dynamic_at = -(-(strings_at + len(strings)) // 8) * 8
    rows = [
        (DT_NEEDED, needed), (DT_SONAME, own), (RUN_PATH_TAGS[tag], run_path), (DT_HASH, hash_at),
        (DT_STRTAB, strings_at), (DT_SYMTAB, symbols_at), (DT_STRSZ, len(strings)), (_DT_SYMENT, SYMBOL_LAYOUT.size),
        (DT_NULL, 0),
    ]  # fmt: skip
    dynamic = b"".join(ENTRY_LAYOUT.pack(*row) for row in rows)
    size = dynamic_at + len(dynamic)
    segments = [
        Segment(PT_LOAD, PF_R | PF_W, 0, 0, 0, size, size, _PAGE),
        Segment(PT_DYNAMIC, PF_R | PF_W, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8),
        Segment(_PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 0, 16),
    ]
    head = pack_header(ET_DYN, machine, segment_count=len(segments)) + b"".join(s.pack() for s in segments)
    return (head + _HASH + bytes(SYMBOL_LAYOUT.size) + strings).ljust(dynamic_at, b"\0") + dynamic


RELAY_SIZE: Final = 5120
"""The size of each relay in bytes."""

_SECTION: Final = ".relay"
_TARGET_UNITS: Final = 260
"""The length limit in UTF-16 units, including the final NUL. Programs with longer paths don't start (``MAX_PATH``)."""
_ARGUMENT_UNITS: Final = 252
_UNIT: Final = 2


def make_relay(target: str, arguments: Sequence[str] = ()) -> bytes:
    """Return a program for x86-64 that starts ``target``, a path with slashes, relative to the program's folder.

    The target gets the relay's command line unchanged, including ``argv[0]``, with ``arguments`` inserted after
    ``argv[0]``. The arguments are for programs that choose their function by the name they run under. LLVM programs
    look at the name of the running file, not at ``argv[0]``, so a relay ``clang++.exe`` must pass ``--driver-mode=g++``
    to ``clang.exe``.

    The relay waits, and exits with the target's exit code. If the target can't start, the relay writes ``RELAY: cannot
    run PATH: error N`` to standard error. Then it exits with 126 if access is denied (5), or otherwise with 127.

    The result is a template of `RELAY_SIZE` bytes whose section ``.relay`` is filled in. The target can be up to 260
    UTF-16 units long, and the arguments up to 252 units. The checksum is correct.

    Raises `InputError` for a target that no wheel can contain or that isn't a program, and for arguments that are too
    long.
    """
    source = f"relay for {target[:80]!r}"
    if problem := _target_problem(target):
        raise InputError(source, problem, expected="the path of an .exe file, relative to the relay's folder")
    line = subprocess.list2cmdline(arguments)
    if problem := _argument_problem(line):
        raise InputError(source, problem, expected="a few short arguments")
    setting = _units(target.replace("/", "\\"), _TARGET_UNITS) + _units(line, _ARGUMENT_UNITS)
    template, facts = _template()
    start = next(section.offset for section in facts.sections if section.name == _SECTION)
    filled = template[:start] + setting + template[start + len(setting) :]
    at = facts.header.checksum_offset
    return filled[:at] + CHECKSUM.pack(checksum_of(memoryview(filled), at)) + filled[at + CHECKSUM.size :]


@cache
def _template() -> tuple[bytes, Pe]:
    data = (files(__package__) / "relays" / "x86_64.bin").read_bytes()
    return data, read_pe(data, name="the relay template")


def _units(text: str, size: int) -> bytes:
    return text.encode("utf-16-le").ljust(size * _UNIT, b"\0")


def _target_problem(target: str) -> str:
    if not target.lower().endswith(".exe"):
        return "the target isn't a program" if target else "the target is empty"
    if target.startswith("/") or "\\" in target:
        return "the target is absolute or has backslashes"
    names = target.split("/")
    while names[0] == "..":
        names = names[1:]
    for name in names:
        if fault := windows_name_fault(name):
            return f"the target has the name {name[:80]!r}, which {fault}"
    return _length_problem("the target", target, _TARGET_UNITS)


def _argument_problem(line: str) -> str:
    if any(character in line for character in "\0\r\n"):
        return "an argument has a line break or a NUL"
    return _length_problem("the command line of the arguments", line, _ARGUMENT_UNITS)


def _length_problem(what: str, text: str, units: int) -> str:
    try:
        length = len(text.encode("utf-16-le")) // _UNIT
    except UnicodeEncodeError:
        return f"{what} isn't Unicode"
    most = units - 1
    return f"{what} has {count(length, 'UTF-16 unit')}, more than {most}" if length > most else ""
