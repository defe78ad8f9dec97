"""Reading of ``entry_points.txt`` (entry points specification): commands, and what plug-ins offer to programs."""

from __future__ import annotations

import configparser

from rocwheel.core.errors import InputError

__all__ = ["SCRIPT_GROUPS", "parse_entry_points"]

SCRIPT_GROUPS = ("console_scripts", "gui_scripts")
"""The groups of which installers make commands."""


class _EntryPoints(configparser.RawConfigParser):
    """A parser whose names keep their case."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def parse_entry_points(source: str, data: bytes) -> dict[str, dict[str, str]]:
    """Return each group of entry points: names, each with its object reference, ``module:attribute``.

    Raises `InputError`, naming ``source``, for text that is none.
    """
    parser = _EntryPoints(delimiters=("=",), strict=False, interpolation=None, default_section="")
    try:
        parser.read_string(data.decode())
    except (configparser.Error, UnicodeDecodeError) as e:
        found = f"its entry_points.txt can't be read ({type(e).__name__})"
        raise InputError(source, found, remedy="Build or fetch it again.") from e
    return {group: dict(parser.items(group)) for group in parser.sections()}
