"""The sets of distributions that are installed together.

Several versions of one distribution never are, nor its wheels for several Pythons or machines.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from rocwheel.installed.tree import Tree
from rocwheel.wheels.tags import parse_platforms, split_tags

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.installed.tree import Distribution

__all__ = ["Environments", "split_environments"]

_GENERIC = ("py2", "py3", "none", "abi3")


class Environments(msgspec.Struct, frozen=True, dict=True):
    """The environments that wheels are for, of everything that was given together."""

    everything: Tree
    """All distributions and files, also those that are never installed together."""
    by_leader: dict[str, Tree]
    """Source of each audited distribution to the environment that is made for it."""

    @cached_property
    def each(self) -> tuple[Tree, ...]:
        """The environments, each once; with no audited distribution everything is one."""
        return tuple({id(tree): tree for tree in self.by_leader.values()}.values()) or (self.everything,)


def split_environments(tree: Tree) -> Environments:
    """Split a tree into the environments that its wheels are for; each has every distribution at most once.

    Each environment is made for one wheel, its leader. Of several wheels of another distribution, it has the one that
    is most like the leader. An audited wheel comes before one that is context. Wheels for other machines are left out.
    Every audited distribution is in at least one environment. A tree without such conflicts is one environment.
    """
    return Environments(tree, _by_leader(tree))


def _by_leader(tree: Tree) -> dict[str, Tree]:
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
    """Return the distributions of one name that may be installed: context only where none is audited."""
    return [owner for owner in owners if not owner.is_context] or owners


def _beside(leader: Distribution, groups: Iterable[list[Distribution]]) -> list[str]:
    """Return the sources of a distribution and of what is installed with it, one of each name, for one machine."""
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
    """Return the machines of a wheel's platform tags; of systems without glibc the whole tag. Empty for any machine."""
    platforms = parse_platforms(owner.name_tags[2]) if owner.is_wheel else ()
    return frozenset(tag.machine if tag.system == "glibc" else tag.text for tag in platforms if tag.system != "any")


def _likeness(one: Distribution, other: Distribution) -> tuple[bool, bool, bool, bool]:
    first, second = set(one.name_tags), set(other.name_tags)
    pythons = split_tags(other.name_tags[0])
    same_python = not {*split_tags(one.name_tags[0])}.isdisjoint(pythons)
    any_python = any(tag in _GENERIC for tag in (*pythons, other.name_tags[1]))
    return same_python, any_python, one.version == other.version, first == second


def _without(tree: Tree, dropped: set[str]) -> Tree:
    owners = tuple(owner for owner in tree.distributions if owner.source not in dropped)
    files = tuple(file for file in tree.files if file.distribution not in dropped)
    return msgspec.structs.replace(tree, distributions=owners, files=files)
