"""What a shell offers after <TAB> where rocwheel knows the words: GPU targets, audit rules, build tools, commands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import typer

__all__ = ["complete_commands", "complete_rules", "complete_targets", "complete_tools"]

_LAST_WORD = re.compile(r"(.*[;,])?(.*)", re.DOTALL)


def complete_targets(incomplete: str) -> list[str]:
    """Return the targets, families, policies and products that end a list, such as ``gfx906;gfx9`` or ``gfx90a,MI``."""
    targets = _loaded("targets.spelling.target_set").known_words()
    products = _loaded("targets.spelling.products").product_words()
    return _ends(incomplete, [*targets, *products, "native"])


def complete_rules(incomplete: str) -> list[str]:
    """Return the names of the audit's rules that begin like this."""
    return _ends(incomplete, [rule.name for rule in _loaded("audit.rules").ALL_RULES])


def complete_tools(incomplete: str) -> list[str]:
    """Return the tools that a run path is spelled for."""
    return _ends(incomplete, [*_loaded("linking.link_flags").TOOLS, "all"])


def complete_commands(context: typer.Context, incomplete: str) -> list[str]:
    """Return the commands that begin like this, in the groups whose names stand before it."""
    known: object = context.find_root().command
    for word in context.params.get("words") or ():
        known = getattr(known, "commands", {}).get(word)
    commands = getattr(known, "commands", {})
    return [name for name, command in commands.items() if name.startswith(incomplete) and not command.hidden]


def _loaded(name: str) -> Any:
    """Return a module of rocwheel, imported only here: commands offer words that most of them never look up."""
    return import_module(f"rocwheel.{name}")


def _ends(incomplete: str, words: Iterable[str]) -> list[str]:
    parted = _LAST_WORD.fullmatch(incomplete)
    before, begun = (parted[1] or "", parted[2]) if parted else ("", incomplete)
    return [before + word for word in words if word.startswith(begun)]
