"""Checks that the files of the packages match RECORD, and that commands can start.

Installers write the path of Python into commands, so commands in a moved or copied folder can't start. Programs for
Windows contain the path in a binary form that this module doesn't read.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import sysconfig
from pathlib import Path

from ._distributions import find_distribution
from ._doctor_packages import installed_packages
from ._files import NotAFileError, open_regular
from ._gpu_access import ERROR, WARNING, Diagnosis
from ._installing import opening_hint, overwriting_hint, reinstallation_hint
from ._output import listed
from ._platform import this_platform
from ._record import RECORD_ERRORS, describe_file, read_inside, read_outside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._record import Row

ABSENT = "is absent"

REFUSED = "permission denied"

UNCHECKED = "its files can't be checked, and installers can't remove them"

HEAD = 4096
"""The number of bytes to read from a script. The kernel reads at most the first 256 bytes."""

FIRST_LINE = re.compile(rb"#![ \t]*(/\S*)\s")

LONG_LINE = re.compile(rb"#!/bin/sh\n('''exec' [^\n]*)\n")
"""The shell code that installers write if the path of Python is too long for ``#!`` or contains blanks."""

REMEDY = "Create a new environment here, or move this environment back: installed commands contain the old path"


def check_files(*, deep: bool = False) -> list[Diagnosis]:
    """Return an error for each package with missing or modified files.

    With ``deep``, every file is read and hashes are also compared.
    """
    return [diagnosis for dist, extra, _ in installed_packages() for diagnosis in _check_package(dist, extra, deep)]


def _check_package(dist: str, extra: str, deep: bool) -> Iterator[Diagnosis]:
    fault = ""
    try:
        rows = read_inside(dist)
        fault = "" if rows else f"RECORD of {dist} is empty: {UNCHECKED}"
    except FileNotFoundError:
        fault = f"{dist} has no RECORD: {UNCHECKED}"
    except NotAFileError as e:
        fault = f"RECORD of {dist} can't be read ({e}); remove it before you install again"
    except RECORD_ERRORS as e:
        fault = f"RECORD of {dist} can't be read ({e})"
    if fault:
        yield Diagnosis(ERROR, fault, overwriting_hint(extra))
        return
    found = [(name, path, _fault(path, digest, size, deep)) for name, path, digest, size in rows]
    refused = {name: path for name, path, fault in found if fault == REFUSED}
    lacking = [name for name, _, fault in found if fault == ABSENT]
    wrong = [f"{name} ({fault})" for name, _, fault in found if fault not in ("", ABSENT, REFUSED)]
    if refused:
        text = f"{dist} has files that the current user is not allowed to read: {listed([*refused])}"
        yield Diagnosis(ERROR, text, _opening(refused) or reinstallation_hint(extra))
    if lacking:
        yield Diagnosis(ERROR, f"{dist} lacks {listed(lacking)}", reinstallation_hint(extra))
    if wrong:
        text = f"{dist} has modified files: {listed(wrong)}"
        yield Diagnosis(ERROR, text, reinstallation_hint(extra))


def _opening(refused: dict[str, Path]) -> str:
    """Return the command that makes the files' folders readable, or an empty string on systems without ``chmod``."""
    if this_platform().is_windows:
        return ""
    depths = ((path, max(len(Path(name).parts) - 1, 0)) for name, path in refused.items())
    return opening_hint(*dict.fromkeys((path, *path.parents)[depth] for path, depth in depths))


def _fault(path: Path, digest: str, size: str, deep: bool) -> str:
    """Return a description of the problem with a file, or an empty string if the file is correct."""
    try:
        return difference(path, digest, size, deep)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except PermissionError:
        return REFUSED
    except (OSError, ValueError) as e:
        return f"can't be read: {getattr(e, 'strerror', None) or e}"


def difference(path: Path, digest: str, size: str, deep: bool) -> str:
    """Return the difference between a file and its line in RECORD, or an empty string.

    Links have neither a hash nor a size. The check of another package covers the link targets.
    """
    facts = path.stat() if digest or size else path.lstat()
    if stat.S_ISREG(facts.st_mode) and size and str(facts.st_size) != size:
        return f"{facts.st_size} {'byte' if facts.st_size == 1 else 'bytes'} instead of {size}"
    if (digest or size) and not stat.S_ISREG(facts.st_mode):
        return "not a file"
    if (digest or size) and not os.access(path, os.R_OK):
        return REFUSED
    return "different content" if deep and digest.startswith("sha256=") and digest != describe_file(path)[0] else ""


def check_scripts(*, deep: bool = False) -> list[Diagnosis]:
    """Return an error for commands that can't start, and a warning for commands that don't match RECORD.

    Libraries work without commands, and some images contain only site-packages. With ``deep``, hashes are also
    compared.
    """
    return [found for dist, extra, _ in installed_packages() for found in _check_commands(dist, extra, deep)]


def _check_commands(dist: str, extra: str, deep: bool) -> Iterator[Diagnosis]:
    try:
        rows = read_outside(dist)
    except RECORD_ERRORS:  # `check_files` reports these errors
        return
    lost: dict[str, list[str]] = {}
    for _, path, _, _ in rows:
        named = _interpreter(path)
        if named and _is_absent(named):
            lost.setdefault(named, []).append(path.name)
    for absent, names in lost.items():
        yield Diagnosis(ERROR, f"commands from {dist} can't start because {absent} is missing: {listed(names)}", REMEDY)
    # Check only the script folder that belongs to the package's location. A ``--target`` folder has no such folder.
    site = os.path.realpath(str(find_distribution(dist).locate_file("")))
    schemes = map(sysconfig.get_paths, sysconfig.get_scheme_names())
    own = (paths for paths in schemes if site in map(os.path.realpath, (paths["purelib"], paths["platlib"])))
    folders = {os.path.realpath(paths["scripts"]) for paths in own}
    commands = [row for row in rows if _is_among(row[1], folders)]
    for level, text in _compare_commands(dist, commands, deep):
        yield Diagnosis(level, text, reinstallation_hint(extra))


def _is_among(path: Path, folders: set[str]) -> bool:
    """Return whether a file is in one of these folders. An invalid path is not in any folder."""
    try:
        return os.path.realpath(path.parent) in folders
    except (OSError, ValueError):
        return False


def _compare_commands(dist: str, commands: list[Row], deep: bool) -> Iterator[tuple[str, str]]:
    """Yield the severity and text of differences between commands and RECORD."""
    gone = [this_platform().plain(str(path)) for _, path, _, _ in commands if _is_absent(str(path))]
    broken = {path: fault for _, path, _, _ in commands if (fault := _command_fault(path))}
    # Users who move an environment may edit the first lines of its commands, so these differences aren't errors.
    others = [row for row in commands if row[1] not in broken]
    found = {path: _change(path, digest, size, deep) for _, path, digest, size in others}
    changed = [f"{path.name} ({change})" for path, change in found.items() if change]
    if broken:
        text = listed([f"{path.name} ({fault})" for path, fault in broken.items()])
        yield ERROR, f"commands from {dist} can't start: {text}"
    if gone:
        yield WARNING, f"commands from {dist} are missing: {listed(gone)}"
    if changed:
        yield WARNING, f"commands from {dist} changed after installation: {listed(changed)}"


def _command_fault(path: Path) -> str:
    """Return why an existing command can't start for any user, or an empty string.

    If access is denied, the command isn't considered faulty.
    """
    try:
        facts = path.stat()
    except (OSError, ValueError):
        return ""
    if not stat.S_ISREG(facts.st_mode):
        return "not a file"
    if not facts.st_size:
        return "empty"
    return "" if facts.st_mode & 0o111 else "not executable"


def _change(path: Path, digest: str, size: str, deep: bool) -> str:
    """Return the difference between a command and RECORD; empty if the command is missing or unreadable."""
    try:
        return difference(path, digest, size, deep)
    except (OSError, ValueError):
        return ""


def _interpreter(path: Path) -> str:
    """Return the interpreter in the first line of a script; empty for other files and for unreadable files."""
    try:
        with open_regular(path) as file:
            head = file.read(HEAD)
        if long := LONG_LINE.match(head):
            words = shlex.split(os.fsdecode(long[1]))
            return words[1] if words[1:] and words[1].startswith("/") else ""
    except (OSError, ValueError):
        return ""
    found = FIRST_LINE.match(head)
    return os.fsdecode(found[1]) if found else ""


def _is_absent(path: str) -> bool:
    """Return whether the path certainly doesn't exist. If access is denied, the path may exist."""
    try:
        Path(path).stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
