"""Package indexes: pages of others in HTML and JSON, own pages that somebody edited, notes, and lock files."""

from __future__ import annotations

import html
import json
from contextlib import suppress
from html.parser import HTMLParser

from rocwheel.core.errors import InputError
from rocwheel.index.folder_notes import BEGUN_NAME, KNOWN_NAME, PUBLISHED_NAME, read_known
from rocwheel.index.front_page import read_rows
from rocwheel.index.lock_file import LockFile
from rocwheel.index.pages import RawPage, families_in_root_page, projects_in_root_page, read_times
from rocwheel.index.published import parse_project, read_html_form
from rocwheel.index.store_notes import NotesFile
from rocwheel.index.trust import (
    UnreadablePageError,
    check_file,
    check_variants_list,
    read_html_page,
    read_json_page,
    trusted_projects,
)
from rocwheel.index.upload_times import parse_time, render_time
from rocwheel.index.yanked import read_yanked
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.urls import hide_users, is_url, parse_url
from rocwheel.stores.web import read_retry_after
from trials.fuzz.beside.anchors import compare_anchors
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.files import on_disk

_SHA = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
_FILE = "rocm-1.0-py3-none-any.whl"
_HTML = (
    '<!DOCTYPE html><html><head><meta name="pypi:repository-version" content="1.1"><base href="x/"></head><body>'
    f'<a href="../{_FILE}#sha256={_SHA}" data-requires-python="&gt;=3.10" data-core-metadata="sha256={_SHA}" '
    f'data-yanked="broken &amp; old">{_FILE}</a><a href="rocm-1.0.tar.gz">rocm</a></body></html>'
).encode()
_PLAIN_PAGES = [
    b'<base href=""><base href="x/"><h1>rocm</h1>\n<A HREF=\'a&amp;b\' href=c>a &lt; b</A><a name=x>y</a><br>',
    b"<ul><li><a href='x.whl' data-yanked>x</a></li><li><a href=y#sha256=0>\n y </a></li></ul>",
]
_JSON = json.dumps(
    {
        "meta": {"api-version": "1.1"},
        "name": "rocm",
        "files": [
            {
                "filename": _FILE,
                "url": f"../{_FILE}",
                "hashes": {"sha256": _SHA},
                "size": 100,
                "requires-python": ">=3.10",
                "core-metadata": {"sha256": _SHA},
                "upload-time": "2025-01-02T03:04:05.000000Z",
                "yanked": "broken",
            }
        ],
        "projects": [{"name": "rocm"}, {"name": "Rocm_Sdk"}],
    }
).encode()
_ROW = b'\n<tr><th scope="row">'
_ROWS = b"<tbody>" + _ROW + b'<a href="rocm/">rocm</a></th><td>1.0</td></tr>' + _ROW + b'<a href="x/">x</a></tbody>'
_LOCK = f"""lock-version = "1.0"
created-by = "uv"
[[packages]]
name = "rocm"
version = "1.0"
[[packages.wheels]]
url = "https://user:secret@host/{_FILE}"
[packages.wheels.hashes]
sha256 = "{_SHA}"
""".encode()
_TAGS = (
    b"<a href=",
    b"data-yanked",
    b"<![",
    b"<!--",
    b"-->",
    b"</a>",
    b"<script>",
    b"<base href=",
    b"&#x110000;",
    b"<?",
    b"<!DOCTYPE",
)
_KEYS = (
    b'"files"',
    b'"yanked":',
    b"true",
    b"null",
    b'"size":-1',
    b'"url":"',
    b"//host/",
    b"file:///",
    b"\\ud800",
    b"..%2f",
    b"99999999999999999999",
)
_BRACKETS = b"[" * 60000


def _html_page(data: bytes) -> None:
    """Compare a plain page with html5lib, and any with the number of links before what is unfinished.

    The number is that of the standard library's parser, of which ours is made.
    """
    page = read_html_page(data)
    found = _Links()
    with suppress(AssertionError):
        found.feed(data.decode(errors="replace"))
    require(len(page.files) >= found.number, f"{len(page.files)} links of {found.number}")
    compare_anchors(page, data.decode(errors="replace"))
    _check_page(page)


class _Links(HTMLParser):
    number = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.number += tag == "a" and any(name == "href" for name, _ in attrs)


def _json_page(data: bytes) -> None:
    page = read_json_page(data)
    require(
        len(page.files) == len(json.loads(data.decode(errors="replace")).get("files", ())),
        "another number of files than json has",
    )
    _check_page(page)


def _check_page(page: RawPage) -> None:
    """Require that what is trusted of a page is a plain name of a file of its project."""
    trusted_projects(page)
    for raw in page.files:
        with suppress(InputError):
            listed = check_file(raw, "rocm", "https://host/simple/rocm/", page.base)
            if listed is not None:
                require("/" not in listed.filename and "\0" not in listed.filename, f"name {listed.filename!r}")
                require(listed.url.startswith(("https://", "http://")), f"address {listed.url!r}")
        with suppress(InputError):
            check_variants_list(raw, "https://host/simple/rocm/", page.base)


def _own_pages(data: bytes) -> None:
    """Take an input as the JSON form of an own page and, behind a NUL, as the HTML form."""
    document, _, text = data.partition(b"\0")
    read_html_form("rocm", text, lambda *_: 0)
    folder = on_disk(b"", "mark").parent
    (folder / "rocm").mkdir(exist_ok=True)
    for form, content in (("json", document), ("html", text)):
        (folder / f"rocm/index.{form}").write_bytes(content)
        projects_in_root_page(content)
        families_in_root_page(content)
    read_yanked(folder, ["rocm"])
    read_times(folder / "rocm")
    published = parse_project("input", "rocm", document, text)
    if published.entries:
        page = published.render("rocm")
        again = parse_project("again", "rocm", page.json, page.html)
        require(again.entries.keys() == published.entries.keys(), "other files than were written")
        require(again.yanked == published.yanked, f"marks {again.yanked}, {published.yanked} were written")


def _notes(data: bytes) -> None:
    """Take an input as each kind of notes: what can't be read is as if it weren't there."""
    folder = on_disk(b"", "mark").parent
    for name in (KNOWN_NAME, BEGUN_NAME, PUBLISHED_NAME):
        (folder / name).write_bytes(data)
    read_known(folder)
    NotesFile(FolderStore(folder, str(folder)), "").read()


def _rows(data: bytes) -> None:
    for name, kept in read_rows(data, {"rocm", "x"}).items():
        require(html.escape(name) in kept.row, f"the row of {name} is another's")


def _lock_file(data: bytes) -> None:
    lock = LockFile.read(data.decode(errors="replace"), "input")
    lock.unhashed()
    _ = lock.projects, lock.built
    written = lock.without_users().noting(["rocm @ https://u:p@host/x"], ["gfx942"]).render()
    require(b'"https://user:secret@' not in written, "a password is written")
    require(LockFile.read(written.decode(), "again").projects == lock.projects, "other packages than were written")


def _times(data: bytes) -> None:
    text = data.decode(errors="replace")
    read_retry_after(text, 0.0)
    moment = parse_time(text)
    require(parse_time(render_time(moment)) == moment, f"{text!r} reads otherwise than it is written")


def _url(data: bytes) -> None:
    text = data.decode(errors="replace")
    is_url(text)
    hide_users(text)
    parse_url(text)


_BOTH = _JSON + b"\0" + _HTML
_KNOWN = b'{"version":"0","checks":6,"written":{"rocm":["x.whl"]},"yanked":{},"extras":[],"folders":[],"placement":""}'

HARNESSES = (
    Harness("pages.html", _html_page, lambda: [_HTML, *_PLAIN_PAGES, b"<a " * 20_000], (UnreadablePageError,), _TAGS),
    Harness("pages.json", _json_page, lambda: [_JSON, _BRACKETS], (UnreadablePageError,), _KEYS),
    Harness("pages.own", _own_pages, lambda: [_BOTH], tokens=(*_TAGS, *_KEYS)),
    Harness("pages.notes", _notes, lambda: [_KNOWN, b'{"format":1,"projects":{},"about":{}}', _BRACKETS], tokens=_KEYS),
    Harness("pages.rows", _rows, lambda: [_ROWS], tokens=(_ROW, b"</tbody>", b'<a href="')),
    Harness(
        "pages.lock_file",
        _lock_file,
        lambda: [_LOCK, b"a = " + _BRACKETS],
        tokens=(b"[[packages]]\n", b"marker = ", b"1979-05-27", b"secret@", b"= nan\n", b"'''"),
    ),
    Harness(
        "pages.times",
        _times,
        lambda: [b"2025-01-02T03:04:05.000000Z", b"2025-W01-1", b"120"],
        tokens=(b"+23:59", b"Wed, 21 Oct 2015 07:28:00 GMT", b"9999-12-31"),
        largest=100,
    ),
    Harness(
        "pages.url",
        _url,
        lambda: [b"https://user:pass@host:80/a?b#c", b"s3://bucket/path", b"file:///x"],
        tokens=(b"[::1]", b"%00", b"@", b"\\"),
        largest=300,
    ),
)
"""See `trials.fuzz.harness.Harness`."""
