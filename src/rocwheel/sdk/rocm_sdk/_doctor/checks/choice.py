"""Checks that the families that ``ROCM_SDK_TARGET_FAMILY`` chooses are installed."""

from __future__ import annotations

from ... import _build_info
from ..._gpus.access import ERROR, Diagnosis
from ..._installing import with_source
from ..._packages import installed_families
from ..._select import CHOICE_VARIABLE, select
from ..._trusted import SITE
from .device_code import needs_device_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..._gpus.system import System

__all__ = ["check_choice"]


def check_choice(system: System) -> list[Diagnosis]:
    """Return an error for a choice that this release lacks, and for one that pip or uv did not install.

    Both installers cache the wheel that they built for an earlier choice.
    """
    if not system.variable(CHOICE_VARIABLE) or not _build_info.FAMILIES:
        return []
    try:
        selection = select(system)
    except ValueError as e:
        return [Diagnosis(ERROR, str(e), f"unset {CHOICE_VARIABLE}")]
    if selection.reason == "environment" and not selection.families:  # other platforms have it
        return [Diagnosis(ERROR, selection.explanation, f"unset {CHOICE_VARIABLE}")]
    present = installed_families()
    if not needs_device_code() or set(selection.families) <= set(present):
        return []
    names = ", ".join(present) or "nothing"
    text = f"{selection.explanation}, but installed in {SITE} is device code for {names}"
    return [Diagnosis(ERROR, text, _reinstallation())]


def _reinstallation() -> str:
    extra = "device" if _build_info.LAYOUT == "neutral" else "libraries"
    name = f"{_build_info.PACKAGES['meta']['dist']}[{extra}]=={_build_info.VERSION}"
    return with_source(f'pip install --no-cache-dir --force-reinstall "{name}"')
