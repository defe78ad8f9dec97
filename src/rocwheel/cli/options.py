"""Options and arguments that several commands share, including their checks, completion, and conversion into values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from rocwheel.cli.output import setup_logging
from rocwheel.cli.parameters import option
from rocwheel.cli.progress import make_progress
from rocwheel.core.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable


_LAST_WORD = re.compile(r"(.*[;,])?(.*)", re.DOTALL)


def complete_targets(_: object, __: object, incomplete: str) -> list[str]:
    """Return the targets, families, policies, and products that complete a list, such as ``gfx906;gfx9``."""
    from rocwheel.targets.target_set import known_words, product_words

    return _ends(incomplete, [*known_words(), *product_words(), "native"])


def complete_rules(_: object, __: object, incomplete: str) -> list[str]:
    """Return the names of the audit's rules that begin with this text."""
    from rocwheel.audit.rules import ALL_RULES

    return _ends(incomplete, [rule.name for rule in ALL_RULES])


def complete_tools(_: object, __: object, incomplete: str) -> list[str]:
    """Return the tools for which rocwheel can format a run path."""
    from rocwheel.environment.link_flags import TOOLS

    return _ends(incomplete, [*TOOLS, "all"])


def _ends(incomplete: str, words: Iterable[str]) -> list[str]:
    parted = _LAST_WORD.fullmatch(incomplete)
    before, begun = (parted[1] or "", parted[2]) if parted else ("", incomplete)
    return [before + word for word in words if word.startswith(begun)]


JsonOption = Annotated[bool, option("--json", help="Print the result as a JSON document.")]
QuietOption = Annotated[bool, option("--quiet", "-q", help="Print only errors.")]
VerboseOption = Annotated[bool, option("--verbose", "-v", help="Print more details.")]


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """How a command prints its results, as a document or as text, and how much additional output it prints."""

    json: bool
    quiet: bool
    verbose: bool

    @property
    def progress(self) -> Progress:
        """The progress display for long work. If the output is a document, no progress is displayed."""
        return make_progress(quiet=self.quiet or self.json)


def read_output(json: JsonOption = False, quiet: QuietOption = False, verbose: VerboseOption = False) -> Output:
    """Return a command's kind of output, and set up the logging."""
    setup_logging(quiet=quiet, verbose=verbose)
    return Output(json=json, quiet=quiet, verbose=verbose)


class SharedOption(NamedTuple):
    """An option that several commands have. Its syntax is always the same.

    Its help is the same unless a command changes it.
    """

    metavar: str | None = None
    short: str = ""
    help: str = ""


SHARED = {
    "--artifact-dir": SharedOption("DIR", help="Read the artifacts (folders, .tar.xz or .tar.zst) in this folder."),
    "--components": SharedOption("COMPONENTS", help="Select these artifact components, such as 'lib,run'."),
    "--check": SharedOption(help="Fail if anything would change, and write nothing."),
    "--config": SharedOption(
        "FILE", help="Read settings from this pyproject.toml or recipe. Without this option, read ./pyproject.toml."
    ),
    "--dest-dir": SharedOption("DIR", "-d", "Write to this folder; it is created if needed."),
    "--dlopen": SharedOption("LIBRARY", help="Find this library, which is opened at run time (dlopen)."),
    "--force": SharedOption(help="Accept bundles that have a wrong hash, and print a warning."),
    "--jobs": SharedOption("N", "-j", "Use this many workers. 0 means one per core."),
    "--limit": SharedOption(
        "GIB", help="Decompress bundles of up to this size in GiB, and use at most this much memory for them."
    ),
    "--mismatch": SharedOption(help="Fail or warn at run time if the ROCm version is different."),
    "--output": SharedOption("FILE", "-o", "Write the result to this file."),
    "--platform-tag": SharedOption("TAG", help="Set the platform tag of all wheels."),
    "--rocm": SharedOption("VERSION", help="Write a format that this ROCm release and later releases can read."),
    "--rpath": SharedOption(help="Set RPATH, which LD_LIBRARY_PATH can't override."),
    "--scheduler": SharedOption("ADDRESS", help="Run the work on this Dask scheduler's workers."),
    "--spec": SharedOption("FILE", help="Read the wheel description (TOML) from this file."),
    "--targets": SharedOption("TARGETS", "-t", "Select these GPU targets or families."),
    "--tool": SharedOption("TOOL", help="Print the format for this tool."),
    "--version": SharedOption("VERSION", help="Set the version of the wheel."),
    "--with": SharedOption("PACKAGE", help="Also use libraries from this wheel or folder."),
}
"""All options that several commands have, keyed by name, except for the options of all commands, which are above."""


def shared(name: str, text: str = "", **more: Any) -> Any:
    """Return the shared option with this name for a command, with a separate help text if given.

    ``more`` contains other settings for `option`. They take precedence over the settings in the table.
    """
    metavar, short, described = SHARED[name]
    if name == "--targets":
        more = {"shell_complete": complete_targets, **more}
    names = [name, short] if short else [name]
    return option(*names, **{"metavar": metavar, "help": text or described, **more})


def takes(**makers: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for a command with parameters that are each created from several options.

    ``makers`` contains the functions that create the values, keyed by these parameters' names. The parameters of these
    functions are the options. These options replace the command's parameter, but required options come first.
    `read_output` creates a parameter that is an `Output`.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        outputs = {name: read_output for name, one in own.items() if one.annotation is Output}
        made_from = {**makers, **outputs}
        groups = {name: inspect.signature(make, eval_str=True).parameters for name, make in made_from.items()}
        options = [option for name in own for option in groups.get(name, {name: own[name]}).values()]

        def make_all(given: dict[str, Any]) -> dict[str, Any]:
            return {name: make(**{key: given.pop(key) for key in groups[name]}) for name, make in made_from.items()}

        def run(**given: Any) -> None:
            made = make_all(given)
            command(**made, **given)

        run.make = make_all  # type: ignore[attr-defined]  # for code that checks options without running the command
        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        options.sort(key=lambda option: option.default is not option.empty)
        keywords = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
        run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
        return run

    return decorate


SchedulerOption = Annotated[str | None, shared("--scheduler")]

TransfersOption = Annotated[int, shared("--jobs", "Fetch this many files at a time. 0 means one per core.", min=0)]
FetchNothingOption = Annotated[bool, option("--dry-run", help="Print what would be fetched, and write nothing.")]
