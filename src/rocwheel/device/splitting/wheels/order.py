"""How wheels are split."""

from __future__ import annotations

import msgspec

from rocwheel.device.splitting.files import SplitChoice
from rocwheel.foundation.progress import SILENT, Progress

__all__ = ["WheelSplitOrder"]


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
