"""Takes the facts that hold on the platform of this machine, where a selector is for several."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["take_facts"]


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
