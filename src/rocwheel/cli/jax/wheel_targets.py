"""``rocwheel jax wheel-targets``: targets for JAX's own wheel rules."""

from __future__ import annotations

from pathlib import Path

import typer

from rocwheel.cli.jax.group import jax_app
from rocwheel.cli.jax.options import SettingsOption
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption
from rocwheel.frameworks.jax.settings import read_settings
from rocwheel.frameworks.jax.wheel_rules import render_wheel_targets

__all__ = ["wheel_targets"]


@jax_app.command("wheel-targets")
def wheel_targets(
    settings: SettingsOption = Path("rocm.toml"),
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print targets for jaxlib/tools/BUILD.bazel: JAX's own wheel rules, for the settings' version of ROCm.

    Example: rocwheel jax wheel-targets --settings rocm.toml >> jaxlib/tools/BUILD.bazel
    """
    setup_logging(quiet=quiet, verbose=verbose)
    text = render_wheel_targets(read_settings(settings))
    if json:
        print_json("jax.wheel_targets", 1, {"text": text})
    else:
        typer.echo(text, nl=False)
