"""Pages on servers that others change, too: listings of folders, the page of all projects, an index's own address."""

from __future__ import annotations

import html
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING
from unittest.mock import patch
from urllib.parse import quote, urlsplit

from rocwheel.core.names import is_file_name
from rocwheel.index.front_page import noted_url
from rocwheel.index.pages import make_root_page
from rocwheel.index.published import RootPage
from rocwheel.index.uploads import Layout
from rocwheel.stores import web
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.store import checked_name
from rocwheel.stores.web import WebPage, list_pages
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.files import folder_on_disk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_BASE = "https://host/a"
_ADDRESS = re.compile(
    r"(?:https?://[a-z0-9]+(?:\.[a-z0-9]+)*(?::[0-9]{1,4})?|file:///[a-z0-9]+)(?:/[A-Za-z0-9._~-]+)*/?"
)
_OF_SHELLS = frozenset("\"'`$\\!|&;<>(){}*?# \t")
_FORMS = frozenset({"index.html", "index.json"})


def _listing(data: bytes) -> None:
    """Take an input as a listing, and, parted by NUL, as paths of files of which a server makes listings."""
    for name in _listed({f"{_BASE}/": data}):
        require(checked_name(_BASE, name) == name, f"name {name!r}")
    paths = {path for path in data.decode(errors="replace").split("\0") if all(map(is_file_name, path.split("/")))}
    # What is a file can't be a folder, too.
    names = {path for path in paths if not any(other.startswith(f"{path}/") for other in paths)}
    found = _listed({f"{_BASE}/{quote(folder)}": text for folder, text in _pages_of(names).items()})
    require(found == sorted(names), f"{found} of a listing of {sorted(names)}")


def _pages_of(paths: Iterable[str]) -> dict[str, bytes]:
    """Return the page of each folder, by its path with a slash at its end."""
    links: dict[str, set[str]] = {"": set()}
    for path in paths:
        parts = path.split("/")
        for depth, part in enumerate(parts):
            link = part + "/" * (depth < len(parts) - 1)
            links.setdefault("".join(f"{one}/" for one in parts[:depth]), set()).add(link)
    return {folder: _page(sorted(names)) for folder, names in links.items()}


def _page(links: Iterable[str]) -> bytes:
    items = "".join(f'<li><a href="{quote(link)}">{html.escape(link)}</a></li>\n' for link in links)
    head = '<!DOCTYPE HTML>\n<html><body><a href="../">Parent</a><a href="?C=N;O=D">Name</a>'
    return f"{head}<ul>\n{items}</ul></body></html>".encode()


def _listed(pages: Mapping[str, bytes]) -> list[str]:
    """Return the names below the base, by pages of these addresses; all others are empty."""
    with patch.object(web, "read_web_page", lambda url: WebPage(url, "text/html", pages.get(url, b""))):
        return [file.name for file in list_pages(_BASE, "")]


def _root_page(data: bytes) -> None:
    """Take an input as the JSON form and, behind a NUL, as the HTML form; adding a project keeps the others."""
    document, _, text = data.partition(b"\0")
    folder = folder_on_disk("store")
    for form, content in (("json", document), ("html", text)):
        (folder / f"index.{form}").write_bytes(content)
    projects = _root(folder).read()
    with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):  # then the HTML form counts
        names = {one["name"] for one in json.loads(document, object_pairs_hook=_unique)["projects"]}
        require(projects == names, f"{projects}, json reads {names}")
    page = _root(folder)
    page.read()
    page.add(["rocm"], has_front_page=False)
    require(_root(folder).read() == projects | {"rocm"}, "other projects than were written")
    links = re.findall(r'<a href="[^"]*">([^<]*)</a>', (folder / "index.html").read_bytes().decode())
    require({html.unescape(one) for one in links} == projects | {"rocm"}, f"links to {links}")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object's members; raise `ValueError` for a name given twice, which readers take differently."""
    if len(dict(pairs)) < len(pairs):
        msg = "a name twice"
        raise ValueError(msg)
    return dict(pairs)


def _root(folder: object) -> RootPage:
    return RootPage(FolderStore(folder, str(folder)), Layout("", ""), _FORMS, ())  # type: ignore[arg-type]


def _address(data: bytes) -> None:
    """Take an input as a front page, and as the address that one notes."""
    noted_url(data)
    text = data.decode(errors="replace")
    found = noted_url(f'<meta name="index-url" content="{html.escape(text)}">'.encode())
    require(found in {"", f"{text.rstrip('/')}/"}, f"{found!r} of {text!r}")
    require("@" not in urlsplit(found).netloc, f"{found!r} has a user")
    require(found or not _ADDRESS.fullmatch(text), f"{text!r} is an address")
    require(not found or (text.isprintable() and not _OF_SHELLS.intersection(text)), f"{text!r} has signs of a shell")


_ROOT = make_root_page(["hip", "torch"])
_NOTE = b'<meta name="index-url" content="https://example.org/rocm/simple/">'
_TAGS = (b'<a href="', b"../", b"%2f", b"%00", b"//host/a/", b"?C=N", b"<base href=", b"<![", b"&#x0;", b"http://[")

HARNESSES = (
    Harness(
        "servers.listing",
        _listing,
        lambda: [b'<a href="x.whl">x</a><a href="b/">b/</a>', b"a b\0\xc3\xa9.whl\0a:b?c", b"a\0b/c\0b/d e/f.whl"],
        tokens=_TAGS,
        largest=1 << 11,
    ),
    Harness(
        "servers.root_page",
        _root_page,
        lambda: [_ROOT.json + b"\0" + _ROOT.html, b"{\0" + _ROOT.html, _ROOT.json + b"\0"],
        tokens=(b'"name":', b'"projects":', b"null", b"\\u0000", b"</body>\n</html>\n", b'<form action="'),
    ),
    Harness(
        "servers.address",
        _address,
        lambda: [_NOTE, b"https://example.org/rocm/simple", b"file:///srv/rocm"],
        tokens=(b"@", b"https://", b"&amp;", b"[::1]", b"%24"),
        largest=300,
    ),
)
"""See `trials.fuzz.harness.Harness`."""
