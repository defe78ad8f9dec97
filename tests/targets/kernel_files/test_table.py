"""Tests of the table of kernel files itself."""

from __future__ import annotations

from rocwheel.binary.code_objects import known_processors
from rocwheel.targets.kernel_files import load_table


def test_every_row_names_sources_that_are_explained_and_every_source_is_used() -> None:
    table = load_table()
    rows = (*table.rules, *table.openers, *table.self_contained, *table.shared, *table.families)
    used = {source for row in rows for source in row.sources}
    assert all(row.sources for row in rows)
    assert used == set(table.sources)


def test_every_rule_says_its_target_by_a_placeholder_or_by_itself() -> None:
    for rule in load_table().rules:
        assert all(("{" in pattern) != bool(rule.target) for pattern in rule.files), rule.name


def test_families_hold_known_processors() -> None:
    known = {*known_processors(), "gfx1250-strict"}
    assert all(known.issuperset(family.targets) for family in load_table().families)
