"""Tests of `rocwheel.index.front_page`."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.index.front_content import find_content
from rocwheel.index.front_page import (
    FamilyOffer,
    FrontPage,
    Gpu,
    GpuCard,
    Html,
    InstallLine,
    ListedFamily,
    ListedFile,
    ListedProject,
    YankedPackage,
    checked_url,
    element,
    joined,
    make_front_page,
    noted_url,
    read_rows,
)
from tests.index.entries import GPUS, make_entry, neutral_set


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://example.org/rocm/simple", "https://example.org/rocm/simple/"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        ("file:///srv/rocm/simple/", "file:///srv/rocm/simple/"),
        ("https://example.org/a%20b/", "https://example.org/a%20b/"),
    ],
)
def test_a_slash_is_appended_to_the_index_url(text: str, expected: str) -> None:
    assert checked_url(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "example.org",
        "ftp://example.org/",
        "https://",
        "https://e.org/$(id)",
        "https://e.org/ b",
        'https://e.org/"',
        "http://[e",
    ],
)
def test_an_invalid_index_url_is_refused(text: str) -> None:
    with pytest.raises(
        InputError, match=r"^--url: is .*; expected an address such as https://example.org/rocm/simple/"
    ):
        checked_url(text)


@pytest.mark.parametrize("path", ["", "a b/", "a?token=secret&b"])
def test_a_url_with_a_password_is_refused(path: str) -> None:
    with pytest.raises(InputError, match=r"^--url: contains a user name or a password") as caught:
        checked_url(f"https://me:secret@example.org/{path}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (b'<meta name="index-url" content="https://example.org/a/">', "https://example.org/a/"),
        (b'<meta name="index-url" content="https://e.org/$(id)">', ""),
        (b'<meta name="index-url" content="https://e.org/\xff">', ""),
        (b"<p>somebody's page", ""),
    ],
)
def test_the_url_noted_on_a_page_is_checked_again(page: bytes, expected: str) -> None:
    assert noted_url(page) == expected


@pytest.mark.parametrize("text", ["me:secret@x.org/", "ftp://me:secret@x.org/", "x.org/?token=secret"])
def test_the_error_about_an_invalid_url_does_not_contain_the_password(text: str) -> None:
    with pytest.raises(InputError, match=r"^--url: is '") as caught:
        checked_url(text)
    assert "secret" not in str(caught.value)


class Reader(HTMLParser):
    """What a parser finds: tags with their attributes, and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keep text."""
        self.text += data


def test_child_text_is_escaped_but_markup_is_not() -> None:
    assert element("p", "a < b & c", Html("<b>d</b>")) == "<p>a &lt; b &amp; c<b>d</b></p>"


def test_attributes_are_escaped_and_spelled_with_dashes() -> None:
    found = element("a", "x", href='"><script>', class_="y", aria_label="z", hidden="", id=None)
    assert found == '<a href="&quot;&gt;&lt;script&gt;" class="y" aria-label="z" hidden>x</a>'


def test_void_elements_have_no_end_tag() -> None:
    assert element("meta", name="a", content="b") == '<meta name="a" content="b">'


@pytest.mark.parametrize("text", ["\x00", "\x1b", "\x85", "\u202e", "\u2066", "\udcff", "\uffff"])
def test_invisible_characters_are_replaced(text: str) -> None:
    assert joined(f"a{text}b") == "a\ufffdb"


@given(st.text(), st.text())
def test_no_text_becomes_markup(child: str, value: str) -> None:
    reader = Reader()
    reader.feed(element("p", child, title=f"v{value}").encode().decode())
    reader.close()
    assert [tag for tag, _ in reader.tags] == ["p"]
    assert list(reader.tags[0][1]) == ["title"]


HOSTILE = [
    "<script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "\"' onmouseover=alert(1) x='",
    "one\ntwo\r\n\tthree",
    "a  b\u00a0c",
    "\u202eright to left\u2066",
    "\u4e2d\u6587 \U0001f600 \u00e4\u0308",
    "nul\x00 escape\x1b[31m",
    "lone \udcff surrogate",
    "&amp; &#60; ]]> --> <!--",
]


class PageReader(HTMLParser):
    """The tags and attributes of a page, its text, and where its links lead."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag."""
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.links += [value or "" for name, value in attrs if name in {"href", "src", "action"}]

    def handle_data(self, data: str) -> None:
        """Keep text."""
        self.text += data


def page_of(text: str, name: str = "a") -> bytes:
    file = ListedFile(f"{text}.whl", "1.0", 5, requires_python=text, yanked=text)
    project = ListedProject(name, text, text, (file,), (text,), (text,))
    gpu = Gpu("gfx906", "desktop", (text,))
    offer = FamilyOffer(name, (InstallLine("a", 5),), (YankedPackage(text, text, text),))
    card = GpuCard(gpu, (InstallLine("a", 5, (text,)),), (), (YankedPackage(text, text, text),), (offer,))
    families = (ListedFamily(name, 3),)
    return make_front_page(FrontPage((project,), (card,), (gpu,), 1, 5, family=name, families=families))


def test_the_page_shows_what_to_install() -> None:
    text = PageReader(make_front_page(find_content(neutral_set(), {}, GPUS))).text
    assert 'pip install "rocm[libraries,device-gfx1100]" --index-url "URL-OF-THIS-INDEX"' in text
    assert 'uv pip install "rocm[libraries,device-gfx1103]" --index-url "URL-OF-THIS-INDEX"' in text
    assert "Radeon RX 7900 XTX" in text
    assert "rocm[libraries,device-gfx1100] downloads up to 43.2 kB." in text
    assert "6 packages, 6 files, 648.2 kB" in text


def test_a_known_url_is_used_in_the_lines() -> None:
    page = make_front_page(find_content(neutral_set(), {}, GPUS, "https://example.org/simple/"))
    assert '--index-url "https://example.org/simple/"' in PageReader(page).text
    assert "URL-OF-THIS-INDEX" not in page.decode()


def test_without_gpus_only_the_packages_are_listed() -> None:
    page = make_front_page(find_content({"a": [make_entry("a")]}, {}, GPUS))
    assert "What to install" not in PageReader(page).text
    assert "a-7.0.0-py3-none-any.whl" in PageReader(page).text


FAMILY = "gfx90X <b>\u00e4 100%"
FAMILY_CONTENT = FrontPage(
    (),
    (GpuCard(GPUS[0], (InstallLine("all", 5),), (), (), (FamilyOffer(FAMILY, (InstallLine("rocm[libraries]", 5),)),)),),
    (),
    0,
    0,
    families=(ListedFamily(FAMILY, 3),),
)


def test_each_family_is_listed_with_its_page_and_url() -> None:
    page = PageReader(make_front_page(FAMILY_CONTENT))
    assert "Families" in page.text
    assert FAMILY in page.text
    assert "gfx90X%20%3Cb%3E%C3%A4%20100%25/packages.html" in page.links
    assert '--index-url "URL-OF-THIS-INDEX/gfx90X%20%3Cb%3E%C3%A4%20100%25/"' in page.text


def test_the_lines_for_a_gpu_come_from_the_family_with_its_packages() -> None:
    page = PageReader(make_front_page(msgspec.structs.replace(FAMILY_CONTENT, url="https://example.org/simple/")))
    address = "https://example.org/simple/gfx90X%20%3Cb%3E%C3%A4%20100%25/"
    assert f'pip install "rocm[libraries]" --index-url "{address}"' in page.text
    assert 'install "all"' not in page.text
    assert "gfx90X%20%3Cb%3E%C3%A4%20100%25/packages.html#gfx906" in page.links


def test_lines_of_the_main_index_stay_when_the_family_has_only_yanked_packages() -> None:
    offer = FamilyOffer("gfx90X", (), (YankedPackage("rocm", "7.0.0", "wrong extras"),))
    card = GpuCard(GPUS[0], (InstallLine("all", 5),), (), (), (offer,))
    text = PageReader(make_front_page(msgspec.structs.replace(FAMILY_CONTENT, cards=(card,)))).text
    assert 'install "all"' in text
    assert "rocm 7.0.0: wrong extras" in text


def test_the_page_of_a_family_links_back() -> None:
    page = PageReader(make_front_page(FrontPage((), (), (), 0, 0, family="gfx90X")))
    assert "Packages for gfx90X" in page.text
    assert "../packages.html" in page.links


def test_a_yanked_package_is_listed_with_its_reason_and_has_no_line() -> None:
    projects = {"a": [make_entry("a", targets=("gfx906",))]}
    text = PageReader(make_front_page(find_content(projects, {"a-7.0.0-py3-none-any.whl": "wrong <code>"}, GPUS))).text
    assert 'install "a"' not in text
    assert "Yanked packages, which installers use only if you request the exact version:a 7.0.0: wrong <code>" in text
    assert "7.0.0 yanked: wrong <code>" in text


def test_the_same_content_produces_the_same_bytes() -> None:
    pages = {make_front_page(find_content(neutral_set(), {}, GPUS)) for _ in range(2)}
    assert len(pages) == 1


def test_the_page_loads_nothing_and_links_only_inside_the_index() -> None:
    links = PageReader(make_front_page(find_content(neutral_set(), {}, GPUS))).links
    assert [link for link in links if not re.fullmatch(r"#[a-z0-9]+|\./|[a-z0-9-]+/|data:,", link)] == []


def test_the_content_security_policy_allows_only_the_style_and_script_on_the_page() -> None:
    page = make_front_page(find_content(neutral_set(), {}, GPUS)).decode()
    hashes = {
        kind: base64.b64encode(
            hashlib.sha256(re.search(f"<{kind}>(.*?)</{kind}>", page, re.DOTALL)[1].encode()).digest()  # type: ignore[index]
        ).decode()
        for kind in ("style", "script")
    }
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.replace("&#x27;", "'") == (
        f"default-src 'none'; img-src data:; style-src 'sha256-{hashes['style']}'; "
        f"script-src 'sha256-{hashes['script']}'; base-uri 'none'; form-action 'none'"
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_adds_no_markup(text: str) -> None:
    harmless, hostile = PageReader(page_of("x")), PageReader(page_of(text))
    assert hostile.tags == harmless.tags
    assert hostile.attributes == harmless.attributes


@given(text=st.text(min_size=1), name=st.text(min_size=1))
def test_any_text_adds_no_markup_and_no_outside_links(text: str, name: str) -> None:
    harmless, hostile = PageReader(page_of("x")), PageReader(page_of(text, name))
    assert hostile.tags == harmless.tags
    assert hostile.attributes == harmless.attributes
    page = r"packages\.html(#gfx906)?"
    ways = rf"#[a-z0-9]+|\./|\.\./{page}|[\w.~%-]+/({page})?|data:,"
    assert [link for link in hostile.links if not re.fullmatch(ways, link)] == []


def test_only_rows_of_the_named_projects_are_kept() -> None:
    projects = {**neutral_set(), "\u00e4": [make_entry("\u00e4")], "a": [make_entry("a", summary="old")]}
    page = make_front_page(find_content(projects, {}, GPUS))
    kept = read_rows(page, {"a", "rocm", "\u00e4", "gone"})
    assert kept.keys() == {"a", "rocm"}
    new = {**projects, "a": [make_entry("a", summary="new")]}
    assert b"old" in make_front_page(find_content(new, {}, GPUS, kept=kept))
    del kept["a"]
    assert make_front_page(find_content(new, {}, GPUS, kept=kept)) == make_front_page(find_content(new, {}, GPUS))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_kept_row_equals_a_new_row(text: str) -> None:
    projects = {name: [make_entry(name, summary=text, filename=f"{text}.whl")] for name in ("a", "b", "c")}
    page = make_front_page(find_content(projects, {}, GPUS))
    kept = read_rows(page, projects)
    assert kept.keys() == projects.keys()
    assert make_front_page(find_content(projects, {}, GPUS, kept=kept)) == page


@given(st.binary())
def test_a_page_that_is_not_a_front_page_has_no_rows(page: bytes) -> None:
    assert read_rows(page, {"a"}) == {}


def listed(name: str, version: str) -> ListedProject:
    return ListedProject(name, version, "", (ListedFile(f"{name}.whl", version, 5),))


@pytest.mark.parametrize(
    ("projects", "family", "title"),
    [
        ((listed("rocm", "7.0.0"), listed("torch", "2.9.0")), "", "ROCm 7.0.0 packages"),
        ((listed("rocm", "7.0.0"),), "gfx110X", "ROCm 7.0.0 packages for gfx110X"),
        ((listed("rocm-sdk-core", "7.0.0"), listed("torch", "2.9.0")), "", "ROCm 7.0.0 packages"),
        ((listed("torch", "2.9.0"),), "", "Torch 2.9.0 packages"),
        ((listed("torch", "2.9.0"), listed("jax", "0.6.0")), "", "Packages"),
    ],
)
def test_the_title_contains_the_product_and_its_version(
    projects: tuple[ListedProject, ...], family: str, title: str
) -> None:
    page = make_front_page(FrontPage(projects, (), (), 0, 0, family=family))
    assert f"<title>{title}</title>".encode() in page
    kept = tuple(read_rows(page, {one.name for one in projects}).values())
    assert f"<title>{title}</title>".encode() in make_front_page(FrontPage(kept, (), (), 0, 0, family=family))


def test_an_empty_list_of_absent_gpus_is_not_shown() -> None:
    page = make_front_page(FrontPage((), (), (Gpu("gfx1100"),), 0, 0))
    assert b"GPUs without packages" not in page
