"""Tests of `rocwheel.report.page`: its text, its graph, and what hostile names do to it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.report import page
from rocwheel.report.page import Spot, check_output, lay_out, make_page, shown_text
from rocwheel.report.values import (
    Action,
    Against,
    Code,
    Copies,
    Copy,
    FileFacts,
    FileGrowth,
    FoundFault,
    Graph,
    Kind,
    Load,
    Loading,
    Matrix,
    MatrixRow,
    PackageFacts,
    PackageGrowth,
    Part,
    Report,
    Saving,
    Savings,
    SizeChange,
    TargetGrowth,
    Totals,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "\"' onmouseover=alert(1) x='",
    "one\ntwo\r\n\tthree",
    "\u202eright to left\u2066",
    "nul\x00 escape\x1b[31m",
    "a byte \udcff",
    "&lt;b&gt; <b> <a href='javascript:alert(1)'>",
    "\u2028line",
]


def report_of(name: str) -> Report:
    """Return a report whose every text is ``name``."""
    files = (
        FileFacts(package=0, component=name, path=f"a/{name}", size=5, packed=3, parts=(Part(name, 5, 3),)),
        FileFacts(package=0, component="lib", path="b", size=1, packed=1, link=name),
        FileFacts(package=0, component="lib", path="c", size=1, packed=1, problem=name),
    )
    package = PackageFacts(
        label=name, kind=Kind.WHEEL, source=name, version=name, files=3, size=7, packed=9, rest=4, targets=(name,)
    )
    matrix = Matrix((name,), (MatrixRow(name, (name,), (name,), (Code.EXACT,)),))
    loads = (Load(name, "b", name), Load(name, is_missing=True))
    graph = Graph(
        (Loading("b", name, True, ()), Loading(f"a/{name}", name, True, loads)),
        (FoundFault(name, "error", name, f"a/{name}", name, name),),
        name,
    )
    duplicates = (Copies(1, 1, (Copy(0, name), Copy(0, "b"))),)
    savings = Savings(True, 1, 2, (Saving(Action.PRUNE, name, 5, 4, 3, 2), Saving(Action.COMPRESS, "", 0, 0, 0, 0)))
    against = Against(
        name,
        Totals(1, 1, 1, 1, (name,), 0),
        (PackageGrowth(name, SizeChange.GREW, 1, 2, None, None),),
        (FileGrowth(name, SizeChange.SHRANK, f"old {name}", name, 2, 1, 1, 1),),
        (TargetGrowth(name, 0, 5),),
    )
    return Report(
        savings=savings,
        against=against,
        duplicates=duplicates,
        graph=graph,
        paths=(name,),
        totals=Totals(1, 3, 7, 9, (name,), 1),
        packages=(package,),
        files=files,
        matrix=matrix,
    )


class Reader(HTMLParser):
    """The elements of a page, with their attributes but for what labels say, and the text of its scripts."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, Sequence[tuple[str, str | None]]]] = []
        self.scripts: list[str] = []
        self._is_script = False
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, [(name, "" if name == "aria-label" else value) for name, value in attrs]))
        self._is_script = tag == "script"
        if self._is_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        """Note that no script goes on: there is nothing in one but text."""
        del tag
        self._is_script = False

    def handle_data(self, data: str) -> None:
        """Note the text of a script."""
        if self._is_script:
            self.scripts[-1] += data


_DRAWN = frozenset({"width", "height", "viewbox", "x", "y", "d"})
"""Attributes by which names have their places in a graph: it is as wide as they are."""


def markup(page: Reader) -> list[tuple[str, list[tuple[str, str | None]]]]:
    """Return the elements of a page, without the places in its graph."""
    return [(tag, [one for one in found if one[0] not in _DRAWN]) for tag, found in page.elements]


@pytest.mark.parametrize(
    ("packages", "title"),
    [
        ({"rocm": "7.0.0", "rocm-sdk-core": "7.0.0"}, "ROCm 7.0.0 report"),
        ({"torch": "2.9.0"}, "torch 2.9.0 report"),
        ({"torch": "2.9.0", "jax": "0.12.0"}, "Package report"),
        ({"files": ""}, "Package report"),
    ],
)
def test_the_title_has_the_product_and_its_version(packages: dict[str, str], title: str) -> None:
    facts = [
        PackageFacts(label=label, kind=Kind.WHEEL, source=label, version=version) for label, version in packages.items()
    ]
    report = msgspec.structs.replace(report_of("x"), packages=tuple(facts), files=(), duplicates=())
    assert f"<title>{title}</title>" in make_page(report).decode()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_add_no_markup(text: str) -> None:
    harmless, hostile = Reader(make_page(report_of("x"))), Reader(make_page(report_of(text)))
    assert markup(hostile) == markup(harmless)
    assert hostile.scripts[1:] == harmless.scripts[1:]


@given(st.text(min_size=1))
def test_names_of_any_text_add_no_markup(text: str) -> None:
    harmless, hostile = Reader(make_page(report_of("x"))), Reader(make_page(report_of(text)))
    assert markup(hostile) == markup(harmless)
    assert json.loads(hostile.scripts[0])["files"][0][2] == f"a/{shown_text(text)}"


def test_the_policy_allows_only_the_scripts_of_the_page() -> None:
    page = Reader(make_page(report_of("x")))
    [policy] = [
        dict(found)["content"]
        for tag, found in page.elements
        if tag == "meta" and ("http-equiv", "Content-Security-Policy") in found
    ]
    digests = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in page.scripts[1:]}
    assert policy is not None
    [allowed] = [rule for rule in policy.split("; ") if rule.startswith("script-src")]
    assert set(re.findall(r"'sha256-(.*?)'", allowed)) == digests
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_a_small_report_is_a_small_page() -> None:
    assert len(make_page(report_of("x"))) < 40_000


def test_the_same_facts_give_the_same_bytes() -> None:
    assert make_page(report_of("x")) == make_page(report_of("x"))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain ä 中", "plain ä 中"),
        ("a\udcff\n", "a\\xff\\x0a"),
        ("\u202e", "\\u202e"),
        ("\ud800", "\\ud800"),
        ("", ""),
    ],
)
def test_undecodable_names_are_shown_with_escapes(name: str, shown: str) -> None:
    assert shown_text(name) == shown


def test_a_file_is_placed_to_the_left_of_the_files_it_loads() -> None:
    assert lay_out({"a": ["b", "c"], "b": ["c"], "c": [], "d": ["c"]}) == {
        "a": Spot(0, 0),
        "b": Spot(1, 0),
        "d": Spot(1, 1),
        "c": Spot(2, 0),
    }


def test_files_that_load_each_other_are_placed_too() -> None:
    assert set(lay_out({"a": ["b"], "b": ["a"], "c": ["c"]})) == {"a", "b", "c"}


def test_a_chain_may_be_deeper_than_the_python_stack() -> None:
    chain = {number: [number + 1] for number in range(5000)} | {5000: list[int]()}
    assert lay_out(chain)[0] == Spot(0, 0)
    assert lay_out(chain)[5000] == Spot(5000, 0)


@given(st.dictionaries(st.integers(0, 20), st.lists(st.integers(0, 20))))
def test_no_two_files_share_a_place(loads: dict[int, list[int]]) -> None:
    known = {node: [other for other in others if other in loads] for node, others in loads.items()}
    spots = lay_out(known)
    assert set(spots) == set(known)
    assert len(set(spots.values())) == len(known)


def savings_part(savings: Savings) -> str:
    """Return the section of a page with these savings."""
    page = make_page(msgspec.structs.replace(report_of("a"), savings=savings)).decode()
    return page.partition('<section aria-labelledby="savings">')[2].partition("</section>")[0]


def test_a_loss_is_not_shown_as_a_saving() -> None:
    page = savings_part(Savings(False, 1, 1, (Saving(Action.COMPRESS, "", 4000, 2000, 1000, 3500),)))
    assert '<td class="size">2.0 kB (50%)</td>' in page
    assert '<td class="size">nothing</td>' in page


def test_the_baseline_for_savings_has_its_own_row() -> None:
    rows = (
        Saving(Action.PRUNE, "gfx906", 4000, 2000, 1000, 500),
        Saving(Action.PRUNE, "gfx1030", 4000, 1000, 1000, 250),
    )
    page = savings_part(Savings(False, 0, 0, rows))
    now = '<th scope="row">Now</th><td class="size">4.0 kB</td><td class="size"></td><td class="size">1.0 kB</td>'
    assert page.count(now) == 1
    assert (
        "Each row is compared with the packages as they are now. Packed sizes are those of whole wheels and sdists"
        in page
    )


def test_packed_sizes_are_not_mentioned_without_wheels() -> None:
    page = savings_part(Savings(False, 0, 0, (Saving(Action.PRUNE, "gfx906", 4000, 2000, None, None),)))
    assert '<th scope="row">Now</th><td class="size">4.0 kB</td><td class="size"></td></tr>' in page
    assert "Packed" not in page


def test_a_missing_template_engine_is_reported_before_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_template", page._template.__wrapped__)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match=r"jinja2: isn't installed.*pip install 'rocwheel\[report\]'"):
        check_output(tmp_path / "report.html", [])
