"""Believes the version in PKG-INFO alone: scripts that promote release candidates don't know other places."""

from __future__ import annotations

import re

from ._metadata import field_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["align_version"]


def align_version(build_info: Path, pkg_info: str) -> None:
    """Write the version of PKG-INFO into the literals of ``_build_info.py``, and into the requirements there."""
    text = build_info.read_text(encoding="utf-8")
    found = re.search(r"^VERSION = (['\"])(.*)\1$", text, re.MULTILINE)
    [new] = field_values(pkg_info, "Version")
    if found is None or found[2] == new:
        return
    old, old_public, new_public = re.escape(found[2]), re.escape(found[2].partition("+")[0]), new.partition("+")[0]
    text = text.replace(found[0], f"VERSION = {new!r}")
    text = re.sub(rf"=={old}(?=['\"])", f"=={new}", text)
    text = re.sub(rf"=={old_public}\+(?=[\w.]*\.is\.not\.in\.this\.release)", f"=={new_public}+", text)
    build_info.write_text(text, encoding="utf-8")
