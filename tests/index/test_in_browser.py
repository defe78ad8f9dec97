"""The front page in a headless Chromium: complete without scripts, and handier with them."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
import pytest

from rocwheel.index.extra_files import IndexContent
from rocwheel.index.front_content import find_content, with_families
from rocwheel.index.front_page import make_front_page
from tests.index.entries import GPUS, make_entry, neutral_set
from tests.index.test_front_page import HOSTILE, page_of
from tests.support.chromium import Page, open_page
from tests.support.loopback import served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

CARDS = "Array.from(document.querySelectorAll('.gpu')).filter(card => card.offsetHeight).map(card => card.id).join(' ')"
PRODUCTS = (
    "Array.from(document.querySelectorAll('.products li')).filter(item => item.offsetHeight)"
    ".map(item => item.textContent).join('; ')"
)
TYPE = """
(() => {
  const field = document.getElementById('find');
  field.value = %r;
  field.dispatchEvent(new Event('input', {bubbles: true}));
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Yield a page of a headless browser."""
    with open_page(tmp_path_factory.mktemp("profile")) as opened:
        if opened is None:
            pytest.skip("needs chromium")
        yield opened


@pytest.fixture
def page(browser: Page) -> Iterator[Page]:
    """Yield the page as a new one would be."""
    browser.requests.clear()
    browser.complaints.clear()
    yield browser
    browser.allow_scripts(allowed=True)
    browser.show_as()


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Yield the address of a folder ``simple`` with a front page, served from this machine."""
    folder = tmp_path / "ro cm's" / "simple"
    folder.mkdir(parents=True)
    projects = {**neutral_set(), "torch": [make_entry("torch", f"2.{minor}.0") for minor in range(12)]}
    (folder / "packages.html").write_bytes(make_front_page(find_content(projects, {}, GPUS)))
    with served(tmp_path) as root:
        yield f"{root}/ro%20cm's/simple/"


FAMILY = 'gfx90X <b>\u00e4 100% "$HOME"'
FAMILY_PATH = "gfx90X%20%3Cb%3E%C3%A4%20100%25%20%22%24HOME%22/"


@pytest.fixture
def above(address: str, tmp_path: Path) -> str:
    """Return the address of that folder, which is above the index of a family now."""
    folder = tmp_path / "ro cm's" / "simple"
    own = make_entry("rocm-fam", targets=("gfx906",))
    family = IndexContent({**neutral_set(), "rocm-fam": [own]}, {}, {}, FAMILY)
    content = IndexContent(neutral_set(), {}, {}, families={FAMILY: family})
    page = with_families(find_content(content.projects, {}, GPUS), content, GPUS)
    (folder / "packages.html").write_bytes(make_front_page(page))
    (folder / FAMILY).mkdir()
    below = msgspec.structs.replace(find_content(family.projects, {}, GPUS), family=FAMILY)
    (folder / FAMILY / "packages.html").write_bytes(make_front_page(below))
    return address


def plain(address: str) -> str:
    """Return the address as it stands in a command line."""
    return address.replace("'", "%27")


@pytest.mark.parametrize("width", [1280, 390, 360])
def test_the_page_fits_the_window_loads_nothing_else_and_logs_no_errors(page: Page, address: str, width: int) -> None:
    page.visit(f"{address}packages.html", width=width)
    shown, scrolled = page.run("[document.documentElement.clientWidth, document.documentElement.scrollWidth]")
    assert scrolled == shown
    assert page.complaints == []
    assert {urlsplit(url).path.rpartition("/")[2] for url in page.requests if url.startswith("http")} == {
        "packages.html"
    }


def test_the_page_is_complete_without_scripts(page: Page, address: str) -> None:
    page.allow_scripts(allowed=False)
    page.visit(f"{address}packages.html", width=1280)
    assert page.run(CARDS) == "gfx1100 gfx1103"
    text = page.run("document.body.innerText")
    assert 'pip install "rocm[libraries,device-gfx1100]" --index-url "URL-OF-THIS-INDEX"' in text
    assert "URL-OF-THIS-INDEX is a placeholder for the address of this page without packages.html." in text
    assert "rocm-sdk-device-gfx11-generic" in text
    assert page.run("document.querySelectorAll('button').length") == 0
    assert page.run("document.getElementById('find').offsetHeight") == 0


def test_a_gpu_can_be_chosen_by_its_product_without_scripts(page: Page, address: str) -> None:
    page.allow_scripts(allowed=False)
    page.visit(f"{address}packages.html", width=1280)
    page.run("Array.from(document.links).find(link => link.textContent == 'Radeon 780M').click()")
    assert page.wait_for(f"{CARDS} == 'gfx1103'")
    page.run("document.querySelector('.gpu:target .back a').click()")
    assert page.wait_for(f"{CARDS} == 'gfx1100 gfx1103'")


def test_lines_contain_the_url_from_which_the_page_was_loaded(page: Page, address: str) -> None:
    page.visit(f"{address}packages.html?from=mail#gfx1100", width=1280)
    line = page.run("document.querySelector('#gfx1100 pre').textContent")
    assert line == f'pip install "rocm[libraries,device-gfx1100]" --index-url "{plain(address)}"'
    assert page.run("document.querySelector('.without-script').offsetHeight") == 0


@pytest.mark.parametrize(("typed", "cards", "products"), [
    ("7900xtx", "gfx1100", "Radeon RX 7900 XTX gfx1100"),
    ("GFX1103", "gfx1103", "Radeon 780M gfx1103"),
    ("mi50", "", "Radeon Instinct MI50 gfx906"),
    ("voodoo", "", ""),
])  # fmt: skip
def test_typing_finds_gpus_by_name_even_absent_gpus(
    page: Page, address: str, typed: str, cards: str, products: str
) -> None:
    page.visit(f"{address}packages.html", width=1280)
    page.run(TYPE % typed)
    assert (page.run(CARDS), page.run(PRODUCTS)) == (cards, products)
    page.run(TYPE % "")
    assert page.run(CARDS) == "gfx1100 gfx1103"


@pytest.mark.parametrize(("typed", "found"), [
    ("device_gfx11", "rocm-sdk-device-gfx11-generic rocm-sdk-device-gfx1100"),
    ("SDK devel", "rocm-sdk-devel"),
    ("selects", "rocm"),
    ("voodoo", ""),
])  # fmt: skip
def test_typing_finds_packages(page: Page, address: str, typed: str, found: str) -> None:
    page.visit(f"{address}packages.html", width=1280)
    page.run(TYPE.replace("'find'", "'find-package'") % typed)
    shown = (
        "Array.from(document.querySelectorAll('tbody tr')).filter(row => row.offsetHeight)"
        ".map(row => row.querySelector('a').textContent)"
    )
    assert page.run(f"{shown}.sort().join(' ')") == found
    assert page.run("document.getElementById('said').textContent") == f"{len(found.split())} found."
    page.run(TYPE.replace("'find'", "'find-package'") % "")
    assert page.run(f"{shown}.length") == 7


def test_a_phone_shows_each_package_without_horizontal_scrolling(page: Page, address: str) -> None:
    page.visit(f"{address}packages.html?phone", width=360)
    assert page.run("(box => box.scrollWidth - box.clientWidth)(document.querySelector('.wide'))") == 0
    cells = "Array.from(document.querySelectorAll('tbody th, tbody td'))"
    assert page.run(f"{cells}.filter(cell => cell.getBoundingClientRect().right > 360).length") == 0
    assert page.run("Math.max(...Array.from(document.querySelectorAll('tbody tr')).map(row => row.offsetHeight))") < 200


def test_a_gpu_can_be_chosen_and_its_line_copied_with_the_keyboard(page: Page, address: str) -> None:
    page.visit(f"{address}packages.html?keys", width=1280)
    # No further than the page goes: the browser itself would have the focus then.
    reached = [page.press_tab() for _ in range(14)]
    assert reached[:5] == ["a #packages", "a #gpus", "a #packages", "a ./", "input find"]
    assert "a #gfx1103" in reached
    assert any(place.startswith("button Copy: pip install") for place in reached)


@pytest.mark.parametrize("width", [1280, 360])
def test_a_screen_reader_gets_table_headings_and_names_for_all_elements(page: Page, address: str, width: int) -> None:
    page.visit(f"{address}packages.html?heard={width}", width=width)
    heard = page.heard()
    assert {name for role, name in heard if role == "columnheader"} == {
        "Package", "Version", "Size", "GPUs", "Summary",
    }  # fmt: skip
    assert {name for role, name in heard if role == "rowheader"} >= {"rocm", "torch"}
    spoken = {"link", "button", "searchbox", "navigation", "region"}
    assert [row for row in heard if row[0] in spoken and not row[1]] == []


def test_typing_overrides_the_gpu_in_the_url(page: Page, address: str) -> None:
    page.visit(f"{address}packages.html#gfx1103", width=1280)
    page.run(TYPE % "7900")
    assert page.wait_for(f"{CARDS} == 'gfx1100'")


def test_a_line_is_copied_with_one_click(page: Page, address: str) -> None:
    page.allow_clipboard(address.partition("/ro")[0])
    page.visit(f"{address}packages.html", width=1280)
    page.run("document.querySelector('#gfx1100 button').focus()")
    page.run("document.querySelector('#gfx1100 button').click()")
    assert page.wait_for("document.getElementById('said').textContent") == "Copied."
    expected = f'pip install "rocm[libraries,device-gfx1100]" --index-url "{plain(address)}"'
    assert page.run("navigator.clipboard.readText()") == expected
    assert page.complaints == []


def test_a_line_is_copied_without_the_clipboard_api(page: Page, address: str) -> None:
    page.visit(f"{address}packages.html", width=1280)
    page.run("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page.run("""
      document.execCommand = (command) => {
        const field = document.activeElement;
        window.copied = `${command} ${field.value.substring(field.selectionStart, field.selectionEnd)}`;
        return true;
      }
    """)
    page.run("document.querySelector('#gfx1103 button').click()")
    assert page.wait_for("document.getElementById('said').textContent") == "Copied."
    expected = f'copy pip install "rocm[libraries,device-gfx1103]" --index-url "{plain(address)}"'
    assert page.run("window.copied") == expected
    assert page.run("document.querySelectorAll('textarea').length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_in_both_color_schemes(page: Page, address: str, scheme: str) -> None:
    page.show_as(prefers_color_scheme=scheme)
    page.visit(f"{address}packages.html", width=1280)
    contrasts = page.contrasts("h1, p, a, .soft, pre, button, td, th, summary")
    assert len(contrasts) > 40
    assert min(contrasts) >= 4.5  # WCAG 2.2, 1.4.3


def test_the_printed_page_has_lines_and_files_but_no_controls(page: Page, address: str) -> None:
    page.visit(f"{address}packages.html", width=1280)
    page.show_as("print")
    assert page.run("document.querySelector('#gfx1100 pre').offsetHeight") > 0
    assert page.run("document.querySelector('tbody details li').getClientRects().length") > 0
    hidden = "Array.from(document.querySelectorAll('button, input, nav, .products')).filter(part => part.offsetHeight)"
    assert page.run(f"{hidden}.length") == 0
    # No heading of a list that is not printed.
    assert (
        page.run(
            "Array.from(document.querySelectorAll('h2, h3, summary')).filter(part => part.offsetHeight)"
            ".map(part => part.textContent).filter(text => !text.endsWith('file')).join('; ')"
        )
        == "What to install; gfx1100; gfx1103; All packages"
    )


def test_every_element_has_an_accessible_name(page: Page, address: str) -> None:
    page.visit(f"{address}packages.html", width=1280)
    unnamed = page.run("""
      Array.from(document.querySelectorAll('a, button, input, section, nav, [role=region]')).filter((part) =>
        !(part.textContent.trim() || part.labels?.length || part.getAttribute('aria-label')
          || part.getAttribute('aria-labelledby'))).map((part) => part.outerHTML)
    """)
    assert unnamed == []
    assert page.run("document.documentElement.lang") == "en"
    levels = page.run("Array.from(document.querySelectorAll('h1, h2, h3')).map(title => Number(title.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.run("new Set(Array.from(document.querySelectorAll('[id]')).map(part => part.id)).size") == page.run(
        "document.querySelectorAll('[id]').length"
    )


def test_hostile_text_runs_no_script(page: Page, tmp_path: Path) -> None:
    for number, text in enumerate(HOSTILE):
        path = tmp_path / f"{number}.html"
        path.write_bytes(page_of(text))
        page.visit(path.as_uri(), width=1280)
        assert page.run("document.querySelectorAll('script').length") == 1
        assert page.run("document.querySelectorAll('img').length") == 0
    assert page.complaints == []


def test_a_browser_that_does_not_respond_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.chromium._PATIENCE", 0.1)
    asked, answers = os.pipe(), os.pipe()
    try:
        with pytest.raises(AssertionError, match=r"the browser has said nothing for 0\.1 s"):
            Page(asked[1], answers[0])
    finally:
        for end in (*asked, *answers):
            os.close(end)


def test_a_gpu_links_to_its_family_page_and_back_without_scripts(page: Page, above: str) -> None:
    page.allow_scripts(allowed=False)
    page.visit(f"{above}packages.html", width=1280)
    assert page.run(CARDS) == "gfx906 gfx1100 gfx1103"
    page.run("Array.from(document.links).find(link => link.textContent == 'Radeon Instinct MI50').click()")
    assert page.wait_for(f"{CARDS} == 'gfx906'")
    line = page.run("document.querySelector('#gfx906 pre').textContent")
    assert line == f'pip install "rocm-fam" --index-url "URL-OF-THIS-INDEX/{FAMILY_PATH}"'
    page.run("document.querySelector('#gfx906 a').click()")
    assert page.wait_for(f"document.querySelector('h1')?.textContent.endsWith({f'packages for {FAMILY}'!r})")
    assert page.wait_for(f"{CARDS} == 'gfx906'")
    page.run("Array.from(document.links).find(link => link.textContent == 'All families').click()")
    assert page.wait_for("document.querySelector('h1')?.textContent.endsWith('packages')")
    assert page.complaints == []


def test_families_are_listed_with_their_urls(page: Page, above: str) -> None:
    page.visit(f"{above}packages.html", width=1280)
    assert page.run("document.querySelector('.family h3').textContent") == FAMILY
    address = f"{plain(above)}{FAMILY_PATH}"
    assert page.run("document.querySelector('.family pre').textContent") == f'--index-url "{address}"'
    expected = f'pip install "rocm-fam" --index-url "{address}"'
    assert page.run("document.querySelector('#gfx906 pre').textContent") == expected
    page.run("document.querySelector('.family a').click()")
    assert page.wait_for(f"document.querySelector('#gfx906 pre')?.textContent == {expected!r}")


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_with_families_fits_the_window(page: Page, above: str, width: int) -> None:
    page.visit(f"{above}packages.html?families={width}", width=width)
    shown, scrolled = page.run("[document.documentElement.clientWidth, document.documentElement.scrollWidth]")
    assert scrolled == shown
    assert page.complaints == []


def test_the_printed_page_has_the_families_and_their_urls(page: Page, above: str) -> None:
    page.visit(f"{above}packages.html?paper", width=1280)
    page.show_as("print")
    assert page.run("document.querySelector('.family h3').offsetHeight") > 0
    assert page.run("document.querySelector('.family pre').offsetHeight") > 0
    assert page.run("document.querySelector('.family button').offsetHeight") == 0
    page.visit(f"{above}{FAMILY_PATH}packages.html?paper", width=1280)
    page.show_as("print")
    assert page.run("document.querySelector('#gfx906 pre').offsetHeight") > 0
    assert page.run("document.querySelector('tbody details li').getClientRects().length") > 0
