"""The options that ``rocwheel build`` and ``rocwheel plan`` share."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rocwheel.packages.job import PlanJob
from rocwheel.packages.planning.options import PlanOptions

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["takes_plan_job"]

ArtifactDirOption = Annotated[Path, typer.Option(help="Folder of artifacts: folders, .tar.xz or .tar.zst archives.")]
RecipeOption = Annotated[Path | None, typer.Option(help="Recipe (TOML) that replaces the one for ROCm.")]
VersionOption = Annotated[str | None, typer.Option(help="Version of all packages.", show_default="the SDK manifest's")]
SuffixOption = Annotated[str, typer.Option(help="Text appended to the names of platform modules.")]
TargetsOption = Annotated[
    str, typer.Option(help="GPU targets or families that must be there, e.g. 'gfx906;gfx94X-dcgpu'.")
]
DefaultFamilyOption = Annotated[str, typer.Option(help="Target or family to select on machines without a GPU.")]
SelectorOption = Annotated[
    Literal["sdist", "wheel"], typer.Option(help="sdist: decides at install time. wheel: lockable, explicit extras.")
]
DevelOption = Annotated[
    Literal["none", "xz", "zst"],
    typer.Option(
        help="Compression of the devel tar. Reading zst takes Python 3.14, or backports.zstd, which is then required."
    ),
]
DeviceCodeOption = Annotated[
    Literal["keep", "compress", "trim"],
    typer.Option(
        help="compress: plain offload bundles become compressed in their places; trim: and libraries smaller."
    ),
]
RocmOption = Annotated[
    str,
    typer.Option(
        metavar="VERSION",
        help="The oldest ROCm release whose runtime has to read compressed device code.",
        show_default="the SDK manifest's",
    ),
]
PlatformTagOption = Annotated[
    str | None, typer.Option(help="Platform tag of all wheels.", show_default="computed from their files")
]


def takes_plan_job(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that make up the `PlanJob` which it takes as ``inputs``.

    Typer reads a function's signature: that of the result lists these and those of its own, required ones first.
    """
    shared = inspect.signature(_make_job, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True).parameters
    options = [*shared.values(), *(option for option in own.values() if option.name != "inputs")]

    def run(**given: Any) -> None:
        inputs = _make_job(**{name: given.pop(name) for name in shared})
        command(inputs, **given)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    options.sort(key=lambda option: option.default is not option.empty)
    keywords = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
    run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    return run


def _make_job(
    artifact_dir: ArtifactDirOption,
    recipe: RecipeOption = None,
    version: VersionOption = None,
    version_suffix: SuffixOption = "",
    targets: TargetsOption = "",
    default_family: DefaultFamilyOption = "",
    selector: SelectorOption = "sdist",
    devel_compression: DevelOption = "none",
    device_code: DeviceCodeOption = "keep",
    rocm: RocmOption = "",
    platform_tag: PlatformTagOption = None,
) -> PlanJob:
    options = PlanOptions(
        version=version,
        module_suffix=version_suffix,
        targets=(targets,),
        default_family=default_family,
        selector=selector,
        devel_compression=devel_compression,
        device_code=device_code,
        rocm=rocm,
        platform_tag=platform_tag,
    )
    return PlanJob(artifact_dir, recipe, options)
