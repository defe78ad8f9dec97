"""Relays: small programs of Windows that start another one, where a package would hold its copies.

Windows' builds hold copies where those of Linux hold links: ``clang++.exe`` is ``clang.exe`` once more, of a hundred
megabytes. A wheel can hold neither links nor one file under two names. See ``relays/x86_64.c`` for what a relay does.
"""

from __future__ import annotations

import re
import struct
import subprocess
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from rocwheel.binary.pe.facts import read_pe
from rocwheel.foundation.counting import count
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["RELAY_SIZE", "make_relay"]

RELAY_SIZE: Final = 5120
"""Bytes of each relay."""

_SECTION: Final = ".relay"
_TARGET_UNITS: Final = 260
"""UTF-16 units, with the final NUL: no program whose path is longer starts (``MAX_PATH``)."""
_ARGUMENT_UNITS: Final = 252
_UNIT: Final = 2
_CHECKSUM_AT: Final = 4 + 20 + 64
"""Where the checksum stands behind the place of the PE signature."""
_PE_POINTER_AT: Final = 0x3C

_REFUSED: Final = re.compile(r'[<>:"|?*\x00-\x1f]')
"""Characters that no name of Windows has ("Naming Files, Paths, and Namespaces")."""


def make_relay(target: str, arguments: Sequence[str] = ()) -> bytes:
    """Return a program for x86-64 that starts ``target``, a path relative to its own folder, with slashes.

    The program gets the relay's command line as it is, ``argv[0]`` included, and ``arguments`` put in behind
    ``argv[0]``. Those are for programs that know their task by their name: LLVM's look at the name of the file that
    runs, not at ``argv[0]``, so that a relay ``clang++.exe`` has to pass ``--driver-mode=g++`` to ``clang.exe``.

    The relay waits and ends with the program's exit code. Where that can't be started, it writes
    ``RELAY: cannot run PATH: error N`` to standard error and exits with 126 for an access that is denied (5), else
    with 127.

    The bytes are those of a template, of `RELAY_SIZE`, with its section ``.relay`` filled in: the target in 260 units
    of UTF-16, arguments in 252; the checksum is right.

    Raises `InputError` for a target that no wheel could hold, or that is no program, and for arguments too long.
    """
    source = f"relay for {target[:80]!r}"
    if problem := _target_problem(target):
        raise InputError(source, problem, expected="the path of an .exe file, relative to the folder of the relay")
    line = subprocess.list2cmdline(arguments)
    if problem := _argument_problem(line):
        raise InputError(source, problem, expected="a few short arguments")
    setting = _units(target.replace("/", "\\"), _TARGET_UNITS) + _units(line, _ARGUMENT_UNITS)
    template = _template()
    start = _setting_at(template)
    filled = template[:start] + setting + template[start + len(setting) :]
    return _with_checksum(filled)


@cache
def _template() -> bytes:
    return (files("rocwheel.binary.stubs") / "relays" / "x86_64.bin").read_bytes()


@cache
def _setting_at(template: bytes) -> int:
    facts = read_pe(template, name="the template of relays")
    return next(section.offset for section in facts.sections if section.name == _SECTION)


def _units(text: str, size: int) -> bytes:
    return text.encode("utf-16-le").ljust(size * _UNIT, b"\0")


def _target_problem(target: str) -> str:
    if not target.lower().endswith(".exe"):
        return "the target is no program" if target else "the target is empty"
    if target.startswith("/") or "\\" in target:
        return "the target is absolute, or has backslashes"
    names = target.split("/")
    while names[0] == "..":
        names = names[1:]
    if bad := next((name for name in names if _REFUSED.search(name) or name.rstrip(". ") != name), None):
        return f"Windows refuses the name {bad!r}"
    if "" in names:
        return "the target has an empty name"
    return _length_problem("the target", target, _TARGET_UNITS)


def _argument_problem(line: str) -> str:
    if any(character in line for character in "\0\r\n"):
        return "an argument has a line break or a NUL"
    return _length_problem("the command line of the arguments", line, _ARGUMENT_UNITS)


def _length_problem(what: str, text: str, units: int) -> str:
    try:
        length = len(text.encode("utf-16-le")) // _UNIT
    except UnicodeEncodeError:
        return f"{what} is not Unicode"
    most = units - 1
    return f"{what} has {count(length, 'unit')} of UTF-16, more than {most}" if length > most else ""


def _with_checksum(data: bytes) -> bytes:
    """Return an image with the checksum that `CheckSumMappedFile` reckons: words with carry, and the size."""
    (signature,) = struct.unpack_from("<I", data, _PE_POINTER_AT)
    at = signature + _CHECKSUM_AT
    blank = data[:at] + bytes(4) + data[at + 4 :]
    total = sum(struct.unpack(f"<{len(blank) // 2}H", blank))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return data[:at] + struct.pack("<I", total + len(data)) + data[at + 4 :]
