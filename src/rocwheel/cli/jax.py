"""``rocwheel jax``: what a Bazel build of JAX for ROCm needs: settings, Starlark, commands."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli._app import app
from rocwheel.cli.output import JsonOption, QuietOption, VerboseOption, messages, print_json, setup_logging
from rocwheel.frameworks.jax.bazelrc import render_bazelrc
from rocwheel.frameworks.jax.commands import BuildOptions, spell_commands, wheel_commands
from rocwheel.frameworks.jax.generated_file import GeneratedFile
from rocwheel.frameworks.jax.settings import SettingsError, read_settings
from rocwheel.frameworks.jax.starlark_files import starlark_package
from rocwheel.frameworks.jax_migration.notes import Note
from rocwheel.frameworks.jax_migration.translate import Translation, translate
from rocwheel.targets.machine import native_targets
from rocwheel.targets.spelling.target_set import parse_target_set

__all__ = ["bazelrc", "commands", "jax_app", "starlark", "translate_command"]

jax_app = typer.Typer(name="jax", help="JAX for ROCm: Bazel settings, build commands, wheels.", no_args_is_help=True)
app.add_typer(jax_app)

SettingsOption = Annotated[
    Path,
    typer.Option(
        "--settings", "-s", metavar="FILE", help="Read the build's settings (TOML) from FILE.", show_default=True
    ),
]
CheckOption = Annotated[bool, typer.Option("--check", help="Write nothing; fail if anything would change.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite files that were edited by hand.")]


class CommandFormChoice(str, Enum):
    """What the commands are for."""

    SHELL = "shell"
    MAKEFILE = "makefile"
    CI = "ci"


@jax_app.callback()
def jax() -> None:
    """Group the commands about JAX."""


@jax_app.command()
def bazelrc(
    settings: SettingsOption = Path("rocm.toml"),
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write the fragment to FILE.", show_default="standard output"
        ),
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


@jax_app.command()
def starlark(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Write the files to this folder of the workspace; it becomes a package."),
    ],
    bzlmod: Annotated[bool, typer.Option("--bzlmod", help="Write them for MODULE.bazel instead of WORKSPACE.")] = False,
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
    package = starlark_package(folder, "bzlmod" if bzlmod else "workspace")
    diff = package.diff(folder) if check else package.write(folder, force=force)
    if not quiet:
        messages.print(diff or f"{folder}: nothing changed", markup=False, end="" if diff else "\n")
    if json:
        print_json("jax.starlark", 1, {"files": list(package.files), "declaration": package.declaration, "diff": diff})
    else:
        typer.echo(package.declaration, nl=False)
    if check and diff:
        raise typer.Exit(1)


@jax_app.command()
def commands(
    version: Annotated[str, typer.Option("--version", help="Set the wheels' version, that of JAX.")],
    settings: SettingsOption = Path("rocm.toml"),
    form: Annotated[
        CommandFormChoice, typer.Option("--form", help="Print a shell script, a Makefile, or workflow steps.")
    ] = CommandFormChoice.SHELL,
    sdk: Annotated[
        str, typer.Option("--with", metavar="DIR", help="Verify the wheels with the SDK's packages in this folder.")
    ] = "",
    dest_dir: Annotated[
        str, typer.Option(metavar="DIR", help="Write the wheels to this folder; it is created if needed.")
    ] = "dist",
    remote: Annotated[
        bool, typer.Option("--remote", help="Build by remote execution, with the file that the settings name.")
    ] = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Print the commands that build both wheels, for each Python: plain Bazel, and the assembly.

    Example: rocwheel jax commands --settings rocm.toml --version 0.12.0 --form makefile
    """
    setup_logging(quiet=quiet, verbose=verbose)
    given = read_settings(settings)
    if remote and not given.remote_execution:
        raise SettingsError(settings, "has no remote-execution", expected="a file that defines the config rocm_rbe")
    config = "rocm_build_remote" if remote else "rocm_build"
    made = wheel_commands(given, BuildOptions(version, sdk=sdk, dest_dir=dest_dir, config=config))
    text = spell_commands(made, form.value)
    if json:
        print_json("jax.commands", 1, {"form": form.value, "text": text})
    else:
        typer.echo(text, nl=False)


@jax_app.command("translate", context_settings={"ignore_unknown_options": True})
def translate_command(
    words: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="Translate this command line.")],
    version: Annotated[str, typer.Option("--version", help="Set the wheels' version.")] = "VERSION",
    sdk: Annotated[
        str, typer.Option("--with", metavar="DIR", help="Verify the wheels with the SDK's packages in this folder.")
    ] = "",
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Translate a command line of rocm-jax's build/build.py: print settings, commands, and what was silently wrong.

    Example: rocwheel jax translate -- python build/build.py build --wheels=jax-rocm-pjrt --rocm_path=/opt/rocm
    """
    setup_logging(quiet=quiet, verbose=verbose)
    made = translate(words, version=version, sdk=sdk)
    commands = spell_commands(made.commands, "shell")
    if json:
        notes = {"kept": made.kept, "assumed": made.assumed, "dropped": made.dropped, "wrong": made.wrong}
        print_json("jax.translate", 1, {"settings": made.settings_text, "commands": commands, **notes})
    else:
        typer.echo(_told(made, commands), nl=False)


def _told(made: Translation, commands: str) -> str:
    sections = [
        "# rocm.toml, for `rocwheel jax bazelrc --output rocm.bazelrc`:",
        made.settings_text,
        "# The commands:" if made.commands else "# No commands: the old command line only configured.",
        commands if made.commands else "",
    ]
    notes = {
        "What says the same": made.kept,
        "Assumed, since the command line leaves it open": made.assumed,
        "Dropped": made.dropped,
        "Silently wrong before": made.wrong,
    }
    return "\n".join([*sections, *(_noted(title, rows) for title, rows in notes.items() if rows)])


def _noted(title: str, notes: tuple[Note, ...]) -> str:
    return f"# {title}:\n" + "".join(f"#   {note.option}: {note.text}\n" for note in notes)
