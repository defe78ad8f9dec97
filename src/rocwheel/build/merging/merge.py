"""Merges the selectors of several builds into one sdist. The builds can be for different GPUs or platforms."""

from __future__ import annotations

import os
from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.build.merging.selectors import Place, find_places, marker_of, read_selectors
from rocwheel.build.placement import canonical_order
from rocwheel.build.planning.selector import family_extras, requires_txt
from rocwheel.build.sdk_source import render_literals
from rocwheel.core.errors import InputError, RocwheelError, write_error
from rocwheel.core.messages import first_of, shortened
from rocwheel.core.scratch import remove_abandoned
from rocwheel.core.workers import raise_all
from rocwheel.core.writing import check_destination
from rocwheel.wheels.requirements import is_refusing, readable_requirements, refusing_requirement
from rocwheel.wheels.sdist import SourceDate, sdist_name, sdist_stem, write_sdist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rocwheel.build.merging.selectors import Selector


class MergeResult(msgspec.Struct, frozen=True):
    """The result of a merge."""

    path: str
    size: int
    """The size of the sdist in bytes."""
    version: str
    families: dict[str, tuple[str, ...]]
    """The ``sys_platform`` values for each GPU target or family that can be selected."""
    merged: tuple[str, ...]
    """The paths of the merged selectors; identical selectors are listed once."""


def merge_selectors(paths: Sequence[Path], dest_dir: Path, *, default_family: str = "") -> MergeResult:
    """Write one selector that covers several builds. Its date comes from ``SOURCE_DATE_EPOCH``.

    ``paths`` are sdists, plans (``.json``), and build folders. A plan produces the same result as its build.

    The order of the selectors doesn't matter: the same selectors produce the same bytes. ``default_family`` is for
    machines without a GPU. By default, it is the selectors' default, if they agree.

    Raises `InputError`, or `ProblemsError` with all errors, if the selectors can't be merged or the destination already
    has a selector that supports more GPUs. In these cases, nothing is written. Raises `WorkError` if the sdist can't be
    written.
    """
    check_destination(dest_dir)
    selectors = read_selectors(paths)
    check_together(selectors, default_family)
    first = selectors[0]
    target = dest_dir / sdist_name(first.name, first.version)
    if target.exists() and any(one.path.exists() and target.samefile(one.path) for one in selectors):
        found = "is one of the selectors to merge"
        raise InputError(target, found, expected="a different folder", remedy="Change --output.")
    info = merge_info(selectors, default_family)
    _require_no_loss(target, info)
    date = SourceDate.from_environment(os.environ)
    try:
        dest_dir.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise write_error(dest_dir, e) from e
    remove_abandoned(dest_dir)
    listed = [name for name in first.files if name.endswith(".egg-info/requires.txt")]
    changed = dict.fromkeys(listed, requires_txt(info).encode()) | {first.place: render_literals(info).encode()}
    write_sdist(target, sdist_stem(first.name, first.version), first.files | changed, mtime=date.seconds)
    families = {name: tuple(row["platforms"]) for name, row in info["FAMILIES"].items()}
    merged = tuple(str(one.path) for one in selectors)
    return MergeResult(str(target), target.stat().st_size, first.version, families, merged)


def _require_no_loss(target: Path, info: dict[str, Any]) -> None:
    """Raise `InputError` if the existing selector supports GPUs that the new one would not support."""
    if not target.exists():
        return
    try:
        there = read_selectors([target])
    except RocwheelError as e:
        remedy = "Remove the file, or choose a different --output."
        raise InputError(target, "already exists, but is not a readable selector", remedy=remedy) from e
    lost = {choice for one in there for choice in _choices(one.info)} - _choices(info)
    if lost:
        named = ", ".join(f"{name} ({system})" for name, system in sorted(lost))
        found = f"already exists and also supports {named}, which would be lost"
        raise InputError(
            target, found, remedy="Also merge the builds of the existing selector, or choose a different --output."
        )


def _choices(info: dict[str, Any]) -> set[tuple[str, str]]:
    """Return the families that a selector can choose, each paired with a platform that has the family."""
    return {(name, system) for name, row in info["FAMILIES"].items() for system in row["platforms"]}


_MERGED = {"FAMILIES", "DEFAULT_FAMILY", "PACKAGES", "LIBRARIES", "OVERLAID", "COMMON_GPUS", "UNLOADABLE", "EXTRAS"}
_MERGED |= {"SELECTED", "PLATFORMS", "MACHINES", "BY_PLATFORM"}
"""The literals that may differ between selectors. All other literals must be equal."""
_AGAIN = "Rebuild all of them from the same release."


def check_together(selectors: Sequence[Selector], default_family: str) -> None:
    """Raise `InputError`, or `ProblemsError` with all errors, if the selectors can't be merged."""
    problems = [*_differences(selectors), *_default_problems(selectors, default_family)]
    raise_all("selectors", problems)


def _differences(selectors: Sequence[Selector]) -> Iterator[InputError]:
    first, *others = selectors
    places = find_places(one.machines for one in selectors)
    for other in others:
        if (other.name, other.version) != (first.name, first.version):
            # All other differences are consequences of the different version.
            found = f"is {other.name} {other.version}"
            expected = f"{first.name} {first.version}, as in {first.path}"
            yield InputError(other.path, found, expected=expected, remedy="Merge selectors with the same version.")
            continue
        for name in sorted({*first.info, *other.info} - _MERGED):
            yield from _compare(first, other, name, (first.info.get(name), other.info.get(name)))
        yield from _compare_rows(first, other, "PACKAGES", lambda one: one.info["PACKAGES"])
        for place in places:
            if first.serves(place) and other.serves(place):
                yield from _compare_on(first, other, place)
        yield from _compare_files(first, other)


def _compare_on(first: Selector, other: Selector, place: Place) -> Iterator[InputError]:
    yield from _compare_rows(first, other, "SELECTED", lambda one: one.on(place, "SELECTED"))
    yield from _compare_rows(first, other, "OVERLAID", lambda one: one.on(place, "OVERLAID") or {})
    yield from _compare_rows(first, other, "LIBRARIES", lambda one: _without_optional(one.on(place, "LIBRARIES")))
    yield from _compare_rows(first, other, "EXTRAS", lambda one: _pins(one, place))
    if first.info["LAYOUT"] == other.info["LAYOUT"] == "per-family":
        # The distribution for a family can't have two different lists of GPUs.
        yield from _compare_rows(first, other, "FAMILIES", lambda one: _targets(one, place))


def _pins(selector: Selector, place: Place) -> dict[str, str]:
    """Return the version specifiers that the extras require, keyed by extra and distribution.

    Requirements that exist only to reject a GPU are skipped, because they depend on the other selectors.
    """
    rows = ((extra, text) for extra, pairs in selector.info["EXTRAS"].items() for text, on in pairs if place.meets(on))
    found = ((extra, item) for extra, text in rows for item in readable_requirements([text]) if not is_refusing(item))
    return {f"{extra}: {canonicalize_name(item.name)}": str(item.specifier) for extra, item in found}


def _targets(selector: Selector, place: Place) -> dict[str, list[str]]:
    rows = selector.on(place, "FAMILIES").items()
    return {name: sorted(row["targets"]) for name, row in rows if place.platform in row["platforms"]}


def _without_optional(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {name: {key: value for key, value in row.items() if key != "optional"} for name, row in rows.items()}


def _compare_rows(
    first: Selector, other: Selector, name: str, rows_of: Callable[[Selector], Mapping[str, Any]]
) -> Iterator[InputError]:
    """Compare the rows that both selectors have."""
    for key in sorted(rows_of(first).keys() & rows_of(other).keys()):
        yield from _compare(first, other, f"{name}[{key!r}]", (rows_of(first)[key], rows_of(other)[key]))


def _compare(first: Selector, other: Selector, name: str, values: tuple[Any, Any]) -> Iterator[InputError]:
    one, two = values
    if one != two:
        expected = shortened(f"{one!r}, as in {first.path}")
        yield InputError(other.path, shortened(f"has {name} = {two!r}"), expected=expected, remedy=_AGAIN)


def _compare_files(first: Selector, other: Selector) -> Iterator[InputError]:
    """Compare all files except the files that map GPUs to packages."""
    names = first.files.keys() | other.files.keys()
    alike = [name for name in names if name != first.place and not name.endswith(".egg-info/requires.txt")]
    differing = sorted(name for name in alike if first.files.get(name) != other.files.get(name))
    if differing:
        found = f"differs from {first.path} in these files: {first_of(differing)}"
        yield InputError(
            other.path, found, expected="selectors from the same release of rocwheel and the same recipe", remedy=_AGAIN
        )


def _default_problems(selectors: Sequence[Selector], wanted: str) -> Iterator[InputError]:
    families = {name for one in selectors for name in one.info["FAMILIES"]}
    if wanted and wanted not in families:
        option, found = "--default-family", f"{wanted!r} has no packages"
        expected = (
            f"one of {', '.join(sorted(families))}" if families else "no default, because there is nothing to select"
        )
        yield InputError(option, found, expected=expected)
    chosen = {one.info["DEFAULT_FAMILY"]: one for one in selectors if len(one.info["FAMILIES"]) > 1}
    chosen.pop("", None)
    if len(chosen) > 1 and not wanted:
        listed = "; ".join(f"{name} in {one.path}" for name, one in sorted(chosen.items()))
        remedy = "Choose one with --default-family."
        yield InputError("selectors", f"have several defaults: {listed}", expected="one default", remedy=remedy)


def merge_info(selectors: Sequence[Selector], default_family: str = "") -> dict[str, Any]:
    """Return the literals of a selector that covers several compatible selectors.

    Values that differ between platforms are in ``BY_PLATFORM``. Values outside ``BY_PLATFORM`` come from the first
    platform.
    """
    first = selectors[0].info
    facts = [find_facts(place, selectors) for place in find_places(one.machines for one in selectors)]
    names = canonical_order({name for one in facts for name in one.families})
    families = {}
    for name in names:
        having = [one for one in facts if name in one.families]
        targets = dict.fromkeys(target for one in having for target in one.families[name])
        own = [name] if name in targets else []
        families[name] = {
            "targets": [*own, *(target for target in canonical_order(targets) if target not in own)],
            "platforms": list(dict.fromkeys(one.place.platform for one in having)),
        }
    shared = {"FAMILIES": families, **facts[0].others}
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


def _own_facts(facts: PlatformFacts, shared: dict[str, Any]) -> dict[str, Any]:
    """Return the literals of a place that differ from the shared literals."""
    families = {name: _own_family(facts, name, row) for name, row in shared["FAMILIES"].items()}
    own = {"FAMILIES": families, **facts.others}
    return {name: value for name, value in own.items() if value != shared[name]}


def _own_family(facts: PlatformFacts, name: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of ``FAMILIES`` for one place, without its platform if only other machines have the family."""
    if name in facts.families:
        return {**row, "targets": facts.families[name]}
    return {**row, "platforms": [platform for platform in row["platforms"] if platform != facts.place.platform]}


def _machines(selectors: Sequence[Selector]) -> dict[str, list[str]]:
    """Return the machines of each platform, for platforms whose machines are known for all selectors."""
    known: dict[str, list[tuple[str, ...]]] = {}
    for one in selectors:
        for platform, machines in one.machines.items():
            known.setdefault(platform, []).append(machines)
    return {name: sorted({*chain.from_iterable(parts)}) for name, parts in sorted(known.items()) if all(parts)}


def _default(selectors: Sequence[Selector], families: dict[str, Any]) -> str:
    """Return the default family of the selectors. If there is only one family, it is the default."""
    chosen = {one.info["DEFAULT_FAMILY"] for one in selectors if len(one.info["FAMILIES"]) > 1} - {""}
    return next(iter(chosen), next(iter(families)) if len(families) == 1 else "")


def _extras(facts: Sequence[PlatformFacts], required: str) -> dict[str, list[list[str]]]:
    """Return the extras, with markers where platforms differ, and extras that refuse unsupported targets by name."""
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
    name, _, version = required.partition("==")
    families = canonical_order({family for one in facts for family in one.families})
    refused = {(prefix, target) for one in facts for prefix, targets in one.refused.items() for target in targets}
    by_prefix = sorted({prefix for prefix, _ in refused})
    ordered = [
        (prefix, target) for prefix in by_prefix for target in canonical_order({t for p, t in refused if p == prefix})
    ]
    return {
        **merged,
        **{
            f"{prefix}-{target}": [[refusing_requirement(name, version.partition("+")[0], target, families), ""]]
            for prefix, target in ordered
            if f"{prefix}-{target}" not in merged
        },
    }


class PlatformFacts(msgspec.Struct, frozen=True):
    """The contents of the selectors for one place."""

    place: Place
    families: dict[str, list[str]]
    """The GPU targets of each family. Families and targets are in canonical order."""
    extras: dict[str, list[str]]
    """The requirements of each extra."""
    refused: dict[str, list[str]]
    """The targets that extras reject, keyed by the part of the extra's name before the target."""
    others: dict[str, Any]
    """Literals that are only for this place, in the order that selectors use."""


def find_facts(place: Place, selectors: Sequence[Selector]) -> PlatformFacts:
    """Return the combined contents of the selectors for a place."""
    own = [one for one in selectors if one.serves(place)]
    families = _families_at(place, own)
    selected = _united(one.on(place, "SELECTED") for one in own)
    extras, refused = _united_extras(place, own, selected)
    is_neutral = any(one.info["LAYOUT"] == "neutral" for one in own)
    for prefix, requirement in selected.items():
        extras |= family_extras(prefix, requirement, families, is_neutral=is_neutral)
    with_overlays = [one.on(place, "COMMON_GPUS") or [] for one in own if one.on(place, "OVERLAID")]
    others = {
        "LIBRARIES": _libraries(place, own),
        "OVERLAID": _united(one.on(place, "OVERLAID") or {} for one in own),
        "COMMON_GPUS": [gpu for gpu in (with_overlays or [[]])[0] if all(gpu in gpus for gpus in with_overlays)],
        "UNLOADABLE": sorted({pattern for one in own for pattern in one.on(place, "UNLOADABLE")}),
        "SELECTED": selected,
    }
    return PlatformFacts(place, families, extras, refused, others)


def _united(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


def _families_at(place: Place, selectors: Sequence[Selector]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for one in selectors:
        for name, row in one.on(place, "FAMILIES").items():
            if place.platform in row["platforms"]:
                found.setdefault(name, {}).update(dict.fromkeys(row["targets"]))
    ordered = {name: list(canonical_order(found[name])) for name in canonical_order(found)}
    if all(one.info["LAYOUT"] == "per-family" for one in selectors):
        return ordered
    # Only one package may serve a target. The target's own package takes precedence over other packages.
    owners = {name: name for name in ordered}
    for name, targets in ordered.items():
        for target in targets:
            owners.setdefault(target, name)
    return {
        name: [name, *(target for target in targets if target != name and owners[target] == name)]
        for name, targets in ordered.items()
    }


def _united_extras(
    place: Place, selectors: Sequence[Selector], selected: Iterable[str]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the requirements of extras that are not for a single GPU, and the targets that other extras reject."""
    fixed: dict[str, dict[str, None]] = {}
    refused: dict[str, list[str]] = {prefix: [] for prefix in selected}
    for one in selectors:
        for extra, rows in _plain_extras(place, one, refused):
            fixed.setdefault(extra, {}).update(dict.fromkeys(rows))
    return {extra: list(rows) for extra, rows in fixed.items()}, refused


def _plain_extras(place: Place, selector: Selector, refused: dict[str, list[str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield the extras that are not for a single GPU. Append the targets that other extras reject to ``refused``."""
    of_gpus = set(_gpu_extras(selector))
    for extra, rows in selector.info["EXTRAS"].items():
        if any(map(is_refusing, readable_requirements([requirement for requirement, _ in rows]))):
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


def _libraries(place: Place, selectors: Sequence[Selector]) -> dict[str, dict[str, Any]]:
    """Return the rows of public libraries. A library is optional if at least one build lacks it."""
    found: dict[str, dict[str, Any]] = {}
    for one in selectors:
        for name, row in one.on(place, "LIBRARIES").items():
            optional = any(rows.get("optional", False) for rows in (row, found.get(name, row)))
            found[name] = {**row, "optional": optional}
    return found
