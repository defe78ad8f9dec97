"""The names of files that stand for others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.core import shown_names

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_in_a_fetched_folder_is_shown_with_its_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_names, "_names", {})
    (tmp_path / "x-1.0.whl").touch()
    shown_names.show_as(tmp_path, "https://host/dist")
    assert shown_names.place_of("x-1.0.whl") == "https://host/dist/x-1.0.whl"
    assert shown_names.place_of("y-1.0.whl") == "y-1.0.whl"
    assert shown_names.place_of(str(tmp_path / "x-1.0.whl")) == str(tmp_path / "x-1.0.whl")


@pytest.mark.parametrize(
    ("word", "text", "expected"),
    [
        ("https://ada:pw@host/x?token=1", "https://ada:pw@host/x?token=1: absent", "https://host/x: absent"),
        ("http:/ada:pw@host", "'http:/ada:pw@host'", "'http:/host'"),
        ("https:ada:pw@host", "https:ada:pw@host", "https:host"),
        ("ada:pw@host/x?a=b", "./ada:pw@host/x?a=b", "./host/x"),
        ("--url=https://word@host", "--url=https://word@host", "--url=https://host"),
        ("x @ https://ada:pw@host/x#sha256=0f", "x @ https://ada:pw@host/x#sha256=0f", "x @ https://host/x"),
        ("https://ada:p/w@host/x", "https://ada:p/w@host/x", "https://host/x"),
        ("https://ada:p%20w@host/x", "ada:p w@host", "host"),
        (r"https://ada:p\w@host/x", repr(r"ada:p\w@host"), "'host'"),
        ("http//ada:pw@host/x", "http/ada:pw@host/x: absent", "http/host/x: absent"),
        ("http;//ada:pw@host/x", "http;/ada:pw@host/x: absent", "http;/host/x: absent"),
        ("http;//word@host/x", "http;/word@host/x: absent", "http;/host/x: absent"),
        ("x @ //ada:pw@host/x", "file:///ada:pw@host/x", "file:///host/x"),
        ("x @ s3://bucket/x?tok=pw", "file:///here/s3:/bucket/x%3Ftok=pw", "file:///here/s3:/bucket/x"),
        ("http://localhost:8000/a@b", "http://localhost:8000/a@b", "http://localhost:8000/a@b"),
        ("a@b.whl", "a@b.whl", "a@b.whl"),
        ("dist/x?.whl", "dist/x?.whl", "dist/x?.whl"),
        ("gfx90a:xnack+", "gfx90a:xnack+", "gfx90a:xnack+"),
    ],
)
def test_secrets_in_typed_urls_are_never_shown(word: str, text: str, expected: str) -> None:
    shown_names.hide_secrets([word])
    try:
        assert shown_names.shown(text) == expected
    finally:
        shown_names.forget_names()
