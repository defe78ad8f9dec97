"""What a shell offers after <TAB> where rocwheel knows the words: GPU targets, audit rules, build tools."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocwheel.audit.rules import ALL_RULES
from rocwheel.linking.link_flags import TOOLS
from rocwheel.targets.spelling.products import product_words
from rocwheel.targets.spelling.target_set import known_words

__all__ = ["complete_rules", "complete_targets", "complete_tools"]

_LAST_WORD = re.compile(r"(.*[;,])?(.*)", re.DOTALL)


def complete_targets(incomplete: str) -> list[str]:
    """Return the targets, families, policies and products that end a list, such as ``gfx906;gfx9`` or ``gfx90a,MI``."""
    return _ends(incomplete, [*known_words(), *product_words(), "native"])


def complete_rules(incomplete: str) -> list[str]:
    """Return the names of the audit's rules that begin like this."""
    return _ends(incomplete, [rule.name for rule in ALL_RULES])


def complete_tools(incomplete: str) -> list[str]:
    """Return the tools that a run path is spelled for."""
    return _ends(incomplete, [*TOOLS, "all"])


def _ends(incomplete: str, words: Iterable[str]) -> list[str]:
    parted = _LAST_WORD.fullmatch(incomplete)
    before, begun = (parted[1] or "", parted[2]) if parted else ("", incomplete)
    return [before + word for word in words if word.startswith(begun)]
