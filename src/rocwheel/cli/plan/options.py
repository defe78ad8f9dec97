"""The options that ``rocwheel build`` and ``rocwheel plan`` share."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from rocwheel.binary.platform import Platform
from rocwheel.build.job import PlanJob
from rocwheel.build.planning.options import PlanOptions, check_options
from rocwheel.cli.parsing.completion import complete_targets
from rocwheel.cli.parsing.old_words import name_as_given
from rocwheel.cli.parsing.shared_options import shared

__all__ = ["read_plan_job"]

_TAG_OPTION = "--platform-tag"
_TAG_VARIABLE = "ROCM_SDK_WHEEL_PLATFORM_TAG"
"""The reference's packager takes the tag from it."""

ArtifactDirOption = Annotated[
    list[Path],
    shared("--artifact-dir", "Read the artifacts (folders, .tar.xz or .tar.zst) in this folder; several are united."),
]
RecipeOption = Annotated[
    Path | None, typer.Option("--recipe", metavar="FILE", help="Use this recipe (TOML) in place of the one for ROCm.")
]
VersionOption = Annotated[
    str | None, shared("--version", "Set the version of all packages.", show_default="the SDK manifest's")
]
SuffixOption = Annotated[
    str, typer.Option("--version-suffix", metavar="TEXT", help="Append this text to the names of platform modules.")
]
TargetsOption = Annotated[
    str | None,
    typer.Option(
        "--targets",
        metavar="TARGETS",
        autocompletion=complete_targets,
        help="Fail unless these GPU targets or families are there, e.g. 'gfx906;gfx94X-dcgpu'.",
    ),
]
DefaultFamilyOption = Annotated[
    str,
    typer.Option(
        "--default-family",
        metavar="TARGET",
        autocompletion=complete_targets,
        help="Select this target or family on machines without a GPU.",
    ),
]
SelectorOption = Annotated[
    Literal["sdist", "wheel"],
    typer.Option(help="sdist: decides at install time. wheel: can be locked, explicit extras."),
]
DevelOption = Annotated[
    Literal["none", "xz", "zst"],
    typer.Option(help="Compress the devel tar. Reading zst takes Python 3.14, backports.zstd or the system's libzstd."),
]
DeviceCodeOption = Annotated[
    Literal["keep", "compress", "trim"],
    typer.Option(
        help="Keep plain offload bundles, compress them in their places, or compress them and trim the libraries."
    ),
]
SplitOption = Annotated[
    Literal["none", "kpack", "overlay"],
    typer.Option(
        "--split-device",
        metavar="[=kpack|overlay]",
        help="Make a package for each GPU target: with archives of device code, which runtimes with kpack read, or "
        "with whole libraries, which any runtime reads.",
        show_default=False,
    ),
]
CommonOption = Annotated[
    str | None,
    typer.Option(
        "--common",
        metavar="TARGETS",
        autocompletion=complete_targets,
        help="With --split-device=overlay, keep the code of these in the libraries for all GPUs.",
        show_default="the generic targets, else the one that most GPUs can use",
    ),
]
RetargetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--retarget",
        metavar="FROM=TO[,TO...]",
        help="Offer code for one target to GPUs that run the same instructions, e.g. gfx1030=extended.",
    ),
]
VariantsOption = Annotated[
    bool,
    typer.Option(
        "--variants",
        help="Offer the packages for each GPU also as wheel variants of one name, which are a draft (PEP 825).",
    ),
]
RocmOption = Annotated[
    str | None,
    shared(
        "--rocm",
        "Compress device code for the runtime of this ROCm release and later ones.",
        show_default="the SDK manifest's",
    ),
]
PlatformTagOption = Annotated[
    str | None, shared(_TAG_OPTION, show_default=f"${_TAG_VARIABLE}, else computed from their files")
]

PlatformOption = Annotated[
    Platform | None,
    typer.Option(
        "--platform",
        help="Fail unless the artifacts are for this system; where no file tells, they are.",
        show_default="the one that the files are for",
    ),
]


def read_plan_job(
    artifact_dir: ArtifactDirOption,
    recipe: RecipeOption = None,
    version: VersionOption = None,
    version_suffix: SuffixOption = "",
    targets: TargetsOption = None,
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
    """Return what the options describe, and the variable that stands for one of them."""
    tag, tag_source = _given_tag(platform_tag)
    options = PlanOptions(
        version=version,
        module_suffix=version_suffix,
        targets=() if targets is None else (targets,),
        targets_source=name_as_given("--targets", sys.argv[1:]),
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
    return PlanJob(artifact_dir[0], recipe, options, tuple(artifact_dir[1:]))


def _given_tag(option: str | None) -> tuple[str | None, str]:
    """Return the platform tag, none if it is to be computed, and what gave it."""
    variable = os.environ.get(_TAG_VARIABLE, "")
    if option is not None or not variable:
        return option, _TAG_OPTION
    return variable.replace("-", "_"), _TAG_VARIABLE  # sysconfig.get_platform() says linux-x86_64
