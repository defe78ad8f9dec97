"""Options that describe a ``rocwheel build``, and the output of plans and builds."""

from __future__ import annotations

import inspect
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from rich import box
from rich.filesize import decimal
from rich.table import Table

from rocwheel.binary.platform import Platform
from rocwheel.binary.stubs import RELAY_SIZE
from rocwheel.build.building import BuildResult, BuiltDistribution
from rocwheel.build.estimate import PlannedSize, planned_sizes
from rocwheel.build.job import PlanJob
from rocwheel.build.manifest import read_rebuild
from rocwheel.build.plan import Plan, PlannedWheel, PlanWarning, RelayMember
from rocwheel.build.planning.options import PlanOptions, check_options
from rocwheel.cli.options import Output, complete_targets, shared
from rocwheel.cli.output import messages, output_width, print_json, report_warning
from rocwheel.cli.parameters import argument, missing_error, option
from rocwheel.cli.progress import make_progress
from rocwheel.cli.tables import print_table
from rocwheel.core.errors import InputError
from rocwheel.core.messages import count
from rocwheel.core.shown_names import shown
from rocwheel.core.workers import worker_count

_TARGETS = "--targets"
_TAG_OPTION = "--platform-tag"
_TAG_VARIABLE = "ROCM_SDK_WHEEL_PLATFORM_TAG"
"""The variable that the reference packager reads the tag from."""

ArtifactsArgument = Annotated[
    list[Path] | None,
    argument(
        metavar="ARTIFACTS", help="Folders of artifacts. Each artifact is a folder, or a .tar.xz or .tar.zst archive."
    ),
]
ArtifactDirOption = Annotated[
    list[Path] | None,
    shared("--artifact-dir", "Read artifacts from this folder, as TheRock's builder does."),
]
RecipeOption = Annotated[
    Path | None, option("--recipe", metavar="FILE", help="Use this recipe (TOML) instead of the recipe for ROCm.")
]
VersionOption = Annotated[
    str | None, shared("--version", "Set the version of all packages.", show_default="from the SDK manifest")
]
SuffixOption = Annotated[
    str, option("--version-suffix", metavar="TEXT", help="Append this text to the names of platform modules.")
]
TargetsOption = Annotated[
    list[str] | None,
    shared(
        "--targets",
        "Build only the packages for these targets, such as 'gfx906;gfx94X-dcgpu'.",
    ),
]
LinuxFamiliesOption = Annotated[
    str,
    option(
        "--linux-amdgpu-families",
        metavar="TARGETS",
        hidden=True,
        help="Fail unless the Linux artifacts have these targets. "
        "With both lists, both systems get the same rocm package.",
    ),
]
WindowsFamiliesOption = Annotated[
    str,
    option(
        "--windows-amdgpu-families",
        metavar="TARGETS",
        hidden=True,
        help="Fail unless the Windows artifacts have these targets.",
    ),
]
DefaultFamilyOption = Annotated[
    str,
    option(
        "--default-family",
        metavar="TARGET",
        shell_complete=complete_targets,
        help="Install packages for this target or family on machines without a GPU.",
    ),
]
SelectorOption = Annotated[
    Literal["sdist", "wheel"],
    option(help="Build the rocm selector as an sdist, which detects GPUs, or as a wheel, which requires extras."),
]
DevelOption = Annotated[
    Literal["none", "xz", "zst"],
    option(
        help="Compress the devel tar archive in this format. Reading zst requires Python 3.14, backports.zstd, or "
        "libzstd."
    ),
]
DeviceCodeOption = Annotated[
    Literal["keep", "compress", "trim"],
    option(help="Keep plain offload bundles, compress them in place, or compress them and trim the libraries."),
]
SplitOption = Annotated[
    Literal["none", "kpack", "overlay"],
    option(
        "--split-device",
        metavar="[=kpack|overlay]",
        help="Build a package for each GPU target, with device code as kpack archives or as whole libraries (overlay).",
        is_flag=False,
        flag_value="kpack",  # if no value follows
        show_default=False,
    ),
]
CommonOption = Annotated[
    str | None,
    option(
        "--common",
        metavar="TARGETS",
        shell_complete=complete_targets,
        help="Keep the code for these targets in the libraries for all GPUs. Requires --split-device=overlay.",
        show_default="the generic targets, or the target for the most GPUs",
    ),
]
RetargetOption = Annotated[
    list[str] | None,
    option(
        "--retarget",
        metavar="FROM=TO[,TO...]",
        help="Make code for one target available to GPUs that run the same instructions, such as gfx1030=extended.",
    ),
]
VariantsOption = Annotated[
    bool,
    option(
        "--variants",
        help="Build additional wheel variants (draft PEP 825) of the packages for each GPU.",
    ),
]
RocmOption = Annotated[
    str | None,
    shared(
        "--rocm",
        "Compress device code for this ROCm release and later releases.",
        show_default="from the SDK manifest",
    ),
]
PlatformTagOption = Annotated[
    str | None, shared(_TAG_OPTION, show_default=f"${_TAG_VARIABLE}, or computed from the files")
]

PlatformOption = Annotated[
    Platform | None,
    option(
        "--platform",
        help="Fail unless the artifacts are for this system.",
        show_default="detected from the files",
    ),
]


def read_plan_job(
    artifacts: ArtifactsArgument = None,
    artifact_dir: ArtifactDirOption = None,
    recipe: RecipeOption = None,
    version: VersionOption = None,
    version_suffix: SuffixOption = "",
    targets: TargetsOption = None,
    linux_amdgpu_families: LinuxFamiliesOption = "",
    windows_amdgpu_families: WindowsFamiliesOption = "",
    default_family: DefaultFamilyOption = "",
    selector: SelectorOption = "sdist",
    devel_compression: DevelOption = "none",
    device_code: DeviceCodeOption = "keep",
    split_device: SplitOption = "none",
    common: CommonOption = None,
    retarget: RetargetOption = None,
    variants: VariantsOption = False,
    rocm: RocmOption = None,
    platform_tag: PlatformTagOption = None,
    platform: PlatformOption = None,
) -> PlanJob:
    """Return the build that the options describe. An environment variable can set the platform tag."""
    tag, tag_source = _given_tag(platform_tag)
    options = PlanOptions(
        version=version,
        module_suffix=version_suffix,
        targets=tuple(targets or ()),
        linux_families=_families(linux_amdgpu_families),
        windows_families=_families(windows_amdgpu_families),
        default_family=default_family,
        selector=selector,
        devel_compression=devel_compression,
        device_code=device_code,
        split_device=split_device,
        common=() if common is None else (common,),
        retarget=tuple(retarget or ()),
        variants=variants,
        rocm=rocm,
        platform_tag=tag,
        platform_tag_source=tag_source,
        platform=platform,
    )
    check_options(options)
    folders = (*(artifacts or ()), *(artifact_dir or ()))
    return PlanJob(folders[0], recipe, options, folders[1:])


def _families(text: str) -> tuple[str, ...]:
    """Return the lists of GPUs for a platform.

    Workflows pass an empty list if they have no list, so an empty list is omitted.
    """
    return (text,) if text.strip(" ;,") else ()


def _given_tag(option: str | None) -> tuple[str | None, str]:
    """Return the platform tag, or `None` if it is computed, and the source of the tag."""
    variable = os.environ.get(_TAG_VARIABLE, "")
    if option is not None or not variable:
        return option, _TAG_OPTION
    return variable.replace("-", "_"), _TAG_VARIABLE  # sysconfig.get_platform() returns linux-x86_64


_FromManifestOption = Annotated[
    Path | None,
    option(
        "--from-manifest",
        metavar="PATH",
        help="Repeat the build that this rocwheel-build.json or build folder records, with its artifacts, recipe, and "
        "options.",
    ),
]
_DestDirOption = Annotated[
    str | None,
    shared("--dest-dir", "Write the packages to the dist subfolder of this folder. Both are created if needed."),
]
_DryRunOption = Annotated[bool, option("--dry-run", help="Print what a build would produce, and write nothing.")]
_OF_PLAN = inspect.signature(read_plan_job, eval_str=True).parameters
_PLACES = ("artifacts", "artifact_dir", "recipe")
"""Options that are allowed with a manifest, because they contain current locations."""


class BuildRequest(NamedTuple):
    """The requested build, and its destination."""

    inputs: PlanJob
    dest_dir: str | None
    """The destination, or `None` if only a plan is requested."""


def read_build_request(
    *,
    dest_dir: _DestDirOption = None,
    from_manifest: _FromManifestOption = None,
    dry_run: _DryRunOption = False,
    **given: Any,
) -> BuildRequest:
    """Return the requested build and its destination. ``given`` contains the options of a plan.

    Raises `InputError` if the artifacts or the destination is missing. Also raises this error for other options that
    are combined with a manifest, which sets all options.
    """
    missing = []
    if not (from_manifest or given["artifacts"] or given["artifact_dir"]):
        missing.append("the argument ARTIFACTS")
    if not (dest_dir or dry_run):
        missing.append("the option --dest-dir")
    if missing:
        is_without_artifacts = missing[0] == "the argument ARTIFACTS"
        instead = "To repeat a build, use --from-manifest. " if is_without_artifacts else ""
        place = "rocwheel build"
        raise missing_error(place, missing, instead)
    inputs = _read_again(from_manifest, given) if from_manifest else read_plan_job(**given)
    return BuildRequest(inputs, None if dry_run else dest_dir)


def _read_again(manifest: Path, given: dict[str, Any]) -> PlanJob:
    for name, value in given.items():
        if name not in _PLACES and value != _OF_PLAN[name].default:
            option, found = f"--{name.replace('_', '-')}", "can't be used with --from-manifest, which sets all options"
            raise InputError(option, found, remedy="Remove it.")
    again = read_rebuild(manifest)
    folders = (*(given["artifacts"] or ()), *(given["artifact_dir"] or ())) or tuple(again.artifact_dirs())
    return PlanJob(folders[0], given["recipe"] or again.recipe(), again.options, folders[1:], again)


def _signature() -> inspect.Signature:
    """Return the options of a plan after the first options of a build."""
    own = inspect.signature(read_build_request, eval_str=True).parameters
    artifacts, *others = _OF_PLAN.values()
    found = [artifacts, own["dest_dir"], own["dry_run"], *others, own["from_manifest"]]
    return inspect.Signature([one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in found])


# The signature defines the command's parameters.
read_build_request.__signature__ = _signature()  # type: ignore[attr-defined]


def print_planned(made: Plan, sizes: Sequence[PlannedSize]) -> None:
    """Print the packages that a build would create, with estimated sizes."""
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("distribution", footer=count(len(sizes), "package"))
    table.add_column("files", footer=str(sum(size.files for size in sizes)))
    table.add_column("edited", footer=str(sum(map(_edited, made.wheels))))
    table.add_column("tag")
    _add_size(table, "size", [size.size for size in sizes])
    _add_size(table, "packed (est.)", [size.packed or 0 for size in sizes])
    table.add_column("requested by")
    facts = [(_edited(wheel), wheel.name.tag.rpartition("-")[2], wheel.floor_reason) for wheel in made.wheels]
    facts += [(0, "sdist", "") for _ in made.sdists]
    for size, (edited, tag, reason) in zip(sizes, facts, strict=True):
        bytes_of = decimal(size.size), decimal(size.packed or 0)
        table.add_row(size.distribution, str(size.files), str(edited), tag, *bytes_of, reason)
    print_table(table)


def _edited(wheel: PlannedWheel) -> int:
    return sum(getattr(member, "run_path", None) is not None for member in wheel.members)


def _add_size(table: Table, heading: str, sizes: Iterable[int]) -> None:
    table.add_column(heading, footer=decimal(sum(sizes)), justify="right")


def print_built(made: Plan, result: BuildResult) -> None:
    """Print the created packages with their sizes: file paths, or package names on a narrow terminal."""
    sizes = planned_sizes(made)
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("distribution", footer=count(len(sizes), "package"))
    _add_size(table, "size", [built.size for built in result.distributions])
    table.add_column("files", footer=str(sum(size.files for size in sizes)), justify="right")
    _add_size(table, "unpacked", [size.size for size in sizes])
    is_pipe = output_width() is None
    for size, built in zip(sizes, result.distributions, strict=True):
        name = built.path if is_pipe else str(PurePath(size.folder, size.distribution))
        table.add_row(name, decimal(built.size), str(size.files), decimal(size.size))
    print_table(table)


def print_distributions(distributions: Sequence[BuiltDistribution]) -> None:
    """Print the written files with their sizes."""
    table = Table(box=box.SIMPLE_HEAD, show_footer=True)
    table.add_column("distribution", footer=count(len(distributions), "package"))
    _add_size(table, "size", [written.size for written in distributions])
    for written in distributions:
        table.add_row(written.path, decimal(written.size))
    print_table(table)


def print_facts(made: Plan, warnings: Iterable[PlanWarning]) -> None:
    """Print important facts about a plan: warnings, gaps, version, layout, and targets."""
    targets = ", ".join(made.targets) or "none"
    for remedy, group in groupby(warnings, key=lambda warning: warning.remedy):
        for warning in group:
            report_warning(f"{warning.subject}: {warning.found}")
        messages.print(f"  {remedy}", markup=False)
    for gap in made.gaps:
        messages.print(f"not coherent: {gap}", markup=False)
    relays = [member for wheel in made.wheels for member in wheel.members if isinstance(member, RelayMember)]
    if relays:
        sizes = f"{decimal(len(relays) * RELAY_SIZE)} instead of {decimal(sum(relay.replaced for relay in relays))}"
        messages.print(f"{count(len(relays), 'relay')}: {sizes}", markup=False)
    dropped = f"; left out: {len(made.dropped)} (--dry-run -v shows the files and the reasons)" if made.dropped else ""
    messages.print(f"version {made.version}, layout {made.layout}, GPU targets: {targets}{dropped}", markup=False)


def spelled_seconds(seconds: float) -> str:
    """Return a human-readable duration, such as ``0.4 s``, ``25 s``, and ``3 min 20 s``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def show_plan(inputs: PlanJob, jobs: int, out: Output) -> None:
    """Print the plan of a build, with its size and duration. The JSON document contains every file and edit."""
    made, estimate = inputs.run_estimated(progress=make_progress(quiet=out.quiet))
    if out.json:
        print_json("plan", 1, {**msgspec.to_builtins(made), "sizes": estimate.sizes})
        return
    print_planned(made, estimate.sizes)
    for row in made.dropped if out.verbose else ():
        messages.print(f"left out: {row.path or 'all files'} in {row.artifact}: {row.reason}", markup=False)
    if not out.quiet:
        print_facts(made, made.warnings)
        workers = worker_count(jobs)
        seconds = spelled_seconds(estimate.cpu_seconds / workers)
        messages.print(f"packing takes about {seconds} with {count(workers, 'worker')}", markup=False)
        messages.print(f"next: {_build_command(sys.argv[1:])}", markup=False)


def _build_command(arguments: Sequence[str]) -> str:
    """Return the build command for a plan's command line."""
    words = arguments[1:] if arguments[:1] in (["build"], ["plan"]) else ["..."]
    kept = [word for word in words if word not in {"--dry-run", "--no-build-packages", "--verbose", "-v"}]
    has_folder = any(word.startswith(("-d", "--dest-dir")) for word in kept)
    return f"rocwheel build {shlex.join(map(shown, kept))}{'' if has_folder else ' --dest-dir packages'}"
