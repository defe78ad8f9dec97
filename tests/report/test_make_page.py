"""Tests of the page of a report: its text, and what hostile names do to it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.report.page import make_page, shown_text
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


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_add_no_markup(text: str) -> None:
    harmless, hostile = Reader(make_page(report_of("x"))), Reader(make_page(report_of(text)))
    assert hostile.elements == harmless.elements
    assert hostile.scripts[1:] == harmless.scripts[1:]


@given(st.text(min_size=1))
def test_no_name_adds_markup(text: str) -> None:
    harmless, hostile = Reader(make_page(report_of("x"))), Reader(make_page(report_of(text)))
    assert hostile.elements == harmless.elements
    assert json.loads(hostile.scripts[0])["files"][0][2] == f"a/{shown_text(text)}"


def test_the_policy_allows_the_scripts_of_the_page_alone() -> None:
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
    assert "unsafe" not in policy.replace("style-src 'unsafe-inline'", "")
    assert "default-src 'none'" in policy


def test_equal_facts_give_equal_bytes() -> None:
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
def test_what_is_no_text_is_shown_as_escapes(name: str, shown: str) -> None:
    assert shown_text(name) == shown
