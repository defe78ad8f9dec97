"""``rocwheel targets list``, ``expand`` and ``flags``: the catalogue, sets of targets, settings of tools."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from rocwheel.cli._app import app
from rocwheel.cli.output import JsonOption, QuietOption, VerboseOption, print_json, setup_logging
from rocwheel.foundation.errors import InputError
from rocwheel.targets.listing import TargetRow, filter_rows, list_targets
from rocwheel.targets.machine import native_targets
from rocwheel.targets.spelling.shorten import fold_to_families, fold_to_generics
from rocwheel.targets.spelling.target_set import TargetSet, parse_target_set, strip_setting
from rocwheel.targets.spelling.tool_settings import Tool, flags_for

__all__ = ["TargetCommand", "Words", "print_target_set", "read_targets", "targets_app"]

targets_app = typer.Typer(
    name="targets",
    help="GPU targets: which exist, how each tool spells them, which code runs on which.",
    no_args_is_help=True,
)
app.add_typer(targets_app)

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGETS...",
        help="Target ids, generic processors, families, official@VERSION (by Gentoo's lists), amd@VERSION (by AMD's), "
        "supported@VERSION, extended@VERSION, "
        "list@PACKAGER, all, native; in any spelling, also as --offload-arch=... or -DGPU_TARGETS=...",
    ),
]


class TargetCommand(TyperCommand):
    """A command that takes targets as they are pasted from a build, where they look like options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, taking ``-DGPU_TARGETS=gfx906`` for ``gfx906``."""
        return super().parse_args(ctx, [strip_setting(argument) for argument in args])


class Kind(str, Enum):
    """What GPUs are made for."""

    DATA_CENTRE = "data-centre"
    DESKTOP = "desktop"
    INTEGRATED = "integrated"
    GENERIC = "generic"


class Feature(str, Enum):
    """What a target id may set."""

    SRAMECC = "sramecc"
    XNACK = "xnack"


class Form(str, Enum):
    """What `expand` turns targets into."""

    TARGETS = "targets"
    FAMILIES = "families"
    GENERICS = "generics"


@targets_app.callback()
def targets() -> None:
    """Hold the commands about GPU targets."""


def read_targets(words: list[str], *, source: str = "TARGETS", required: bool = True) -> TargetSet:
    """Parse the words of a command line; ``native`` asks this machine."""
    return parse_target_set(words, source=source, native=native_targets, required=required)


def print_target_set(form: str, words: Sequence[str], *, as_json: bool) -> None:
    """Print the words of a set, one a line."""
    if as_json:
        print_json("target-set", 1, {"form": form, "targets": words})
    for word in [] if as_json else words:
        typer.echo(word)


@targets_app.command("list", cls=TargetCommand)
def list_command(
    words: Annotated[list[str] | None, typer.Argument(metavar="[TARGETS]...", help="List only these.")] = None,
    *,
    family: Annotated[str, typer.Option(help="List only the targets of this family.")] = "",
    kind: Annotated[Kind | None, typer.Option(help="List only those of this kind.")] = None,
    official: Annotated[
        str, typer.Option(metavar="VERSION", help="List only those official for this ROCm version, by Gentoo's lists.")
    ] = "",
    feature: Annotated[Feature | None, typer.Option(help="List only those that have this feature.")] = None,
    product: Annotated[str, typer.Option(help="List only those with this in the name of a product.")] = "",
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print a table of GPU targets.

    Example: rocwheel targets list --official 7.1 --kind desktop
    """
    setup_logging(quiet=quiet, verbose=verbose)
    chosen = read_targets(words or [], required=False) if words else None
    rows = filter_rows(
        list_targets(),
        chosen=chosen,
        family=family,
        kind=kind.value if kind else "",
        official=official,
        feature=feature.value if feature else "",
        product=product,
    )
    if as_json:
        print_json("targets", 1, {"targets": rows})
    else:
        typer.echo(_table(rows, verbose=verbose))


def _table(rows: list[TargetRow], *, verbose: bool) -> str:
    heads = ["target", "kind", "features", "generic", "official ROCm", "products"]
    heads += ["mach", "LLVM", "families", "packagers", "sources"] if verbose else []
    lines = [heads]
    for row in rows:
        cells = [row.name, row.kind, " ".join(row.features), " ".join(row.generics or row.members), row.official]
        more = [f"0x{row.mach:02x}", f"{row.llvm[0]}-{row.llvm[1]}"]
        more += [" ".join(words) for words in (row.families, row.packagers, row.sources)]
        lines.append([*cells, ", ".join(row.products), *(more if verbose else [])])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


@targets_app.command(cls=TargetCommand)
def expand(
    words: Words,
    to: Annotated[
        Form, typer.Option(help="Print single targets, the families that hold exactly these, or generic processors.")
    ] = Form.TARGETS,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print the single targets that words stand for, one a line; with --to, families or generic processors for them.

    Example: rocwheel targets expand gfx94X-dcgpu official@6.4 --to generics
    """
    setup_logging(quiet=quiet, verbose=verbose)
    targets = read_targets(words)
    if to is Form.FAMILIES:
        lines = fold_to_families(targets)
    else:
        lines = (fold_to_generics(targets) if to is Form.GENERICS else targets).words
    print_target_set(to.value, lines, as_json=as_json)


@targets_app.command(cls=TargetCommand)
def flags(
    words: Words,
    tool: Annotated[Tool, typer.Option("--for", help="Print the settings for this tool.")],
    optional: Annotated[
        list[str] | None,
        typer.Option("--optional", help="With --for gentoo: give these targets a flag that is off by default."),
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print a tool's settings for the targets, ready to paste.

    Example: rocwheel targets flags --for cmake gfx90a gfx1100
    """
    setup_logging(quiet=quiet, verbose=verbose)
    targets = read_targets(words)
    others = read_targets(optional or [], required=False)
    if optional and tool is not Tool.GENTOO:
        source, found = "--optional", f"{tool.value} has no optional targets"
        raise InputError(source, found, expected="--for gentoo")
    text = flags_for(tool, targets, others)
    if as_json:
        print_json("target-flags", 1, {"for": tool.value, "targets": targets.words, "text": text})
    else:
        typer.echo(text, nl=False)
