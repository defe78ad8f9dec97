"""Finds the GPUs of Windows by the programs that the graphics driver and the HIP SDK bring there.

AMD's clinfo prints for each device ``Device Type: CL_DEVICE_TYPE_GPU``, and later ``Name: gfx1100``; hipInfo prints
``gcnArchName: gfx1100``.
"""

from __future__ import annotations

import re
from pathlib import PureWindowsPath
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .system import System

__all__ = ["CLINFO", "Source", "find_targets", "system_program"]

CLINFO = "clinfo.exe"
"""In the system's folder since the graphics driver was installed."""

LISTED = re.compile(
    r"^[ \t]*(?:Device Type:\s*(?P<kind>\S+)|Name:\s*(?P<name>\S+)|gcnArchName:\s*(?P<arch>\S+))", re.MULTILINE
)


class Source(NamedTuple):
    """What a program says."""

    program: str
    targets: list[str]
    """Target ids in the order of the devices."""


def find_targets(system: System) -> Source:
    """Return the targets of the machine's GPUs by the first program that knows any; the last one, where none does."""
    source = Source("", [])
    for program in _programs(system):
        source = Source(program, _parse(system.output(program) or ""))
        if source.targets:
            break
    return source


def system_program(system: System, name: str) -> str:
    r"""Return the path of a program of the system's folder, such as ``C:\Windows\System32\clinfo.exe``."""
    root = system.variable("SystemRoot") or "C:\\Windows"
    return f"{root}\\System32\\{name}"


def _programs(system: System) -> Iterator[str]:
    yield system_program(system, CLINFO)
    sdk = system.variable("HIP_PATH")
    if PureWindowsPath(sdk).is_absolute():  # a relative one would lead to what lies in the working directory
        yield f"{sdk.rstrip(chr(92))}\\bin\\hipInfo.exe"


def _parse(text: str) -> list[str]:
    """Return the targets that clinfo or hipInfo lists, of GPUs alone: other devices have other names."""
    targets, is_gpu = [], False
    for match in LISTED.finditer(text):
        if match["kind"]:
            is_gpu = match["kind"] == "CL_DEVICE_TYPE_GPU"
        elif match["arch"]:
            targets.append(match["arch"])
        elif is_gpu and match["name"].startswith("gfx"):
            targets.append(match["name"])
            is_gpu = False
    return targets
