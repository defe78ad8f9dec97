"""Determines which packages and extras of a release candidate are kept if only some GPU targets are kept.

The selector's literals specify which SDK packages contain code for a target. The extras of a framework's host wheel
provide the same information: ``device-gfx942`` requires the wheels with the code for gfx942, including the wheels for
its families, and ``device-all`` requires all of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.artifacts.sdk_files import declared_targets, with_declared_targets
from rocwheel.build.planning.selector import refusing_extras, selector_requirements
from rocwheel.core.errors import InputError
from rocwheel.core.messages import shortened
from rocwheel.wheels.metadata import drop_values, parse_core_metadata, set_values
from rocwheel.wheels.requirements import RequirementError, is_refusing, read_requirement, readable_requirements

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from packaging.requirements import Requirement

    from rocwheel.build.promoting.candidates import Candidate


class KeptTargets(msgspec.Struct, frozen=True):
    """The families of a set that are kept.

    Create it with `among`, because the constructor doesn't check its arguments.
    """

    families: tuple[str, ...]
    """The kept targets or families, with the names that the selector uses."""
    dropped: frozenset[str]
    """The normalized names of the distributions for dropped targets."""
    served: frozenset[str]
    """The targets that the kept families cover."""
    dropped_targets: frozenset[str]
    """The targets that only dropped families cover."""

    @classmethod
    def among(cls, info: Mapping[str, Any], processors: Collection[str]) -> KeptTargets:
        """Return the families to keep for these processors, possibly an empty tuple.

        ``info`` contains the selector's literals.
        """
        served = {name: frozenset(row["targets"]) for name, row in info["FAMILIES"].items()}
        kept = tuple(name for name, targets in served.items() if targets & set(processors))
        names = [row["dist"] for row in info["PACKAGES"].values() if "{family}" in row["dist"]]
        gone = [name.replace("{family}", family) for name in names for family in served.keys() - set(kept)]
        left = _united(served[name] for name in kept)
        return cls(kept, frozenset(map(canonicalize_name, gone)), left, _united(served.values()) - left)

    @classmethod
    def for_hosts(cls, targets: Sequence[str]) -> KeptTargets:
        """Return the targets to keep in frameworks without a selector."""
        return cls(tuple(targets), frozenset(), frozenset(targets), frozenset())

    @classmethod
    def together(cls, parts: Collection[KeptTargets]) -> KeptTargets:
        """Return the families to keep in packages that several sets share."""
        families = tuple(dict.fromkeys(family for part in parts for family in part.families))
        served = _united(part.served for part in parts)
        gone = _united(part.dropped_targets for part in parts)
        return cls(families, _united(part.dropped for part in parts), served, gone - served)

    def build_info(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the selector's literals without dropped targets.

        In the result, the extras for these targets contain requirements that can't be satisfied.
        """
        default = values["DEFAULT_FAMILY"]
        if default not in self.families:
            default = self.families[0] if len(self.families) == 1 else ""
        families = {name: values["FAMILIES"][name] for name in self.families}
        changed = {**values, "FAMILIES": families, "DEFAULT_FAMILY": default}
        if "BY_PLATFORM" in values:
            changed["BY_PLATFORM"] = {name: self._own_facts(facts) for name, facts in values["BY_PLATFORM"].items()}
        extras: dict[str, list[list[str]]] = {}
        served = {name: row["targets"] for name, row in changed["FAMILIES"].items()}
        for extra, rows in changed["EXTRAS"].items():
            left = [row for row in rows if not self._is_dropped(row[0])]
            if left or not rows:
                extras[extra] = left
            prefix = extra.removesuffix("-all")
            if prefix != extra and changed["LAYOUT"] == "neutral" and rows:
                extras |= refusing_extras(prefix, changed["REQUIRES"][0], served)
        return {**changed, "EXTRAS": extras}

    def _own_facts(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the literals for a platform without dropped targets."""
        families = facts.get("FAMILIES")
        kept = {"FAMILIES": {name: families[name] for name in self.families}} if families else {}
        return {**facts, **kept}

    def _is_dropped(self, text: str) -> bool:
        """Return whether a requirement is for a dropped package or exists only to reject a target.

        Requirements that reject targets are recreated later.
        """
        found = readable_requirements([text])
        return any(is_refusing(item) or canonicalize_name(item.name) in self.dropped for item in found)

    def metadata(self, data: bytes, info: Mapping[str, Any], source: str) -> bytes:
        """Return the METADATA of the selector wheel with the requirements from its literals ``info``.

        Raises `InputError` about ``source`` for an invalid requirement.
        """
        try:
            requires = [str(read_requirement(text)) for text in selector_requirements(info)]
        except RequirementError as e:
            found = f"has an invalid requirement ({shortened(str(e))})"
            raise InputError(source, found, remedy="Build the packages again.") from e
        return set_values(set_values(data, "Requires-Dist", requires), "Provides-Extra", list(info["EXTRAS"]))

    def dist_info(self, data: bytes, source: str, declared: Iterable[str]) -> bytes:
        """Return the core's list of targets, limited to targets that a kept package or ``declared`` contains."""
        gone = self.dropped_targets - set(declared)
        if not gone:
            return data
        left = [target for target in declared_targets(source, data) if target not in gone]
        return with_declared_targets(source, data, left)


def _united(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


_EXTRA = re.compile(r"""extra == ["'](device(?:-[^"']+)?)["']""")
_DEFAULT, _PREFIX = "device", "device-gfx"


class HostExtras(msgspec.Struct, frozen=True):
    """The device wheels that a framework's host wheel requires for each of its extras."""

    names: dict[str, tuple[str, ...]]
    """The normalized names of the device wheels, keyed by extra."""

    @property
    def targets(self) -> frozenset[str]:
        """The targets that have an extra."""
        return frozenset(f"gfx{extra.removeprefix(_PREFIX)}" for extra in self.names if extra.startswith(_PREFIX))

    def dropped_extras(self, kept: Collection[str]) -> frozenset[str]:
        """Return the extras for targets that aren't kept."""
        return frozenset(f"device-{target}" for target in self.targets if target not in kept)

    def dropped_names(self, kept: Collection[str]) -> frozenset[str]:
        """Return the names of the device wheels that aren't for any kept target."""
        gone = self.dropped_extras(kept)
        by_target = {extra: names for extra, names in self.names.items() if extra.startswith(_PREFIX)}
        left = {name for extra, names in by_target.items() if extra not in gone for name in names}
        everything = {name for names in by_target.values() for name in names}
        # A wheel of a family whose targets have no extras is required only together with all other wheels.
        return frozenset(everything - left)

    def metadata(self, data: bytes, kept: Collection[str]) -> bytes:
        """Return METADATA without the extras and requirements for dropped targets.

        If the extra ``device`` required a dropped wheel, it then requires the wheels for the first kept target.
        """
        extras, names = self.dropped_extras(kept), self.dropped_names(kept)
        texts = parse_core_metadata(data)[0].get("requires_dist", [])
        kept_extra = next((extra for extra in self.names if extra.startswith(_PREFIX) and extra not in extras), "")
        found = [
            text for text in texts if not any(_is_for(one, extras, names) for one in readable_requirements([text]))
        ]
        if any(name in names for name in self.names.get(_DEFAULT, ())):
            first = [text for text in found if f'extra == "{kept_extra}"' in text.replace("'", '"')]
            found += [re.sub(rf"""(["']){re.escape(kept_extra)}\1""", rf"\1{_DEFAULT}\1", text) for text in first]
        data = set_values(data, "Requires-Dist", found) if found != texts else data
        return drop_values(data, "Provides-Extra", lambda extra: canonicalize_name(extra) in extras)


def host_extras(candidate: Candidate) -> HostExtras:
    """Return the extras of a framework's host wheel; empty for other distributions and wheels that aren't split."""
    names: dict[str, list[str]] = {}
    is_host = candidate.is_wheel and not candidate.info
    texts = parse_core_metadata(candidate.metadata)[0].get("requires_dist", ()) if is_host else ()
    for requirement in readable_requirements(texts):
        if (match := _EXTRA.search(str(requirement.marker))) and not is_refusing(requirement):
            names.setdefault(canonicalize_name(match[1]), []).append(canonicalize_name(requirement.name))
    return HostExtras({extra: tuple(found) for extra, found in names.items()})


def _is_for(requirement: Requirement, extras: Collection[str], names: Collection[str]) -> bool:
    """Return whether a requirement belongs to a dropped extra or is for a dropped device wheel."""
    match = _EXTRA.search(str(requirement.marker))
    return match is not None and (canonicalize_name(match[1]) in extras or canonicalize_name(requirement.name) in names)
