"""Tests of the part of the page that says what could be saved."""

from __future__ import annotations

import msgspec

from rocwheel.report.page import make_page
from rocwheel.report.values import Action, Saving, Savings
from tests.report.test_make_page import report_of


def savings_part(savings: Savings) -> str:
    """Return the section of a page with these savings."""
    page = make_page(msgspec.structs.replace(report_of("a"), savings=savings)).decode()
    return page.partition('<section aria-labelledby="savings">')[2].partition("</section>")[0]


def test_a_loss_has_a_minus() -> None:
    page = savings_part(Savings(False, 1, 1, (Saving(Action.COMPRESS, "", 4000, 2000, 1000, 3500),)))
    assert '<td class="size">2.0 kB (50 %)</td>' in page
    assert '<td class="size">-2.5 kB (-250 %)</td>' in page


def test_next_to_nothing_is_no_percent_without_a_minus() -> None:
    page = savings_part(Savings(False, 1, 1, (Saving(Action.COMPRESS, "", 4000, 2000, 100_000, 100_004),)))
    assert '<td class="size">-4 bytes (0 %)</td>' in page


def test_what_all_is_compared_with_is_a_row_of_its_own() -> None:
    rows = (
        Saving(Action.PRUNE, "gfx906", 4000, 2000, 1000, 500),
        Saving(Action.PRUNE, "gfx1030", 4000, 1000, 1000, 250),
    )
    page = savings_part(Savings(False, 0, 0, rows))
    now = '<th scope="row">now</th><td class="size">4.0 kB</td><td class="size"></td><td class="size">1.0 kB</td>'
    assert page.count(now) == 1
    assert "All is compared with what is there now. Packed sizes are those of wheels and sdists as a whole" in page


def test_without_wheels_nothing_is_said_of_packed_sizes() -> None:
    page = savings_part(Savings(False, 0, 0, (Saving(Action.PRUNE, "gfx906", 4000, 2000, None, None),)))
    assert '<th scope="row">now</th><td class="size">4.0 kB</td><td class="size"></td></tr>' in page
    assert "Packed" not in page
