"""The part of the page that says what could be saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.filesize import decimal

from rocwheel.distributions.front_page.markup import Html, element
from rocwheel.report.page.lists_part import list_table
from rocwheel.report.page.shown import shown_text
from rocwheel.report.values.savings import Action

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.report.values.savings import Saving, Savings

__all__ = ["savings_part"]

_WORDS = {
    Action.COMPRESS: "rocwheel device compress --trim",
    Action.SPLIT: "rocwheel device split: what a user of {} gets",
    Action.PRUNE: "rocwheel device prune --keep {} --trim",
}


def savings_part(savings: Savings) -> Html:
    """Return the section: a row for each action, and how it was measured."""
    looked_at = f"{decimal(savings.measured)} of {decimal(savings.of)} of bundles were compressed for this"
    how = f"Estimated by samples: {looked_at}." if savings.is_estimated else f"Measured: {looked_at}."
    is_packed = any(row.packed is not None for row in savings.rows)
    columns = ("What", "Unpacked", "Saved", *(("Packed", "Saved") if is_packed else ()))
    base = (
        " Packed sizes are those of wheels and sdists as a whole, with what no file takes of them." if is_packed else ""
    )
    rows = (*map(_now, savings.rows[:1]), *map(_row, savings.rows))
    return element(
        "section",
        element("h2", "What could be saved", id="savings"),
        element("p", f"{how} All is compared with what is there now.{base}", class_="soft"),
        list_table("savings", columns, rows),
        aria_labelledby="savings",
    )


def _now(row: Saving) -> Html:
    """Return the row of what all others are compared with."""
    sizes = [size for size in (row.size, row.packed) if size is not None]
    cells = (element("td", text, class_="size") for size in sizes for text in (decimal(size), ""))
    return element("tr", element("th", "now", scope="row"), *cells)


def _row(row: Saving) -> Html:
    what = element("th", shown_text(_WORDS[row.action].format(row.target)), scope="row")
    return element("tr", what, *_sizes(row.size, row.size_after), *_sizes(row.packed, row.packed_after))


def _sizes(before: int | None, after: int | None) -> Iterator[Html]:
    if before is None or after is None:
        return
    share = 100 * (before - after) / before if before else 0
    sign = "-" if after > before else ""
    for text in (decimal(after), f"{sign}{decimal(abs(before - after))} ({round(share)} %)"):
        yield element("td", text, class_="size")
