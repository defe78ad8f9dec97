"""Pages on a store that somebody has edited: read or refused by name, and what is read of them leads nowhere new."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any
from urllib.parse import urlsplit

from hypothesis import example, given
from hypothesis import strategies as st

from rocwheel.core.errors import RocwheelError
from rocwheel.index.published import parse_project
from rocwheel.wheels.variants import merge_index_files
from tests.support.damage import unless_refused

A = "a" * 64
NAME = "alpha-1.0-py3-none-any.whl"
GOOD = {
    "filename": NAME,
    "url": f"../../dist/{NAME}",
    "hashes": {"sha256": A},
    "size": 4,
    "upload-time": "2026-01-01T00:00:00Z",
}
WORDS = ["alpha", "-1.0", "-py3-none-any.whl", ".tar.gz", "../", "/", "%2e%2e", "%2f", "%00", "%", "\n", "é",
         "-variants.json", "javascript:", "https://elsewhere.example/", "//host/", "#", "?", "<b>", '"', " ", "\ud800",
         NAME]  # fmt: skip
TIMES = ["0001-01-01", "9999-12-31T23:59:59Z", "1970-01-01", "2026-01-01T00:00:00+99:00"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=5).map("".join)
FILES = st.fixed_dictionaries(
    {},
    optional={
        "filename": TEXTS,
        "url": TEXTS | TEXTS.map(lambda text: f"{text}/{NAME}"),
        "hashes": st.dictionaries(st.just("sha256"), TEXTS | st.just(A)),
        "size": st.integers(),
        "upload-time": TEXTS | st.sampled_from(TIMES),
        "requires-python": TEXTS,
        "core-metadata": st.booleans() | st.dictionaries(st.just("sha256"), TEXTS),
        "yanked": st.booleans() | TEXTS,
    },
)


@given(st.lists(FILES, max_size=3), TEXTS)
@example([{"url": f"javascript:alert(1)/{NAME}"}], "")
@example([{"url": f"https://elsewhere.example/{NAME}"}], "")
@example([{"filename": "alpha-variants.json", "url": "alpha-variants.json"}], "")
@example([{"filename": "alpha-1.0-variants.json", "url": "alpha-1.0-variants.json"}], "")
@example([{"upload-time": "0001-01-01T00:00:00+14:00"}], "")
def test_any_page_is_read_and_rewritten_or_refused(files: list[dict[str, Any]], html: str) -> None:
    page = json.dumps({"name": "alpha", "files": [{**GOOD, **file} for file in files]}).encode()
    found = unless_refused(lambda: parse_project("PLACE", "alpha", page, html.encode(errors="replace")), "PLACE")
    if found and found.entries:
        links = re.findall(r'href="([^"]*)"', found.render("alpha").html.decode())
        assert {urlsplit(unescape(link)).scheme for link in links} <= {"", "http", "https"}


@given(st.binary(max_size=200), st.binary(max_size=50))
def test_any_bytes_are_read_as_a_page_or_refused(data: bytes, html: bytes) -> None:
    unless_refused(lambda: parse_project("PLACE", "alpha", data, html), "PLACE")


@given(
    st.binary(max_size=100)
    | st.dictionaries(TEXTS, st.recursive(TEXTS, st.lists)).map(lambda one: json.dumps(one).encode())
)
def test_any_variants_file_is_merged_or_refused(data: bytes) -> None:
    try:
        merge_index_files("PLACE", data, data)
    except RocwheelError as e:
        assert "PLACE" in str(e)  # noqa: PT017  # either way is right
