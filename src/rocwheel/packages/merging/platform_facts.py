"""What several selectors say together about one place: a platform, or one of its machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.distributions.formats.requirements.requirements import is_refusing, readable_requirements
from rocwheel.packages.layout.prefixes import canonical_order
from rocwheel.packages.merging.places import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.packages.merging.selectors import Selector

__all__ = ["PlatformFacts", "find_facts"]


class PlatformFacts(msgspec.Struct, frozen=True):
    """What is there for a place."""

    place: Place
    families: dict[str, list[str]]
    """GPU targets by family, all in canonical order."""
    selected: dict[str, str]
    """Requirements with ``{family}``, by the extra that is decided when it is installed."""
    extras: dict[str, list[str]]
    """Requirements by extra."""
    refused: dict[str, list[str]]
    """Targets that extras refuse, by the part before the target."""
    libraries: dict[str, dict[str, Any]]
    overlaid: dict[str, list[str]]
    common_gpus: list[str]
    unloadable: list[str]


def find_facts(place: Place, selectors: Sequence[Selector]) -> PlatformFacts:
    """Return what the selectors that are for a place say about it."""
    own = [one for one in selectors if one.serves(place)]
    families = _families(place, own)
    selected = _united(one.on(place, "SELECTED") for one in own)
    extras, refused = _united_extras(place, own, selected)
    is_neutral = any(one.info["LAYOUT"] == "neutral" for one in own)
    for prefix, requirement in selected.items():
        extras |= _family_extras(prefix, requirement, families, is_neutral=is_neutral)
    with_overlays = [one.on(place, "COMMON_GPUS") or [] for one in own if one.on(place, "OVERLAID")]
    return PlatformFacts(
        place,
        families,
        selected,
        extras,
        refused,
        _libraries(place, own),
        _united(one.on(place, "OVERLAID") or {} for one in own),
        [gpu for gpu in (with_overlays or [[]])[0] if all(gpu in gpus for gpus in with_overlays)],
        sorted({pattern for one in own for pattern in one.on(place, "UNLOADABLE")}),
    )


def _united(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


def _families(place: Place, selectors: Sequence[Selector]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for one in selectors:
        for name, row in one.on(place, "FAMILIES").items():
            if place.platform in row["platforms"]:
                found.setdefault(name, {}).update(dict.fromkeys(row["targets"]))
    ordered = {name: list(canonical_order(found[name])) for name in canonical_order(found)}
    if all(one.info["LAYOUT"] == "per-family" for one in selectors):
        return ordered
    # A target's own package comes before others that serve it as well, and only one package may serve it.
    taken = set(ordered)
    return {name: [name, *_not_taken(targets, taken)] for name, targets in ordered.items()}


def _not_taken(targets: Iterable[str], taken: set[str]) -> list[str]:
    free = [target for target in targets if target not in taken]
    taken.update(free)
    return free


def _united_extras(
    place: Place, selectors: Sequence[Selector], selected: Iterable[str]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the requirements of extras that are not for a single GPU, and the targets that others refuse."""
    fixed: dict[str, dict[str, None]] = {}
    refused: dict[str, list[str]] = {prefix: [] for prefix in selected}
    for one in selectors:
        for extra, rows in _plain_extras(place, one, refused):
            fixed.setdefault(extra, {}).update(dict.fromkeys(rows))
    return {extra: list(rows) for extra, rows in fixed.items()}, refused


def _plain_extras(place: Place, selector: Selector, refused: dict[str, list[str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield the extras that are not for a single GPU; targets that others refuse are appended to ``refused``."""
    of_gpus = set(_gpu_extras(selector))
    for extra, rows in selector.info["EXTRAS"].items():
        if any(_refuses(requirement) for requirement, _ in rows):
            for prefix in refused:
                refused[prefix] += [extra.removeprefix(f"{prefix}-")] if extra.startswith(f"{prefix}-") else []
        elif extra not in of_gpus:
            yield extra, [requirement for requirement, marker in rows if place.meets(marker)]


def _gpu_extras(selector: Selector) -> Iterator[str]:
    names = {"all"}
    for family, row in selector.info["FAMILIES"].items():
        names |= {canonicalize_name(family), *row["targets"]}
    everywhere = [selector.info, *selector.info.get("BY_PLATFORM", {}).values()]
    for prefix in {prefix for facts in everywhere for prefix in facts.get("SELECTED", ())}:
        yield from (f"{prefix}-{name}" for name in names)


def _refuses(requirement: str) -> bool:
    return any(map(is_refusing, readable_requirements([requirement])))


def _family_extras(
    prefix: str, requirement: str, families: Mapping[str, Sequence[str]], *, is_neutral: bool
) -> dict[str, list[str]]:
    """Return the extras of families, as `build` makes them."""
    wanted = {family: requirement.replace("{family}", family) for family in families}
    extras = {f"{prefix}-{canonicalize_name(family)}": [text] for family, text in wanted.items()}
    if is_neutral:
        extras[f"{prefix}-all"] = list(wanted.values())
        served = ((family, target) for family, targets in families.items() for target in targets)
        extras |= {f"{prefix}-{target}": [wanted[family]] for family, target in served if target not in families}
    return extras


def _libraries(place: Place, selectors: Sequence[Selector]) -> dict[str, dict[str, Any]]:
    """Return the rows of public libraries; one that a build was made without is optional."""
    found: dict[str, dict[str, Any]] = {}
    for one in selectors:
        for name, row in one.on(place, "LIBRARIES").items():
            optional = any(rows.get("optional", False) for rows in (row, found.get(name, row)))
            found[name] = {**row, "optional": optional}
    return found
