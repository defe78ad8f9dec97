"""Publishing to folders, memory and S3: what ends up there, what is refused, and who else may publish."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING
from urllib.parse import unquote

import obstore.store
import pytest

from rocwheel.build.variant_wheels import add_variants
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.core.progress import Silent
from rocwheel.core.reading import ChangedFileError
from rocwheel.index.publish import PublishOptions, publish
from rocwheel.index.uploads import Layout
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.objects import ObjectStore
from rocwheel.stores.open import open_store
from rocwheel.stores.store import ForbiddenError, MissingStoreError, TakenError
from tests.support.counted_store import CountedStore
from tests.support.s3_server import BUCKET
from tests.support.variant_wheels import add_gpu_package, add_variant_wheel, variant_document
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.stores.store import Store
    from tests.support.faulty_server import FaultyServer
    from tests.support.s3_server import S3Server

A, B = "alpha-1.0-py3-none-any.whl", "beta-1.0-py3-none-any.whl"


def add(folder: Path, name: str, version: str = "1.0", text: bytes = b"x = 1\n") -> Path:
    return make_wheel(folder, name, {f"{name}.py": text}, version=version, tag="py3-none-any", is_purelib=True)


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    add(tmp_path / "dist", "alpha")
    add(tmp_path / "dist", "beta")
    return tmp_path / "dist"


@pytest.fixture(params=["folder", "memory", pytest.param("s3", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        (tmp_path / "store").mkdir()  # it need not exist, but is asked what it holds
        return FolderStore(tmp_path / "store")
    if request.param == "memory":
        return ObjectStore(obstore.store.MemoryStore(), "memory://")
    request.getfixturevalue("s3")
    return open_store(f"s3://{BUCKET}/rocm")


def names(store: Store) -> list[str]:
    return [file.name for file in store.list()]


def check_whole(store: Store) -> set[str]:
    """Check that all that pages list is there, in both forms and with those bytes; return the files."""
    listed: set[str] = set()
    root = json.loads(store.read("simple/index.json"))
    for project in [project["name"] for project in root["projects"]]:
        assert f'href="{project}/"'.encode() in store.read("simple/index.html")
        page = json.loads(store.read(f"simple/{project}/index.json"))
        html = store.read(f"simple/{project}/index.html").decode()
        assert re.findall(r">([^<]+)</a>", html) == [file["filename"] for file in page["files"]]
        for file in page["files"]:
            data = store.read(unquote(file["url"]).removeprefix("../../"))
            assert (len(data), hashlib.sha256(data).hexdigest()) == (file["size"], file["hashes"]["sha256"])
            metadata = store.read(f"dist/{file['filename']}.metadata")
            assert hashlib.sha256(metadata).hexdigest() == file["core-metadata"]["sha256"]
            assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", file["upload-time"])
            listed.add(file["filename"])
    return listed


def test_distributions_metadata_and_pages_are_stored(dist: Path, store: Store) -> None:
    report = publish(dist, store)
    assert (report.uploaded, report.present, report.listed, report.pages) == ((A, B), (), (A, B), ("alpha", "beta"))
    assert names(store) == sorted(
        [
            *(f"dist/{name}{end}" for name in (A, B) for end in ("", ".metadata")),
            *(f"simple/{place}index.{form}" for place in ("", "alpha/", "beta/") for form in ("html", "json")),
            "simple/.rocwheel-published.json",
        ]
    )
    assert check_whole(store) == {A, B}


def test_the_second_run_changes_nothing(dist: Path, store: Store) -> None:
    publish(dist, store)
    before = {file.name: file.e_tag for file in store.list()}
    report = publish(dist, store)
    assert (report.uploaded, report.present, report.listed, report.pages) == ((), (A, B), (), ())
    assert {file.name: file.e_tag for file in store.list()} == before


@pytest.mark.parametrize("name", ["", "deeper"])
def test_a_store_inside_the_distributions_folder_is_refused(dist: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        publish(dist, FolderStore(dist / name))
    assert str(caught.value) == (
        f"{dist / name}: would store its files in {dist / name / 'dist'}, below their source folder; expected a "
        "store next to that folder or above it. Choose a different STORE."
    )
    assert sorted(path.name for path in dist.iterdir()) == [A, B]


def test_the_store_may_be_the_parent_of_the_distributions_folder(dist: Path) -> None:
    store = FolderStore(dist.parent)
    assert (publish(dist, store).listed, check_whole(store)) == ((A, B), {A, B})


def test_later_files_are_added_to_existing_files(dist: Path, store: Store, tmp_path: Path) -> None:
    publish(dist, store)
    add(tmp_path / "new", "alpha", "2.0")
    add(tmp_path / "new", "gamma")
    report = publish(tmp_path / "new", store)
    assert report.pages == ("alpha", "gamma")
    assert check_whole(store) == {A, B, "alpha-2.0-py3-none-any.whl", "gamma-1.0-py3-none-any.whl"}


def test_a_dry_run_reports_but_changes_nothing(dist: Path, store: Store) -> None:
    report = publish(dist, store, PublishOptions(is_dry_run=True))
    assert (report.uploaded, report.listed, report.pages) == ((A, B), (A, B), ("alpha", "beta"))
    assert names(store) == []


def test_different_bytes_for_a_published_name_are_refused(dist: Path, store: Store, tmp_path: Path) -> None:
    publish(dist, store)
    add(tmp_path / "new", "alpha", text=b"x = 2\n")
    add(tmp_path / "new", "gamma")
    before = names(store)
    with pytest.raises(InputError, match=f"lists {A} with different bytes") as caught:
        publish(tmp_path / "new", store)
    assert "Files are never replaced" in str(caught.value)
    assert names(store) == before
    assert check_whole(store) == {A, B}


def test_different_bytes_for_an_unlisted_stored_file_are_refused(dist: Path, store: Store) -> None:
    store.put(f"dist/{A}", b"other")
    with pytest.raises(TakenError, match=f"dist/{A}: exists with different bytes"):
        publish(dist, store)
    assert names(store) == [f"dist/{A}"]


def test_an_identical_unlisted_stored_file_is_accepted(dist: Path, store: Store) -> None:
    store.put(f"dist/{A}", dist / A)
    report = publish(dist, store)
    assert (report.uploaded, report.listed) == ((A, B), (A, B))  # its metadata was missing
    assert check_whole(store) == {A, B}


@pytest.mark.parametrize("is_dry_run", [True, False])
@pytest.mark.parametrize("is_there", [True, False])
def test_different_core_metadata_of_a_stored_file_is_refused_before_any_upload(
    dist: Path, store: Store, is_there: bool, is_dry_run: bool
) -> None:
    if is_there:
        store.put(f"dist/{A}", dist / A)
    store.put(f"dist/{A}.metadata", b"Metadata-Version: 2.1\nName: alpha\nVersion: 1.0\nRequires-Dist: other\n")
    before = names(store)
    with pytest.raises(TakenError, match=f"dist/{A}.metadata: exists with different bytes"):
        publish(dist, store, PublishOptions(is_dry_run=is_dry_run))
    assert names(store) == before


def test_different_core_metadata_of_a_missing_listed_file_is_refused(dist: Path, store: Store) -> None:
    publish(dist, store)
    store.delete(f"dist/{A}")
    store.put(f"dist/{A}.metadata", b"other", create=False)
    with pytest.raises(TakenError, match=f"dist/{A}.metadata: exists with different bytes"):
        publish(dist, store, PublishOptions(is_dry_run=True))


def test_a_missing_listed_file_is_stored_again(dist: Path, store: Store) -> None:
    publish(dist, store)
    store.delete(f"dist/{A}")
    assert publish(dist, store).uploaded == (A,)
    assert check_whole(store) == {A, B}


def test_one_distribution_under_two_names_is_refused(dist: Path, store: Store, tmp_path: Path) -> None:
    publish(dist, store)
    other = add(tmp_path / "new", "alpha")
    other.rename(other.with_name("alpha-1.0.0-py3-none-any.whl"))
    with pytest.raises(InputError, match=f"under the name {A}"):
        publish(tmp_path / "new", store)


def test_nothing_is_uploaded_if_one_file_is_bad(dist: Path, store: Store) -> None:
    (dist / "bad-1.0-py3-none-any.whl").write_bytes(b"PK")
    (dist / "name with blanks.whl").write_bytes(b"")
    with pytest.raises(ProblemsError) as caught:
        publish(dist, store)
    assert len(caught.value.problems) == 2
    assert names(store) == []


@pytest.mark.parametrize("form", ["html", "json"])
def test_yanked_marks_in_either_page_form_are_kept(dist: Path, store: Store, tmp_path: Path, form: str) -> None:
    publish(dist, store)
    name = f"simple/alpha/index.{form}"
    page = store.read(name)
    if form == "html":
        store.put(name, page.replace(b"<a ", b'<a data-yanked="bad code" '), create=False)
    else:
        document = json.loads(page)
        document["files"][0]["yanked"] = "bad code"
        store.put(name, json.dumps(document).encode(), create=False)
    add(tmp_path / "new", "alpha", "2.0")
    publish(tmp_path / "new", store)
    files = json.loads(store.read("simple/alpha/index.json"))["files"]
    assert [file.get("yanked") for file in files] == ["bad code", None]
    assert store.read("simple/alpha/index.html").count(b'data-yanked="bad code"') == 1


FOREIGN = (
    "is a page that this command did not write. Choose the folder of another index with --output, or remove the page."
)
EDITED = [
    ("simple/alpha/index.json", b"{", "can't be read as a page of the index"),
    ("simple/alpha/index.json", b'{"name": "other", "files": []}', "is the page of 'other'"),
    ("simple/alpha/index.html", b"<html>mine</html>", FOREIGN),
    ("simple/index.html", b"<html>mine</html>", FOREIGN),
    ("simple/index.json", b"[]", "can't be read as the page of all projects"),
]


@pytest.mark.parametrize(("name", "content", "message"), EDITED)
def test_a_broken_page_is_reported_and_unchanged(
    dist: Path, store: Store, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    publish(dist, store)
    store.put(name, content, create=False)
    if name.endswith("json"):  # else it would be mended from the other form
        store.put(name.replace("json", "html"), store.read(name.replace("json", "html"))[:-9], create=False)
    add(tmp_path / "new", "alpha", "2.0")
    before = names(store)
    with pytest.raises(InputError) as caught:
        publish(tmp_path / "new", store)
    assert message in str(caught.value)
    assert (store.read(name), names(store)) == (content, before)


def test_hostile_entries_on_a_page_are_refused(dist: Path, store: Store) -> None:
    publish(dist, store)
    page = json.loads(store.read("simple/alpha/index.json"))
    changes: tuple[dict[str, object], ...] = (
        {"filename": "../x.whl"},
        {"filename": B},
        {"url": "https://elsewhere.example/other.whl"},
        {"hashes": {"sha256": "zz"}},
        {"size": -1},
        {"upload-time": "soon"},
    )
    for change in changes:
        changed = {**page, "files": [{**page["files"][0], **change}]}
        store.put("simple/alpha/index.json", json.dumps(changed).encode(), create=False)
        with pytest.raises(InputError):
            publish(dist, store)


def test_new_files_are_dated_by_the_store_and_existing_dates_are_kept(dist: Path, store: Store, tmp_path: Path) -> None:
    publish(dist, store, PublishOptions(upload_time=1_700_000_000_000_000))
    publish(dist, store)
    (file,) = json.loads(store.read("simple/alpha/index.json"))["files"]
    assert file["upload-time"] == "2023-11-14T22:13:20.000000Z"
    add(tmp_path / "new", "alpha", "2.0")
    publish(tmp_path / "new", store)
    times = [file["upload-time"] for file in json.loads(store.read("simple/alpha/index.json"))["files"]]
    modified = store.head("dist/alpha-2.0-py3-none-any.whl").modified
    assert modified
    assert times[1][:19] == f"{modified:%Y-%m-%dT%H:%M:%S}"


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_clock_before_the_first_release_is_an_error_without_an_upload_time(
    dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    store = open_store(f"{scheme}{tmp_path}/store")
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000_000 * 10**9)
    with pytest.raises(InputError, match=r"this machine's clock: is set to 2001-09-09; .*--upload-time"):
        publish(dist, store)
    assert not (tmp_path / "store").exists()
    publish(dist, store, PublishOptions(upload_time=1_800_000_000_000_000))
    (file,) = json.loads(store.read("simple/alpha/index.json"))["files"]
    assert file["upload-time"] == "2027-01-15T08:00:00.000000Z"


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_file_dated_in_the_future_gets_the_current_time(dist: Path, tmp_path: Path, scheme: str) -> None:
    store = open_store(f"{scheme}{tmp_path}/store")
    store.put(f"dist/{A}", dist / A)
    os.utime(tmp_path / "store/dist" / A, (4_070_908_800, 4_070_908_800))  # 2099
    publish(dist, store)
    (file,) = json.loads(store.read("simple/alpha/index.json"))["files"]
    assert "2026" <= file["upload-time"] <= f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ}"


def test_dates_from_a_clock_that_was_ahead_are_corrected(
    dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path / "store")
    publish(dist, store, PublishOptions(upload_time=4_070_908_800_000_000))
    alpha, beta = (store.read(f"simple/{project}/index.json") for project in ("alpha", "beta"))
    publish(dist, store, PublishOptions(upload_time=4_070_908_800_000_000))
    assert store.read("simple/alpha/index.json") == alpha
    clock = 1_800_000_000_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: clock)
    add(tmp_path / "new", "alpha", "2.0")
    for _ in range(2):
        publish(tmp_path / "new", store, PublishOptions(upload_time=1_700_000_000_000_000))
        files = json.loads(store.read("simple/alpha/index.json"))["files"]
        assert [file["upload-time"] for file in files] == ["2027-01-15T08:00:00.000000Z", "2023-11-14T22:13:20.000000Z"]
        clock += 10**18
    assert store.read("simple/beta/index.json") == beta


class _Writing(Silent):
    """Somebody who writes to a file, keeping its size, when the uploads begin."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, label: str, total: int) -> None:
        """Write at the beginning of the step."""
        del total
        if label == "uploading":
            with self._path.open("r+b") as file:
                file.write(b"else")


def test_a_file_that_changes_after_it_was_read_is_never_uploaded(dist: Path, tmp_path: Path, store: Store) -> None:
    counted = CountedStore(store)
    with pytest.raises(ChangedFileError, match=rf"{A}: changed while it was being read"):
        publish(dist, counted, PublishOptions(), _Writing(dist / A))
    assert not [file.name for file in store.list() if "alpha" in file.name]
    assert counted.requests["delete"] == 0  # nothing was there even for a moment


def test_other_folders_in_the_store_can_be_chosen(dist: Path, store: Store) -> None:
    report = publish(dist, store, PublishOptions(Layout("gfx94X/simple", "all")))
    assert report.index.endswith("gfx94X/simple")
    (file,) = json.loads(store.read("gfx94X/simple/alpha/index.json"))["files"]
    assert file["url"] == f"../../../all/{A}"
    assert f"all/{A}" in names(store)


@pytest.mark.parametrize("folder", ["/simple", "a/../b", "a//b", "simple/", ".", ".."])
def test_a_folder_outside_the_store_is_refused(folder: str) -> None:
    with pytest.raises(InputError, match="expected a folder below the store"):
        Layout(folder)


class Raced:
    """A store where somebody else changes each page just before it is replaced, once."""

    def __init__(self, store: Store, other: Path) -> None:
        self._store, self._other, self._done = store, other, False

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def swap(self, name: str, data: bytes, e_tag: str | None) -> None:
        """Replace a page, the first time after the other has published."""
        if not self._done:
            self._done = True
            publish(self._other, self._store)
        self._store.swap(name, data, e_tag)


def test_files_published_concurrently_are_kept(dist: Path, store: Store, tmp_path: Path) -> None:
    add(tmp_path / "other", "alpha", "2.0")
    add(tmp_path / "other", "gamma")
    publish(dist, Raced(store, tmp_path / "other"))  # type: ignore[arg-type]
    assert check_whole(store) == {A, B, "alpha-2.0-py3-none-any.whl", "gamma-1.0-py3-none-any.whl"}


_PUBLISH = """
import sys
from rocwheel.cli import main
sys.stdin.readline()
sys.argv = ["rocwheel", "publish", *sys.argv[1:], "--quiet"]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "s3"])
def test_files_of_two_concurrent_processes_are_all_in_the_index(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if kind == "s3":
        request.getfixturevalue("s3")
    url = f"s3://{BUCKET}/rocm" if kind == "s3" else f"file://{tmp_path}/store"
    wanted = set()
    for number in range(2):
        for version in range(4):
            wanted.add(add(tmp_path / f"dist{number}", "same", f"{number}.{version}").name)
            wanted.add(add(tmp_path / f"dist{number}", f"own{number}x{version}").name)
    command = [sys.executable, "-c", _PUBLISH]
    running = [
        subprocess.Popen([*command, tmp_path / f"dist{number}", url], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        for number in range(2)
    ]
    for process in running:  # both have imported everything by then, or nearly so
        assert process.stdin
        process.stdin.write(b"go\n")
        process.stdin.flush()
    for process in running:
        _, messages = process.communicate(timeout=120)
        assert (process.returncode, messages) == (0, b"")
    assert check_whole(open_store(url)) == wanted


_KILLED = """
import os, signal, sys
from pathlib import Path
import rocwheel.stores.{module} as module
from rocwheel.index.publish import publish
from rocwheel.stores.open import open_store
left = {left}
def count(method):
    def counted(*words, **more):
        global left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return method(*words, **more)
    return counted
for name in ("put", "swap"):
    setattr(module.{kind}, name, count(getattr(module.{kind}, name)))
publish(Path(sys.argv[1]), open_store(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "left"), [("file", 0), ("file", 1), ("file", 3), ("file", 5), ("file", 7), ("s3", 4), ("s3", 8)]
)
def test_a_killed_run_leaves_a_complete_index_that_the_next_run_continues(
    scheme: str, left: int, dist: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if scheme == "s3":
        request.getfixturevalue("s3")
    url = f"s3://{BUCKET}/rocm" if scheme == "s3" else f"file://{tmp_path}/store"
    add(tmp_path / "first", "alpha", "0.1")
    publish(tmp_path / "first", open_store(url))
    where = {"file": ("folder", "FolderStore"), "s3": ("objects", "ObjectStore")}[scheme]
    script = _KILLED.format(module=where[0], kind=where[1], left=left)
    assert subprocess.run([sys.executable, "-c", script, dist, url], check=False).returncode == -9
    store = open_store(url)
    page = json.loads(store.read("simple/alpha/index.json"))
    for file in page["files"]:
        assert store.head(f"dist/{file['filename']}").size == file["size"]
    publish(dist, store)
    assert check_whole(store) == {A, B, "alpha-0.1-py3-none-any.whl"}


def test_a_read_only_store_is_reported(dist: Path, faulty: FaultyServer) -> None:
    with pytest.raises(ForbiddenError, match="web servers are read-only"):
        publish(dist, _without_listing(open_store(faulty.address)))


def _without_listing(store: Store) -> Store:
    store.list = lambda _="": iter(())  # type: ignore[method-assign, assignment]
    return store


@pytest.mark.slow
def test_a_missing_bucket_is_reported_before_any_upload(dist: Path, s3: S3Server) -> None:
    with pytest.raises(MissingStoreError, match="the bucket does not exist"):
        publish(dist, open_store("s3://no-such-bucket"))


@pytest.mark.slow
def test_a_large_file_appears_atomically_and_is_never_replaced(s3: S3Server, tmp_path: Path) -> None:
    store = open_store(f"s3://{BUCKET}")
    large = tmp_path / "large"
    large.write_bytes(bytes(33 << 20))
    store.put("x", large, sha256="ab" * 32)
    large.write_bytes(b"\1" * (33 << 20))
    with pytest.raises(TakenError):
        store.put("x", large)
    assert store.read("x") == bytes(33 << 20)
    assert names(store) == ["x"]


def add_device(dist: Path, *targets: str) -> None:
    for target in targets:
        add_gpu_package(dist, f"rocm-sdk-device-{target}", targets=[target])
    add_variants(dist)


VARIANTS = "simple/rocm-sdk-device/rocm_sdk_device-7.0.0-variants.json"


def test_the_variants_file_is_written_before_the_page_lists_the_variant_wheels(dist: Path, store: Store) -> None:
    add_device(dist, "gfx942")
    publish(dist, store)
    assert sorted(json.loads(store.read(VARIANTS))["variants"]) == ["gfx942", "null"]
    (listed,) = [
        file
        for file in json.loads(store.read("simple/rocm-sdk-device/index.json"))["files"]
        if file["filename"].endswith(".json")
    ]
    assert (listed["url"], listed["hashes"]) == ("rocm_sdk_device-7.0.0-variants.json", {})
    assert listed["size"] == len(store.read(VARIANTS))


def test_variants_of_two_publishers_are_merged(tmp_path: Path, store: Store) -> None:
    for number, target in enumerate(("gfx942", "gfx1100")):
        folder = tmp_path / str(number)
        add_device(folder, target)
        (folder / "rocm_sdk_device-7.0.0-py3-none-any.whl").unlink()  # which requires the packages of all GPUs
        publish(folder, store)
    assert sorted(json.loads(store.read(VARIANTS))["variants"]) == ["gfx1100", "gfx942", "null"]
    again = publish(tmp_path / "0", store)
    assert (again.uploaded, again.pages) == ((), ())


def test_variants_that_contradict_published_variants_are_refused(tmp_path: Path, dist: Path, store: Store) -> None:
    add_variant_wheel(dist, "demo", "a", variant_document("a", ["gfx942"]))
    publish(dist, store)
    (tmp_path / "other").mkdir()
    add_variant_wheel(tmp_path / "other", "demo", "a", variant_document("a", ["gfx1100"]), version="7.0.0")
    (tmp_path / "other" / "demo-7.0.0-py3-none-any-a.whl").rename(
        tmp_path / "other" / "demo-7.0.0-1-py3-none-any-a.whl"
    )
    with pytest.raises(InputError, match="differs from the new variant wheel in the properties for the label 'a'"):
        publish(tmp_path / "other", store)


def test_leftovers_of_a_killed_run_are_removed_even_if_no_page_changes(dist: Path, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    publish(dist, store)
    left = tmp_path / "store/simple/alpha/.index.html.abcdefgh.rocwheel"
    left.touch()
    publish(dist, store)
    assert not left.exists()
