"""The calls of rocm-jax's ``build/build.py`` in a file, by what kind of file it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.words import MARKS
from rocwheel.frameworks.jax_migration.reading.makefile_calls import read_makefile_calls
from rocwheel.frameworks.jax_migration.reading.old_call import OldCalls, UndecidedError
from rocwheel.frameworks.jax_migration.reading.python_calls import read_python_calls
from rocwheel.frameworks.jax_migration.reading.shell.calls import read_shell_calls
from rocwheel.frameworks.jax_migration.reading.workflow_calls import read_workflow_calls

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CallerKind", "caller_kind", "read_old_calls"]

CallerKind = Literal["makefile", "shell", "workflow", "python"]

_NAMES: dict[CallerKind, re.Pattern[str]] = {
    "makefile": re.compile(r"(GNU)?[Mm]akefile([.-].*)?|.*\.(mk|mak|make)"),
    "shell": re.compile(r".*\.(sh|bash)"),
    "workflow": re.compile(r".*\.ya?ml"),
    "python": re.compile(r".*\.pyi?"),
}
_PROGRAM = re.compile(r"#!.*\b(?P<program>python|bash|dash|ksh|zsh|sh|make)[0-9.]*\b")


def caller_kind(text: str, name: str) -> CallerKind:
    """Return what a file is by its name, otherwise by its first line; raise `InputError` for other files."""
    for kind, pattern in _NAMES.items():
        if pattern.fullmatch(name.rpartition("/")[2]):
            return kind
    program = _PROGRAM.match(text[:200])
    if program is None:
        found = "is neither named as one that is read, nor begins with #! and a program"
        raise InputError(name, found, expected="a Makefile, or a shell script, a workflow (YAML) or Python")
    if program["program"] in {"python", "make"}:
        return "python" if program["program"] == "python" else "makefile"
    return "shell"


def read_old_calls(text: str, name: str) -> OldCalls:
    """Return the calls of ``build/build.py`` in the text of a file; ``name`` is its path.

    Nothing is run, and no other file is read. Raises `InputError` for a file of another kind, for one that isn't text
    (a NUL or another control character), and for Python that can't be read.
    """
    if found := MARKS & set(text):
        character = min(found)
        message = f"is no text: it has the character {character!r}"
        raise InputError(name, message, expected="a Makefile, a shell script, a workflow or Python")
    reader = _READERS[caller_kind(text, name)]
    try:
        return reader(text.replace("\r\n", "\n"))
    except UndecidedError as e:
        raise InputError(name, str(e), remedy="Give the command line itself.") from e


_READERS: dict[CallerKind, Callable[[str], OldCalls]] = {
    "makefile": read_makefile_calls,
    "shell": read_shell_calls,
    "workflow": read_workflow_calls,
    "python": read_python_calls,
}
