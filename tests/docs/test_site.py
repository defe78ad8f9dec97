"""The documentation site, as a reader's browser shows it: nothing is fetched from elsewhere, nothing is cut off."""

from __future__ import annotations

import functools
import http.server
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.support.chromium import Page, open_page
from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

PAGES = ("", "device-code/", "tutorials/end-user/", "audit/", "architecture/")
SEARCH = """
(() => {
  document.querySelector('#__search').checked = true;
  const field = document.querySelector('.md-search__input');
  field.focus();
  field.value = 'run path';
  field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));
  field.dispatchEvent(new Event('input', {bubbles: true}));
})()
"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the standard library
        """Print nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of the site, built from the pages and served from this machine."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """Yield a page of a headless browser."""
    with open_page(tmp_path / "profile") as opened:
        if opened is None:
            pytest.skip("needs chromium")
        yield opened


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_the_window_and_fetch_nothing_from_elsewhere(site: str, page: Page, width: int) -> None:
    for place in PAGES:
        page.visit(site + place, width=width)
        shown, scrolled = page.run("[document.documentElement.clientWidth, document.documentElement.scrollWidth]")
        assert (place, scrolled) == (place, shown)
    assert page.complaints == []
    assert {urlsplit(url).hostname for url in page.requests if not url.startswith("data:")} == {"127.0.0.1"}


def test_search_finds_run_paths_without_any_other_host(site: str, page: Page) -> None:
    page.visit(site, width=1280)
    page.run(SEARCH)
    found = page.wait_for(
        "Array.from(document.querySelectorAll('.md-search-result__item a')).map(link => new URL(link.href).pathname)"
        ".filter(path => path).join(' ')"
    )
    assert "/runpath/" in found.split()
    assert page.complaints == []
    assert {urlsplit(url).hostname for url in page.requests if not url.startswith("data:")} == {"127.0.0.1"}


def test_dark_mode_is_one_click_away_and_stays(site: str, page: Page) -> None:
    page.visit(site, width=1280)
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    assert page.run(scheme) == "default"
    page.run("document.querySelector('form[data-md-component=palette] label:not([hidden])').click()")
    assert page.wait_for(f"{scheme} === 'slate'")
    page.visit(site + "device-code/", width=1280)
    assert page.run(scheme) == "slate"


@pytest.mark.parametrize(("width", "shown"), [(1280, "wide"), (390, "tall")])
def test_the_landing_page_shows_one_picture_and_four_doors(site: str, page: Page, width: int, shown: str) -> None:
    page.visit(site, width=width)
    visible = (
        "Array.from(document.querySelectorAll('.picture > div')).filter(part => part.offsetHeight)"
        ".map(part => part.className)"
    )
    assert page.run(visible) == [shown]
    smallest = page.run(
        f"Math.min(...Array.from(document.querySelectorAll('.picture .{shown} text')).map(text =>"
        " parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a))"
    )
    assert smallest >= 11.5
    doors = page.run("Array.from(document.querySelectorAll('.doors a')).map(link => new URL(link.href).pathname)")
    assert doors == [
        "/tutorials/sdk-distributor/",
        "/tutorials/framework-builder/",
        "/tutorials/distribution-maintainer/",
        "/tutorials/end-user/",
    ]
