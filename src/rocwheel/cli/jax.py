"""``rocwheel jax``: settings, rules, and commands for a Bazel build."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, NoReturn

import click

from rocwheel.cli.app import Group, app
from rocwheel.cli.options import Output, shared
from rocwheel.cli.output import print_json, print_text
from rocwheel.cli.parameters import argument, option
from rocwheel.core.errors import InputError
from rocwheel.core.messages import in_one_line, printable
from rocwheel.core.writing import check_other
from rocwheel.frameworks.jax.bazelrc import GeneratedFile, render_bazelrc
from rocwheel.frameworks.jax.commands import BuildOptions, render_makefile, spell_commands, wheel_commands
from rocwheel.frameworks.jax.jax_tree import wheel_rule_commands
from rocwheel.frameworks.jax.run_path_patch import run_path_patch
from rocwheel.frameworks.jax.settings import SettingsError, read_settings
from rocwheel.frameworks.jax.starlark import starlark_package
from rocwheel.targets.machine import native_targets
from rocwheel.targets.target_set import parse_target_set

jax_app = Group("jax", help="Generate build files and JAX wheels for ROCm.")
app.add_command(jax_app)


SettingsOption = Annotated[
    Path,
    option(
        "--settings", "-s", metavar="FILE", help="Read the build settings (TOML) from this file.", show_default=True
    ),
]
CheckOption = Annotated[bool, shared("--check")]
ForceOption = Annotated[bool, shared("--force", "Overwrite files that were edited by hand.")]


@jax_app.command()
def bazelrc(
    settings: SettingsOption = Path("rocm.toml"),
    output: Annotated[
        Path | None,
        shared("--output", "Write the fragment to this file.", show_default="standard output"),
    ] = None,
    force: ForceOption = False,
    check: CheckOption = False,
    *,
    out: Output,
) -> None:
    """Write a .bazelrc fragment for a ROCm build of JAX.

    The fragment contains the configs rocm_build, python3XX, avx_posix, and native_arch_posix. With --output, the
    command prints the changes as a diff. It doesn't overwrite a file that was edited by hand.

    Example: rocwheel jax bazelrc --settings rocm.toml --output rocm.bazelrc
    """
    if output:
        check_other(output, settings, "the settings file")
    given = read_settings(settings)
    targets = parse_target_set(given.targets, source=f"{settings}: targets", native=native_targets)
    fragment = GeneratedFile(f"Made by rocwheel jax bazelrc from {settings.name};", render_bazelrc(given, targets))
    if check and output is None:
        message = "--check requires the file to compare: add --output"
        raise click.BadParameter(message)
    diff = (fragment.diff(output) if check else fragment.write(output, force=force)) if output else ""
    if out.json:
        print_json("jax.bazelrc", 1, {"text": fragment.text, "diff": diff})
    else:
        click.echo(diff if output else fragment.text, nl=False)
    if check and diff:
        raise click.exceptions.Exit(1)


@jax_app.command()
def starlark(
    folder: Annotated[
        Path,
        argument(metavar="DIR", help="The folder in the workspace that becomes a Bazel package."),
    ],
    bzlmod: Annotated[bool, option("--bzlmod", help="Write rules for MODULE.bazel instead of WORKSPACE.")] = False,
    jax_rules: Annotated[
        bool, option("--jax-rules", help="Add jax_wheel_binary, the program for JAX's own rules.")
    ] = False,
    force: ForceOption = False,
    check: CheckOption = False,
    *,
    out: Output,
) -> None:
    """Write Bazel rules for ROCm libraries and wheels.

    The command prints the lines that declare the rules.

    Example: rocwheel jax starlark rocm_wheel >> WORKSPACE
    """
    package = starlark_package(folder, "bzlmod" if bzlmod else "workspace", jax_rules=jax_rules)
    diff = package.diff(folder) if check else package.write(folder, force=force)
    if not out.quiet:
        print_text(diff.removesuffix("\n") or in_one_line(f"{folder}: nothing changed"), err=True)
    if out.json:
        print_json("jax.starlark", 1, {"files": list(package.files), "declaration": package.declaration, "diff": diff})
    else:
        click.echo(package.declaration, nl=False)
    if check and diff:
        raise click.exceptions.Exit(1)


class CommandFormChoice(str, Enum):
    """The output formats for the commands."""

    SHELL = "shell"
    MAKEFILE = "makefile"
    CI = "ci"


@jax_app.command()
def commands(
    version: Annotated[
        str,
        shared(
            "--version",
            "Set the version of the wheels, which is the JAX version.",
            show_default="required, except in JAX's own tree",
        ),
    ] = "",
    settings: SettingsOption = Path("rocm.toml"),
    form: Annotated[
        CommandFormChoice, option("--format", help="Print a shell script, a Makefile, or workflow steps.")
    ] = CommandFormChoice.SHELL,
    sdk: Annotated[str, shared("--with", "Check the wheels against the SDK packages in this folder.")] = "",
    dest_dir: Annotated[
        str, shared("--output", "Print commands that write the wheels to this folder.", metavar="DIR")
    ] = "dist",
    remote: Annotated[
        bool, option("--remote", advanced=True, help="Use remote execution with the file in the settings.")
    ] = False,
    jax_rules: Annotated[bool, option("--jax-rules", help="Use JAX's own rules, jax_wheel and wheel_sources.")] = False,
    *,
    out: Output,
) -> None:
    """Print the commands that build the JAX wheels.

    There are commands for each of the two wheels and for each Python version. The Makefile has targets for the wheels
    (jax-rocm-pjrt, jax-rocm-plugin, and wheels) and variables that you can override.

    Example: rocwheel jax commands --settings rocm.toml --version 0.12.0 --format makefile
    """
    given = read_settings(settings)
    is_jax = given.tree == "jax"
    _check_version(version, is_required=not (is_jax or jax_rules), is_used=not is_jax)
    if remote and not is_jax and not given.remote_execution:
        raise SettingsError(settings, "has no remote-execution", expected="a file that defines the config rocm_rbe")
    config = "rocm_build_remote" if remote else "rocm_build"
    options = BuildOptions(version, sdk=sdk, dest_dir=dest_dir, config=config)
    commands_for = wheel_rule_commands if is_jax or jax_rules else wheel_commands
    if form is CommandFormChoice.MAKEFILE:
        text = render_makefile(given, options, commands_for)
    else:
        text = spell_commands(commands_for(given, options), form.value)
    if out.json:
        print_json("jax.commands", 1, {"form": form.value, "text": text})
    else:
        click.echo(text, nl=False)


def _check_version(version: str, *, is_required: bool, is_used: bool) -> None:
    """Raise `InputError` if the version is missing, or if it has no effect."""
    if is_required and not version:
        place, found = "rocwheel jax commands", "the option --version is missing"
        raise InputError(place, found, remedy="See rocwheel jax commands --help.")
    if version and not is_used:
        refuse_version()


def refuse_version() -> NoReturn:
    """Raise `InputError` for a version that JAX's own tree doesn't use."""
    option, found = "--version", "has no effect in JAX's own tree, because the wheels have JAX's version"
    remedy = (
        "Remove the option. To add a suffix, use --repo_env=ML_WHEEL_VERSION_SUFFIX=SUFFIX in the settings' options."
    )
    raise InputError(option, found, remedy=remedy)


@jax_app.command(hidden=True)
def patch(
    checkout: Annotated[Path, argument(metavar="CHECKOUT", help="A clone of jax-ml/jax or of a fork.")],
    settings: Annotated[
        Path | None,
        option(
            "--settings",
            "-s",
            metavar="FILE",
            help="Read the run path entries, search and target-family, from these build settings (TOML).",
            show_default="the SDK's packages",
        ),
    ] = None,
    *,
    out: Output,
) -> None:
    """Print a patch that shortens the run paths in JAX's wheels.

    The patch changes jaxlib/rocm/rocm_rpath.bzl in JAX's own tree. Each library then has only the run path entries for
    its own folder, instead of entries for 15 target families and seven Python versions.

    Example: rocwheel jax patch jax > short.patch
    """
    given = read_settings(settings, needs_python=False) if settings else None
    if settings and given and given.tree != "jax":
        raise SettingsError(settings, f'has tree = "{given.tree}"', expected='tree = "jax"')
    text = run_path_patch(checkout, given)
    if out.json:
        print_json("jax.patch", 1, {"patch": text})
    else:
        click.echo(printable(text) if sys.stdout.isatty() else text, nl=False)
