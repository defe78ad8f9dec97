"""The arguments and options that the commands about GPU targets share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rocwheel.cli.parsing.command import Command
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.given_places import folder_place
from rocwheel.foundation.collecting import raise_all
from rocwheel.foundation.errors import InputError
from rocwheel.targets.machine import native_targets
from rocwheel.targets.spelling.target_set import TargetSet, parse_target_set, strip_setting

__all__ = ["RequireGpu", "RootOption", "TargetCommand", "Words", "expand_folders", "read_targets"]

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGETS",
        autocompletion=complete_targets,
        help="Target ids, products (MI300X, 'RX 7900 XTX'), generic processors, families, "
        "official@VERSION (by Gentoo's lists), amd@VERSION (by AMD's), "
        "supported@VERSION, extended@VERSION, "
        "list@PACKAGER, all, native; in any spelling, also as --offload-arch=... or -DGPU_TARGETS=...",
    ),
]


class TargetCommand(Command):
    """A command that takes targets as they are pasted from a build, where they look like options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, taking ``-DGPU_TARGETS=gfx906`` for ``gfx906``."""
        return super().parse_args(ctx, [strip_setting(argument) for argument in args])


def read_targets(words: list[str], *, source: str = "TARGETS", required: bool = True) -> TargetSet:
    """Parse the words of a command line; ``native`` asks this machine."""
    return parse_target_set(words, source=source, native=native_targets, required=required)


def expand_folders(paths: list[Path], pattern: str) -> list[Path]:
    """Return the files themselves, and of folders those below that match.

    Raises `InputError` for a pipe or device, or `ProblemsError` for several.
    """
    others = [path for path in paths if not (path.is_file() or path.is_dir())]
    expected = "a file or a folder"
    raise_all("paths", [InputError(path, "is not a regular file", expected=expected) for path in others])
    found = [[path] if path.is_file() else sorted(path.rglob(pattern)) for path in paths]
    return [path for group in found for path in group if path.is_file()]


RequireGpu = Annotated[bool, typer.Option("--require-gpu", help="Exit with 1 when there is no GPU.")]
RootOption = Annotated[
    Path,
    typer.Option(
        "--root",
        metavar="DIR",
        callback=folder_place,
        help="Look at /sys and /dev of another machine, copied to this folder.",
    ),
]
