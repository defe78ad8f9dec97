"""``rocwheel jax commands``: the command lines of a Bazel build."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli.jax.group import jax_app
from rocwheel.cli.jax.options import SettingsOption
from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.logs import setup_logging
from rocwheel.cli.parsing.shared_options import JsonOption, QuietOption, VerboseOption, shared
from rocwheel.frameworks.jax.commands import BuildOptions, render_makefile, spell_commands, wheel_commands
from rocwheel.frameworks.jax.settings import SettingsError, read_settings
from rocwheel.frameworks.jax.starlark import wheel_rule_commands

__all__ = ["CommandFormChoice", "commands"]


class CommandFormChoice(str, Enum):
    """What the commands are for."""

    SHELL = "shell"
    MAKEFILE = "makefile"
    CI = "ci"


@jax_app.command()
def commands(
    version: Annotated[str, shared("--version", "Set the wheels' version, that of JAX.")],
    settings: SettingsOption = Path("rocm.toml"),
    form: Annotated[
        CommandFormChoice, typer.Option("--form", help="Print a shell script, a Makefile, or workflow steps.")
    ] = CommandFormChoice.SHELL,
    sdk: Annotated[
        str, shared("--with", metavar="DIR", help="Verify the wheels with the SDK's packages in this folder.")
    ] = "",
    dest_dir: Annotated[
        str, shared("--dest-dir", "Write the wheels to this folder; it is created if needed.")
    ] = "dist",
    remote: Annotated[
        bool, typer.Option("--remote", help="Build by remote execution, with the file that the settings name.")
    ] = False,
    jax_rules: Annotated[
        bool, typer.Option("--jax-rules", help="Build the wheels by JAX's own rules, jax_wheel and wheel_sources.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print the commands that build both wheels, for each Python: plain Bazel, and the assembly.

    The Makefile has a target for each wheel (jax-rocm-pjrt, jax-rocm-plugin, wheels), and variables to override.

    Example: rocwheel jax commands --settings rocm.toml --version 0.12.0 --form makefile
    """
    setup_logging(quiet=quiet, verbose=verbose)
    given = read_settings(settings)
    if remote and not given.remote_execution:
        raise SettingsError(settings, "has no remote-execution", expected="a file that defines the config rocm_rbe")
    config = "rocm_build_remote" if remote else "rocm_build"
    options = BuildOptions(version, sdk=sdk, dest_dir=dest_dir, config=config)
    commands_for = wheel_rule_commands if jax_rules else wheel_commands
    if form is CommandFormChoice.MAKEFILE:
        text = render_makefile(given, options, commands_for)
    else:
        text = spell_commands(commands_for(given, options), form.value)
    if json:
        print_json("jax.commands", 1, {"form": form.value, "text": text})
    else:
        typer.echo(text, nl=False)
