"""What a policy stands for, the lists of releases and packagers: ``official@7.1``, ``amd@7.1``, ``list@jax``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.targets.catalog.catalog import load_catalog
from rocwheel.targets.catalog.releases import matrix_for, release_for
from rocwheel.targets.catalog.similar_code import relabelled_agents
from rocwheel.targets.errors import UnknownTargetError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["known_policies", "policy_targets"]


def policy_targets(word: str, *, source: str) -> Sequence[str]:
    """Return the targets of a policy and what follows its ``@``, a ROCm version or the name of a packager.

    Raises `UnknownTargetError` for another policy or packager, and as `release_for` and `matrix_for` do for a version.
    """
    policy, _, argument = word.lower().partition("@")
    if policy == "list":
        lists = {packager.name: packager.targets for packager in load_catalog().packagers}
        if argument not in lists:
            remedy = f"The lists are {', '.join(lists)}."
            raise UnknownTargetError(argument, lists, source=source, what="packager's list", remedy=remedy)
        return lists[argument]
    if policy not in _POLICIES:
        raise UnknownTargetError(word, known_policies(), source=source, what="policy")
    return _POLICIES[policy](argument, source)


def known_policies() -> list[str]:
    """Return every policy with each packager and release that it can have."""
    catalog = load_catalog()
    lists = [f"list@{packager.name}" for packager in catalog.packagers]
    rows = {policy: catalog.matrices if policy == "amd" else catalog.releases for policy in _POLICIES}
    return [*lists, *(f"{policy}@{row.since}" for policy, table in rows.items() for row in table)]


def _official(version: str, source: str) -> tuple[str, ...]:
    return release_for(version, source=source).official


def _unofficial(version: str, source: str) -> tuple[str, ...]:
    return release_for(version, source=source).unofficial


def _supported(version: str, source: str) -> tuple[str, ...]:
    return _official(version, source) + _unofficial(version, source)


def _extended(version: str, source: str) -> tuple[str, ...]:
    official = _official(version, source)
    return (*official, *(agent for code in official for agent in relabelled_agents(code)))


def _amd(version: str, source: str) -> tuple[str, ...]:
    return matrix_for(version, source=source).targets


_POLICIES: dict[str, Callable[[str, str], tuple[str, ...]]] = {
    "official": _official,
    "unofficial": _unofficial,
    "supported": _supported,
    "extended": _extended,
    "amd": _amd,
}
