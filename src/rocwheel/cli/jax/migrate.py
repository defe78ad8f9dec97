"""``rocwheel jax migrate``: a checkout moved from build.py and patchelf."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.jax.group import jax_app
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.printable import printable
from rocwheel.cli.output.text import print_line
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.frameworks.jax.migrate import LAST_PHASE, Migration, apply_changes, plan_migration

__all__ = ["migrate"]

_CheckoutArgument = Annotated[
    Path, typer.Argument(metavar="CHECKOUT", help="Read this git checkout, a clean one of rocm-jax's kind.")
]
_PhaseOption = Annotated[
    int,
    typer.Option(
        "--phase", min=1, max=LAST_PHASE, help="Go up to this phase: 1 prepare, 2 switch, 3 deprecate, 4 remove."
    ),
]
_JaxOption = Annotated[
    Path | None,
    typer.Option(
        "--jax",
        metavar="DIR",
        help="Take the source of @jax from this clone, or from external/jax below Bazel's output base.",
    ),
]
_ApplyOption = Annotated[bool, typer.Option("--apply", help="Change the files instead of printing the patch.")]


@jax_app.command()
def migrate(
    checkout: _CheckoutArgument,
    phase: _PhaseOption = LAST_PHASE,
    jax: _JaxOption = None,
    apply: _ApplyOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print one patch that takes build.py and patchelf out of a checkout, with the reason for each hunk.

    Example: rocwheel jax migrate rocm-jax --jax ../jax > migrate.patch
    """
    setup_logging(quiet=quiet, verbose=verbose)
    made = plan_migration(checkout, phase=phase, jax=jax)  # type: ignore[arg-type]  # Typer knows no literal integers
    if apply:
        apply_changes(made.root, made.changes)
    if json:
        edits = [{"path": edit.path, "phase": edit.phase, "reason": edit.reason} for edit in made.edits]
        patch = made.patch.decode(errors="backslashreplace")
        print_json("jax.migrate", 1, {"applied": apply, "edits": edits, "questions": made.questions, "patch": patch})
    elif apply:
        for edit in made.edits:
            print_line(f"phase {edit.phase}: {edit.path}: {edit.reason}")
    else:
        _print_patch(made)
    if not quiet:
        _tell(made)


def _print_patch(made: Migration) -> None:
    if sys.stdout.isatty():
        typer.echo(printable(made.patch.decode(errors="backslashreplace")), nl=False)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(made.patch)


def _tell(made: Migration) -> None:
    """Tell on standard error what the patch doesn't say."""
    if not made.changes:
        print_line(f"{made.root}: nothing to change", err=True)
    for question in made.questions:
        print_line(f"asks: {question.path}:{question.line}: {question.text}", err=True)
