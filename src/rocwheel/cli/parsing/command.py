"""How commands and their groups describe themselves, whatever they do."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from itertools import zip_longest
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from rocwheel.cli.parsing.completion_shell import complete_named_shell, describe_named_shell
from rocwheel.cli.parsing.plain_values import keep_plain_values
from rocwheel.core.errors import InputError

__all__ = ["Command", "CommandApp", "Group"]

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
