"""The documentation site, as a reader's browser shows it: nothing is fetched from elsewhere, nothing is cut off."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

import rocwheel
from rocwheel.cli import load_commands
from rocwheel.cli.app import app
from scripts.site_hooks import commands, options_page
from tests.support.chromium import Page, open_page
from tests.support.loopback import served
from tests.support.places import ROOT
from tests.support.site_links import SiteLinks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

PAGES = ("", "device-code/", "tutorials/end-user/", "audit/", "architecture/")
HOSTS = {
    "cibuildwheel.pypa.io",
    "cyclonedx.org",
    "developers.google.com",
    "developmentseed.org",
    "distributed.dask.org",
    "docs.astral.sh",
    "docs.pypi.org",
    "docs.sigstore.dev",
    "github.com",
    "jobqueue.dask.org",
    "kubernetes.dask.org",
    "packaging.python.org",
    "peps.python.org",
    "pypi.org",
    "rocm.docs.amd.com",
    "semver.org",
    "slsa.dev",
}
"""Where links may lead to."""
SEARCH = """
(text => {
  document.querySelector('#__search').checked = true;
  const field = document.querySelector('.md-search__input');
  field.focus();
  field.value = text;
  field.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}));
  field.dispatchEvent(new Event('input', {bubbles: true}));
})
"""


@pytest.fixture(scope="module")
def built_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built from the pages without a warning."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def site(built_site: Path) -> Iterator[str]:
    """Yield the address of the site, served from this machine."""
    with served(built_site) as root:
        yield f"{root}/"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """Yield a page of a headless browser."""
    with open_page(tmp_path / "profile") as opened:
        if opened is None:
            pytest.skip("needs chromium")
        yield opened


def test_links_point_to_existing_pages_and_anchors(built_site: Path) -> None:
    assert SiteLinks(built_site).broken() == []


def test_links_to_other_hosts_are_limited_to_known_projects(built_site: Path) -> None:
    assert SiteLinks(built_site).hosts - HOSTS == set()


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text('<a href="a/#there">1</a><a href="a/#gone">2</a><a href="b/">3</a>')
    (tmp_path / "a/index.html").write_text('<h1 id="there"><a href="../">1</a><img src="x.png"></h1>')
    assert SiteLinks(tmp_path).broken() == [
        ("a/index.html", "x.png"),
        ("index.html", "a/#gone"),
        ("index.html", "b/"),
    ]


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_the_window_and_load_nothing_from_other_hosts(site: str, page: Page, width: int) -> None:
    for place in PAGES:
        page.visit(site + place, width=width)
        shown, scrolled = page.run("[document.documentElement.clientWidth, document.documentElement.scrollWidth]")
        assert (place, scrolled) == (place, shown)
    assert page.complaints == []
    assert {urlsplit(url).hostname for url in page.requests if not url.startswith("data:")} == {"127.0.0.1"}


def test_dark_mode_is_toggled_with_one_click_and_remembered(site: str, page: Page) -> None:
    page.visit(site, width=1280)
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    assert page.run(scheme) == "default"
    page.run("document.querySelector('form[data-md-component=palette] label:not([hidden])').click()")
    assert page.wait_for(f"{scheme} === 'slate'")
    page.visit(site + "device-code/", width=1280)
    assert page.run(scheme) == "slate"


@pytest.mark.parametrize(("width", "shown"), [(1280, "wide"), (390, "tall")])
def test_the_landing_page_shows_one_picture_and_four_links(site: str, page: Page, width: int, shown: str) -> None:
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


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("run path", "/runpath/"),
        ("--split-device", "/options/#rocwheel-build"),
        ("unreachable-library", "/audit-rules/"),
    ],
)
def test_search_finds_pages_and_options_without_other_hosts(site: str, page: Page, typed: str, wanted: str) -> None:
    page.visit(site, width=1280)
    page.run(f"({SEARCH})({typed!r})")
    assert page.wait_for(
        "Array.from(document.querySelectorAll('.md-search-result__item a')).map(link => new URL(link.href))"
        f".some(url => (url.pathname + url.hash).startsWith({wanted!r}))"
    )
    assert page.complaints == []
    assert {urlsplit(url).hostname for url in page.requests if not url.startswith("data:")} == {"127.0.0.1"}


def test_the_copy_button_copies_commands_without_prompts_and_output(site: str, page: Page) -> None:
    page.allow_clipboard(site.rstrip("/"))
    page.visit(site + "jax/", width=1280)
    page.wait_for("document.querySelectorAll('.language-console [data-clipboard-target]').length > 3")
    button = (
        "Array.from(document.querySelectorAll('.language-console'))"
        ".find(block => block.textContent.includes('mkdir -p out')).querySelector('[data-clipboard-target]')"
    )
    page.run(f"{button}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
    x, y, width, height = page.run(
        f"(({{x, y, width, height}}) => [x, y, width, height])({button}.getBoundingClientRect())"
    )
    page.click(x + width / 2, y + height / 2)
    page.wait_for("navigator.clipboard.readText()")
    assert page.run("navigator.clipboard.readText()") == (
        "mkdir -p out/pjrt/python\n"
        "gcc -shared -fPIC plugin.c -o out/pjrt/pjrt_c_api_gpu_plugin.so -Wl,--no-as-needed \\\n"
        "    -Lsite-packages/_rocm_sdk_core/lib -l:libamdhip64.so.7 -Wl,--enable-new-dtags \\\n"
        "    -Wl,-rpath,'$ORIGIN/../../_rocm_sdk_core/lib'\n"
        "echo 'def initialize(): pass' > out/pjrt/python/__init__.py\n"
        "echo 'Apache License, version 2.0' > out/LICENSE.txt"
    )


@pytest.mark.parametrize(("width", "scrolls"), [(1280, False), (390, True)])
def test_code_fits_a_wide_window_and_has_a_visible_scrollbar_in_a_narrow_window(
    site: str, page: Page, width: int, scrolls: bool
) -> None:
    page.visit(site + "device-code/", width=width)
    codes = "Array.from(document.querySelectorAll('pre > code'))"
    too_wide = f"{codes}.filter(code => code.scrollWidth > code.clientWidth + 1)"
    assert page.run(f"{too_wide}.length > 0") is scrolls
    assert page.run(f"{too_wide}.every(code => code.offsetHeight > code.clientHeight)")


@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_links_to_the_repository_and_shows_the_version(site: str, page: Page, width: int) -> None:
    for place in ("", "device-code/"):
        page.visit(site + place, width=width)
        assert (
            page.run("document.querySelector('.md-copyright').innerText.trim()") == f"rocwheel {rocwheel.__version__}"
        )
        assert page.run("document.querySelector('.md-copyright a').href") == "https://github.com/rocwheel/rocwheel"


def test_the_options_page_lists_every_command_and_option() -> None:
    text = options_page()
    load_commands()
    for words, command in commands(app, ("rocwheel",)):
        part = text.partition(f"\n## {' '.join(words)}\n")[2].partition("\n## ")[0]
        shown = [one for one in command.params if one.opts[0].startswith("-") and not getattr(one, "hidden", False)]
        assert [one.opts[0] for one in shown if one.opts[0] not in part] == [], words


def test_the_options_page_lists_advanced_options_and_commands_in_one_section() -> None:
    advanced = options_page().partition("\n## Advanced options\n")[2]
    assert "\n### Advanced options of rocwheel device compress\n" in advanced
    assert "<code>--header-version N</code>" in advanced
    assert "\n### rocwheel selector merge\n" in advanced
