"""The selectors that become one: what each says, and for which platforms."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rocwheel.foundation.collecting import convert_all, raise_all
from rocwheel.foundation.errors import InputError, read_error
from rocwheel.foundation.files.regular_files import read_regular
from rocwheel.foundation.quoting import shortened
from rocwheel.packages.promoting.candidates import read_candidate
from rocwheel.packages.promoting.version_change import BUILD_INFO

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Selector", "read_selectors"]


class _Family(msgspec.Struct, frozen=True):
    targets: list[str]
    platforms: list[str]


_REQUIRED: dict[str, Any] = {
    "VERSION": str,
    "LAYOUT": str,
    "DEFAULT_FAMILY": str,
    "FAMILIES": dict[str, _Family],
    "PACKAGES": dict[str, dict[str, str]],
    "LIBRARIES": dict[str, dict[str, Any]],
    "UNLOADABLE": list[str],
    "REQUIRES": list[str],
    "EXTRAS": dict[str, list[tuple[str, str]]],
    "SELECTED": dict[str, str],
}
"""What every selector says (``src/rocwheel/sdk/README.md``), by its kind."""
_KINDS: dict[str, Any] = {
    **_REQUIRED,
    "OVERLAID": dict[str, list[str]],
    "COMMON_GPUS": list[str],
    "PLATFORMS": list[str],
    "BY_PLATFORM": dict[str, dict[str, Any]],
}
_OF_PLATFORM = re.compile(r"sys_platform == '\w+'(?: or sys_platform == '\w+')*", re.ASCII)
"""Markers that mean the same wherever they are judged."""


class Selector(msgspec.Struct, frozen=True):
    """A selector's sdist."""

    path: Path
    name: str
    version: str
    files: dict[str, bytes]
    """By their paths below its top folder."""
    place: str
    """The one of its `_build_info.py` among them."""
    info: dict[str, Any]
    """The literals there."""
    digest: str
    """Of the whole file."""

    @property
    def platforms(self) -> tuple[str, ...]:
        """The values of ``sys_platform`` that it is for, sorted."""
        of_families = {name for row in self.info["FAMILIES"].values() for name in row["platforms"]}
        return tuple(sorted(self.info.get("PLATFORMS") or of_families))

    def on(self, platform: str, name: str) -> Any:
        """Return a literal as it holds on one of the platforms."""
        of_platform = self.info.get("BY_PLATFORM", {}).get(platform, {})
        return of_platform.get(name, self.info.get(name))


def read_selectors(paths: Sequence[Path]) -> tuple[Selector, ...]:
    """Read the sdists, each once, in an order that depends on what they hold alone.

    Raises `InputError`, or `ProblemsError` with all, for what can't be read or is no selector.
    """
    found = {one.digest: one for one in convert_all("selectors", _read, paths)}
    raise_all("selectors", [problem for one in found.values() if (problem := _problem(one))])
    return tuple(sorted(found.values(), key=lambda one: (one.platforms, sorted(one.info["FAMILIES"]), one.digest)))


def _read(path: Path) -> Selector:
    if not path.name.endswith(".tar.gz"):
        remedy = "Build it with --selector sdist: a wheel can't choose for a machine."
        raise InputError(path, "is no sdist", expected="the rocm-VERSION.tar.gz of a build", remedy=remedy)
    try:
        data = read_regular(path)
    except OSError as e:
        raise read_error(path, e) from e
    candidate = read_candidate(path, path.parent)
    places = [name for name in candidate.files if name.rpartition("/")[2] == BUILD_INFO]
    if not candidate.info or len(places) != 1:
        raise InputError(path, "is not a selector", expected="the sdist of rocm, which says what is for which GPU")
    return Selector(
        path,
        candidate.name,
        candidate.version,
        candidate.files,
        places[0],
        candidate.info,
        hashlib.sha256(data).hexdigest(),
    )


def _problem(selector: Selector) -> InputError | None:
    """Return what is wrong with the literals of a selector."""
    found = next(_faults(selector.info), "") or ("" if selector.platforms else "does not say which platform it is for")
    source, remedy = f"{selector.path}!{selector.place}", "Build the packages again."
    return InputError(source, shortened(found), remedy=remedy) if found else None


def _faults(info: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong, each after that which it needs."""
    yield from _faults_of_kind({**dict.fromkeys(_REQUIRED), **info})
    for facts in info.get("BY_PLATFORM", {}).values():
        yield from _faults_of_kind(facts)
    markers = (marker for rows in info["EXTRAS"].values() for _, marker in rows if marker)
    yield from (f"its EXTRAS have the marker {marker!r}" for marker in markers if not _OF_PLATFORM.fullmatch(marker))


def _faults_of_kind(facts: Mapping[str, Any]) -> Iterator[str]:
    for name, kind in _KINDS.items():
        if name in facts:
            yield from _fault(name, facts[name], kind)


def _fault(name: str, value: Any, kind: type) -> Iterator[str]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as e:
        yield f"its {name} can't be read ({e})"
