"""Lists the catalog as a table with one row for each target, combined from all parts of the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.code_objects import processor_of
from rocwheel.targets.catalog import (
    Generic,
    families_of,
    first_knowing,
    load_catalog,
    official_span,
    release_for,
    sort_key,
    targets_of,
)
from rocwheel.targets.target_set import is_part_of_product, parse_known_target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rocwheel.targets.target_set import TargetSet


class TargetRow(msgspec.Struct, frozen=True):
    """Everything in the catalog about one processor."""

    name: str
    mach: int
    kind: str
    """The kind of most products: ``data-center``, ``desktop``, ``integrated``, or ``generic``; empty if unknown."""
    features: tuple[str, ...]
    generics: tuple[str, ...]
    """The generic processors that cover this processor; empty for a generic processor."""
    members: tuple[str, ...]
    """The processors that a generic processor covers."""
    families: tuple[str, ...]
    official: str
    """The ROCm versions with official support, as a half-open range such as ``5.0 to before 6.4``."""
    packagers: tuple[str, ...]
    """The packagers whose lists have this processor, with or without features."""
    products: tuple[str, ...]
    llvm: tuple[int, int]
    rocm_without: str
    """The last ROCm release that was observed without support for the processor, or an empty string."""
    rocm_with: str
    """The first ROCm release that was observed with support for the processor, or an empty string."""
    sources: tuple[str, ...]


def list_targets() -> list[TargetRow]:
    """Return a row for every processor, in canonical order."""
    return [_row(name) for name in sorted(load_catalog().processors, key=sort_key)]


def filter_rows(
    rows: Iterable[TargetRow],
    *,
    chosen: TargetSet | None = None,
    family: str = "",
    kind: str = "",
    official: str = "",
    feature: str = "",
    product: str = "",
) -> list[TargetRow]:
    """Return the rows that match all filters; ``data-center`` also matches rows with any such product.

    Raises `UnknownTargetError` for an unknown family, the errors from `parse_known_target` for a target that is passed
    as a family, and `UnknownReleaseError` for an unknown ROCm version.
    """
    names = [set(chosen.processors)] if chosen is not None else []
    names += [_processors_of(family)] if family else []
    names += [set(release_for(official, source="--rocm").official)] if official else []
    kept = [row for row in rows if all(row.name in allowed for allowed in names)]
    kept = [row for row in kept if kind in {"", *_kinds(row)} and (not feature or feature in row.features)]
    return [row for row in kept if any(is_part_of_product(product, name) for name in row.products or ("",))]


def _processors_of(family: str) -> set[str]:
    names = targets_of(family, source="--filter family")
    return {parse_known_target(name, source="--filter family").processor for name in names}


def _kinds(row: TargetRow) -> set[str]:
    # All AMD Instinct cards are for data centers, even those with a desktop card's processor, such as the MI50.
    return {row.kind, "data-center"} if any("Instinct" in name for name in row.products) else {row.kind}


def _row(name: str) -> TargetRow:
    catalog = load_catalog()
    row = catalog.processor(name)
    generic = isinstance(row, Generic)
    without, first = first_knowing(name)
    return TargetRow(
        name=name,
        mach=row.mach,
        kind="generic" if isinstance(row, Generic) else row.kind,
        features=row.features,
        generics=catalog.generics_of(name),
        members=row.members if isinstance(row, Generic) else (),
        families=() if generic else families_of(name)[1:],
        official=_official_range(name),
        packagers=tuple(p.name for p in catalog.packagers if any(processor_of(t) == name for t in p.targets)),
        products=() if isinstance(row, Generic) else row.products,
        llvm=row.llvm,
        rocm_without=without,
        rocm_with=first,
        sources=row.sources,
    )


def _official_range(name: str) -> str:
    first, last = official_span(name)
    if not first:
        return ""
    return f"{first} to before {last}" if last else f"{first} on"
