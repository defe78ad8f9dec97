"""Pages of a published index that somebody has damaged or edited: mended from the other form, and named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import msgspec
import obstore.store
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.index.front_content import next_front_page
from rocwheel.index.pages import make_project_page, make_root_page
from rocwheel.index.publish import PublishOptions, change_published_marks, publish
from rocwheel.index.published import read_html_form
from rocwheel.index.uploads import Layout
from rocwheel.index.yanked import Yanking
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.objects import ObjectStore
from tests.index.entries import make_entry
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rocwheel.stores.store import Store

OPTIONS = PublishOptions(Layout("", "dist"), make_front=next_front_page, upload_time=1_767_225_600_000_000)
NOTES = ".rocwheel-published.json"
OLD, NEW, BETA = (f"{name}-py3-none-any.whl" for name in ("alpha-1.0", "alpha-2.0", "beta-1.0"))


def add(folder: Path, name: str, version: str = "1.0") -> Path:
    text = {f"{name}.py": f"{version}\n".encode()}
    return make_wheel(folder, name, text, version=version, tag="py3-none-any", is_purelib=True).parent


@pytest.fixture(params=["folder", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Return a store with an index of two projects, a file of which is yanked."""
    (tmp_path / "store").mkdir()
    memory = ObjectStore(obstore.store.MemoryStore(), "memory://")
    store = FolderStore(tmp_path / "store") if request.param == "folder" else memory
    add(tmp_path / "dist", "alpha")
    publish(add(tmp_path / "dist", "beta"), store, OPTIONS)
    change_published_marks(store, Yanking({OLD: "bad <code>"}), next_front_page)
    return store


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """Return a folder with another version of the first project."""
    return add(tmp_path / "new", "alpha", "2.0")


def pages(store: Store) -> dict[str, bytes]:
    return {file.name: store.read(file.name) for file in store.list() if file.name.endswith(("html", "json"))}


def put(store: Store, name: str, data: bytes) -> None:
    store.put(name, data, create=False)


def damage(store: Store, name: str, change: Callable[[bytes], bytes | None]) -> None:
    data = change(store.read(name))
    if data is None:
        store.delete(name)
    else:
        put(store, name, data)


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "cut": lambda data: data[: len(data) // 2],
    "one-byte-less": lambda data: data.rstrip()[:-1],
    "empty": lambda _: b"",
    "gone": lambda _: None,
    "no-json": lambda _: b"<html>503 Slow Down</html>",
    "another-shape": lambda _: b"[]",
}


@pytest.mark.parametrize("name", ["alpha/index.json", "index.json"])
@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("notes", ["noted", "not-noted", "noted-before"])
def test_a_damaged_json_page_is_rebuilt_from_the_html_page(
    store: Store, new: Path, tmp_path: Path, name: str, change: Callable[[bytes], bytes | None], notes: str
) -> None:
    publish(new, store, OPTIONS)
    whole = pages(store)
    damage(store, name, change)
    if notes == "not-noted":
        store.delete(NOTES)
    elif notes == "noted-before":  # by a version that did not note HTML pages
        document = json.loads(store.read(NOTES))
        for noted in document["projects"].values():
            del noted["html"]
        put(store, NOTES, json.dumps(document).encode())
    report = publish(new, store, OPTIONS)
    assert {key: data for key, data in pages(store).items() if key != NOTES} == {
        key: data for key, data in whole.items() if key != NOTES
    }
    assert report.edited == (() if change(b"{}") is None else (store.place(name),))  # what is gone has not been edited
    assert publish(tmp_path / "dist", store, OPTIONS).edited == ()


@pytest.mark.parametrize("field", ["hashes", "size", "upload-time"])
def test_a_json_page_with_an_incomplete_entry_is_rebuilt_from_the_html_page(
    store: Store, new: Path, field: str
) -> None:
    publish(new, store, OPTIONS)
    whole = store.read("alpha/index.json")
    document = json.loads(whole)
    del document["files"][0][field]
    put(store, "alpha/index.json", json.dumps(document).encode())
    assert publish(new, store, OPTIONS).edited == (store.place("alpha/index.json"),)
    assert store.read("alpha/index.json") == whole


def test_files_added_to_a_damaged_page_lose_no_existing_entries(store: Store, new: Path) -> None:
    put(store, "alpha/index.json", b"{")
    publish(new, store, OPTIONS)
    files = json.loads(store.read("alpha/index.json"))["files"]
    assert [(file["filename"], file.get("yanked")) for file in files] == [(OLD, "bad <code>"), (NEW, None)]
    assert [file["size"] for file in files] == [store.head(f"dist/{name}").size for name in (OLD, NEW)]
    assert b"bad &lt;code&gt;" in store.read("packages.html")


@pytest.mark.parametrize("name", ["alpha/index.html", "index.html"])
@pytest.mark.parametrize("length", [0, 1, 20, 60, 150, 200, -1])
def test_a_truncated_html_page_is_rebuilt_from_the_json_page(store: Store, new: Path, name: str, length: int) -> None:
    publish(new, store, OPTIONS)
    whole = pages(store)
    put(store, name, store.read(name)[:length])
    report = publish(new, store, OPTIONS)
    assert store.read(name) == whole[name]
    assert report.edited == (store.place(name),)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "alpha/",
            (
                r"alpha/index\.json: can't be read as a page of the index \(.*\)\. Restore the page from a copy, or "
                r"repair it"
            ),
        ),
        (
            "",
            (
                "index.json: can't be read as the page of all projects, nor can index.html next to it. Restore one of "
                "the two pages"
            ),
        ),
    ],
)
def test_a_page_damaged_in_both_forms_is_reported_and_unchanged(
    store: Store, new: Path, name: str, message: str
) -> None:
    put(store, f"{name}index.json", b"{")
    damage(store, f"{name}index.html", lambda data: data.rpartition(b"</body>")[0])
    before = {file.name: store.read(file.name) for file in store.list()}
    with pytest.raises(InputError, match=message):
        publish(new, store, OPTIONS)
    assert {file.name: store.read(file.name) for file in store.list()} == before


def test_a_rebuild_from_an_html_page_that_lacks_a_known_file_is_refused(store: Store, new: Path) -> None:
    publish(new, store, OPTIONS)
    put(store, "alpha/index.json", b"{")
    damage(
        store, "alpha/index.html", lambda data: b"\n".join(row for row in data.split(b"\n") if b"alpha-1" not in row)
    )
    with pytest.raises(InputError, match=r"alpha/index\.json: can't be read"):
        publish(new, store, OPTIONS)


def test_a_rebuild_is_refused_if_the_size_of_a_file_is_unavailable(store: Store, new: Path) -> None:
    store.delete(NOTES)
    put(store, "alpha/index.json", b"{")
    store.delete(f"dist/{OLD}")
    with pytest.raises(InputError, match=rf"alpha/index\.json: is broken, and the size of {OLD} is not available"):
        publish(new, store, OPTIONS)


def test_a_dry_run_repairs_nothing(store: Store, new: Path) -> None:
    put(store, "alpha/index.json", b"{")
    assert publish(new, store, msgspec.structs.replace(OPTIONS, is_dry_run=True)).listed == (NEW,)
    assert store.read("alpha/index.json") == b"{"


EDITS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a file less": ("alpha/index.html", lambda data: b"\n".join(r for r in data.split(b"\n") if b"alpha-1" not in r)),
    "another Python": (
        "alpha/index.html",
        lambda data: data.replace(b"<a ", b'<a data-requires-python="&gt;=3.99" ', 1),
    ),
    "a comment": ("alpha/index.html", lambda data: data + b"<!-- mine -->"),
    "spaces": ("alpha/index.json", lambda data: data.replace(b"  ", b"    ")),
    "spaces in that of all": ("index.json", lambda data: data.replace(b"  ", b"    ")),
    "a link in that of all": (
        "index.html",
        lambda data: data.replace(b"<body>", b'<body><a href="https://x.example">x</a>'),
    ),
    "no link in that of all": ("index.html", lambda data: data.replace(b'<a href="beta/">beta</a><br>\n', b"")),
    "no name in that of all": ("index.json", lambda _: make_root_page(["beta"]).json),
    "words for people": ("packages.html", lambda data: data.replace(b"<h1>Packages", b"<h1>My packages")),
    "a page for people that is cut off": ("packages.html", lambda data: data[:-200]),
    "a comment for people": ("packages.html", lambda data: data + b"<!-- mine -->"),
}


@pytest.mark.parametrize(("name", "change"), EDITS.values(), ids=EDITS)
def test_an_edited_page_is_rewritten_and_reported(
    store: Store, new: Path, name: str, change: Callable[[bytes], bytes]
) -> None:
    publish(new, store, OPTIONS)
    whole = pages(store)
    damage(store, name, change)
    assert publish(new, store, OPTIONS).edited == (store.place(name),)
    assert store.read(name) == whole[name]
    assert publish(new, store, OPTIONS).edited == ()


def test_changing_marks_also_reports_an_edited_page(store: Store) -> None:
    damage(store, "alpha/index.html", lambda data: data + b"<!-- mine -->")
    report = change_published_marks(store, Yanking({}, (OLD,)), next_front_page)
    assert report.edited == (store.place("alpha/index.html"),)


def test_a_front_page_from_an_older_version_is_not_reported_as_edited(store: Store, new: Path) -> None:
    damage(store, "packages.html", lambda data: data.replace(b"<h1>", b"<h1>Older ").rpartition(b"<!-- ")[0])
    assert publish(new, store, OPTIONS).edited == ()
    assert b"Older" not in store.read("packages.html")


def test_pages_written_by_other_publishers_are_not_reported_as_edited(store: Store, new: Path, tmp_path: Path) -> None:
    class Raced:
        def __init__(self) -> None:
            self.done = False

        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        def swap(self, name: str, data: bytes, e_tag: str | None) -> str | None:
            if not self.done:
                self.done = True
                publish(add(tmp_path / "other", "alpha", "3.0"), store, OPTIONS)
            return store.swap(name, data, e_tag)

    assert publish(new, cast("Store", Raced()), OPTIONS).edited == ()


@pytest.mark.parametrize("name", ["alpha/index.json", "alpha/index.html", "index.json", NOTES, "packages.html"])
def test_pages_of_a_killed_run_are_not_reported_as_edited(store: Store, new: Path, tmp_path: Path, name: str) -> None:
    class Killed:
        def __getattr__(self, name: str) -> object:
            return getattr(store, name)

        def swap(self, given: str, data: bytes, e_tag: str | None) -> str | None:
            if given == name:
                raise KeyboardInterrupt
            return store.swap(given, data, e_tag)

    put(store, "alpha/index.json", b"{")
    add(new, "gamma")
    with pytest.raises(KeyboardInterrupt):
        publish(new, cast("Store", Killed()), OPTIONS)
    assert publish(add(tmp_path / "new", "alpha", "3.0"), store, OPTIONS).edited == (
        (store.place("alpha/index.json"),) if name == "alpha/index.json" else ()
    )
    files = [file["filename"] for file in json.loads(store.read("alpha/index.json"))["files"]]
    assert files == [OLD, NEW, "alpha-3.0-py3-none-any.whl"]


@given(
    st.lists(st.integers(0, 99), min_size=1, max_size=4, unique=True),
    st.text(max_size=9).filter(lambda text: text.isprintable()),
)
def test_an_html_page_can_be_read_back_into_its_entries(versions: list[int], reason: str) -> None:
    entries = [make_entry("alpha", f"{version}.0") for version in sorted(versions)]
    bases = {entry.filename: "../../my dist/" for entry in entries}
    page = make_project_page("alpha", entries, bases, {entries[0].filename: reason})
    found = read_html_form("alpha", page.html, lambda base, _: len(base) + 986)
    assert found is not None
    assert found.render("alpha") == page


@given(st.binary(max_size=200) | st.integers(0, 600), st.binary(max_size=20))
def test_any_other_bytes_are_not_read_as_an_html_page(data: bytes | int, end: bytes) -> None:
    page = make_project_page("alpha", [make_entry("alpha")], "../../dist/").html
    damaged = data if isinstance(data, bytes) else page[:data] + end
    assert damaged == page or read_html_form("alpha", damaged, lambda *_: 0) is None
