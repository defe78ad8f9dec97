"""The part of the page that says which library has code for which GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocwheel.distributions.front_page.markup import Html, element
from rocwheel.report.page.shown import shown_text
from rocwheel.report.values.matrix import Code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.report.values.matrix import Matrix, MatrixRow

__all__ = ["matrix_part"]

_MOST = 500
_SIGNS = {Code.EXACT: "●", Code.PARTLY: "◑", Code.GENERIC: "◆", Code.SPIRV: "◇", Code.MISSING: "\N{BALLOT X}"}
_WORDS = {
    Code.EXACT: "code of its own",
    Code.PARTLY: "code for some settings of XNACK or SRAMECC alone",
    Code.GENERIC: "generic code that covers it",
    Code.SPIRV: "SPIR-V, which the runtime compiles",
    Code.MISSING: "none",
}


def matrix_part(matrix: Matrix) -> Html:
    """Return the section, with the largest number of rows that is still of use on a page."""
    rows = matrix.rows[:_MOST]
    used = [code for code in Code if any(code in row.codes for row in rows)]
    left = len(matrix.rows) - len(rows)
    return element(
        "section",
        element("h2", "GPUs and libraries", id="gpus"),
        element("ul", *map(_legend, used), class_="legend"),
        element("div", _table(matrix, rows), class_="wide matrix", tabindex="0", role="region", aria_labelledby="gpus"),
        *([element("p", f"... and {left} more: --json has them all.", class_="soft")] if left else []),
        aria_labelledby="gpus",
    )


def _legend(code: Code) -> Html:
    return element("li", element("span", _SIGNS[code], class_=code.value, aria_hidden="true"), f" {_WORDS[code]}")


def _table(matrix: Matrix, rows: tuple[MatrixRow, ...]) -> Html:
    heads = (element("th", element("span", shown_text(gpu)), scope="col") for gpu in matrix.gpus)
    head = element("tr", element("th", "Library", scope="col"), *heads)
    return element("table", element("thead", head), element("tbody", *map(_row, rows)))


def _row(row: MatrixRow) -> Html:
    return element("tr", element("th", *_name(row), scope="row"), *map(_cell, row.codes))


def _name(row: MatrixRow) -> Iterator[str]:
    yield shown_text(row.library)
    packages = ", ".join(row.packages[:3]) + (f" and {len(row.packages) - 3} more" if len(row.packages) > 3 else "")
    yield element("div", shown_text(packages), class_="soft")


def _cell(code: Code) -> Html:
    sign = element("span", _SIGNS[code], aria_hidden="true")
    return element("td", sign, element("span", code.value, class_="heard"), class_=code.value)
