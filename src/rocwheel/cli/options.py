"""Options and arguments that several commands take: checked, completed, and read into values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

import typer

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable


_METAVARS = frozenset({"DIR", "DIST_DIR", "FILE", "FOLDER", "PATH", "PLACE", "PREFIX", "STORE", "URL"})
"""What parameters are called that take places as texts; those of the type `Path` are known by that."""
_FEW_SLASHES = re.compile(r"(s3|https?|file):(?!//)(/?)", re.IGNORECASE)


_LIBRARY = "LIBRARY"


class FolderToMake(PosixPath):
    """A path as it was given with a slash at its end, which paths don't keep."""


def check_place_words(parameter: Any, value: Any) -> None:
    """Raise `InputError` for an empty word where ``parameter`` takes a place or library, and for a URL without slashes.

    So it does for a slash at the end of what has to be a file, as paths don't keep it.

    An empty word is mostly an unset variable of the shell, and as a path it would be the current folder.
    """
    is_library = parameter.metavar == _LIBRARY
    if not (is_library or _is_place(parameter)) or value == parameter.default:
        return
    for word in value if isinstance(value, list | tuple) else (value,):
        if parameter.metavar == "FILE" and isinstance(word, str) and word.endswith("/"):
            raise InputError(word, "names a folder", expected="a file", remedy=f"Change {_name(parameter)}.")
        if word == "":
            expected = "the name of a library, such as librccl.so.1" if is_library else "a file, folder or URL"
            remedy = "Is a variable unset?" if is_library else "Is a variable unset? The current folder is '.'."
            raise InputError(_name(parameter), "is empty", expected=expected, remedy=remedy)
        if isinstance(word, str) and (begin := _FEW_SLASHES.match(word)):
            remedy = f"For a path that begins so, write ./{begin[0]}..."
            found = "has one slash" if begin[2] else "has no slashes behind its scheme"
            raise InputError(word, found, expected=f"{begin[1]}:// for a URL", remedy=remedy)


def _is_place(parameter: Any) -> bool:
    kind = parameter.type_descriptor.annotation
    return Path in (kind, *get_args(kind)) or parameter.metavar in _METAVARS


def _name(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    return str(max(parameter.opts, key=len) if is_option else parameter.metavar or parameter.name.upper())


_LAST_WORD = re.compile(r"(.*[;,])?(.*)", re.DOTALL)


def complete_targets(incomplete: str) -> list[str]:
    """Return the targets, families, policies and products that end a list, such as ``gfx906;gfx9`` or ``gfx90a,MI``."""
    words = import_module("rocwheel.targets.target_set")
    return _ends(incomplete, [*words.known_words(), *words.product_words(), "native"])


def complete_rules(incomplete: str) -> list[str]:
    """Return the names of the audit's rules that begin like this."""
    return _ends(incomplete, [rule.name for rule in import_module("rocwheel.audit.rules").ALL_RULES])


def complete_tools(incomplete: str) -> list[str]:
    """Return the tools that a run path is spelled for."""
    return _ends(incomplete, [*import_module("rocwheel.environment.link_flags").TOOLS, "all"])


def complete_commands(context: typer.Context, incomplete: str) -> list[str]:
    """Return the commands that begin like this, in the groups whose names stand before it."""
    known: object = context.find_root().command
    for word in context.params.get("words") or ():
        known = getattr(known, "commands", {}).get(word)
    commands = getattr(known, "commands", {})
    return [name for name, command in commands.items() if name.startswith(incomplete) and not command.hidden]


def _ends(incomplete: str, words: Iterable[str]) -> list[str]:
    parted = _LAST_WORD.fullmatch(incomplete)
    before, begun = (parted[1] or "", parted[2]) if parted else ("", incomplete)
    return [before + word for word in words if word.startswith(begun)]


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
