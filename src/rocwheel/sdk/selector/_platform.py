"""Takes the facts that hold on the platform of this machine, where a selector is for several."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["take_facts"]


def take_facts(build_info: Any, platform: str, machine: str = "") -> str:
    """Give the module the facts of a platform and machine, and return the lines that do so in a copy of its text."""
    by_platform = getattr(build_info, "BY_PLATFORM", {})
    facts = {**by_platform.get(platform, {}), **by_platform.get(f"{platform} {machine}", {})}
    for name, value in facts.items():
        setattr(build_info, name, value)
    return "".join(f"{name} = {value!r}\n" for name, value in facts.items())
