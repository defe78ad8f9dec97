"""The command line with every command, put together once: Typer does it for each run, in a tenth of a second."""

from __future__ import annotations

from functools import cache
from typing import Any

from typer.main import get_command

from rocwheel.cli import load_commands
from rocwheel.cli.app import app

__all__ = ["all_commands"]


@cache
def all_commands() -> Any:
    """Return the root of the command line, as the library below Typer holds it."""
    load_commands()
    return get_command(app)
