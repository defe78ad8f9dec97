"""Errors and warnings, for people and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.documents import is_document_printed, print_json
from rocwheel.cli.output.printable import in_one_line
from rocwheel.core.errors import RocwheelError, each_problem

__all__ = ["report_document", "report_error", "report_warning"]


def report_error(error: RocwheelError) -> None:
    """Print an error for people, to standard error."""
    first, *others = error.lines
    _print_marked("[bold red]error:[/]", first)
    for line in others:
        messages.print(line, markup=False)


def report_document(error: RocwheelError) -> None:
    """Print the error that ends a command as a document, unless the command has printed one."""
    if not is_document_printed():
        print_json("errors", 1, {"exit_status": error.exit_status, "errors": list(_error_facts(error))})


def _error_facts(error: RocwheelError) -> Iterator[dict[str, str]]:
    """Yield the facts of an error, or of each problem that it holds."""
    for problem in each_problem([error]):
        facts = {name: str(getattr(problem, name, "")) for name in ("source", "found", "expected", "remedy")}
        yield {**facts, "text": str(problem)}


def report_warning(text: str) -> None:
    """Print a warning for people in one line, to standard error."""
    _print_marked("[bold yellow]warning:[/]", text)


def _print_marked(mark: str, text: str) -> None:
    # Only now, as most runs have nothing to say.
    messages.print(f"{mark} {import_module('rich.markup').escape(in_one_line(text))}")
