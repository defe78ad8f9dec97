"""Small documents of a fixed shape: settings of an audit, a scheduler's file, notes and pages of earlier runs."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import msgspec
import obstore
from obstore.store import MemoryStore

from rocwheel.audit.settings import AuditSettings, find_settings
from rocwheel.build.cluster.workers import read_address
from rocwheel.core.errors import InputError
from rocwheel.core.names import is_file_name
from rocwheel.index.pages import PAGES, make_project_page, make_root_page
from rocwheel.index.placing import read_previous
from rocwheel.stores import objects
from rocwheel.stores.objects import noted_hash
from rocwheel.verify.environments import find_added
from trials.fuzz.harness import Harness, require
from trials.fuzz.seeds.files import folder_on_disk, on_disk

_NOTHING = object()
"""What a text gives that has no value, or not one that readers agree about."""


def _audit(data: bytes) -> None:
    """Read an input as settings, and require those that it has, with defaults for the others."""
    try:
        found, _ = find_settings(on_disk(data, "pyproject.toml"))
    except InputError:
        return
    document = msgspec.toml.decode(data)
    table = document["audit"] if "audit" in document else document["tool"]["rocwheel"]["audit"]
    own = {name: getattr(found, name.replace("-", "_")) for name in table}
    theirs = {name: _tuples(value) for name, value in table.items()}
    require(own == theirs, f"{own} of {theirs}")
    default = AuditSettings()
    others = [one for one in default.__struct_fields__ if one.replace("_", "-") not in table]
    require(all(getattr(found, one) == getattr(default, one) for one in others), "a setting that nobody has made")


def _tuples(value: Any) -> object:
    if isinstance(value, dict):
        return {name: _tuples(one) for name, one in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _documents(data: bytes) -> None:
    """Read an input as what others keep in JSON, and require the values of json."""
    document = _json(data)
    for name, found, expected in (
        ("address", _address(data), _text_of(document, "address")),
        ("hash", _noted_hash(data), _hash_of(document)),
        ("links", _not_noted(data), {"noted", "added"}.difference(_texts_of(document))),
    ):
        require(document is _NOTHING or found == expected, f"{name} {found!r} of {document}")


def _address(data: bytes) -> str | None:
    """Return the address of a scheduler's file; none where it is refused."""
    try:
        return read_address(str(on_disk(data, "scheduler.json")))
    except InputError:
        return None


def _noted_hash(data: bytes) -> str:
    """Return the hash that is noted of a large upload."""
    store = MemoryStore()
    obstore.put(store, objects._note_name("a.whl"), data)  # noqa: SLF001
    return noted_hash(store, "a.whl", "tag")


def _not_noted(data: bytes) -> set[str]:
    """Return the files of a tree that are neither listed nor noted as links into device packages."""
    site = folder_on_disk("site")
    tree = site / "_rocm_sdk_devel"
    (tree / ".device_links").mkdir(parents=True)
    (tree / ".device_links/a.json").write_bytes(data)
    for name in ("listed", "noted", "added"):
        (tree / name).write_bytes(b"")
    return {path.name for path in find_added(site, {tree, tree / "listed"}).extra}


def _text_of(document: Any, name: str) -> str | None:
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, str) else None


def _hash_of(document: Any) -> str:
    return (_text_of(document, "sha256") or "") if _text_of(document, "e_tag") == "tag" else ""


def _texts_of(document: Any) -> list[str]:
    """Return a list of texts; an empty one for any other value."""
    is_one = isinstance(document, list) and all(isinstance(one, str) for one in document)
    return document if is_one else []


def _json(data: bytes) -> Any:
    """Return the value of plain JSON: no name is given twice, all characters are whole, and no number is too large."""
    with suppress(ValueError, RecursionError):
        document = json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_unique)
        json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
        return document
    return _NOTHING


def _unique(pairs: Any) -> dict[str, object]:
    if isinstance(pairs, str) or len(dict(pairs)) < len(pairs):
        msg = "a word of its own, or a name twice"
        raise ValueError(msg)
    return dict(pairs)


def _previous(data: bytes) -> None:
    """Take an input as the pages of all projects and of one, parted by NUL, of an earlier run over a folder."""
    root, _, page = data.partition(b"\0")
    output = folder_on_disk("index")
    (output / "index.html").write_bytes(make_root_page(["hip"]).html)
    (output / "index.json").write_bytes(root)
    (output / "hip").mkdir()
    (output / "hip/index.json").write_bytes(page)
    for project, text in (("own", make_project_page("own", [], "").html), ("foreign", b"<title>Mine</title>")):
        (output / project).mkdir()
        (output / project / "index.html").write_bytes(text)
    found = read_previous(output, {"hip": ["noted.whl"]}, {})
    expected = {"hip", *{"own"}.intersection(_projects(_json(root)))}
    require(_json(root) is _NOTHING or found.keys() == expected, f"projects {sorted(found)}")
    files = _json(page)
    held = {name for listed in _listed(files) for name in (listed, f"{listed}.metadata")}
    require(files is _NOTHING or found["hip"] == {*PAGES, "noted.whl", *held}, f"{found} of {held}")
    require(all(map(is_file_name, found["hip"])), f"{found} lead elsewhere")


def _projects(document: Any) -> set[str]:
    """Return the projects that a page lists; none of what is no such page."""
    return {name for (name,) in _rows(document, "projects", ("name",))}


def _listed(document: Any) -> set[str]:
    """Return the names that a page lists as files beside it; none of what is no such page."""
    rows = document.get("files") if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return set()
    pairs = [(row.get("filename"), row.get("url")) for row in rows]
    names = [name for name, url in pairs if isinstance(name, str) and isinstance(url, str) and url == quote(name)]
    return set(filter(is_file_name, names))


def _rows(document: Any, table: str, fields: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return these texts of each object of a list; none where one lacks one."""
    rows = document.get(table) if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return []
    texts = [tuple(row.get(field) for field in fields) for row in rows]
    return texts if all(isinstance(text, str) for row in texts for text in row) else []


_BRACKETS = b"[" * 60000
_SETTINGS = (
    b'[tool.rocwheel.audit]\nselect = ["run-path-*"]\nignore = []\ncpu-level = "x86-64-v3"\nclosed = true\n'
    b'expect-tag = "runpath"\n[tool.rocwheel.audit.dlopen]\n"a/*" = ["libb.so"]\n'
)
_ROOT = b'{"projects":[{"name":"own"},{"name":"foreign"},{"name":"../x"}]}'
_FILES = (
    b'{"files":[{"filename":"a","url":"a"},{"filename":"b/c","url":"b/c"},{"filename":"d","url":"e"},'
    b'{"filename":"f g","url":"f%20g"}]}'
)
_ADDRESS = b'{"type":"Scheduler","id":"x","address":"tcp://127.0.0.1:8786","workers":{}}'
_NOTES = [b'["noted"]', b'{"e_tag":"tag","sha256":"abc"}', b'{"e_tag":"x","sha256":"abc"}', b'{"address":1}']
_OF_JSON = (b"null", b"\\u0000", b"[", b'"', b"1e999", b"\\ud800", b"\xc3\xa9")

HARNESSES = (
    Harness(
        "settings.audit",
        _audit,
        lambda: [_SETTINGS, b"[audit]\nsystem-libraries = ['a']\n" + _SETTINGS],
        largest=1 << 12,
    ),
    Harness("settings.documents", _documents, lambda: [_ADDRESS, *_NOTES, _BRACKETS], tokens=_OF_JSON),
    Harness("settings.previous", _previous, lambda: [_ROOT + b"\0" + _FILES], tokens=_OF_JSON),
)
"""See `trials.fuzz.harness.Harness`."""
