"""The root of the command line. Defines how commands and groups parse words and format their help."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import click
from click.shell_completion import get_completion_class, shell_complete

import rocwheel
from rocwheel.cli.help import HelpContext, HelpFormatter
from rocwheel.cli.options import takes
from rocwheel.cli.output import print_json
from rocwheel.cli.parameters import advanced_records, missing_error, option, read_parameters, spelled
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class _MissingParameters(click.MissingParameter):
    """Required arguments and options that are missing from a command line."""

    def __init__(self, first: click.MissingParameter, missing: Sequence[click.Parameter]) -> None:
        super().__init__(first.message, first.ctx, first.param)
        self.names = [f"the {one.param_type_name} {spelled(one)}" for one in missing]


_VERBOSE = frozenset({"--verbose", "-v"})


def _is_missing(parameter: click.Parameter, ctx: click.Context, given: Mapping[str, Any]) -> bool:
    return parameter.value_is_missing(parameter.consume_value(ctx, given)[0])


class Command(click.Command):
    """A command whose parameters come from its function. Lists of commands show the first paragraph of its help."""

    context_class = HelpContext

    def __init__(self, name: str, callback: Callable[..., Any], params: object = None, **settings: Any) -> None:
        if not hasattr(callback, "make"):  # a function that `takes` created
            callback = takes()(callback)
        super().__init__(name, callback=callback, params=read_parameters(callback), **settings)

    def get_short_help_str(self, limit: int = 0) -> str:
        """Return the first paragraph."""
        return _first_paragraph(self.help)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description and an example."""
        assert isinstance(formatter, HelpFormatter)
        formatter.write_help(self.help or "")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options.

        ``--verbose`` includes advanced options. Without it, write only the number of advanced options.
        """
        super().format_options(ctx, formatter)
        records = advanced_records(self, ctx)
        if records and _VERBOSE & {*ctx.meta.get(_WORDS, ())}:
            with formatter.section("Advanced options"):
                formatter.write_dl(records)
        elif records:
            formatter.write_paragraph()
            options = "advanced options" if len(records) > 1 else "advanced option"
            formatter.write_text(f"To see {len(records)} {options}, add --verbose.")

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the descriptions of the arguments."""
        rows = [one.get_help_record(ctx) for one in self.params if isinstance(one, click.Argument)]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words after the command's name. Add the context to errors about options.

        An error about missing words lists all missing required arguments and options.
        """
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.BadOptionUsage as e:
            e.ctx = e.ctx or ctx
            raise
        except click.MissingParameter as e:
            given, _, _ = self.make_parser(ctx).parse_args(words)
            missing = [one for one in self.params if one.required and _is_missing(one, ctx, given)]
            raise _MissingParameters(e, missing) from e


class Group(click.Group):
    """A group of commands.

    Without a command, the group prints its help. For an unknown command, it suggests similar commands. A command's name
    may consist of two words, even if the first word is also a command: `index` and `index yank`.
    """

    command_class = Command
    context_class = HelpContext
    sections: Mapping[str, Sequence[str]] = MappingProxyType({})
    """The names of the commands under each heading of the help. If empty, there is a single heading."""
    known: Sequence[str] = ()
    """The names of all commands, including those that aren't loaded."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands and then the options."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in their sections. Each command fits on one line of an 80-column terminal."""
        shown = [name for name, command in self.commands.items() if not command.hidden]
        width = max(map(len, shown if self.sections else self.commands), default=0)
        others = [name for name in self.commands if name not in shown]
        sections = self.sections or {"Commands": shown or others, "Less common commands": others if shown else []}
        for title, names in sections.items():
            known = [name for name in names if name in shown or not self.sections]
            rows = [(name.ljust(width), self.commands[name].get_short_help_str()) for name in known]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of `load_commands`."""
        return list(self.commands)

    def get_short_help_str(self, limit: int = 0) -> str:
        """Return the first paragraph."""
        return _first_paragraph(self.help)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options of the group. Without words, print the help and exit as after a usage error."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        ctx.meta[_WORDS] = tuple(args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command with this name, which can have two words.

        Raises `InputError` if there is no such command.
        """
        if (both := " ".join(args[:2])) in self.commands:
            args = [both, *args[2:]]
        elif not ctx.resilient_parsing and isinstance(self.commands.get(args[0]), Command):
            second = [
                rest for first, _, rest in (name.partition(" ") for name in self.known) if first == args[0] and rest
            ]
            for name in get_close_matches("".join(args[1:2]), second, n=1):
                if not os.path.lexists(args[1]):
                    hint = f"Did you mean '{args[0]} {name}'?"
                    raise InputError(args[1], "is neither a command nor an existing path", remedy=hint)
        if not ctx.resilient_parsing and args[0] not in self.commands:
            similar = get_close_matches(args[0], [name for name, one in self.commands.items() if not one.hidden])
            hint = f"Did you mean {' or '.join(map(repr, similar))}?" if similar else f"See {ctx.command_path} --help."
            raise InputError(ctx.command_path, f"has no command {args[0]!r}", remedy=hint)
        return super().resolve_command(ctx, args)


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").strip().partition("\n\n")[0].split())


_SHELLS = ("bash", "zsh", "fish")
_COMPLETION = "_ROCWHEEL_COMPLETE"
"""The variable that a shell's script sets to request completions."""
_INSTALLED = {
    "bash": (".bash_completions/rocwheel.sh", ".bashrc", "source '{}'"),
    "zsh": (".zfunc/_rocwheel", ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
    "fish": (".config/fish/completions/rocwheel.fish", "", ""),
}
"""The path of the script relative to the home folder, and the line that loads the script.

The line is added to a file, except for fish.
"""


_WORDS = f"{__name__}.words"
"""The key of the command line's words in the context."""


def _complete(ctx: click.Context, parameter: click.Parameter, shell: str | None) -> None:
    """Install or print the completion script for a shell, and exit. Raises `InputError` for an unsupported shell."""
    if shell is None:
        return
    shell = shell or _shell_around()
    if shell not in _SHELLS:
        remedy = "Without a value, the option applies to the current shell."
        raise InputError(spelled(parameter), f"is {shell!r}", expected=f"one of {', '.join(_SHELLS)}", remedy=remedy)
    if behind := _words_behind(ctx.meta[_WORDS], spelled(parameter), shell):
        raise InputError(spelled(parameter), f"is followed by {behind[0]!r}", expected=f"nothing after {shell}")
    kind: Any = get_completion_class(shell)
    script = kind(app, {}, "rocwheel", _COMPLETION).source()
    if parameter.name == "show_completion":
        click.echo(script, nl=False)
        raise click.exceptions.Exit
    name, start_file, line = _INSTALLED[shell]
    path = Path.home() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script)
    line = line.format(path)
    if start_file:
        with (Path.home() / start_file).open("a+") as file:
            file.seek(0)
            if line not in file.read():
                file.write(f"\n{line}\n")
    click.echo(f"{shell} completion installed in {path}\nCompletion will take effect once you restart the terminal")
    raise click.exceptions.Exit


def _words_behind(words: Sequence[str], option: str, shell: str) -> Sequence[str]:
    """Return the words after an option and its optional shell."""
    place = next(at for at, word in enumerate(words) if word.partition("=")[0] == option)
    behind = words[place + 1 :]
    return behind[1:] if words[place] == option and behind[:1] == (shell,) else behind


def _shell_around() -> str:
    """Return the name of the nearest shell among this process's ancestors, or the shell in ``SHELL``."""
    process = os.getppid()
    while process > 1:
        try:
            stat = Path(f"/proc/{process}/stat").read_text(errors="replace")
        except OSError:  # the process ended, or belongs to another user whose processes are hidden
            break
        name, _, rest = stat.partition("(")[2].rpartition(")")
        if name in _SHELLS:
            return name
        process = int(rest.split()[1])
    return Path(os.environ.get("SHELL", "")).name


def _completion_option(name: str, text: str) -> click.Option:
    described = f"{text} bash, zsh, or fish. Without SHELL, use the current shell."
    shell: dict[str, Any] = {"metavar": "[SHELL]", "is_flag": False, "flag_value": ""}
    return click.Option([name], callback=_complete, help=described, expose_value=False, is_eager=True, **shell)


def _root(
    *,
    version: Annotated[bool, option("--version", "-V", help="Print the version.")] = False,
    verbose: Annotated[
        bool, option("--verbose", "-v", help="With --version, print information for a bug report.")
    ] = False,
    json: Annotated[bool, option("--json", help="With --version, print the version as JSON.")] = False,
) -> None:
    """Define the options that come before any command."""
    if version and verbose:
        raise click.exceptions.Exit  # `main` runs `about` instead.
    if version:
        if json:
            print_json("version", 1, {"version": rocwheel.__version__})
        else:
            click.echo(f"rocwheel {rocwheel.__version__}")
        raise click.exceptions.Exit
    if verbose or json:
        name, found = "--verbose" if verbose else "--json", "comes before the command"
        raise InputError(name, found, expected="the option after the command's name, or together with --version")
    if click.get_current_context().invoked_subcommand is None:
        place, found = "rocwheel", "the command is missing"
        raise InputError(place, found, remedy="See rocwheel --help.")


app = Group(
    "rocwheel",
    help="Turn ROCm builds into small Python packages that find their libraries and contain the code for your GPU.",
    callback=_root,
    params=[
        *read_parameters(_root),
        _completion_option("--install-completion", "Install completion for"),
        _completion_option("--show-completion", "Print the completion script for"),
    ],
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["--help", "-h"]},
)


def run_words(words: Sequence[str], inputs: object = None) -> int:
    """Run the command that the words specify, or complete the words for a shell. Return the exit status.

    If the words contain URLs, ``inputs`` are their `RemoteInputs`. Raises `click.ClickException` for invalid words.
    Also raises the command's errors.
    """
    if asked := os.environ.get(_COMPLETION):
        return shell_complete(app, {}, "rocwheel", _COMPLETION, asked)
    try:
        with app.make_context("rocwheel", [*words], obj=inputs) as context:
            app.invoke(context)
    except click.exceptions.Exit as e:
        return e.exit_code
    return 0


def usage_error(error: click.ClickException) -> InputError:
    """Return an error about the command line: the location, the words found, and the words expected."""
    context: click.Context | None = getattr(error, "ctx", None)
    place = context.command_path if context else "rocwheel"
    if isinstance(error, _MissingParameters):
        return missing_error(place, error.names)
    if isinstance(error, click.NoSuchOption) and context:
        return _unknown_option(error, place, is_group=isinstance(context.command, Group))
    if isinstance(error, click.BadOptionUsage):
        return _misused_option(error, place, context)
    if context and (extra := re.fullmatch(r"Got unexpected extra argument\S* \((.*)\)", error.message)):
        return _extra_argument(extra[1], place, context)
    found = f"{error.message[:1].lower()}{error.message[1:].rstrip('.')}"
    return InputError(place, found, remedy=f"See {place} --help.")


def _misused_option(error: click.BadOptionUsage, place: str, context: click.Context | None) -> InputError:
    if "not take" in error.message:
        return InputError(error.option_name, "takes no value")
    params = context.command.params if context else ()
    named = [one for one in params if isinstance(one, click.Option) and error.option_name in one.opts]
    expected = (
        f"{named[0].metavar}: {named[0].help.removesuffix(' (repeatable)').rstrip('.')}"
        if named and named[0].metavar and named[0].help
        else ""
    )
    return InputError(error.option_name, "has no value", expected=expected, remedy=f"See {place} --help.")


def _unknown_option(error: click.NoSuchOption, place: str, *, is_group: bool) -> InputError:
    similar = error.possibilities
    if is_group:
        remedy = f"A command's options come after its name: {place} COMMAND {error.option_name}"
    else:
        remedy = f"Did you mean {' or '.join(similar)}?" if similar else f"See {place} --help."
    return InputError(place, f"has no option {error.option_name}", remedy=remedy)


def _extra_argument(given: str, place: str, context: click.Context) -> InputError:
    names = " ".join(spelled(one) for one in context.command.params if isinstance(one, click.Argument))
    found = f"takes no arguments except {names}" if names else "takes no arguments"
    # For example, '--targets gfx906 gfx90a' and 'build artifacts'.
    remedy = f"Remove the argument, or add the option that it belongs to. Quote values with spaces. See {place} --help."
    return InputError(place, f"{found}, but got {given!r}", remedy=remedy)


_HELP_WORDS = frozenset({"--help", "-h"})


def is_help_wanted(words: Sequence[str]) -> bool:
    """Return whether a command line requests help, so that no fetch is needed."""
    return bool(_HELP_WORDS & {*words})


def check_words(words: Sequence[str], places: object) -> None:
    """Raise errors about the options and arguments of a command line, as the command itself would.

    The words are parsed, and `takes` creates their values, but the command isn't run. ``places`` are the `UrlPlaces` of
    these words.
    """
    context = app.make_context("rocwheel", [*words], obj=places)
    while isinstance(context.command, Group):
        rest = [*context._protected_args, *context.args]  # noqa: SLF001  # Click itself reads both
        if not rest:
            return
        name, command, rest = context.command.resolve_command(context, rest)
        assert command, "unknown commands were already rejected"
        context = command.make_context(name, rest, parent=context)
    if context.command is not app:
        context.command.callback.make(dict(context.params))  # type: ignore[union-attr]  # `takes` adds it
