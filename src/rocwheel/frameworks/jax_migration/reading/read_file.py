"""The calls of the old tool in a file on disk."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.reading import read_small
from rocwheel.frameworks.jax_migration.reading.read_calls import caller_kind, read_old_calls

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.frameworks.jax_migration.reading.old_call import OldCalls

__all__ = ["read_calls_of_file"]

_LARGEST = 4 << 20
_WORKFLOW = re.compile(r"^(?:[\"']?(?:jobs|runs)[\"']?|[ ]*(?:-[ ]+)*[\"']?run[\"']?)[ ]*:", re.MULTILINE)
"""A key that a workflow or an action has, or a step in a part of one."""


def read_calls_of_file(path: Path) -> OldCalls:
    """Return the calls in a file; raise `InputError` for one that can't be read, is no text, or is over 4 MiB."""
    data = read_small(path, _LARGEST, expected="a Makefile, a shell script, a workflow or Python")
    try:
        text = data.decode()
    except UnicodeDecodeError as e:
        raise InputError(path, f"is no text: {e.reason} at byte {e.start}", expected="UTF-8") from e
    text = text.removeprefix("\ufeff")
    found = read_old_calls(text, str(path))
    if caller_kind(text, str(path)) == "workflow" and not _WORKFLOW.search(text):
        message = "is no workflow: no line begins with jobs: or runs:, and none has the key run"
        raise InputError(path, message, expected="a workflow or an action of GitHub's, in YAML")
    return found
