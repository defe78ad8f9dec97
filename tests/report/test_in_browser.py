"""The page of a report in a headless Chromium: looked into with clicks and keys, sorted, searched, printed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rocwheel.report.make_report import make_report
from rocwheel.report.page import make_page
from rocwheel.report.values import FileFacts, Kind, Matrix, PackageFacts, Report, Totals
from tests.report.test_page import HOSTILE, report_of
from tests.support.bundles import bundle_of
from tests.support.chromium import Page, open_page
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

ROWS = "Array.from(document.querySelectorAll('#explorer tbody tr')).map(row => row.cells[0].innerText)"
TRAIL = "Array.from(document.querySelectorAll('.trail li')).map(item => item.textContent).join('|')"
CLICK = (
    "Array.from(document.querySelectorAll('#explorer button')).find(one => one.textContent.startsWith({!r})).click()"
)
TYPE = """
(() => {
  const field = document.getElementById('find');
  field.value = %r;
  field.dispatchEvent(new Event('input', {bubbles: true}));
})()
"""
CHOOSE = """
(() => {
  const field = document.getElementById(%r);
  field.value = %r;
  field.dispatchEvent(new Event('change', {bubbles: true}));
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


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of the report on two wheels."""
    folder = tmp_path_factory.mktemp("report")
    kernels = {f"a/lib/rocblas/library/Kernels_{name}.hsaco": bundle_of(name) for name in ("gfx906", "gfx942")}
    make_wheel(folder / "dist", "alpha", {**kernels, "a/lib/libx.so": os.urandom(50_000), "a/x.py": b"x" * 300})
    make_wheel(folder / "dist", "beta", {"b/y.py": b"y" * 90_000})
    return written(folder / "report.html", make_report([folder / "dist"], unread=[]))


def written(path: Path, report: Report) -> str:
    """Write the page of a report, and return its address."""
    path.write_bytes(make_page(report))
    return path.as_uri()


def test_the_page_makes_no_requests_and_logs_no_errors(page: Page, address: str) -> None:
    page.visit(address, width=1280)
    assert page.run(ROWS) == ["beta", "alpha"]
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith(("data:", "blob:"))] == [address]


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_fits_the_window(page: Page, address: str, width: int) -> None:
    page.visit(f"{address}?{width}", width=width)
    shown, scrolled = page.run("[document.documentElement.clientWidth, document.documentElement.scrollWidth]")
    assert scrolled == shown


def test_the_treemap_and_its_table_fit_a_phone(page: Page, address: str) -> None:
    page.visit(f"{address}?phone", width=390)
    page.wait_for("document.querySelectorAll('#treemap .slice').length")
    parts = "Array.from(document.querySelectorAll('#treemap, .contents'))"
    assert page.run(f"{parts}.map((part) => part.scrollWidth - part.clientWidth)") == [0, 0]


def test_clicks_open_folders_and_go_back(page: Page, address: str) -> None:
    page.visit(f"{address}?clicks", width=1280)
    page.run(CLICK.format("alpha"))
    assert page.run(ROWS) == ["lib", "kernels", "metadata", "python", "headers of the wheel"]
    page.run(CLICK.format("kernels"))
    assert page.run(ROWS) == ["a/lib/rocblas/library/"]
    page.run(CLICK.format("a/lib"))
    assert page.run(ROWS) == ["Kernels_gfx906.hsaco", "Kernels_gfx942.hsaco"]
    assert page.run(TRAIL) == "Everything|alpha|kernels|a/lib/rocblas/library/"
    page.run(CLICK.format("Everything"))
    assert page.run(ROWS) == ["beta", "alpha"]


DRAWN = "Array.from(document.querySelectorAll('#treemap .slice > span')).map(text => text.textContent)"


def test_the_treemap_shows_the_current_folder_and_responds_to_clicks(page: Page, address: str) -> None:
    page.visit(f"{address}?treemap", width=1280)
    assert page.wait_for(f"{DRAWN}.some(text => text.startsWith('beta'))")
    click = "Array.from(document.querySelectorAll('#treemap .slice')).find(one => one.textContent.startsWith({!r}))"
    where = page.run(
        f"(box => [box.left + box.width / 2, box.top + 8])({click.format('alpha')}.getBoundingClientRect())"
    )
    page.click(*where)
    assert page.wait_for(f"{TRAIL} == 'Everything|alpha'")
    assert page.wait_for(f"!{DRAWN}.some(text => text.startsWith('beta'))")
    assert page.run("document.getElementById('treemap').getAttribute('aria-label')").startswith("Treemap of alpha, ")
    page.click(
        *page.run(f"(box => [box.left + box.width / 2, box.top + 8])({click.format('alpha')}.getBoundingClientRect())")
    )
    assert page.wait_for(f"{TRAIL} == 'Everything'")
    assert page.complaints == []


def test_the_matrix_shows_which_gpu_lacks_code(page: Page, address: str) -> None:
    page.visit(f"{address}?matrix", width=1280)
    rows = page.run(
        "Array.from(document.querySelectorAll('.matrix tr')).map(row => row.innerText.replace(/\\s+/g, ' '))"
    )
    assert rows[0].split() == ["Library", "gfx906", "gfx942"]
    assert rows[1].startswith("a/lib/rocblas/library/ alpha")
    assert page.run("Array.from(document.querySelectorAll('.matrix td .heard')).map(text => text.textContent)") == [
        "exact", "exact",
    ]  # fmt: skip


def test_the_dependency_graph_links_to_the_rows(page: Page, tmp_path: Path) -> None:
    page.visit(written(tmp_path / "graph.html", report_of("liba.so")), width=1280)
    names = "Array.from(document.querySelectorAll('.graph a'))"
    assert page.run(f"{names}.map(one => one.getAttribute('aria-label'))") == ["liba.so, 1 finding", "b"]
    page.run(f"{names}[1].dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    assert page.wait_for("document.querySelector('tr:target')?.cells[0].innerText") == "b"
    assert page.run("document.querySelector('.graph .fault').textContent").strip() == "▲1"
    assert page.run("document.querySelectorAll('.graph path').length") == 1
    assert page.complaints == []


def test_packed_sizes_can_change_the_order(page: Page, address: str) -> None:
    page.visit(f"{address}?packed", width=1280)
    page.run(CHOOSE % ("measure", "packed"))
    assert page.run(ROWS) == ["alpha", "beta"]


def test_a_column_sorts_in_both_directions(page: Page, address: str) -> None:
    page.visit(f"{address}?sort", width=1280)
    page.run(CLICK.format("Name"))
    assert page.run(ROWS) == ["alpha", "beta"]
    page.run(CLICK.format("Name"))
    assert page.run(ROWS) == ["beta", "alpha"]
    assert page.run("document.querySelector('[data-column=name]').getAttribute('aria-sort')") == "descending"
    assert page.run("document.activeElement.closest('th').dataset.column") == "name"


def test_files_can_be_grouped_by_gpu(page: Page, address: str) -> None:
    page.visit(f"{address}?gpu", width=1280)
    page.run(CHOOSE % ("first", "target"))
    assert page.run(ROWS) == ["no GPU code", "gfx906", "gfx942"]
    sizes = "Array.from(document.querySelectorAll('#explorer tbody tr')).map(row => row.cells[3].innerText)"
    assert page.run(sizes)[1:] == ["4 bytes", "4 bytes"]


@pytest.mark.parametrize(("typed", "found"), [
    ("gfx906", ["alpha/kernels/a/lib/rocblas/library/Kernels_gfx906.hsaco"]),
    ("ROCBLAS 942", ["alpha/kernels/a/lib/rocblas/library/Kernels_gfx942.hsaco"]),
    ("voodoo", []),
])  # fmt: skip
def test_search_finds_files(page: Page, address: str, typed: str, found: list[str]) -> None:
    page.visit(f"{address}?find", width=1280)
    page.run(TYPE % typed)
    assert page.run(ROWS) == found
    assert page.run("document.getElementById('said').textContent") == f"{len(found)} found."
    page.run(TYPE % "")
    assert page.run(ROWS) == ["beta", "alpha"]


def test_the_keyboard_reaches_the_packages(page: Page, address: str) -> None:
    page.visit(f"{address}?keys", width=1280)
    reached = [page.press_tab() for _ in range(24)]
    assert reached[:3] == ["a #sizes", "a #sizes", "a #packages"]
    assert {"select first", "select measure", "input find"} <= set(reached)
    assert "button" in reached


def test_everything_has_a_name_for_screen_readers(page: Page, address: str) -> None:
    page.visit(f"{address}?heard", width=1280)
    heard = page.heard()
    spoken = {"link", "button", "searchbox", "combobox", "navigation", "region", "img", "image", "meter"}
    assert [row for row in heard if row[0] in spoken and not row[1]] == []
    assert {"Name", "Sort by name"} & {name for role, name in heard if role == "columnheader"}
    levels = page.run("Array.from(document.querySelectorAll('h1, h2, h3')).map(title => Number(title.tagName[1]))")
    assert levels[0] == 1
    assert page.run("document.documentElement.lang") == "en"


def test_packages_are_shown_without_javascript(page: Page, address: str) -> None:
    page.allow_scripts(allowed=False)
    page.visit(f"{address}?plain", width=1280)
    text = page.run("document.body.innerText")
    assert "beta" in text
    assert "enable JavaScript for this page" in text
    assert page.run("document.getElementById('explorer').offsetHeight") == 0


def test_the_printed_page_has_tables_but_no_controls(page: Page, address: str) -> None:
    page.visit(f"{address}?paper", width=1280)
    page.show_as("print")
    shown = "Array.from(document.querySelectorAll({!r})).filter(part => part.offsetHeight).length"
    assert page.run(shown.format("select, input, .pages")) == 0
    assert page.run(shown.format("#explorer tbody tr")) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_in_both_color_schemes(page: Page, address: str, scheme: str) -> None:
    page.show_as(prefers_color_scheme=scheme)
    page.visit(f"{address}?{scheme}", width=1280)
    contrasts = page.contrasts("h1, h2, p, a, .soft, button, td, th, label")
    assert len(contrasts) > 40
    assert min(contrasts) >= 4.5  # WCAG 2.2, 1.4.3


def test_hostile_names_execute_nothing(page: Page, tmp_path: Path) -> None:
    for number, text in enumerate(HOSTILE):
        page.visit(written(tmp_path / f"{number}.html", report_of(text)), width=1280)
        assert page.run(ROWS)
        page.run(TYPE % "a")
        assert page.run("document.querySelectorAll('main img, main b a').length") == 0
    assert page.complaints == []


def test_twenty_thousand_files_render_quickly(page: Page, tmp_path: Path) -> None:
    files = tuple(
        FileFacts(package=0, component="lib", path=f"d{number % 40}/e{number % 200}/f{number}", size=number + 1)
        for number in range(20_000)
    )
    size = sum(file.size for file in files)
    packages = (PackageFacts(label="many", kind=Kind.FILES, source="many", files=20_000, size=size),)
    totals = Totals(1, 20_000, size, None, (), 0)
    report = Report(paths=("many",), totals=totals, packages=packages, files=files, matrix=Matrix((), ()))
    page.visit(written(tmp_path / "many.html", report), width=1280)
    for action in (CLICK.format("many"), CLICK.format("lib"), TYPE % "f19999", TYPE % ""):
        taken = page.run(
            f"(() => {{ const start = performance.now(); {action}; return performance.now() - start; }})()"
        )
        assert taken < 1000
    assert page.run(ROWS + ".length") == 40
