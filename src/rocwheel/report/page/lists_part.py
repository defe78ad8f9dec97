"""The parts of the page that are lists: findings of the audit, and duplicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.filesize import decimal

from rocwheel.distributions.front_page.markup import Html, element
from rocwheel.foundation.messages.counting import count
from rocwheel.report.page.shown import shown_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rocwheel.report.values.duplicates import Copies
    from rocwheel.report.values.files import PackageFacts
    from rocwheel.report.values.graph import FoundFault

__all__ = ["duplicates_part", "findings_part", "list_table"]

_MOST = 500
_NUMBERS = frozenset({"Size", "Wasted", "Unpacked", "Packed", "Saved", "Before", "Now", "Growth", "Packed growth"})


def findings_part(findings: Sequence[FoundFault]) -> Html:
    """Return the section about what the audit found."""
    rows = (_finding(one) for one in findings[:_MOST])
    return element(
        "section",
        element("h2", "Findings of the audit", id="findings"),
        list_table("findings", ("File", "Severity", "Rule", "Found", "What to do"), rows),
        *_rest(len(findings)),
        aria_labelledby="findings",
    )


def _finding(one: FoundFault) -> Html:
    place = shown_text(one.path or one.package)
    texts = (one.severity, one.rule, one.found, one.remedy)
    return element(
        "tr",
        element("th", place, scope="row"),
        *(element("td", shown_text(text)) for text in texts),
        class_=one.severity,
    )


def duplicates_part(duplicates: Sequence[Copies], packages: Sequence[PackageFacts]) -> Html:
    """Return the section about files that several packages hold."""
    wasted = sum(copies.wasted for copies in duplicates)
    rows = (_copies(copies, packages) for copies in duplicates[:_MOST])
    told = f"{count(len(duplicates), 'content')}; copies in all packages but the first take {decimal(wasted)}."
    return element(
        "section",
        element("h2", "Duplicates across packages", id="duplicates"),
        element("p", told),
        list_table("duplicates", ("Files", "Size", "Wasted"), rows),
        *_rest(len(duplicates)),
        aria_labelledby="duplicates",
    )


def _copies(copies: Copies, packages: Sequence[PackageFacts]) -> Html:
    names = (element("li", shown_text(f"{packages[one.package].label}: {one.path}")) for one in copies.files)
    sizes = (element("td", decimal(size), class_="size") for size in (copies.size, copies.wasted))
    return element("tr", element("th", element("ul", *names, class_="close"), scope="row"), *sizes)


def list_table(label: str, columns: Sequence[str], rows: Iterable[Html]) -> Html:
    """Return a table that scrolls by itself; ``label`` is the id of its heading."""
    heads = (element("th", name, scope="col", class_="size" if name in _NUMBERS else None) for name in columns)
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *rows))
    return element("div", table, class_="wide tall", tabindex="0", role="region", aria_labelledby=label)


def _rest(number: int) -> Iterator[Html]:
    if number > _MOST:
        yield element("p", f"... and {number - _MOST} more: --json has them all.", class_="soft")
