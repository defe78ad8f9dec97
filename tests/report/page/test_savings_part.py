"""Tests of the part of the page that says what could be saved."""

from __future__ import annotations

from rocwheel.report.page.savings_part import savings_part
from rocwheel.report.values import Action, Saving, Savings


def test_a_loss_has_a_minus() -> None:
    page = savings_part(Savings(False, 1, 1, (Saving(Action.COMPRESS, "", 4000, 2000, 1000, 3500),)))
    assert '<td class="size">2.0 kB (50 %)</td>' in page
    assert '<td class="size">-2.5 kB (-250 %)</td>' in page
