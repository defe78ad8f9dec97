"""What to do about files of the packages that this user may not read."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["opening_hint"]


def opening_hint(*folders: Path) -> str:
    """Return the command that opens folders to all users, and who may run it.

    Installing again is no remedy: uv fails halfway where it can't list a folder, and pip leaves it behind under another
    name. Both remove a folder later only where its owner may write to it.
    """
    from shlex import quote  # noqa: PLC0415 (needed where something is wrong)

    owned, words = ", ".join(map(str, folders)), " ".join(quote(str(folder)) for folder in folders)
    return f"As the owner of {owned}: chmod -R u+rwX,go+rX {words}"
