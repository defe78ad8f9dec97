"""The arguments and options that the commands about GPU targets share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.parsing.command import Command
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.given_places import folder_place
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.reading import read_regular
from rocwheel.core.workers import raise_all
from rocwheel.targets.machine import System, native_targets
from rocwheel.targets.spelling.gentoo import parse_desc
from rocwheel.targets.spelling.target_set import TargetSet, parse_target_set, strip_setting

__all__ = ["Machine", "TargetCommand", "Words", "expand_folders", "read_machine", "read_targets"]

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGETS",
        autocompletion=complete_targets,
        help="Target ids, products (MI300X, 'RX 7900 XTX'), generic processors, families, "
        "official@VERSION (by Gentoo's lists), amd@VERSION (by AMD's), "
        "supported@VERSION, extended@VERSION, "
        "list@PACKAGER, desc@FILE (amdgpu_targets.desc), "
        "all, native; in any spelling, also as --offload-arch=... or -DGPU_TARGETS=...",
    ),
]


_DESC = "desc@"


class TargetCommand(Command):
    """A command that takes targets as they are pasted from a build, where they look like options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, taking ``-DGPU_TARGETS=gfx906`` for ``gfx906``."""
        return super().parse_args(ctx, [strip_setting(argument) for argument in args])


def read_targets(words: list[str], *, source: str = "TARGETS", required: bool = True) -> TargetSet:
    """Parse the words of a command line; ``native`` asks this machine, and ``desc@FILE`` is read.

    Raises `InputError` for such a file that can't be read, and what `parse_target_set` raises.
    """
    expanded = [name for word in words for name in _described(word)]
    return parse_target_set(expanded, source=source, native=native_targets, required=required)


def _described(word: str) -> list[str]:
    """Return the targets that a file of Gentoo's describes, for ``desc@FILE``; any other word as it is."""
    path = Path(word.removeprefix(_DESC))
    if not word.startswith(_DESC):
        return [word]
    try:
        return list(parse_desc(read_regular(path).decode("utf-8", "replace"), str(path)))
    except OSError as e:
        raise read_error(path, e) from e


def expand_folders(paths: list[Path], pattern: str) -> list[Path]:
    """Return the files themselves, and of folders those below that match.

    Raises `InputError` for a pipe or device, or `ProblemsError` for several.
    """
    others = [path for path in paths if not (path.is_file() or path.is_dir())]
    expected = "a file or a folder"
    raise_all("paths", [InputError(path, "is not a regular file", expected=expected) for path in others])
    found = [[path] if path.is_file() else sorted(path.rglob(pattern)) for path in paths]
    return [path for group in found for path in group if path.is_file()]


class Machine(msgspec.Struct, frozen=True):
    """A machine that a command looks at, and how its answer is printed."""

    system: System
    require_gpu: bool
    json: bool
    quiet: bool
    verbose: bool


def read_machine(
    root: Annotated[
        Path,
        typer.Option(
            "--root",
            metavar="DIR",
            callback=folder_place,
            help="Look at /sys and /dev of another machine, copied to this folder.",
        ),
    ] = Path("/"),
    require_gpu: Annotated[bool, typer.Option("--require-gpu", help="Exit with 1 when there is no GPU.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> Machine:
    """Return the machine that the options name, and set up the logging."""
    setup_logging(quiet=quiet, verbose=verbose)
    return Machine(System(root), require_gpu, as_json, quiet, verbose)
