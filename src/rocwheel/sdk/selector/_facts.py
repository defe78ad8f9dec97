"""Literals of ``_build_info.py`` that depend on the machine and on PKG-INFO."""

from __future__ import annotations

import re

from ._archives import field_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


def take_facts(build_info: Any, platform: str, machine: str = "") -> str:
    """Give the module the facts of a platform and machine, and return the lines that do so in a copy of its text.

    The copy has those of another platform where it runs there: installers for another platform build wheels here, too.
    """
    by_platform = getattr(build_info, "BY_PLATFORM", {})
    facts = {**by_platform.get(platform, {}), **by_platform.get(f"{platform} {machine}", {})}
    shared = {name: getattr(build_info, name) for name in facts}
    for name, value in facts.items():
        setattr(build_info, name, value)
    own = "".join(f"{name} = {value!r}\n" for name, value in facts.items())
    return own + _elsewhere(platform, shared, by_platform) if by_platform else own


def _elsewhere(platform: str, shared: dict[str, Any], by_platform: dict[str, Any]) -> str:
    """Return lines that take the facts of the platform that the module runs on, if that is not ``platform``."""
    lines = ["import sys", "", f"if sys.platform != {platform!r}:"]
    lines += [f"    {name} = {value!r}" for name, value in shared.items()]
    lines += ["    globals().update(BY_PLATFORM.get(sys.platform, {}))"]
    if any(" " in key for key in by_platform):
        lines += ["    from platform import machine", ""]
        lines += ["    globals().update(BY_PLATFORM.get(f'{sys.platform} {machine()}', {}))"]
    return "\n".join([*lines, ""])


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
