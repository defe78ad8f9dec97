"""``rocwheel jax bazelrc``: the configs of a Bazel build."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.jax.group import jax_app
from rocwheel.cli.jax.options import CheckOption, ForceOption, SettingsOption
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.core.writing import check_other
from rocwheel.frameworks.jax.bazelrc import GeneratedFile, render_bazelrc
from rocwheel.frameworks.jax.settings import read_settings
from rocwheel.targets.machine import native_targets
from rocwheel.targets.spelling.target_set import parse_target_set

__all__ = ["bazelrc"]


@jax_app.command()
def bazelrc(
    settings: SettingsOption = Path("rocm.toml"),
    output: Annotated[
        Path | None,
        shared("--output", "Write the fragment to this file.", show_default="standard output"),
    ] = None,
    force: ForceOption = False,
    check: CheckOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write a .bazelrc fragment with the configs rocm_build, python3XX, avx_posix and native_arch_posix.

    With --output, the changes are printed as a diff. A file that was edited by hand stays as it is.

    Example: rocwheel jax bazelrc --settings rocm.toml --output rocm.bazelrc
    """
    setup_logging(quiet=quiet, verbose=verbose)
    if output:
        check_other(output, settings, "the file with the settings")
    given = read_settings(settings)
    targets = parse_target_set(given.targets, source=f"{settings}: targets", native=native_targets)
    fragment = GeneratedFile(f"Made by rocwheel jax bazelrc from {settings.name};", render_bazelrc(given, targets))
    if check and output is None:
        message = "--check compares with a file: name it with --output"
        raise typer.BadParameter(message)
    diff = (fragment.diff(output) if check else fragment.write(output, force=force)) if output else ""
    if json:
        print_json("jax.bazelrc", 1, {"text": fragment.text, "diff": diff})
    else:
        typer.echo(diff if output else fragment.text, nl=False)
    if check and diff:
        raise typer.Exit(1)
