"""The part of the page that says what changed since an older state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.filesize import decimal

from rocwheel.distributions.front_page.markup import Html, element
from rocwheel.report.page.lists_part import list_table
from rocwheel.report.page.shown import shown_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.report.values.files import Totals
    from rocwheel.report.values.growth import Against, FileGrowth, PackageGrowth, TargetGrowth

__all__ = ["against_part"]

_MOST = 500


def against_part(against: Against, totals: Totals) -> Html:
    """Return the section: sums, then packages, GPUs and files that differ in size."""
    old = against.totals
    if against.problem:
        told = element("p", f"The older state could not be read: {shown_text(against.problem)}", class_="problems")
        return element("section", element("h2", "What changed", id="against"), told, aria_labelledby="against")
    sums = f"{decimal(old.size)} became {decimal(totals.size)} ({_growth(old.size, totals.size)})"
    if old.packed is not None and totals.packed is not None:
        sums += f", packed {decimal(old.packed)} became {decimal(totals.packed)} ({_growth(old.packed, totals.packed)})"
    return element(
        "section",
        element("h2", "What changed", id="against"),
        element("p", f"Since {shown_text(against.path)}: {sums}."),
        *_lists(against),
        aria_labelledby="against",
    )


def _lists(against: Against) -> Iterator[Html]:
    if against.packages:
        yield element("h3", "Packages", id="against-packages")
        columns = ("Package", "What", "Before", "Now", "Growth", "Packed growth")
        yield list_table("against-packages", columns, map(_package, against.packages))
    if against.targets:
        yield element("h3", "GPUs", id="against-gpus")
        yield list_table("against-gpus", ("Code for", "Before", "Now", "Growth"), map(_target, against.targets))
    if against.files:
        yield element("h3", "Files", id="against-files")
        columns = ("File", "Package", "What", "Before", "Now", "Growth")
        yield list_table("against-files", columns, map(_file, against.files[:_MOST]))
    if len(against.files) > _MOST:
        yield element("p", f"... and {len(against.files) - _MOST} more: --json has them all.", class_="soft")


def _package(one: PackageGrowth) -> Html:
    packed = "" if one.old_packed is None and one.packed is None else _growth(one.old_packed or 0, one.packed or 0)
    return element(
        "tr",
        element("th", shown_text(one.label), scope="row"),
        element("td", one.fate.value),
        *_sizes(one.old_size, one.size),
        element("td", packed, class_="size"),
    )


def _target(one: TargetGrowth) -> Html:
    return element("tr", element("th", shown_text(one.target), scope="row"), *_sizes(one.old_size, one.size))


def _file(one: FileGrowth) -> Html:
    moved = one.old_path and one.path and one.old_path != one.path
    before = [element("div", f"before: {shown_text(one.old_path)}", class_="soft")] if moved else []
    return element(
        "tr",
        element("th", shown_text(one.path or one.old_path), *before, scope="row"),
        element("td", shown_text(one.package)),
        element("td", one.fate.value),
        *_sizes(one.old_size, one.size),
    )


def _sizes(old: int, new: int) -> Iterator[Html]:
    for text in (decimal(old), decimal(new), _growth(old, new)):
        yield element("td", text, class_="size")


def _growth(old: int, new: int) -> str:
    return f"{'-' if new < old else '+'}{decimal(abs(new - old))}" if new != old else "0"
