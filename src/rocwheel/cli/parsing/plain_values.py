"""Values that need no library to check them: for others Typer loads pydantic, a fifth of a second."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from rocwheel.cli.parsing.place_words import FolderToMake, check_place_words

__all__ = ["keep_plain_values"]

_NUMBERS: dict[Any, re.Pattern[str]] = {
    int: re.compile("0|[1-9][0-9]{0,17}"),
    float: re.compile(r"(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?"),
}
"""The spellings that nobody takes for anything else."""
_FILE_OR_FOLDER = "OUTPUT"
"""What an option is called that makes a file or a folder, as its command is given one or the other."""


def keep_plain_values(parameters: Iterable[Any]) -> None:
    """Let parameters of Typer take absent and plain values as they are, and ask Typer about all others.

    Plain are texts, words that are among the parameter's choices, decimal numbers in its range, paths, lists of these,
    and what has the parameter's type already, as defaults have.
    """
    for parameter in parameters:
        if "get_runtime_param" not in vars(parameter):
            parameter.get_runtime_param = _Values(parameter)


class _Values:
    """What Typer asks for the values of one parameter."""

    def __init__(self, parameter: Any) -> None:
        self._typer: Any = parameter.get_runtime_param

    def __call__(self) -> _Values:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of a parameter; raise `InputError` as `check_place_words` does."""
        is_list = param.multiple or param.nargs == -1
        if value is None:
            return () if is_list else None
        check_place_words(param, value)
        kind = param.type_descriptor.annotation
        if is_list:
            plain = _plain_list(value, kind, param.type_descriptor.parameter_info)
        else:
            plain = _plain(value, kind, param.type_descriptor.parameter_info)
        if isinstance(plain, Path) and param.metavar == _FILE_OR_FOLDER and str(value).endswith("/"):
            return FolderToMake(plain)
        return self._typer().coerce(value, param=param, ctx=ctx) if plain is None else plain


def _plain_list(values: Any, kind: Any, info: Any) -> list[Any] | None:
    if get_origin(kind) is not list or not isinstance(values, list | tuple):
        return None
    plain = [_plain(value, get_args(kind)[0], info) for value in values]
    return None if None in plain else plain


def _plain(value: Any, kind: Any, info: Any) -> Any:
    """Return a value of this type, or None where that is not plain to see."""
    is_literal = get_origin(kind) is Literal
    if info.parser or not (is_literal or isinstance(kind, type)):
        return None
    if is_literal:
        return value if value in get_args(kind) else None
    if kind is Path:
        return _plain_path(value, info)
    if issubclass(kind, Enum):
        return next((member for member in kind if value in (member, member.value)), None)
    if kind in _NUMBERS and isinstance(value, str):
        return _plain_number(value, kind, info)
    return value if isinstance(value, kind) else None


def _plain_number(text: str, kind: Any, info: Any) -> int | float | None:
    if not _NUMBERS[kind].fullmatch(text):
        return None
    number: int | float = kind(text)
    is_in_range = (info.min is None or number >= info.min) and (info.max is None or number <= info.max)
    return number if is_in_range else None


def _plain_path(value: Any, info: Any) -> Path | None:
    asked = (info.exists, info.writable, info.resolve_path, info.allow_dash, info.path_type)
    if any(asked) or not (info.file_okay and info.dir_okay) or not isinstance(value, str | Path) or "\0" in str(value):
        return None
    return Path(value)  # who opens it says what is wrong; of several, one may be unreadable
