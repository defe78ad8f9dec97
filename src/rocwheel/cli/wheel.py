"""``rocwheel wheel``: builds a framework's wheel, with options that the commands for JAX share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from rocwheel.cli.app import app
from rocwheel.cli.options import JsonOption, QuietOption, VerboseOption, shared, takes
from rocwheel.cli.output import messages, print_json, print_line, setup_logging
from rocwheel.cli.parameters import option
from rocwheel.cli.progress import make_progress
from rocwheel.frameworks.wheel import WheelBuild, WheelJob
from rocwheel.frameworks.wheel_draft import parse_commits, read_source_list
from rocwheel.frameworks.wheel_spec import parse_values, read_spec, settable_values

SourceOption = Annotated[
    list[Path] | None,
    option("--src", metavar="PATH", help="Read build outputs from this file or folder."),
]
SourceListOption = Annotated[
    Path | None,
    option(
        "--src-list",
        metavar="FILE",
        advanced=True,
        help="Read the paths of build outputs from this file, one per line.",
    ),
]
ManifestOption = Annotated[
    Path | None,
    option(
        "--runfiles-manifest",
        metavar="FILE",
        advanced=True,
        help="Read build outputs from the Bazel runfiles MANIFEST for a target.",
    ),
]
VersionOption = Annotated[str, shared("--version", "Set the version of the wheel.")]
CommitOption = Annotated[
    list[str] | None,
    option("--commit", metavar="REPOSITORY=COMMIT", advanced=True, help="Write this commit to commit_info.py."),
]
PythonOption = Annotated[
    str,
    option(
        "--python-version",
        metavar="X.Y",
        help="Set the Python version of extension modules whose names don't include it.",
    ),
]
PlatformOption = Annotated[str, shared("--platform-tag", "Set the platform tag of the wheel.")]
WithOption = Annotated[
    list[Path] | None,
    shared("--with", "Check the wheel against this wheel, folder of wheels, or site-packages folder."),
]
SystemRunPathOption = Annotated[
    list[str] | None,
    option("--system-run-path", metavar="DIR", advanced=True, help="Accept this absolute entry in run paths."),
]
RepairOption = Annotated[bool, option("--repair", help="Repair wrong run paths instead of failing.")]
VerifyOption = Annotated[bool, option(help="Check that every file can find its libraries.")]
OutputOption = Annotated[
    Path,
    shared(
        "--output", "Write the wheel to this folder, or to this exact file if the name ends with .whl.", metavar="PATH"
    ),
]
ValuesOption = Annotated[
    list[str] | None,
    option("--set", metavar="NAME=VALUE", help="Set the value of a placeholder in the description."),
]


class Sources(msgspec.Struct, frozen=True):
    """The locations of the build outputs."""

    files: tuple[Path, ...]
    """Files, and folders with files."""
    runfiles_manifest: Path | None


def read_sources(
    src: SourceOption = None, src_list: SourceListOption = None, runfiles_manifest: ManifestOption = None
) -> Sources:
    """Return the locations of the build outputs from the options."""
    return Sources((*(src or ()), *(read_source_list(src_list) if src_list else ())), runfiles_manifest)


class Assembly(msgspec.Struct, frozen=True):
    """Options for assembling a wheel from build outputs, its destination, and the output."""

    values: tuple[str, ...]
    """Values for placeholders, as ``NAME=VALUE``."""
    build: WheelBuild
    """The build, without its sources."""
    dest_dir: Path
    output: Path | None
    json: bool
    quiet: bool

    def run(self, source: str, description: dict[str, Any], sources: Sources, options: dict[str, str]) -> None:
        """Build the wheel from a ``description``, and print its path or a report.

        ``source`` is the description's name in messages. ``options`` contains values that are set by separate options.
        """
        given = parse_values(self.values, settable_values(description), options)
        build = msgspec.structs.replace(self.build, sources=sources.files, runfiles_manifest=sources.runfiles_manifest)
        job = WheelJob(source, description, given, build, self.dest_dir, self.output)
        report = job.run(make_progress(quiet=self.quiet or self.json))
        if not self.quiet and report.repaired:
            messages.print(f"run paths repaired: {', '.join(report.repaired)}", markup=False)
        if self.json:
            print_json("wheel", 1, report)
        elif not (self.quiet and self.output):  # a build action knows the path, and its log contains all output
            print_line(report.path)


def read_checks(
    values: ValuesOption = None,
    companions: WithOption = None,
    system_run_paths: SystemRunPathOption = None,
    repair: RepairOption = False,
    verify: VerifyOption = True,
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> Assembly:
    """Return the options for checking a wheel and for the output, and set up the logging. The caller adds the rest."""
    setup_logging(quiet=quiet, verbose=verbose)
    build = WheelBuild(
        companions=tuple(companions or ()),
        system_run_paths=tuple(system_run_paths or ()),
        repair=repair,
        verify=verify,
    )
    return Assembly(tuple(values or ()), build, Path(), None, json, quiet)


def read_assembly(
    values: ValuesOption = None,
    commit: CommitOption = None,
    python: PythonOption = "",
    platform_tag: PlatformOption = "",
    companions: WithOption = None,
    system_run_paths: SystemRunPathOption = None,
    repair: RepairOption = False,
    verify: VerifyOption = True,
    output: OutputOption = Path("dist"),
    json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> Assembly:
    """Return the assembly from the options, and set up the logging."""
    checks = read_checks(
        values, companions, system_run_paths, repair=repair, verify=verify, json=json, quiet=quiet, verbose=verbose
    )
    build = msgspec.structs.replace(
        checks.build, commits=parse_commits(commit or ()), python=python, platform_tag=platform_tag
    )
    is_file = output.suffix == ".whl"
    folder, file = (output.parent, output) if is_file else (output, None)
    return msgspec.structs.replace(checks, build=build, dest_dir=folder, output=file)


@app.command()
@takes(sources=read_sources, assembly=read_assembly)
def wheel(
    spec: Annotated[Path, shared("--spec")],
    sources: Sources,
    version: VersionOption = "",
    *,
    assembly: Assembly,
) -> None:
    """Assemble a wheel from build outputs and a description.

    The command checks that the files in the wheel can find their libraries.

    Example: rocwheel wheel --spec plugin.toml --src bazel-bin --with packages/dist --output dist
    """
    assembly.run(str(spec), read_spec(spec), sources, {"version": version} if version else {})
