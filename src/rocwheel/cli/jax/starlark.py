"""``rocwheel jax starlark``: the rules of a Bazel build."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.jax.group import jax_app
from rocwheel.cli.jax.options import CheckOption, ForceOption
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.output.printable import in_one_line
from rocwheel.cli.output.text import print_text
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.frameworks.jax.starlark import starlark_package

__all__ = ["starlark"]


@jax_app.command()
def starlark(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Write the files to this folder of the workspace; it becomes a package."),
    ],
    bzlmod: Annotated[bool, typer.Option("--bzlmod", help="Write them for MODULE.bazel instead of WORKSPACE.")] = False,
    jax_rules: Annotated[
        bool, typer.Option("--jax-rules", help="Write the program for JAX's own rules, too: jax_wheel_binary.")
    ] = False,
    force: ForceOption = False,
    check: CheckOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write the Starlark rules for libraries and wheels of ROCm, and print the lines that declare them.

    Example: rocwheel jax starlark rocm_wheel >> WORKSPACE
    """
    setup_logging(quiet=quiet, verbose=verbose)
    package = starlark_package(folder, "bzlmod" if bzlmod else "workspace", jax_rules=jax_rules)
    diff = package.diff(folder) if check else package.write(folder, force=force)
    if not quiet:
        print_text(diff.removesuffix("\n") or in_one_line(f"{folder}: nothing changed"), err=True)
    if json:
        print_json("jax.starlark", 1, {"files": list(package.files), "declaration": package.declaration, "diff": diff})
    else:
        typer.echo(package.declaration, nl=False)
    if check and diff:
        raise typer.Exit(1)
