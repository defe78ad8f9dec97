"""What has to hold before selectors become one: they are of one release, and mean the same by the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError
from rocwheel.core.messages import first_of, shortened
from rocwheel.core.workers import raise_all
from rocwheel.distributions.formats.requirements.requirements import is_refusing, readable_requirements
from rocwheel.packages.merging.places import find_places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rocwheel.packages.merging.places import Place
    from rocwheel.packages.merging.selectors import Selector

__all__ = ["check_together"]

_MERGED = frozenset(
    [
        "FAMILIES",
        "DEFAULT_FAMILY",
        "PACKAGES",
        "LIBRARIES",
        "OVERLAID",
        "COMMON_GPUS",
        "UNLOADABLE",
        "EXTRAS",
        "SELECTED",
        "PLATFORMS",
        "MACHINES",
        "BY_PLATFORM",
    ]
)
"""Literals that may differ; all others have to be the same."""
_AGAIN = "Build all of them again from one release."


def check_together(selectors: Sequence[Selector], default_family: str) -> None:
    """Raise `InputError`, or `ProblemsError` with all, for selectors that can't be one."""
    problems = [*_differences(selectors), *_default_problems(selectors, default_family)]
    raise_all("selectors", problems)


def _differences(selectors: Sequence[Selector]) -> Iterator[InputError]:
    first, *others = selectors
    places = find_places(one.machines for one in selectors)
    for other in others:
        if (other.name, other.version) != (first.name, first.version):
            # Whatever else differs follows from it.
            found = f"is {other.name} {other.version}"
            expected = f"{first.name} {first.version}, as {first.path} is"
            yield InputError(other.path, found, expected=expected, remedy="Merge the selectors of one version.")
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
        # One distribution of a family can't be for two lists of GPUs.
        yield from _compare_rows(first, other, "FAMILIES", lambda one: _targets(one, place))


def _pins(selector: Selector, place: Place) -> dict[str, str]:
    """Return what the extras require there, by extra and distribution; what refuses a GPU differs with the others."""
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
    """Compare the rows that both have."""
    for key in sorted(rows_of(first).keys() & rows_of(other).keys()):
        yield from _compare(first, other, f"{name}[{key!r}]", (rows_of(first)[key], rows_of(other)[key]))


def _compare(first: Selector, other: Selector, name: str, values: tuple[Any, Any]) -> Iterator[InputError]:
    one, two = values
    if one != two:
        expected = shortened(f"{one!r}, as in {first.path}")
        yield InputError(other.path, shortened(f"has {name} = {two!r}"), expected=expected, remedy=_AGAIN)


def _compare_files(first: Selector, other: Selector) -> Iterator[InputError]:
    """Compare all files but those that list what is for which GPU."""
    names = first.files.keys() | other.files.keys()
    alike = [name for name in names if name != first.place and not name.endswith(".egg-info/requires.txt")]
    differing = sorted(name for name in alike if first.files.get(name) != other.files.get(name))
    if differing:
        found = f"has other files than {first.path}: {first_of(differing)}"
        yield InputError(
            other.path, found, expected="selectors of one release of rocwheel and one recipe", remedy=_AGAIN
        )


def _default_problems(selectors: Sequence[Selector], wanted: str) -> Iterator[InputError]:
    families = {name for one in selectors for name in one.info["FAMILIES"]}
    if wanted and wanted not in families:
        option, found = "--default-family", f"{wanted!r} has no packages"
        yield InputError(option, found, expected=f"one of {', '.join(sorted(families)) or 'none: nothing is selected'}")
    chosen = {one.info["DEFAULT_FAMILY"]: one for one in selectors if len(one.info["FAMILIES"]) > 1}
    chosen.pop("", None)
    if len(chosen) > 1 and not wanted:
        listed = "; ".join(f"{name} of {one.path}" for name, one in sorted(chosen.items()))
        remedy = "Choose one with --default-family."
        yield InputError("selectors", f"have several defaults: {listed}", expected="one", remedy=remedy)
