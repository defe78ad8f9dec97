"""``rocwheel jax``: JAX's wheels for ROCm."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli._app import app
from rocwheel.cli.output import JsonOption, QuietOption, VerboseOption, setup_logging
from rocwheel.cli.wheel import (
    CommitOption,
    DestDirOption,
    ManifestOption,
    OutputOption,
    PlatformOption,
    PythonOption,
    RepairOption,
    SourceOption,
    VerifyOption,
    WithOption,
    run_wheel_job,
)
from rocwheel.cli.wheel import read_description as read_file
from rocwheel.frameworks.jax_wheels import jax_wheel_description
from rocwheel.frameworks.stamps import parse_commits
from rocwheel.frameworks.wheel_job import WheelBuild, WheelJob
from rocwheel.frameworks.wheel_spec import parse_values, read_spec_data

__all__ = ["jax_app", "wheel"]

jax_app = typer.Typer(name="jax", help="JAX for ROCm: Bazel settings, build commands, wheels.", no_args_is_help=True)
app.add_typer(jax_app)


class WheelKind(str, Enum):
    """Which of JAX's wheels."""

    PLUGIN = "plugin"
    PJRT = "pjrt"


@jax_app.callback()
def jax() -> None:
    """Hold the commands about JAX."""


@jax_app.command()
def wheel(
    kind: Annotated[WheelKind, typer.Argument(help="plugin: the extension modules. pjrt: the PJRT plugin.")],
    version: Annotated[str, typer.Option("--version", help="The wheel's version, that of JAX.")],
    src: SourceOption = None,
    runfiles_manifest: ManifestOption = None,
    rocm: Annotated[str, typer.Option("--rocm", metavar="MAJOR", help="The major version in the names.")] = "7",
    spec: Annotated[
        Path | None, typer.Option("--spec", metavar="FILE", help="A description in place of the one for ROCm's JAX.")
    ] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="The value of a placeholder.")
    ] = None,
    commit: CommitOption = None,
    python: PythonOption = "",
    platform_tag: PlatformOption = "",
    companions: WithOption = None,
    repair: RepairOption = False,
    verify: VerifyOption = True,
    dest_dir: DestDirOption = Path("dist"),
    output: OutputOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Assemble one of JAX's two wheels from Bazel's outputs, and check that its files find their libraries.

    Example: rocwheel jax wheel pjrt --version 0.12.0 --src bazel-bin/pjrt --src LICENSE --with packages/dist
    """
    setup_logging(quiet=quiet, verbose=verbose)
    build = WheelBuild(
        sources=tuple(src or ()),
        runfiles_manifest=runfiles_manifest,
        commits=parse_commits(commit or ()),
        python=python,
        platform_tag=platform_tag,
        companions=tuple(companions or ()),
        repair=repair,
        verify=verify,
    )
    description = read_spec_data(read_file(spec), source=spec) if spec else jax_wheel_description(kind.value)
    given = {"rocm": rocm, **parse_values(values or ()), "version": version}
    job = WheelJob(str(spec or f"jax {kind.value}"), description, given, build, dest_dir, output)
    run_wheel_job(job, json=json, quiet=quiet)
