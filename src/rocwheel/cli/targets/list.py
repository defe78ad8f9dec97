"""``rocwheel targets list``: the catalogue."""

from __future__ import annotations

from enum import Enum
from importlib import import_module
from typing import Annotated

import typer

from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.text import print_text
from rocwheel.cli.output.width import output_width
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, takes
from rocwheel.cli.targets.group import targets_app
from rocwheel.cli.targets.options import TargetCommand, read_targets
from rocwheel.targets.listing import TargetRow, filter_rows, list_targets

__all__ = ["Feature", "Kind", "list_command"]


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


def _read_rows(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="TARGETS", autocompletion=complete_targets, help="List only these.")
    ] = None,
    family: Annotated[
        str,
        typer.Option(
            "--family", metavar="FAMILY", autocompletion=complete_targets, help="List only the targets of this family."
        ),
    ] = "",
    kind: Annotated[Kind | None, typer.Option(help="List only those of this kind.")] = None,
    official: Annotated[
        str, typer.Option(metavar="VERSION", help="List only those official for this ROCm version, by Gentoo's lists.")
    ] = "",
    feature: Annotated[Feature | None, typer.Option(help="List only those that have this feature.")] = None,
    product: Annotated[
        str, typer.Option("--product", metavar="TEXT", help="List only those with this in the name of a product.")
    ] = "",
) -> list[TargetRow]:
    chosen = read_targets(words or [], required=False) if words else None
    return filter_rows(
        list_targets(),
        chosen=chosen,
        family=family,
        kind=kind.value if kind else "",
        official=official,
        feature=feature.value if feature else "",
        product=product,
    )


@targets_app.command("list", cls=TargetCommand)
@takes(rows=_read_rows)
def list_command(
    rows: list[TargetRow], *, as_json: JsonOption = False, quiet: QuietOption = False, verbose: VerboseOption = False
) -> None:
    """Print a table of GPU targets.

    Example: rocwheel targets list --official 7.1 --kind desktop
    """
    setup_logging(quiet=quiet, verbose=verbose)
    if not rows and not quiet:
        report_warning("no target is all that was asked for; without options, `rocwheel targets list` prints every one")
    if as_json:
        print_json("targets", 1, {"targets": rows})
    elif rows:
        _print(_lines_of_cells(rows, verbose=verbose))


def _print(lines: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    width = output_width()
    if width is None or max(map(len, text.splitlines())) <= width:
        print_text(text)
        return
    # Only now, as most terminals are wide enough.
    rich, tables = import_module("rich.table"), import_module("rocwheel.cli.output.tables")
    table = rich.Table(*lines[0], box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for line in lines[1:]:
        table.add_row(*line)
    tables.print_table(table)


def _lines_of_cells(rows: list[TargetRow], *, verbose: bool) -> list[list[str]]:
    heads = ["target", "kind", "features", "generic", "official ROCm", "products"]
    heads += ["mach", "LLVM", "families", "packagers", "sources"] if verbose else []
    lines = [heads]
    for row in rows:
        cells = [row.name, row.kind, " ".join(row.features), " ".join(row.generics or row.members), row.official]
        more = [f"0x{row.mach:02x}", f"{row.llvm[0]}-{row.llvm[1]}"]
        more += [" ".join(words) for words in (row.families, row.packagers, row.sources)]
        lines.append([*cells, ", ".join(row.products), *(more if verbose else [])])
    return lines
