"""Whether the families that ``ROCM_SDK_TARGET_FAMILY`` chooses are those that are installed."""

from __future__ import annotations

from . import _build_info
from ._access import ERROR, Finding
from ._device_code import needs_device_code
from ._packages import SITE, installed_families
from ._select import CHOICE_VARIABLE, select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._system import System

__all__ = ["check_choice"]


def check_choice(system: System) -> list[Finding]:
    """Tell of a choice that this release lacks, and of one other than what pip or uv took from its cache."""
    if not system.variable(CHOICE_VARIABLE) or not _build_info.FAMILIES:
        return []
    try:
        selection = select(system)
    except ValueError as e:
        return [Finding(ERROR, str(e), f"unset {CHOICE_VARIABLE}")]
    present = installed_families()
    if not needs_device_code() or set(selection.families) <= set(present):
        return []
    names = ", ".join(present) or "nothing"
    text = f"{selection.explanation}, but installed in {SITE} is device code for {names}"
    return [Finding(ERROR, text, _reinstallation())]


def _reinstallation() -> str:
    extra = "device" if _build_info.LAYOUT == "neutral" else "libraries"
    name = f"{_build_info.PACKAGES['meta']['dist']}[{extra}]=={_build_info.VERSION}"
    return f'pip install --no-cache-dir --force-reinstall "{name}"'
