"""How wheels are split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.binary.kpack.markers import PLACEHOLDER
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import convert_all
from rocwheel.device.splitting.files import SplitChoice
from rocwheel.device.splitting.wheels.metadata import check_requirements
from rocwheel.device.splitting.wheels.names import check_prefix, is_family

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
    kept_requires: dict[str, tuple[str, ...]] = {}
    """What the device wheels of some targets require in place of that, word for word; by their normalised names."""
    jobs: int = 1
    dry_run: bool = False
    """Whether nothing is written; wheels have no size in the report then."""
    progress: Progress = SILENT

    def requires_of(self, target: str) -> tuple[str, ...]:
        """Return what the device wheel of a target or a family requires besides."""
        kept = self.kept_requires.get(canonicalize_name(target))
        if kept is not None:
            return kept
        is_shared = is_family(target)
        return tuple(
            text.replace(PLACEHOLDER, target)
            for text in self.device_requires
            if not (is_shared and PLACEHOLDER in text)
        )


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
