"""Relations between Debian packages are read, and versions compared, as dpkg does it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.artifacts.deb.relations import Choice, Relation, compare_versions, parse_choices
from tests.support.example_counts import examples

HAS_DPKG = pytest.mark.skipif(shutil.which("dpkg") is None, reason="dpkg, which the result is compared with, is absent")

UPSTREAM = st.text("0123456789abzAZ.+~", max_size=8).map(lambda text: f"1{text}")
VERSIONS = st.tuples(
    st.sampled_from(["", "0:", "1:", "12:"]), UPSTREAM, st.one_of(st.just(""), UPSTREAM.map(lambda text: f"-{text}"))
).map("".join)


def test_relations_have_operators_versions_and_alternatives() -> None:
    assert parse_choices("libc6 (>= 2.38), perl:any | perl-base, a (<<1:2~) [amd64 arm64] <!nocheck>") == (
        Choice((Relation("libc6", ">=", "2.38"),)),
        Choice((Relation("perl"), Relation("perl-base"))),
        Choice((Relation("a", "<<", "1:2~"),)),
    )


@pytest.mark.parametrize("field", ["", " , ", "(= 1)", "|", ",,"])
def test_what_is_no_relation_is_left_out(field: str) -> None:
    assert parse_choices(field) == ()


@pytest.mark.parametrize(
    ("relation", "version", "accepted"),
    [
        ("a", "1", True),
        ("a (= 1-1)", "1-1", True),
        ("a (= 1-1)", "1-1+b1", False),
        ("a (>= 6.4.3~)", "6.4.3-5", True),
        ("a (>= 7)", "6.4.3-5", False),
        ("a (<< 7)", "7", False),
        ("a (<= 7)", "7", True),
        ("a (< 7)", "7", True),
        ("a (> 7)", "7", True),
        ("a (>> 7)", "7", False),
    ],
)
def test_versions_fit_a_relation_or_not(relation: str, version: str, accepted: bool) -> None:
    [choice] = parse_choices(relation)
    assert choice.relations[0].accepts(version) is accepted


@pytest.mark.parametrize(
    ("relation", "provides", "met"),
    [
        ("given", "", True),
        ("given (= 1)", "", True),
        ("given (= 2)", "", False),
        ("given (= 2)", "given (= 2)", True),
        ("other", "", False),
        ("other", "a, other", True),
        ("other (>= 3)", "other", False),
        ("other (>= 3)", "other (= 3.1)", True),
        ("other (>= 3)", "other (= 2)", False),
    ],
)
def test_a_package_stands_for_what_it_provides(relation: str, provides: str, met: bool) -> None:
    [choice] = parse_choices(relation)
    assert choice.relations[0].is_met_by("given", "1", parse_choices(provides)) is met


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        ("1.2", "1.10"),
        ("1.0~rc1", "1.0"),
        ("1.0", "1.0a"),
        ("1.0a", "1.0+"),
        ("9", "1:1"),
        ("1-1", "1-1+b1"),
        ("1-9", "1-10"),
    ],
)
def test_versions_have_an_order(lower: str, higher: str) -> None:
    assert (compare_versions(lower, higher), compare_versions(higher, lower)) == (-1, 1)


def test_numbers_may_have_leading_zeros_and_any_length() -> None:
    assert compare_versions("1.007", "1.7") == 0
    assert compare_versions(f"1.{'9' * 9000}", f"1.1{'0' * 9000}") == -1


@HAS_DPKG
@settings(max_examples=examples(20), deadline=None)
@given(VERSIONS, VERSIONS)
def test_order_is_that_of_dpkg(one: str, other: str) -> None:
    operator = {-1: "lt", 0: "eq", 1: "gt"}[compare_versions(one, other)]
    assert subprocess.run(["dpkg", "--compare-versions", one, operator, other], check=False).returncode == 0


@given(st.text(max_size=40))
def test_any_text_is_read_as_a_relation_field(text: str) -> None:
    assert all(choice.relations for choice in parse_choices(text))


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_two_texts_are_compared_either_way_round(one: str, other: str) -> None:
    assert compare_versions(one, other) == -compare_versions(other, one)
    assert compare_versions(one, one) == 0
