"""The root of the command line, and how commands and their groups read words and describe themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from enum import Enum
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin

import typer
from typer.completion import install_callback, show_callback
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import rocwheel
from rocwheel.cli.options import FolderToMake, check_place_words
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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


_SHELLS = ("bash", "zsh", "fish")
_OPTIONS: dict[str, Any] = {"--install-completion": install_callback, "--show-completion": show_callback}
_HELP = {
    "--install-completion": "Install completion for the current shell",
    "--show-completion": "Print the script of completion for the current shell",
}


def complete_named_shell(context: Any, words: Sequence[str]) -> None:
    """Install or show completion, and exit, if the options before any command ask for that and a shell is behind them.

    Raises `InputError` for a shell that has none, and for other words beside it.
    """
    options = list(takewhile(lambda word: word.startswith("-"), words))
    place = next((place for place, word in enumerate(options) if word.partition("=")[0] in _OPTIONS), None)
    if place is None:
        return
    option, _, value = words[place].partition("=")
    named = [word for word in (value, *words[place + 1 :]) if word not in {"", "--"}]
    if all(word.startswith("-") for word in named):  # none, so it is that of the process around
        return
    if named[0] not in _SHELLS:
        remedy = "Without a word it takes the shell that it is called from."
        raise InputError(option, f"is {named[0]!r}", expected=f"one of {', '.join(_SHELLS)}", remedy=remedy)
    if named[1:]:
        raise InputError(option, f"is followed by {named[1]!r}", expected=f"nothing behind {named[0]}")
    _OPTIONS[option](context, None, named[0])


def describe_named_shell(parameters: Iterable[Any]) -> None:
    """Say in the help of these options that they take a shell's name."""
    for parameter in parameters:
        if _OPTIONS.keys() & {*parameter.opts}:
            parameter.help = f"{_HELP[max(parameter.opts, key=len)]}, or for bash, zsh or fish where one is named."


Function = TypeVar("Function", bound=Callable[..., Any])


_BARE = {"--split-device": "kpack"}
"""Options whose value may be left out, and what they have then; their commands take no arguments."""


class Command(TyperCommand):
    """A command that spells its arguments alike in the usage line and below it, and shows no types of Python.

    A list of commands has the whole first paragraph of its help.
    """

    def __init__(self, name: str | None, **settings: Any) -> None:
        super().__init__(name, **_with_short_help(settings))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a command line; options that may go without a value get one."""
        keep_plain_values(self.get_params(ctx))
        options = args[: args.index("--")] if "--" in args else args
        words = [_valued(word, after) for word, after in zip_longest(options, options[1:])]
        return super().parse_args(ctx, words + args[len(options) :])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Return the words of the usage line: optional arguments in brackets, those that repeat with dots."""
        arguments = [parameter for parameter in self.params if parameter.param_type_name == "argument"]
        words = [_spelled(parameter) for parameter in arguments]
        return ["[OPTIONS]", *(word if p.required else f"[{word}]" for p, word in zip(arguments, words, strict=True))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write what each argument and option is for."""
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            name, text = parameter.get_help_record(ctx) or ("", "")
            if parameter.param_type_name == "argument":
                rows["Arguments"].append((_spelled(parameter), text))
            elif name:
                rows["Options"].append((name, text))
        for heading, lines in rows.items():
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)


class Group(TyperGroup):
    """A group of commands. Without a command it prints its help; for an unknown one it names similar ones.

    A command's name may have two words, beside a command that is called by the first of them: `index` and `index yank`.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**_with_short_help(settings))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write what each option and command is for."""
        describe_named_shell(self.params)  # which the library adds late
        super().format_options(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options of the group; without any word, print the help as for wrong usage."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            raise typer.Exit(2)
        if ctx.parent is None and not ctx.resilient_parsing:
            complete_named_shell(ctx, args)
        keep_plain_values(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of that name, of two words if there is one. Raise `InputError` when there is none."""
        if (both := " ".join(args[:2])) in self.commands:
            args = [both, *args[2:]]
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            similar = get_close_matches(args[0], self.list_commands(ctx))
            hint = f"Did you mean {' or '.join(map(repr, similar))}?" if similar else f"See {ctx.command_path} --help."
            raise InputError(ctx.command_path, f"has no command {args[0]!r}", remedy=hint)
        return super().resolve_command(ctx, args)


class CommandApp(typer.Typer):
    """A Typer app of `Command`s."""

    def __init__(self, name: str, **settings: Any) -> None:
        super().__init__(name=name, cls=Group, **settings)

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **more: Any
    ) -> Callable[[Function], Function]:
        """Return a decorator that makes a function a command."""
        return super().command(name, cls=cls or Command, **more)


def _with_short_help(settings: dict[str, Any]) -> dict[str, Any]:
    first_paragraph = " ".join((settings.get("help") or "").strip().partition("\n\n")[0].split())
    return {**settings, "short_help": settings.get("short_help") or first_paragraph}


def _valued(word: str, after: str | None) -> str:
    """Return an option with its value if that is left out: another option follows it, or nothing."""
    return f"{word}={_BARE[word]}" if word in _BARE and (after is None or after.startswith("-")) else word


def _spelled(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.nargs == 1 else f"{name}..."


app = CommandApp(
    "rocwheel",
    help="Turn ROCm builds into Python packages that install small, load anywhere, and run on the GPUs people have.",
    rich_markup_mode=None,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="With --version: print what a bug report needs, as `about` does.")
    ] = False,
) -> None:
    """Hold the options that come before any command."""
    if version and verbose:
        raise typer.Exit  # `main` runs `about` in its place.
    if version:
        typer.echo(f"rocwheel {rocwheel.__version__}")
        raise typer.Exit
    if verbose:
        option, found = "--verbose", "stands before the command"
        raise InputError(option, found, expected="with --version, or behind the command's name")
    if context.invoked_subcommand is None:
        place, found = "rocwheel", "the command is missing"
        raise InputError(place, found, remedy="See rocwheel --help.")


def usage_error(error: typer.TyperException) -> InputError:
    """Return what is wrong with the command line: where, what was found, what was expected.

    Of Typer's errors only the base classes have public names, so that their attributes tell them apart.
    """
    context = getattr(error, "ctx", None)
    place = context.command_path if context else "rocwheel"
    parameter, option = getattr(error, "param", None), getattr(error, "option_name", "")
    if parameter and hasattr(error, "param_type"):
        found = f"the {parameter.param_type_name} {_named(parameter)} is missing"
        return InputError(place, found, remedy=f"See {place} --help.")
    if parameter and (given := _given(error)):
        return InputError(_named(parameter), f"is {given[0]!r}", expected=_expected(parameter))
    if option and context and hasattr(error, "possibilities"):
        return _unknown_option(option, place, error.possibilities, is_group=hasattr(context.command, "commands"))
    if option:
        return InputError(option, "takes no value" if "not take" in error.message else "has no value")
    if extra := re.fullmatch(r"Got unexpected extra argument\S* \((.*)\)", error.message):
        return _extra_argument(extra[1], place, context)
    found = f"{error.message[:1].lower()}{error.message[1:].rstrip('.')}"
    return InputError(_named(parameter) if parameter else place, found, remedy=f"See {place} --help.")


def _unknown_option(option: str, place: str, similar: list[str] | None, *, is_group: bool) -> InputError:
    if is_group:
        remedy = f"Options of a command come behind its name: {place} COMMAND {option}"
    else:
        remedy = f"Did you mean {' or '.join(similar)}?" if similar else f"See {place} --help."
    return InputError(place, f"has no option {option}", remedy=remedy)


def _extra_argument(given: str, place: str, context: Any) -> InputError:
    names = " ".join(_named(one) for one in context.command.params if one.param_type_name == "argument")
    found = f"takes no arguments but {names}" if names else "takes no arguments"
    # As in '--targets gfx906 gfx90a', and in 'build artifacts'.
    remedy = f"Leave it out, or put its option before it, and quote a value that has blanks. See {place} --help."
    return InputError(place, f"{found}, and is given {given!r}", remedy=remedy)


def _named(parameter: Any) -> str:
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name.upper())


def _given(error: BaseException) -> list[Any]:
    """Return the value that the library refused, if it was the type that it refused."""
    cause = error.__cause__
    return [details["input"] for details in cause.errors()[:1]] if cause and hasattr(cause, "errors") else []


def _expected(parameter: Any) -> str:
    choices = parameter.type_descriptor.choices
    if choices:
        return f"one of {', '.join(str(getattr(choice, 'value', choice)) for choice in choices)}"
    low, high = parameter.min, parameter.max
    if low is not None and high is not None:
        return f"a whole number from {low} to {high}"
    return "a whole number" if low is None else f"a whole number, at least {low}"


_HELP_WORDS = frozenset({"--help", "-h"})


def is_help_wanted(words: Sequence[str]) -> bool:
    """Return whether a command line asks for help, for which nothing is to be fetched."""
    return bool(_HELP_WORDS & {*words})


def check_words(words: Sequence[str]) -> None:
    """Raise what is wrong with the options and arguments of a command line, as the command itself would.

    They are parsed, and the values that `takes` makes of them are made; the command is not run.
    """
    group: Any = get_command(app)
    context = group.make_context("rocwheel", [*words])
    while hasattr(context.command, "resolve_command"):
        rest = [*context._protected_args, *context.args]  # noqa: SLF001  # Typer's own way to them
        if not rest:
            return
        name, command, rest = context.command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    make = getattr(context.command.callback, "make", None)
    if make is not None:
        make(dict(context.params))
