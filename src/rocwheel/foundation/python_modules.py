"""Commands that run a module of a Python, whatever modules lie in the working directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["as_typed", "module_command"]

_PROGRAM = """\
import sys
if sys.path[0] == "":
    del sys.path[0]
import runpy
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
"""``python -P -m``, which Python has since 3.11: with ``-m`` alone, the working directory comes first."""


def module_command(python: str | Path, module: str) -> list[str]:
    """Return the words that run ``module`` as ``python -m`` does, but never one of the working directory."""
    return [str(python), "-c", _PROGRAM, module]


def as_typed(command: Sequence[str]) -> str:
    """Return a command for a message: one of `module_command` as the ``python -m`` that people know."""
    python, *words = command
    if words[:2] == ["-c", _PROGRAM]:
        words[:2] = ["-m"]
    return " ".join([python, *words])
