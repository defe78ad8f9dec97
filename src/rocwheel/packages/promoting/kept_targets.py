"""A package set reduced to some GPU targets: the files that name the others are changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.artifacts.sdk_files import declared_targets, with_declared_targets
from rocwheel.core.errors import InputError
from rocwheel.core.messages import shortened
from rocwheel.distributions.formats.metadata.edit_metadata import set_values
from rocwheel.distributions.formats.requirements.requirements import (
    RequirementError,
    is_refusing,
    read_requirement,
    readable_requirements,
)
from rocwheel.packages.planning.selector.build_info import refusing_extras
from rocwheel.packages.planning.selector.distributions import selector_requirements

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = ["KeptTargets"]


class KeptTargets(msgspec.Struct, frozen=True):
    """Which families of a set stay. Use `among`; the constructor checks nothing."""

    families: tuple[str, ...]
    """Targets or families, as the selector names them."""
    dropped: frozenset[str]
    """The names of the distributions for others, normalised."""
    served: frozenset[str]
    """The targets that families of those that stay serve."""
    dropped_targets: frozenset[str]
    """The targets that only others serve."""

    @classmethod
    def among(cls, info: Mapping[str, Any], processors: Collection[str]) -> KeptTargets:
        """Return what stays for these processors, maybe nothing, of the set whose selector has these literals."""
        served = {name: frozenset(row["targets"]) for name, row in info["FAMILIES"].items()}
        kept = tuple(name for name, targets in served.items() if targets & set(processors))
        names = [row["dist"] for row in info["PACKAGES"].values() if "{family}" in row["dist"]]
        gone = [name.replace("{family}", family) for name in names for family in served.keys() - set(kept)]
        left = _united(served[name] for name in kept)
        return cls(kept, frozenset(map(canonicalize_name, gone)), left, _united(served.values()) - left)

    @classmethod
    def together(cls, parts: Collection[KeptTargets]) -> KeptTargets:
        """Return what stays of what several sets share."""
        families = tuple(dict.fromkeys(family for part in parts for family in part.families))
        served = _united(part.served for part in parts)
        gone = _united(part.dropped_targets for part in parts)
        return cls(families, _united(part.dropped for part in parts), served, gone - served)

    def build_info(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the selector's literals without what is for other targets, which are refused by name from now on."""
        default = values["DEFAULT_FAMILY"]
        if default not in self.families:
            default = self.families[0] if len(self.families) == 1 else ""
        families = {name: values["FAMILIES"][name] for name in self.families}
        changed = {**values, "FAMILIES": families, "DEFAULT_FAMILY": default}
        if "BY_PLATFORM" in values:
            changed["BY_PLATFORM"] = {name: self._own_facts(facts) for name, facts in values["BY_PLATFORM"].items()}
        return {**changed, "EXTRAS": self._extras(changed)}

    def _own_facts(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is otherwise on a platform, without what is for other targets."""
        families = facts.get("FAMILIES")
        kept = {"FAMILIES": {name: families[name] for name in self.families}} if families else {}
        return {**facts, **kept}

    def _extras(self, values: Mapping[str, Any]) -> dict[str, list[list[str]]]:
        extras: dict[str, list[list[str]]] = {}
        served = {name: row["targets"] for name, row in values["FAMILIES"].items()}
        for extra, rows in values["EXTRAS"].items():
            left = [row for row in rows if not self._is_dropped(row[0])]
            if left or not rows:
                extras[extra] = left
            prefix = extra.removesuffix("-all")
            if prefix != extra and values["LAYOUT"] == "neutral" and rows:
                extras |= refusing_extras(prefix, values["REQUIRES"][0], served)
        return extras

    def _is_dropped(self, text: str) -> bool:
        """Return whether a requirement is of a dropped package, or refuses a target: those are made again."""
        found = readable_requirements([text])
        return any(is_refusing(item) or canonicalize_name(item.name) in self.dropped for item in found)

    def metadata(self, data: bytes, info: Mapping[str, Any], source: str) -> bytes:
        """Return METADATA of the selector as a wheel, with what its literals ``info`` require.

        Raises `InputError`, led by ``source``, for a text among these that is no requirement.
        """
        try:
            requires = [str(read_requirement(text)) for text in selector_requirements(info)]
        except RequirementError as e:
            found = f"requires what is no requirement ({shortened(str(e))})"
            raise InputError(source, found, remedy="Build the packages again.") from e
        return set_values(set_values(data, "Requires-Dist", requires), "Provides-Extra", list(info["EXTRAS"]))

    def dist_info(self, data: bytes, source: str, declared: Iterable[str]) -> bytes:
        """Return the core's list of targets without those that neither a package nor ``declared`` has any more."""
        gone = self.dropped_targets - set(declared)
        left = [target for target in declared_targets(source, data) if target not in gone]
        return with_declared_targets(source, data, left)


def _united(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)
