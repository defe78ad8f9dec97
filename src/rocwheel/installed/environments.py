"""Which distributions are installed together: not several versions of one, or its wheels for several Pythons."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.installed.tree import Distribution, Tree

__all__ = ["environments_by_leader", "split_environments"]

_GLIBC = re.compile(r"^(?:manylinux[0-9_]*|linux)_")
_GENERIC = ("py2", "py3", "none", "abi3")


def split_environments(tree: Tree) -> tuple[Tree, ...]:
    """Split a tree into the environments that its wheels are for; each has every distribution at most once.

    Of several wheels of a distribution an environment has the one that is most like the wheel that it is made for; of
    an audited and a mere context one the audited. Wheels for other machines have no place in it. Every audited
    distribution is in one at least, and a tree without such conflicts is one.
    """
    return tuple({id(part): part for part in environments_by_leader(tree).values()}.values()) or (tree,)


def environments_by_leader(tree: Tree) -> dict[str, Tree]:
    """Return the source of each audited distribution to the environment that is made for it (`split_environments`)."""
    groups = _by_name(tree)
    candidates = [_installable(owners) for owners in groups]
    possible = [owner for owners in candidates for owner in owners]
    leaders = [owner for owner in possible if not owner.is_context] or possible[:1]
    machines = {_machines(leader) for leader in leaders} - {frozenset()}
    if all(len(owners) == 1 for owners in groups) and len(machines) <= 1:
        return dict.fromkeys((leader.source for leader in leaders), tree)
    chosen = {leader.source: frozenset(_beside(leader, candidates)) for leader in leaders}
    every = {owner.source for owners in groups for owner in owners}
    parts = {kept: _without(tree, every - kept) for kept in dict.fromkeys(chosen.values())}
    return {source: parts[kept] for source, kept in chosen.items()}


def _by_name(tree: Tree) -> list[list[Distribution]]:
    found: dict[str, list[Distribution]] = defaultdict(list)
    for owner in tree.distributions:
        if owner.dist_info:
            found[owner.name or owner.source].append(owner)
    return list(found.values())


def _installable(owners: list[Distribution]) -> list[Distribution]:
    """Return those of one name that may be installed: mere context only where none is audited."""
    return [owner for owner in owners if not owner.is_context] or owners


def _beside(leader: Distribution, groups: Iterable[list[Distribution]]) -> list[str]:
    """Return the sources of a distribution and of what is installed beside it, one of each name, for one machine."""
    kept, machines = [], _machines(leader)
    for owners in groups:
        fitting = [owner for owner in owners if not machines or not _machines(owner) or machines & _machines(owner)]
        if not fitting:
            continue
        chosen = leader if leader in owners else max(fitting, key=lambda owner: _likeness(leader, owner))
        kept.append(chosen.source)
        machines = machines & _machines(chosen) or machines or _machines(chosen)
    return kept


def _machines(owner: Distribution) -> frozenset[str]:
    """Return what a wheel's platform tags end in, of other systems than glibc's all of it; nothing for any machine."""
    platforms = owner.name_tags[2].split(".") if owner.is_wheel else ["any"]
    return frozenset(_GLIBC.sub("", tag) for tag in platforms if tag != "any")


def _likeness(one: Distribution, other: Distribution) -> tuple[bool, bool, bool, bool]:
    first, second = set(one.name_tags), set(other.name_tags)
    same_python = bool(set(one.name_tags[0].split(".")) & set(other.name_tags[0].split(".")))
    any_python = any(tag in _GENERIC for tag in (*other.name_tags[0].split("."), other.name_tags[1]))
    return same_python, any_python, one.version == other.version, first == second


def _without(tree: Tree, dropped: set[str]) -> Tree:
    owners = tuple(owner for owner in tree.distributions if owner.source not in dropped)
    files = tuple(file for file in tree.files if file.distribution not in dropped)
    return msgspec.structs.replace(tree, distributions=owners, files=files)
