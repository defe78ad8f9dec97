"""``rocwheel wheel`` and ``rocwheel jax wheel``: make a framework's wheel from a description and build outputs."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from rocwheel.cli._app import app
from rocwheel.cli.jax import jax_app
from rocwheel.cli.output import JsonOption, QuietOption, VerboseOption, messages, print_json, setup_logging
from rocwheel.frameworks.jax.wheel_descriptions import jax_wheel_description, rocm_major
from rocwheel.frameworks.wheel.inputs import read_source_list
from rocwheel.frameworks.wheel.job import WheelBuild, WheelJob
from rocwheel.frameworks.wheel.placeholders import parse_values
from rocwheel.frameworks.wheel.spec import read_spec, settable_values
from rocwheel.frameworks.wheel.stamps import parse_commits

__all__ = ["jax_wheel", "wheel"]

SourceOption = Annotated[
    list[Path] | None,
    typer.Option("--src", metavar="PATH", help="Take build outputs from this file, or from below this folder."),
]
SourceListOption = Annotated[
    Path | None, typer.Option("--src-list", metavar="FILE", help="Read one more --src from each line of FILE.")
]
ManifestOption = Annotated[
    Path | None,
    typer.Option(
        "--runfiles-manifest", metavar="FILE", help="Take build outputs from Bazel's MANIFEST of a target's runfiles."
    ),
]
VersionOption = Annotated[
    str, typer.Option("--version", help="Set the wheel's version, in place of the description's.")
]
CommitOption = Annotated[
    list[str] | None,
    typer.Option("--commit", metavar="REPOSITORY=COMMIT", help="Stamp this commit into commit_info.py."),
]
PythonOption = Annotated[
    str, typer.Option("--python", metavar="3.X", help="Set the Python of extension modules whose names don't say it.")
]
PlatformOption = Annotated[
    str, typer.Option("--platform-tag", metavar="TAG", help="Set the platform tag, in place of the computed one.")
]
WithOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--with", metavar="PACKAGE", help="Check the wheel with this wheel, folder of wheels or site-packages."
    ),
]
SystemRunPathOption = Annotated[
    list[str] | None,
    typer.Option("--system-run-path", metavar="DIR", help="Allow this absolute run path entry."),
]
RepairOption = Annotated[bool, typer.Option("--repair", help="Repair wrong run paths instead of failing.")]
VerifyOption = Annotated[bool, typer.Option(help="Check that every file finds its libraries.")]
DestDirOption = Annotated[
    Path, typer.Option("--dest-dir", metavar="DIR", help="Write the wheel to this folder; it is created if needed.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write the wheel to FILE; fail if its tags give it another name."
    ),
]


class WheelKind(str, Enum):
    """Which of JAX's wheels."""

    PLUGIN = "plugin"
    PJRT = "pjrt"


def _build(
    src: list[Path] | None,
    src_list: Path | None,
    runfiles_manifest: Path | None,
    commit: list[str] | None,
    python: str,
    platform_tag: str,
    companions: list[Path] | None,
    system_run_paths: list[str] | None,
    repair: bool,
    verify: bool,
) -> WheelBuild:
    """Return the build that the options of both commands describe."""
    return WheelBuild(
        sources=(*(src or ()), *(read_source_list(src_list) if src_list else ())),
        runfiles_manifest=runfiles_manifest,
        commits=parse_commits(commit or ()),
        python=python,
        platform_tag=platform_tag,
        companions=tuple(companions or ()),
        system_run_paths=tuple(system_run_paths or ()),
        repair=repair,
        verify=verify,
    )


def run_wheel_job(job: WheelJob, *, json: bool, quiet: bool) -> None:
    """Make a wheel and print its path, or a report."""
    report = job.run()
    if not quiet and report.repaired:
        messages.print(f"run paths repaired: {', '.join(report.repaired)}", markup=False)
    if json:
        print_json("wheel", 1, report)
    elif not (quiet and job.output):  # a build action knows the path, and its log shows whatever is printed
        typer.echo(report.path)


@app.command()
def wheel(
    spec: Annotated[
        Path, typer.Option("--spec", metavar="FILE", help="Read the wheel's description (TOML) from FILE.")
    ],
    src: SourceOption = None,
    src_list: SourceListOption = None,
    runfiles_manifest: ManifestOption = None,
    version: VersionOption = "",
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set the value of a placeholder of the description."),
    ] = None,
    commit: CommitOption = None,
    python: PythonOption = "",
    platform_tag: PlatformOption = "",
    companions: WithOption = None,
    system_run_paths: SystemRunPathOption = None,
    repair: RepairOption = False,
    verify: VerifyOption = True,
    dest_dir: DestDirOption = Path("dist"),
    output: OutputOption = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Assemble a wheel from build outputs by a description, and check that its files find their libraries.

    Example: rocwheel wheel --spec plugin.toml --src bazel-bin --with packages/dist --dest-dir dist
    """
    setup_logging(quiet=quiet, verbose=verbose)
    build = _build(
        src, src_list, runfiles_manifest, commit, python, platform_tag, companions, system_run_paths, repair, verify
    )
    description = read_spec(spec)
    options = {"version": version} if version else {}
    given = parse_values(values or (), settable_values(description), options)
    run_wheel_job(WheelJob(str(spec), description, given, build, dest_dir, output), json=json, quiet=quiet)


@jax_app.command("wheel")
def jax_wheel(
    kind: Annotated[
        WheelKind, typer.Argument(help="Make the wheel of the extension modules (plugin) or of the PJRT plugin (pjrt).")
    ],
    version: Annotated[str, typer.Option("--version", help="Set the wheel's version, that of JAX.")],
    src: SourceOption = None,
    src_list: SourceListOption = None,
    runfiles_manifest: ManifestOption = None,
    rocm: Annotated[
        str, typer.Option("--rocm", metavar="MAJOR", help="Set the major version of ROCm in the names.")
    ] = "7",
    spec: Annotated[
        Path | None,
        typer.Option(
            "--spec", metavar="FILE", help="Read the description from FILE, in place of the one for ROCm's JAX."
        ),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set the value of a placeholder of the description."),
    ] = None,
    commit: CommitOption = None,
    python: PythonOption = "",
    platform_tag: PlatformOption = "",
    companions: WithOption = None,
    system_run_paths: SystemRunPathOption = None,
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
    build = _build(
        src, src_list, runfiles_manifest, commit, python, platform_tag, companions, system_run_paths, repair, verify
    )
    description = read_spec(spec) if spec else jax_wheel_description(kind.value)
    options = {"rocm": rocm_major(rocm), "version": version}
    given = parse_values(values or (), settable_values(description), options)
    job = WheelJob(str(spec or f"jax {kind.value}"), description, given, build, dest_dir, output)
    run_wheel_job(job, json=json, quiet=quiet)
