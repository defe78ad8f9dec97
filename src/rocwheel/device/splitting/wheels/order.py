"""How wheels are split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.device.splitting.files import SplitChoice
from rocwheel.device.splitting.wheels.metadata import check_requirements
from rocwheel.device.splitting.wheels.names import check_prefix
from rocwheel.foundation.collecting import convert_all
from rocwheel.foundation.progress import SILENT, Progress

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WheelSplitOrder", "check_order"]


class WheelSplitOrder(msgspec.Struct, frozen=True, kw_only=True):
    """How a wheel is split: what is kept, how its parts are called, and what they require."""

    choice: SplitChoice
    overlay_root: str = ""
    """The folder that device wheels are laid over; the one with device code if it is empty."""
    device_prefix: str = ""
    """What the names of device wheels begin with; that of the wheel and ``-device`` if it is empty."""
    host_requires: tuple[str, ...] = ()
    """What the host wheel requires besides."""
    device_requires: tuple[str, ...] = ()
    """What device wheels require besides; ``@GFXARCH@`` stands for their target."""
    jobs: int = 1
    dry_run: bool = False
    """Whether nothing is written; wheels have no size in the report then."""
    progress: Progress = SILENT


def check_order(order: WheelSplitOrder) -> None:
    """Raise `InputError`, or `ProblemsError` for several, for a name or requirements that no wheel can have."""
    prefixes = [order.device_prefix] if order.device_prefix else []
    checks: tuple[Callable[[], object], ...] = (
        lambda: convert_all("--device-name", check_prefix, prefixes),
        lambda: check_requirements(order.host_requires, "--host-requires-dist"),
        lambda: check_requirements(order.device_requires, "--device-requires-dist", target="gfx900"),
    )
    convert_all("options", _call, checks)


def _call(check: Callable[[], object]) -> object:
    return check()
