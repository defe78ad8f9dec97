"""The options of ``rocwheel repair`` that say what a repaired wheel is like."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rocwheel.audit.settings import find_settings
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.cli.parsing.shared_options import shared
from rocwheel.repair.options import Mismatch, RepairOptions
from rocwheel.repair.toolkit import ToolkitOption

__all__ = ["read_repair_options"]

ToolkitChoice = Annotated[
    ToolkitOption,
    typer.Option(help="Take ROCm's libraries from the SDK's packages or the system; by default as the wheel fits."),
]
PinOption = Annotated[
    Literal["release", "none", "minor", "exact"],
    typer.Option(help="Pin added requirements to the version at hand, by default minor, or else to ROCm's release."),
]
KeepOption = Annotated[
    bool, typer.Option("--keep", help="Keep every folder in run paths that may have libraries on some machine.")
]
InitOption = Annotated[bool, typer.Option("--init", help="Add _rocm_init.py, which makes rocm_sdk load the libraries.")]
TagOption = Annotated[
    bool | None,
    typer.Option("--rpath/--runpath", help="Set all run paths under this tag; by default they stay under theirs."),
]


def read_repair_options(
    dlopen: Annotated[list[str] | None, shared("--dlopen")] = None,
    toolkit: ToolkitChoice = "auto",
    pin: PinOption = "release",
    keep: KeepOption = False,
    init: InitOption = False,
    mismatch: Annotated[
        Mismatch, shared("--mismatch", "With --init: fail or warn at run time when ROCm has another version.")
    ] = "fail",
    config: Annotated[Path | None, shared("--config")] = None,
    rpath: TagOption = None,
) -> RepairOptions:
    """Return what the options say, with the audit's settings."""
    tag = None if rpath is None else RunpathTag.RPATH if rpath else RunpathTag.RUNPATH
    settings, _ = find_settings(config)
    return RepairOptions(
        tag=tag,
        pin=pin,
        keep=keep,
        dlopen=tuple(dlopen or ()),
        init=init,
        mismatch=mismatch,
        toolkit=toolkit,
        settings=settings,
    )
