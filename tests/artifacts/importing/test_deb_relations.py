"""Relations of Debian packages; versions are ordered as dpkg orders them."""

from __future__ import annotations

import shutil
import subprocess
from itertools import combinations, pairwise

import pytest

from rocwheel.artifacts.importing.deb_relations import Choice, Relation, compare_versions, parse_choices

ORDERED = (
    *("0~~", "0~", "0", "1.0~rc1", "1.0", "1.0-1", "1.0-1+b2", "1.0a", "1.0+dfsg-1", "1.2", "1.10", "1:0.1", "10:0"),
)


def test_relation_field_is_read() -> None:
    assert parse_choices("libc6 (>= 2.38), librocblas4 | librocblas5 (= 5.5-1), python3:any") == (
        Choice((Relation("libc6", ">=", "2.38"),)),
        Choice((Relation("librocblas4"), Relation("librocblas5", "=", "5.5-1"))),
        Choice((Relation("python3"),)),
    )
    assert str(parse_choices("a (>= 1) | b")[0]) == "a (>= 1) | b"
    assert parse_choices("") == ()


def test_versions_are_ordered_as_debian_orders_them() -> None:
    assert [compare_versions(one, other) for one, other in combinations(ORDERED, 2)] == [-1] * 78
    assert [compare_versions(other, one) for one, other in combinations(ORDERED, 2)] == [1] * 78


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="dpkg compares, and is not installed")
def test_dpkg_orders_the_same() -> None:
    for one, other in pairwise(ORDERED):
        subprocess.run(["dpkg", "--compare-versions", one, "lt", other], check=True)


@pytest.mark.parametrize(
    ("operator", "accepted"),
    [("<<", "1"), ("<=", "12"), ("=", "2"), (">=", "23"), (">>", "3"), ("", "123"), ("<", "12"), (">", "23")],
)
def test_relation_accepts_versions_by_its_operator(operator: str, accepted: str) -> None:
    relation = Relation("a", operator, "2" if operator else "")
    assert "".join(version for version in "123" if relation.accepts(version)) == accepted
