"""Options that several commands take, read in one place into a value that each of them gets."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "SHARED",
    "FetchNothingOption",
    "JsonOption",
    "QuietOption",
    "SchedulerOption",
    "TransfersOption",
    "VerboseOption",
    "shared",
    "takes",
]

JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON (versioned, documented).")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no messages except errors.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Print more about what is done and why.")]


class SharedOption(NamedTuple):
    """An option that several commands take: spelled alike and, unless a command says more, described alike."""

    metavar: str | None = None
    short: str = ""
    help: str = ""


SHARED = {
    "--artifact-dir": SharedOption("DIR", help="Read the artifacts (folders, .tar.xz or .tar.zst) in this folder."),
    "--check": SharedOption(help="Write nothing; fail if anything would change."),
    "--config": SharedOption(
        "FILE", help="Read settings from this pyproject.toml or recipe; default: ./pyproject.toml."
    ),
    "--dest-dir": SharedOption("DIR", "-d", "Write to this folder; it is created if needed."),
    "--dlopen": SharedOption("LIBRARY", help="Also find this library, which is opened at run time (dlopen)."),
    "--force": SharedOption(help="Accept bundles whose hash is wrong, with a warning."),
    "--jobs": SharedOption("N", "-j", "Use this many workers; 0 is one for each core."),
    "--limit": SharedOption("GIB", help="Decompress bundles of at most this size, and hold no more at a time, in GiB."),
    "--mismatch": SharedOption(help="Fail or warn at run time when ROCm has another version."),
    "--output": SharedOption("FILE", "-o", "Write the result to this file."),
    "--platform-tag": SharedOption("TAG", help="Give all wheels this platform tag."),
    "--rocm": SharedOption("VERSION", help="Write what the runtime of this ROCm release and later ones read."),
    "--rpath": SharedOption(help="Set the old RPATH, which LD_LIBRARY_PATH can't override."),
    "--scheduler": SharedOption("ADDRESS", help="Have the workers of this Dask scheduler do the work (docs/scale.md)."),
    "--spec": SharedOption("FILE", help="Read the wheel's description (TOML) from this file."),
    "--spell": SharedOption("TOOL", help="Print what to write for this tool."),
    "--target": SharedOption("TARGETS", "-t", "Take only the code for these targets, in any spelling."),
    "--version": SharedOption("VERSION", help="Set the wheel's version."),
    "--with": SharedOption("PACKAGE", help="Take libraries from this wheel or folder, too."),
}
"""Every option of several commands, by name, but for those of all commands, which stand above."""


def shared(name: str, text: str = "", **more: Any) -> Any:
    """Return the shared option of that name for a command, with a help text of its own if given.

    ``more`` are other settings of Typer's, which come before those of the table.
    """
    option = SHARED[name]
    names = [name, option.short] if option.short else [name]
    return typer.Option(*names, **{"metavar": option.metavar, "help": text or option.help, **more})


def takes(**makers: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for a command some of whose parameters are each made from several options.

    ``makers`` has, by the name of such a parameter, the function that makes its value. The parameters of that function
    are the options. They stand in the place of the command's parameter, but required ones come first.
    """
    groups = {name: inspect.signature(make, eval_str=True).parameters for name, make in makers.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        options = [option for name in own for option in groups.get(name, {name: own[name]}).values()]

        def make_all(given: dict[str, Any]) -> dict[str, Any]:
            return {name: make(**{key: given.pop(key) for key in groups[name]}) for name, make in makers.items()}

        def run(**given: Any) -> None:
            made = make_all(given)
            command(**made, **given)

        run.make = make_all  # type: ignore[attr-defined]  # for whoever checks options without running the command
        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        # Typer reads a function's signature.
        options.sort(key=lambda option: option.default is not option.empty)
        keywords = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
        run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
        return run

    return decorate


SchedulerOption = Annotated[str | None, shared("--scheduler")]

TransfersOption = Annotated[int, shared("--jobs", "Fetch this many files at a time; 0 is one for each core.", min=0)]
FetchNothingOption = Annotated[
    bool, typer.Option("--dry-run", show_default=False, help="List what would be fetched, and fetch nothing.")
]
