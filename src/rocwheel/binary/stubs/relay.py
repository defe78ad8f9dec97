"""Relays: small programs of Windows that start another one, where a package would hold its copies.

Windows' builds hold copies where those of Linux hold links: ``clang++.exe`` is ``clang.exe`` once more, of a hundred
megabytes. A wheel can hold neither links nor one file under two names. See ``relays/x86_64.c`` for what a relay does.
"""

from __future__ import annotations

import subprocess
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from rocwheel.binary.pe.checksum import CHECKSUM, checksum_of
from rocwheel.binary.pe.facts import Pe, read_pe
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.names import name_fault

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
    template, facts = _template()
    start = next(section.offset for section in facts.sections if section.name == _SECTION)
    filled = template[:start] + setting + template[start + len(setting) :]
    at = facts.header.checksum_offset
    return filled[:at] + CHECKSUM.pack(checksum_of(memoryview(filled), at)) + filled[at + CHECKSUM.size :]


@cache
def _template() -> tuple[bytes, Pe]:
    data = (files("rocwheel.binary.stubs") / "relays" / "x86_64.bin").read_bytes()
    return data, read_pe(data, name="the template of relays")


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
    for name in names:
        if fault := name_fault(name):
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
        return f"{what} is not Unicode"
    most = units - 1
    return f"{what} has {count(length, 'unit')} of UTF-16, more than {most}" if length > most else ""
