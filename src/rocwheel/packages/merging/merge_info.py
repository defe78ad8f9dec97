"""The facts of a selector that is merged from several."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Any

from rocwheel.distributions.formats.requirements.requirements import refusing_requirement
from rocwheel.packages.layout.prefixes import canonical_order
from rocwheel.packages.merging.places import find_places, marker_of
from rocwheel.packages.merging.platform_facts import PlatformFacts, find_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.packages.merging.places import Place
    from rocwheel.packages.merging.selectors import Selector

__all__ = ["merge_info"]


def merge_info(selectors: Sequence[Selector], default_family: str = "") -> dict[str, Any]:
    """Return the literals of one selector for all that several are for, which fit together.

    Facts that differ between platforms stand in ``BY_PLATFORM``; those that stand outside are the first platform's.
    """
    first = selectors[0].info
    facts = [find_facts(place, selectors) for place in find_places(one.machines for one in selectors)]
    families = _families(facts)
    shared = {
        "FAMILIES": families,
        "LIBRARIES": facts[0].libraries,
        "OVERLAID": facts[0].overlaid,
        "COMMON_GPUS": facts[0].common_gpus,
        "UNLOADABLE": facts[0].unloadable,
        "SELECTED": facts[0].selected,
    }
    return {
        **first,
        **shared,
        "PLATFORMS": list(dict.fromkeys(one.place.platform for one in facts)),
        "MACHINES": _machines(selectors),
        "DEFAULT_FAMILY": default_family or _default(selectors, families),
        "PACKAGES": {key: row for one in selectors for key, row in one.info["PACKAGES"].items()},
        "EXTRAS": _extras(facts, first["REQUIRES"][0] if first["REQUIRES"] else ""),
        "BY_PLATFORM": {one.place.key: part for one in facts if (part := _own_facts(one, shared))},
    }


def _families(facts: Sequence[PlatformFacts]) -> dict[str, dict[str, list[str]]]:
    names = canonical_order({name for one in facts for name in one.families})
    rows = {}
    for name in names:
        having = [one for one in facts if name in one.families]
        targets = dict.fromkeys(target for one in having for target in one.families[name])
        own = [name] if name in targets else []
        rows[name] = {
            "targets": [*own, *(target for target in canonical_order(targets) if target not in own)],
            "platforms": list(dict.fromkeys(one.place.platform for one in having)),
        }
    return rows


def _own_facts(facts: PlatformFacts, shared: dict[str, Any]) -> dict[str, Any]:
    """Return what holds in a place otherwise than what the selector says of all."""
    own = {
        "FAMILIES": {name: _own_family(facts, name, row) for name, row in shared["FAMILIES"].items()},
        "LIBRARIES": facts.libraries,
        "OVERLAID": facts.overlaid,
        "COMMON_GPUS": facts.common_gpus,
        "UNLOADABLE": facts.unloadable,
        "SELECTED": facts.selected,
    }
    return {name: value for name, value in own.items() if value != shared[name]}


def _own_family(facts: PlatformFacts, name: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of ``FAMILIES``; where another machine of the platform has the family, this place is not in it."""
    if name in facts.families:
        return {**row, "targets": facts.families[name]}
    return {**row, "platforms": [platform for platform in row["platforms"] if platform != facts.place.platform]}


def _machines(selectors: Sequence[Selector]) -> dict[str, list[str]]:
    """Return the machines of the platforms of which all selectors say theirs."""
    known: dict[str, list[tuple[str, ...]]] = {}
    for one in selectors:
        for platform, machines in one.machines.items():
            known.setdefault(platform, []).append(machines)
    return {name: sorted({*chain.from_iterable(parts)}) for name, parts in sorted(known.items()) if all(parts)}


def _default(selectors: Sequence[Selector], families: dict[str, Any]) -> str:
    """Return the default that somebody chose: where there is one family alone, nobody had to."""
    chosen = {one.info["DEFAULT_FAMILY"] for one in selectors if len(one.info["FAMILIES"]) > 1} - {""}
    return next(iter(chosen), next(iter(families)) if len(families) == 1 else "")


def _extras(facts: Sequence[PlatformFacts], required: str) -> dict[str, list[list[str]]]:
    """Return the extras with markers where platforms differ; targets that nothing serves are refused by name."""
    everywhere = [one.place for one in facts]
    rows: dict[str, defaultdict[str, set[Place]]] = {}
    for one in facts:
        for extra, requirements in one.extras.items():
            by_requirement = rows.setdefault(extra, defaultdict(set))
            for requirement in requirements:
                by_requirement[requirement].add(one.place)
    merged = {
        extra: [[text, marker_of(on, everywhere)] for text, on in by_requirement.items()]
        for extra, by_requirement in rows.items()
    }
    return {**merged, **_refusing(facts, merged, required)}


def _refusing(
    facts: Sequence[PlatformFacts], merged: dict[str, list[list[str]]], required: str
) -> dict[str, list[list[str]]]:
    name, _, version = required.partition("==")
    families = canonical_order({family for one in facts for family in one.families})
    refused = {(prefix, target) for one in facts for prefix, targets in one.refused.items() for target in targets}
    by_prefix = sorted({prefix for prefix, _ in refused})
    ordered = [
        (prefix, target) for prefix in by_prefix for target in canonical_order({t for p, t in refused if p == prefix})
    ]
    return {
        f"{prefix}-{target}": [[refusing_requirement(name, version.partition("+")[0], target, families), ""]]
        for prefix, target in ordered
        if f"{prefix}-{target}" not in merged
    }
