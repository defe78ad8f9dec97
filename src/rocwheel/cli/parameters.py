"""Creates Click's options and arguments from the type hints of a command's function, and checks their values."""

from __future__ import annotations

import errno
import inspect
import os
import re
from copy import copy
from enum import Enum
from pathlib import Path, PosixPath
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, Union, get_args, get_origin

import click
from click.shell_completion import CompletionItem

from rocwheel.core.errors import InputError, read_error
from rocwheel.core.workers import map_collecting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Spelling(NamedTuple):
    """The syntax of a parameter on the command line, in its type hint: ``Annotated[int, option("--jobs", ...)]``."""

    names: tuple[str, ...]
    """The names of an option. Empty for an argument."""
    help: str
    min: int | None
    max: int | None
    check: Callable[[Any], Any] | None
    """Returns the value for the command. Raises `InputError` for an invalid value."""
    settings: dict[str, Any]
    """Click's settings. ``show_default`` can be text."""


def option(
    *names: str,
    help: str,  # noqa: A002
    min: int | None = None,  # noqa: A002
    max: int | None = None,  # noqa: A002
    check: Callable[[Any], Any] | None = None,
    **settings: Any,
) -> Spelling:
    """Return the syntax of an option."""
    return Spelling(names, help, min, max, check, settings)


def argument(*, help: str, check: Callable[[Any], Any] | None = None, **settings: Any) -> Spelling:  # noqa: A002
    """Return the syntax of an argument."""
    return Spelling((), help, None, None, check, {"is_argument": True, **settings})


class FolderToMake(PosixPath):
    """A path that the user wrote with a trailing slash, which other path types remove."""


_PLACES = frozenset({"DIR", "DIST_DIR", "FILE", "FOLDER", "PATH", "PLACE", "PREFIX", "STORE", "URL"})
"""Placeholders for parameters that accept paths as text. The type `Path` identifies all other parameters for paths."""
_LIBRARY = "LIBRARY"
_FILE_OR_FOLDER = "OUTPUT"
"""The placeholder of an option for either a file or a folder, which the command creates."""
_FEW_SLASHES = re.compile(r"(s3|https?|file):(?!//)(/?)", re.IGNORECASE)


class Value(click.ParamType[Any, Any]):
    """The expected kind of value: text, a path, an integer in a range, or one of several choices."""

    name = "value"

    def __init__(self, kind: Any, low: int | None, high: int | None) -> None:
        self.kind, self.low, self.high = kind, low, high
        members = get_args(kind) if get_origin(kind) is Literal else kind if issubclass(kind, Enum) else ()
        self.choices = {str(member.value if isinstance(member, Enum) else member): member for member in members}

    @property
    def range(self) -> str:
        """The range as shown in the help."""
        low = "" if self.low is None else f"{self.low}<=x" if self.high is not None else f"x>={self.low}"
        return low + ("" if self.high is None else f"<={self.high}" if low else f"x<={self.high}")

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of a word. Raises `InputError` for an invalid word."""
        if not isinstance(value, str):
            return value
        if value != param.default:
            self._check_place(value, param)
        if self.choices:
            return self.choices[value] if value in self.choices else self._refuse(value, param)
        if self.kind is int:
            try:
                number = int(value.encode("ascii"))
            except ValueError:
                self._refuse(value, param)
            is_in_range = (self.low is None or number >= self.low) and (self.high is None or number <= self.high)
            return number if is_in_range else self._refuse(value, param)
        if self.kind is Path:
            option = spelled(param) if param.param_type_name == "option" else ""
            if ctx.obj is not None and (found := ctx.obj.take(value, option)):
                return found
            return FolderToMake(value) if param.metavar == _FILE_OR_FOLDER and value.endswith("/") else Path(value)
        return value

    def _refuse(self, value: str, parameter: click.Parameter) -> NoReturn:
        if self.choices:
            expected = f"one of {', '.join(self.choices)}"
        elif self.low is not None and self.high is not None:
            expected = f"a whole number from {self.low} to {self.high}"
        else:
            expected = "a whole number" if self.low is None else f"a whole number, at least {self.low}"
        raise InputError(spelled(parameter), f"is {value!r}", expected=expected)

    def _check_place(self, word: str, parameter: click.Parameter) -> None:
        """Raise `InputError` for an empty word instead of a path or library, and for a URL without slashes.

        Also raises `InputError` for a trailing slash in a file's path, because path objects drop the slash. An empty
        word is usually an unset shell variable. As a path, it would mean the current folder.
        """
        is_library = parameter.metavar == _LIBRARY
        if not is_library and self.kind is not Path and parameter.metavar not in _PLACES:
            return
        if parameter.metavar == "FILE" and word.endswith("/"):
            raise InputError(word, "is a folder", expected="a file", remedy=f"Change {spelled(parameter)}.")
        if word == "":
            expected = "the name of a library, such as librccl.so.1" if is_library else "a file, folder, or URL"
            remedy = (
                "Check for an unset variable."
                if is_library
                else "Check for an unset variable. For the current folder, use '.'."
            )
            raise InputError(spelled(parameter), "is empty", expected=expected, remedy=remedy)
        if begin := _FEW_SLASHES.match(word):
            remedy = f"For a path that begins this way, write ./{begin[0]}..."
            found = "has only one slash after its scheme" if begin[2] else "has no slashes after its scheme"
            raise InputError(word, found, expected=f"{begin[1]}:// for a URL", remedy=remedy)

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem[str]]:
        """Return the choices that begin with this text. For other values, the shell offers files."""
        if self.choices:
            return [CompletionItem(word) for word in self.choices if word.startswith(incomplete)]
        return [CompletionItem(incomplete, type="file")]


class _Option(click.Option):
    """An option. Only the longer help and the page about advanced options contain advanced options."""

    def __init__(self, *names: Any, advanced: bool = False, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.is_advanced = advanced
        self.hidden = self.hidden or advanced

    def get_help_extra(self, ctx: click.Context) -> Any:
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):  # Click writes text in parentheses
            extra["default"] = self.show_default
        if isinstance(self.type, Value) and self.type.range:
            extra["range"] = self.type.range
        return extra


def advanced_records(command: click.Command, ctx: click.Context) -> list[tuple[str, str]]:
    """Return a command's advanced options and their help."""
    found = []
    for one in command.params:
        if getattr(one, "is_advanced", False):
            shown = copy(one)
            shown.hidden = False  # type: ignore[attr-defined]  # Click returns no help for hidden options
            found.append(shown.get_help_record(ctx))
    return [record for record in found if record]


class _Argument(click.Argument):
    """An argument with the same syntax in the usage line and below it."""

    def make_metavar(self, ctx: click.Context) -> str:
        """Return the word for the usage line. Brackets mark optional arguments, and dots mark repeatable arguments."""
        return self._word if self.required else f"[{self._word}]"

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self._word, f"{self.help}  [required]" if self.required else self.help or ""

    @property
    def _word(self) -> str:
        return spelled(self) if self.nargs == 1 else f"{spelled(self)}..."


def spelled(parameter: click.Parameter) -> str:
    """Return a parameter's name for messages: the long name of an option, or the word in the help for an argument."""
    is_option = parameter.param_type_name == "option"
    return max(parameter.opts, key=len) if is_option else parameter.metavar or parameter.name.upper()


def missing_error(place: str, missing: Sequence[str], instead: str = "") -> InputError:
    """Return the error for a command line without required arguments and options, which lists all of them.

    ``instead`` is a sentence about alternatives, or an empty string.
    """
    *first, last = missing
    comma = "," if len(first) > 1 else ""
    named = f"{', '.join(first)}{comma} and {last}" if first else last
    found = f"{named} {'is' if len(missing) == 1 else 'are'} missing"
    return InputError(place, found, remedy=f"{instead}See {place} --help.")


def read_parameters(function: Callable[..., Any]) -> list[click.Parameter]:
    """Return a command's parameters from its function's type hints, which are annotated with the syntax."""
    return [_parameter(each) for each in inspect.signature(function, eval_str=True).parameters.values()]


def _parameter(of: inspect.Parameter) -> click.Parameter:
    hint, spelling = get_args(of.annotation)
    if get_origin(hint) in {Union, UnionType}:
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    is_list, is_required = get_origin(hint) is list, of.default is of.empty
    kind = get_args(hint)[0] if is_list else hint

    def finish(_: click.Context, __: click.Parameter, value: Any) -> Any:
        given = ([*value] or (None if is_required else of.default)) if is_list else value
        return spelling.check(given) if spelling.check else given

    is_repeatable = is_list and "is_argument" not in spelling.settings
    text = f"{spelling.help} (repeatable)" if is_repeatable else spelling.help
    settings = {"required": is_required, "callback": finish, "help": text, **spelling.settings}
    if not is_required and not (is_list and of.default is None):
        settings["default"] = of.default.value if isinstance(of.default, Enum) else of.default
    if of.default == "":
        settings.setdefault("show_default", False)
    settings.setdefault("show_default", True)
    dashed = f"--{of.name.replace('_', '-')}"
    if kind is bool:
        names = spelling.names or (f"{dashed}/--no-{dashed[2:]}",)
        return _Option([of.name, *names], is_flag=True, **settings)
    settings["type"] = value = Value(kind, spelling.min, spelling.max)
    settings["metavar"] = settings.get("metavar") or (f"<{'|'.join(value.choices)}>" if value.choices else None)
    if settings.pop("is_argument", False):
        settings.pop("show_default")
        return _Argument([of.name], nargs=-1 if is_list else 1, **settings)
    return _Option([of.name, *(spelling.names or (dashed,))], multiple=is_list, **settings)


def regular_place(path: Path) -> Path:
    """Return the path of a file or folder. Raises `InputError` for anything else, before opening it.

    Reading a pipe would block, and reading a device would never end.
    """
    _existing(path)
    if not path.is_dir() and not path.is_file():
        raise InputError(path, "is neither a regular file nor a folder", expected="a file or a folder")
    return path


def regular_places(paths: list[Path] | None) -> list[Path]:
    """Return the paths of files and folders. Raises `InputError` with all other paths."""
    return map_collecting("paths", regular_place, paths or [])


def regular_file(path: Path) -> Path:
    """Return the path of a file. Raises `InputError` for anything else."""
    if regular_place(path).is_dir():
        raise _refusal(path, errno.EISDIR)
    return path


def folder_place(path: Path) -> Path:
    """Return the path of a folder. Raises `InputError` for anything else."""
    if not _existing(path).is_dir():
        raise InputError(path, "isn't a folder", remedy="Pass a folder.")
    return path


def _existing(path: Path) -> Path:
    try:
        path.stat()
    except OSError as e:
        raise read_error(path, e) from e
    return path


def _refusal(path: Path, number: int) -> InputError:
    error: InputError = read_error(path, OSError(number, os.strerror(number)))
    return error
