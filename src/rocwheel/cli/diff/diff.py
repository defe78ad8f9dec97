"""``rocwheel diff``: what differs between two wheels, builds, trees or environments."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from rocwheel.cli.diff.text import print_comparison
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.errors import report_warning
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.progress import make_progress
from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.core.workers import convert_all, raise_all
from rocwheel.diff.breaking import Severity, find_breaks, idle_patterns
from rocwheel.diff.changes import Status
from rocwheel.diff.compare import compare_sides
from rocwheel.diff.pairs import without_unread
from rocwheel.diff.sides import open_side

if TYPE_CHECKING:
    from rocwheel.core.errors import RocwheelError
    from rocwheel.diff.breaking import Finding
    from rocwheel.diff.changes import Comparison

__all__ = ["diff"]

_UNUSABLE = "Inputs that can't be compared"
_UNREAD = "Files that can't be read"


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="A wheel, sdist, build, artifacts, environment or tree.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The same, of the newer version.")],
    *,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="PATTERN", help="Leave out these rules (patterns).")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Print every difference, not the greatest alone.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print what differs between two wheels, builds, trees or environments, and what of it breaks their users.

    Exit status 1 when something went that users rely on, such as a symbol, a library, a GPU, a command or an extra; 2
    when some file can't be read, after all others.

    Example: rocwheel diff old/dist/ new/dist/
    """
    setup_logging(quiet=quiet, verbose=verbose)
    patterns = tuple(ignore or ())
    if idle := idle_patterns(patterns):
        message = f"--ignore {idle[0]} is the name of no rule (docs/diff.md lists them)."
        raise typer.BadParameter(message)
    unread: list[RocwheelError] = []
    with ExitStack() as stack:
        sides = convert_all(_UNUSABLE, lambda path: stack.enter_context(open_side(path, unread=unread)), (old, new))
        before, after = without_unread(sides, unread)
        comparison = compare_sides(before, after, unread=unread, progress=make_progress(quiet=quiet))
    findings = find_breaks(comparison, patterns)
    if comparison.as_files and not quiet and before.has_distributions != after.has_distributions:
        report_warning("files alone are compared: one side is no package")
    if as_json:
        print_json("diff", 1, _document(comparison, findings))
    else:
        print_comparison(comparison, findings, every=every or verbose, quiet=quiet)
    raise_all(_UNREAD, unread)
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise typer.Exit(1)


def _document(comparison: Comparison, findings: tuple[Finding, ...]) -> dict[str, object]:
    differing = [package for package in comparison.packages if package.status is not Status.SAME]
    shown = msgspec.structs.replace(comparison, packages=tuple(differing))
    return {**msgspec.to_builtins(shown), "findings": msgspec.to_builtins(findings)}
