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

ArtifactDirOption = Annotated[
    Path, typer.Option(help="Read the artifacts (folders, .tar.xz or .tar.zst) in this folder.")
]
RecipeOption = Annotated[Path | None, typer.Option(help="Use this recipe (TOML) in place of the one for ROCm.")]
VersionOption = Annotated[
    str | None, typer.Option(help="Set the version of all packages.", show_default="the SDK manifest's")
]
SuffixOption = Annotated[str, typer.Option(help="Append this text to the names of platform modules.")]
TargetsOption = Annotated[
    str, typer.Option(help="Fail unless these GPU targets or families are there, e.g. 'gfx906;gfx94X-dcgpu'.")
]
DefaultFamilyOption = Annotated[str, typer.Option(help="Select this target or family on machines without a GPU.")]
SelectorOption = Annotated[
    Literal["sdist", "wheel"],
    typer.Option(help="sdist: decides at install time. wheel: can be locked, explicit extras."),
]
DevelOption = Annotated[
    Literal["none", "xz", "zst"],
    typer.Option(
        help="Compress the devel tar. Reading zst takes Python 3.14, or backports.zstd, which is then required."
    ),
]
DeviceCodeOption = Annotated[
    Literal["keep", "compress", "trim"],
    typer.Option(
        help="Keep plain offload bundles, compress them in their places, or compress them and trim the libraries."
    ),
]
RocmOption = Annotated[
    str,
    typer.Option(
        metavar="VERSION",
        help="Compress device code for the runtime of this ROCm release and later ones.",
        show_default="the SDK manifest's",
    ),
]
PlatformTagOption = Annotated[
    str | None, typer.Option(help="Give all wheels this platform tag.", show_default="computed from their files")
]


def takes_plan_job(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options that make up the `PlanJob`, which ``command`` takes as ``inputs``.

    Typer reads a function's signature. The result lists these options and the command's own, required ones first.
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
