"""Tests of `rocwheel.index.links` and `rocwheel.index.upstreams`: indexes that link to files on other servers."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import obstore.store
import pytest

from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.index.links import LinkedIndex, write_links
from rocwheel.index.placing import FilePlacement
from rocwheel.index.publish import PublishOptions, change_published_marks, publish
from rocwheel.index.uploads import Layout
from rocwheel.index.upstreams import read_upstreams
from rocwheel.index.write_index import IndexOptions, write_index
from rocwheel.index.yanked import Yanking
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.objects import ObjectStore
from tests.support.places import ROOT
from tests.support.reply_server import JSON, Reply, Server
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.reply_server import Start

DATE = "Sun, 22 Nov 2026 10:00:00 GMT"
ALPHA = "alpha-1.0-py3-none-any.whl"


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def link(address: str, data: bytes = b"one", **attributes: str) -> str:
    """Return the link to a file with these bytes; ``_`` in the names of attributes stands for ``-``."""
    given = "".join(f' {name.replace("_", "-")}="{escape(value)}"' for name, value in attributes.items())
    return f'<a href="{address}#sha256={sha(data)}"{given}>file</a>'


def offer(server: Server, pages: dict[str, str], top: str = "/simple") -> str:
    """Serve an index with these pages by project, and return its URL."""
    names = "".join(f'<a href="{project}/">{project}</a>' for project in pages)
    server.add(f"{top}/", Reply(f"<html>{names}</html>".encode()))
    for project, page in pages.items():
        server.add(f"{top}/{project}/", Reply(page.encode()))
    return f"{server.address}{top}/"


def add_file(server: Server, name: str, data: bytes = b"one", folder: str = "/dist/") -> str:
    server.add(f"{folder}{name}", Reply(data, "application/zip", Last_Modified=DATE))
    return f"{folder}{name}"


def offer_alpha(server: Server, data: bytes = b"one", version: str = "1.0") -> str:
    """Serve an index with one file of the project ``alpha``."""
    name = f"alpha-{version}-py3-none-any.whl"
    return offer(server, {"alpha": link(add_file(server, name, data), data)})


def listing(tmp_path: Path, *urls: str, pool: str = "", **more: str) -> Path:
    """Return a TOML file with these indexes; ``more`` has further lines for the index of each URL in order."""
    lines = list(more.values()) + [""] * len(urls)
    tables = [
        f'[[index]]\nurl = "{url}"\n' + (line if "projects" in line else f'projects = ["*"]\n{line}') + "\n"
        for url, line in zip(urls, lines, strict=False)
    ]
    path = tmp_path / "indexes.toml"
    path.write_text("\n".join([f"pool = [{pool!r}]" if pool else "", *tables]))
    return path


def write(tmp_path: Path, *urls: str, **more: str) -> dict[str, LinkedIndex]:
    upstreams = read_upstreams(listing(tmp_path, *urls, **more))
    return write_links(upstreams, FolderStore(tmp_path / "www"), Layout("simple"))


def store_that_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> FolderStore:
    """Return the store of `write`, on which a run is killed after so many changes."""
    store, done = FolderStore(tmp_path / "www"), []
    change = {name: getattr(store, name) for name in ("swap", "delete")}

    def until(name: str, *arguments: Any) -> Any:
        done.append(name)
        if len(done) > number:
            raise KeyboardInterrupt
        return change[name](*arguments)

    for name in change:
        monkeypatch.setattr(store, name, partial(until, name))
    return store


def files(tmp_path: Path, project: str = "alpha", stream: str = "") -> list[dict[str, Any]]:
    page = json.loads((tmp_path / "www/simple" / stream / project / "index.json").read_text())
    found: list[dict[str, Any]] = page["files"]
    return found


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_pages_link_to_files_with_the_facts_from_their_server(server: Server, tmp_path: Path) -> None:
    write(tmp_path, offer_alpha(server))
    address = f"{server.address}/dist/{ALPHA}"
    assert files(tmp_path) == [
        {
            "filename": ALPHA,
            "url": address,
            "hashes": {"sha256": sha(b"one")},
            "size": 3,
            "upload-time": "2026-11-22T10:00:00.000000Z",
        }
    ]
    html = (tmp_path / "www/simple/alpha/index.html").read_text()
    anchor = f'<a href="{address}#sha256={sha(b"one")}" data-upload-time="2026-11-22T10:00:00.000000Z">{ALPHA}</a>'
    assert anchor in html
    assert '<a href="alpha/">alpha</a>' in (tmp_path / "www/simple/index.html").read_text()
    assert not list((tmp_path / "www").rglob("*.whl"))


@pytest.mark.parametrize(
    ("page", "path"),
    [
        ("../../dist/{}", "/dist/"),
        ("{}", "/simple/alpha/"),
        ("/dist/./../dist/{}", "/dist/"),
        ("/a%20b/{}", "/a%20b/"),
        ("/größe/{}", "/gr%C3%B6%C3%9Fe/"),
        ("ADDRESS/dist/{}", "/dist/"),
        ("dist/{}", "/base/dist/"),
    ],
    ids=["above", "beside", "dots", "quoted", "letters", "absolute", "base"],
)
def test_relative_urls_on_upstream_pages_become_absolute(server: Server, tmp_path: Path, page: str, path: str) -> None:
    name = "alpha-1.0+local.1-py3-none-any.whl"
    quoted = name.replace("+", "%2B")
    add_file(server, quoted, folder=path)
    base = '<base href="/base/">' if page == "dist/{}" else ""
    text = link(page.replace("ADDRESS", server.address).format(quoted))
    write(tmp_path, offer(server, {"alpha": base + text}))
    assert [file["url"] for file in files(tmp_path)] == [f"{server.address}{path}{quoted}"]


def test_links_on_a_redirected_page_are_relative_to_its_new_location(start_server: Start, tmp_path: Path) -> None:
    old, new = start_server(), start_server()
    offer_alpha(new)
    new.add("/simple/alpha/", Reply(link(f"../../dist/{ALPHA}").encode()))
    old.add("/", Reply(b'<a href="alpha/">alpha</a>'))
    old.add("/alpha/", Reply(status=301, Location=f"{new.address}/simple/alpha/"))
    write(tmp_path, f"{old.address}/")
    assert files(tmp_path)[0]["url"] == f"{new.address}/dist/{ALPHA}"


def test_facts_on_a_json_page_are_copied_without_requesting_the_file(server: Server, tmp_path: Path) -> None:
    file = {
        "filename": ALPHA,
        "url": f"/dist/{ALPHA}",
        "hashes": {"sha256": sha(b"one")},
        "size": 77,
        "upload-time": "2026-01-02T03:04:05Z",
        "requires-python": ">=3.10",
        "yanked": "bad & broken",
    }
    server.add("/simple/", Reply(b'{"meta": {"api-version": "1.1"}, "projects": [{"name": "alpha"}]}', JSON))
    page = {"meta": {"api-version": "1.1"}, "name": "alpha", "files": [file]}
    server.add("/simple/alpha/", Reply(json.dumps(page).encode(), JSON))
    write(tmp_path, f"{server.address}/simple/")
    url = f"{server.address}/dist/{ALPHA}"
    assert files(tmp_path) == [{**file, "url": url, "upload-time": "2026-01-02T03:04:05.000000Z"}]
    html = (tmp_path / "www/simple/alpha/index.html").read_text()
    assert 'data-requires-python="&gt;=3.10"' in html
    assert 'data-yanked="bad &amp; broken"' in html
    assert not [path for path, _ in server.requests if path.startswith("/dist")]


def test_an_upload_time_in_the_future_becomes_the_time_of_the_first_run(server: Server, tmp_path: Path) -> None:
    server.add("/simple/", Reply(b'{"meta": {"api-version": "1.1"}, "projects": [{"name": "alpha"}]}', JSON))
    file = {"filename": ALPHA, "url": f"/dist/{ALPHA}", "hashes": {"sha256": sha(b"one")}, "size": 77}
    file["upload-time"] = "2999-01-02T03:04:05Z"
    page = {"meta": {"api-version": "1.1"}, "name": "alpha", "files": [file]}
    server.add("/simple/alpha/", Reply(json.dumps(page).encode(), JSON))
    write(tmp_path, f"{server.address}/simple/")
    first = snapshot(tmp_path / "www")
    assert files(tmp_path)[0]["upload-time"] < "2999"
    write(tmp_path, f"{server.address}/simple/")
    assert snapshot(tmp_path / "www") == first


@pytest.mark.parametrize(("served", "found"), [(b"Name: alpha\n", sha(b"Name: alpha\n")), (None, None)])
def test_core_metadata_is_listed_only_if_the_server_has_it(
    server: Server, tmp_path: Path, served: bytes | None, found: str | None
) -> None:
    path = add_file(server, ALPHA)
    if served is not None:
        server.add(f"{path}.metadata", Reply(served))
    promised = f"sha256={sha(b'Name: alpha' + bytes([10]))}"
    write(tmp_path, offer(server, {"alpha": link(path, data_dist_info_metadata=promised)}))
    assert files(tmp_path)[0].get("core-metadata", {}).get("sha256") == found
    assert ("data-core-metadata" in (tmp_path / "www/simple/alpha/index.html").read_text()) == (found is not None)


def test_all_wrong_core_metadata_is_reported_together(server: Server, tmp_path: Path) -> None:
    names = [ALPHA, "alpha-2.0-py3-none-any.whl"]
    for name in names:
        server.add(f"{add_file(server, name)}.metadata", Reply(b"other"))
    links = "".join(link(f"/dist/{name}", data_core_metadata=f"sha256={sha(b'right')}") for name in names)
    with pytest.raises(ProblemsError, match="2 problems"):
        write(tmp_path, offer(server, {"alpha": links}))
    assert not (tmp_path / "www").exists()


def test_core_metadata_with_the_wrong_hash_is_refused(server: Server, tmp_path: Path) -> None:
    path = add_file(server, ALPHA)
    server.add(f"{path}.metadata", Reply(b"other"))
    url = offer(server, {"alpha": link(path, data_core_metadata=f"sha256={sha(b'right')}")})
    with pytest.raises(InputError, match=rf"\.metadata: has the SHA-256 {sha(b'other')}; expected {sha(b'right')}"):
        write(tmp_path, url)
    assert not (tmp_path / "www").exists()


def test_a_file_without_a_hash_is_refused(server: Server, tmp_path: Path) -> None:
    url = offer(server, {"alpha": f'<a href="{add_file(server, ALPHA)}">file</a>'})
    with pytest.raises(RocwheelError, match=f"has no SHA-256 for {ALPHA}"):
        write(tmp_path, url)
    assert not (tmp_path / "www").exists()


def test_a_changed_hash_is_refused_and_the_index_is_unchanged(server: Server, tmp_path: Path) -> None:
    write(tmp_path, offer_alpha(server))
    before = snapshot(tmp_path / "www")
    url = offer(
        server, {"alpha": link(f"/dist/{ALPHA}", b"two") + link(add_file(server, "alpha-2.0-py3-none-any.whl"))}
    )
    with pytest.raises(InputError) as caught:
        write(tmp_path, url)
    assert str(caught.value) == (
        f"{server.address}/dist/{ALPHA}: has the SHA-256 {sha(b'two')}, but this index already listed another hash; "
        f"expected {sha(b'one')}. Contact the publisher. If you trust the new file, remove its entry from "
        f"{(tmp_path / 'www').as_uri()}/simple/.rocwheel-links.json."
    )
    assert snapshot(tmp_path / "www") == before


def test_the_hash_of_a_removed_file_is_remembered(server: Server, tmp_path: Path) -> None:
    write(tmp_path, offer_alpha(server))
    found = write(tmp_path, offer_alpha(server, version="2.0"))
    assert (found[""].new, found[""].removed) == (("alpha-2.0-py3-none-any.whl",), (ALPHA,))
    with pytest.raises(InputError, match="already listed another hash"):
        write(tmp_path, offer_alpha(server, b"two"))
    write(tmp_path, offer_alpha(server))
    assert [file["filename"] for file in files(tmp_path)] == [ALPHA]


def test_damaged_notes_about_hashes_are_not_replaced(server: Server, tmp_path: Path) -> None:
    url = offer_alpha(server)
    write(tmp_path, url)
    notes = tmp_path / "www/simple/.rocwheel-links.json"
    notes.write_text("{")
    with pytest.raises(InputError, match=r"rocwheel-links\.json: can't be read"):
        write(tmp_path, url)
    assert notes.read_text() == "{"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("status", [404, 500, 503])
def test_an_unavailable_index_is_reported_and_changes_nothing(start_server: Start, tmp_path: Path, status: int) -> None:
    good, bad = start_server(), start_server()
    beta = "beta-1.0-py3-none-any.whl"
    urls = offer_alpha(good), offer(bad, {"beta": link(add_file(bad, beta))})
    named = {"first": 'projects = ["alpha"]', "second": 'projects = ["beta"]'}
    write(tmp_path, *urls, **named)
    before = snapshot(tmp_path / "www")
    offer_alpha(good, version="2.0")
    for path in ("/simple/", "/simple/beta/"):
        bad.add(path, Reply(status=status))
    with pytest.raises(RocwheelError, match=f"{bad.address}/simple/"):
        write(tmp_path, *urls, **named)
    assert snapshot(tmp_path / "www") == before


def test_a_listed_project_without_a_page_is_refused_and_the_index_is_unchanged(server: Server, tmp_path: Path) -> None:
    beta = link(add_file(server, "beta-1.0-py3-none-any.whl"))
    url = offer(server, {"alpha": link(add_file(server, ALPHA)), "beta": beta})
    write(tmp_path, url)
    before = snapshot(tmp_path / "www")
    server.add("/simple/alpha/", Reply(status=404))
    with pytest.raises(InputError, match=f"{url}alpha/: is listed, but has no page"):
        write(tmp_path, url)
    assert snapshot(tmp_path / "www") == before


def test_a_server_that_does_not_respond_is_reported(server: Server, tmp_path: Path) -> None:
    write(tmp_path, offer_alpha(server))
    before = snapshot(tmp_path / "www")
    with pytest.raises(RocwheelError, match=r"http://127\.0\.0\.1:1/simple/: can't connect to the server"):
        write(tmp_path, "http://127.0.0.1:1/simple/")
    assert snapshot(tmp_path / "www") == before


def test_a_missing_file_is_omitted_and_reported(server: Server, tmp_path: Path) -> None:
    gone = "alpha-2.0-py3-none-any.whl"
    url = offer(server, {"alpha": link(add_file(server, ALPHA)) + link(f"/dist/{gone}")})
    with pytest.raises(InputError, match=rf"/dist/{gone}: does not exist. Contact the publisher"):
        write(tmp_path, url)
    assert [file["filename"] for file in files(tmp_path)] == [ALPHA]


def test_the_pages_of_a_project_that_is_no_longer_listed_are_removed(server: Server, tmp_path: Path) -> None:
    beta = link(add_file(server, "beta-1.0-py3-none-any.whl"))
    write(tmp_path, offer(server, {"alpha": link(add_file(server, ALPHA)), "beta": beta}))
    write(tmp_path, offer(server, {"beta": beta}))
    assert not (tmp_path / "www/simple/alpha/index.html").exists()
    assert '"alpha"' not in (tmp_path / "www/simple/index.json").read_text()


def test_a_second_run_requests_no_files_and_changes_nothing(server: Server, tmp_path: Path) -> None:
    url = offer_alpha(server)
    write(tmp_path, url)
    before = snapshot(tmp_path / "www")
    server.requests.clear()
    found = write(tmp_path, url)
    assert (found[""].new, found[""].changed) == ((), ())
    assert {path for path, _ in server.requests} == {"/simple/", "/simple/alpha/"}
    assert snapshot(tmp_path / "www") == before


def test_each_stream_has_its_own_files_and_the_combined_index_has_those_of_the_first(
    start_server: Start, tmp_path: Path
) -> None:
    release, nightly = start_server(), start_server()
    urls = offer_alpha(release), offer_alpha(nightly, b"two", "2.0a1")
    found = write(tmp_path, *urls, first='streams = ["release"]', second='streams = ["nightly"]')
    assert list(found) == ["", "release", "nightly"]
    names = {stream: [file["filename"] for file in files(tmp_path, stream=stream)] for stream in found}
    nightly_name = "alpha-2.0a1-py3-none-any.whl"
    assert names == {"": [ALPHA], "release": [ALPHA], "nightly": [nightly_name]}
    root = (tmp_path / "www/simple/index.html").read_text()
    assert '<form action="nightly/"><button>Packages for nightly</button></form>' in root
    write(tmp_path, *urls, pool="alpha", first='streams = ["release"]', second='streams = ["nightly"]')
    assert [file["filename"] for file in files(tmp_path)] == [ALPHA, nightly_name]


def test_a_project_owned_by_one_upstream_is_never_taken_from_another(start_server: Start, tmp_path: Path) -> None:
    own, other = start_server(), start_server()
    offer(own, {"acme-core": link(add_file(own, "acme_core-1.0-py3-none-any.whl"))})
    evil = link(add_file(other, "acme_core-9.0-py3-none-any.whl"))
    more = link(add_file(other, "acme_more-9.0-py3-none-any.whl"))
    offer(other, {"acme-core": evil, "acme-more": more, "alpha": link(add_file(other, ALPHA))})
    urls = f"{own.address}/simple/", f"{other.address}/simple/"
    found = write(tmp_path, *urls, first='projects = ["acme-*"]', second='projects = ["*"]')
    assert found[""].projects == {"acme-core": ["acme_core-1.0-py3-none-any.whl"], "alpha": [ALPHA]}
    assert "/simple/acme-more/" not in [path for path, _ in other.requests]


def test_different_hashes_for_a_file_in_a_pooled_project_are_refused(start_server: Start, tmp_path: Path) -> None:
    one, other = start_server(), start_server()
    urls = offer_alpha(one), offer_alpha(other, b"two")
    with pytest.raises(
        InputError, match=rf"is a different file at {other.address}/dist/{ALPHA}. Remove the project from"
    ):
        write(tmp_path, *urls, pool="alpha")
    write(tmp_path, *urls)
    assert [file["url"] for file in files(tmp_path)] == [f"{one.address}/dist/{ALPHA}"]


def test_a_file_in_two_pooled_upstreams_is_taken_from_the_first(start_server: Start, tmp_path: Path) -> None:
    one, other = start_server(), start_server()
    write(tmp_path, offer_alpha(one), offer_alpha(other), pool="al*")
    assert [file["url"] for file in files(tmp_path)] == [f"{one.address}/dist/{ALPHA}"]


def test_packages_for_other_gpus_versions_and_platforms_are_omitted(server: Server, tmp_path: Path) -> None:
    names = {
        "x-gfx942": ["x_gfx942-1.0-py3-none-any.whl", "x_gfx942-2.0-py3-none-any.whl"],
        "x-gfx1100": ["x_gfx1100-1.0-py3-none-any.whl"],
        "x": ["x-1.0-py3-none-win_amd64.whl", "x-1.0-py3-none-linux_x86_64.whl"],
    }
    url = offer(server, {name: "".join(link(add_file(server, one)) for one in some) for name, some in names.items()})
    settings = 'targets = ["gfx942"]\nversion = "==1.*"\nplatform-tags = ["linux_x86_64"]'
    found = write(tmp_path, url, first=settings)
    assert found[""].projects == {
        "x": ["x-1.0-py3-none-linux_x86_64.whl"],
        "x-gfx942": ["x_gfx942-1.0-py3-none-any.whl"],
    }
    with pytest.raises(InputError, match="targets: no package in the index supports gfx906"):
        write(tmp_path, url, first='targets = ["gfx906"]')


def test_passwords_are_sent_but_never_written(server: Server, tmp_path: Path) -> None:
    url = offer_alpha(server).replace("http://", "http://me:secret@")
    write(tmp_path, url)
    assert {headers.get("authorization") for _, headers in server.requests} == {"Basic bWU6c2VjcmV0"}
    assert not [name for name, data in snapshot(tmp_path / "www").items() if b"secret" in data]
    server.add("/simple/", Reply(status=500))
    server.add("/simple/alpha/", Reply(status=403))
    with pytest.raises(RocwheelError) as caught:
        write(tmp_path, url, first='projects = ["alpha"]')
    assert "secret" not in str(caught.value)


def test_a_url_with_a_query_is_refused(server: Server, tmp_path: Path) -> None:
    url = offer(server, {"alpha": link(f"/dist/{ALPHA}?token=secret")})
    with pytest.raises(InputError, match="has a query in its URL, which may contain a password") as caught:
        write(tmp_path, url)
    assert "token" not in str(caught.value)


def test_pages_but_not_hashes_of_an_undeclared_stream_are_removed(server: Server, tmp_path: Path) -> None:
    url = offer_alpha(server)
    write(tmp_path, url, first='streams = ["old"]')
    write(tmp_path, url, first='streams = ["new"]')
    assert [path.name for path in (tmp_path / "www/simple/old").rglob("*") if path.is_file()] == [
        ".rocwheel-links.json"
    ]
    with pytest.raises(ProblemsError, match=r"simple/old/\.rocwheel-links\.json"):
        write(tmp_path, offer_alpha(server, b"two"), first='streams = ["old"]')


@pytest.mark.parametrize("number", range(12))
def test_a_run_killed_while_removing_a_stream_leaves_no_pages_of_the_stream(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    url = offer_alpha(server)
    write(tmp_path, url, first='streams = ["old"]')
    store = store_that_ends(tmp_path, monkeypatch, number)
    with suppress(KeyboardInterrupt):
        write_links(read_upstreams(listing(tmp_path, url)), store, Layout("simple"))
    write(tmp_path, url)
    assert list((tmp_path / "www/simple/old").rglob("index.*")) == []


def test_a_changed_hash_is_refused_even_after_its_stream_is_removed(server: Server, tmp_path: Path) -> None:
    write(tmp_path, offer_alpha(server), first='streams = ["old"]')
    # Given a united index whose notes lost the file, so that only the notes of the stream have it
    notes = json.loads((tmp_path / "www/simple/.rocwheel-links.json").read_text())
    (tmp_path / "www/simple/.rocwheel-links.json").write_text(json.dumps(notes | {"files": {}}))
    with pytest.raises(InputError, match="but this index already listed another hash"):
        write(tmp_path, offer_alpha(server, b"two"), first='streams = ["new"]')
    assert not (tmp_path / "www/simple/new").exists()


def test_a_page_that_rocwheel_did_not_write_is_found_before_any_page_is_written(server: Server, tmp_path: Path) -> None:
    page = tmp_path / "www/simple/alpha/index.html"
    page.parent.mkdir(parents=True)
    page.write_text("mine")
    before = snapshot(tmp_path / "www")
    with pytest.raises(InputError):
        write(tmp_path, offer_alpha(server), first='streams = ["nightly"]')
    assert snapshot(tmp_path / "www") == before


def test_a_stream_cannot_have_the_name_of_a_project(server: Server, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="alpha: is the page of a project, so it can't be the name of a stream"):
        write(tmp_path, offer_alpha(server), first='streams = ["alpha"]')


def test_an_index_of_files_and_an_index_of_links_cannot_share_a_folder(server: Server, tmp_path: Path) -> None:
    dist = make_wheel(tmp_path / "dist", "beta", {}, tag="py3-none-any", is_purelib=True).parent
    write_index(dist, tmp_path / "www/simple", options=IndexOptions(placement=FilePlacement.COPY))
    before = snapshot(tmp_path / "www")
    with pytest.raises(InputError, match="is an index of files, not an index of links"):
        write(tmp_path, offer_alpha(server))
    assert snapshot(tmp_path / "www") == before
    store = FolderStore(tmp_path / "links")
    write_links(read_upstreams(tmp_path / "indexes.toml"), store, Layout("simple"))
    with pytest.raises(InputError, match="is an index of links"):
        publish(dist, store, PublishOptions(Layout("simple")))
    with pytest.raises(InputError, match="is an index of links"):
        write_index(dist, tmp_path / "links/simple", options=IndexOptions(placement=FilePlacement.COPY))
    with pytest.raises(InputError, match="is an index of links"):
        change_published_marks(FolderStore(tmp_path / "links/simple"), Yanking({ALPHA: "bad"}), lambda _: lambda _: {})


def test_a_page_that_rocwheel_did_not_write_is_not_replaced(server: Server, tmp_path: Path) -> None:
    page = tmp_path / "www/simple/index.html"
    page.parent.mkdir(parents=True)
    page.write_text("<html>mine</html>")
    with pytest.raises(InputError, match="is a page that this command did not write"):
        write(tmp_path, offer_alpha(server))
    assert page.read_text() == "<html>mine</html>"


def test_pages_can_be_written_to_any_store_without_the_files(server: Server, tmp_path: Path) -> None:
    store = ObjectStore(obstore.store.MemoryStore(), "memory://")
    upstreams = read_upstreams(listing(tmp_path, offer_alpha(server), first='streams = ["nightly"]'))
    assert write_links(upstreams, store, Layout("simple"), is_dry_run=True)[""].new == (ALPHA,)
    assert list(store.list()) == []
    write_links(upstreams, store, Layout("simple"))
    names = {file.name for file in store.list()}
    pages = {f"{project}index.{form}" for project in ("", "alpha/") for form in ("html", "json")}
    expected = {*pages, ".rocwheel-links.json"}
    assert names == {f"simple/{below}{name}" for below in ("", "nightly/") for name in expected}


def test_a_run_overtaken_by_another_run_starts_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = offer_alpha(server)
    write(tmp_path, url)
    offer_alpha(server, version="2.0")
    store, swapped = FolderStore(tmp_path / "www"), []
    original = store.swap

    def swap(name: str, data: bytes, e_tag: str | None) -> str | None:
        swapped.append(name)
        if len(swapped) == 1:
            write(tmp_path, url)
        return original(name, data, e_tag)

    monkeypatch.setattr(store, "swap", swap)
    write_links(read_upstreams(tmp_path / "indexes.toml"), store, Layout("simple"))
    assert [file["filename"] for file in files(tmp_path)] == ["alpha-2.0-py3-none-any.whl"]


def test_the_example_in_the_guide_is_valid(tmp_path: Path) -> None:
    guide = (ROOT / "docs/mirror.md").read_text(encoding="utf-8")
    path = tmp_path / "indexes.toml"
    path.write_text(guide.partition("```toml\n")[2].partition("```")[0])
    upstreams = read_upstreams(path)
    assert upstreams.streams == ("release", "nightly")
    assert [upstreams.owner("rocm-sdk-core", stream) for stream in ("", "release", "nightly")] == [1, 1, 3]


@pytest.mark.parametrize("number", range(16))
def test_an_index_left_by_a_killed_run_is_completed_by_the_next_run(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    more = {"first": 'streams = ["nightly"]'}
    write(tmp_path, offer_alpha(server), **more)
    beta = "beta-1.0-py3-none-any.whl"
    url = offer(server, {"beta": link(add_file(server, beta))})
    store = store_that_ends(tmp_path, monkeypatch, number)
    with suppress(KeyboardInterrupt):
        write_links(read_upstreams(listing(tmp_path, url, **more)), store, Layout("simple"))
    for stream in ("", "nightly"):
        folder = tmp_path / "www/simple" / stream
        listed = json.loads((folder / "index.json").read_text())["projects"]
        assert all((folder / one["name"] / "index.json").exists() for one in listed)
    write(tmp_path, url, **more)
    assert [one.parent.name for one in sorted((tmp_path / "www").rglob("index.html"))] == [
        "beta",
        "simple",
        "beta",
        "nightly",
    ]
    with pytest.raises(ProblemsError, match="already listed another hash"):
        write(tmp_path, offer_alpha(server, b"two"), **more)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("index = []", "doesn't list any indexes"),
        ("[[index]]\nurl = 3", "is not a list of indexes"),
        ("[[index]]\nurl = 'http://h/'\nprojects = ['a']\nextra = 1", "is not a list of indexes"),
        ("[[index]]\nurl = 'file:///srv/simple'\nprojects = ['a']", "index 1 has a URL that isn't a web address"),
        ("[[index]]\nurl = 'h/simple'\nprojects = ['a']", "index 1 has a URL that isn't a web address"),
        ("[[index]]\nurl = 'http://h/'\nprojects = []", "index 1 has no projects"),
        ("[[index]]\nurl = 'http://h/'\nprojects = ['a']\nversion = 'x'", "index 1: version is 'x'"),
        ("[[index]]\nurl = 'http://h/'\nprojects = ['a']\ntargets = ['gfxx']", "gfxx"),
        ("[[index]]\nurl = 'http://h/'\nprojects = ['a']\nstreams = ['../x']", "index 1 has the stream '../x'"),
        ("[[index]]\nurl = 'http://h/'\nprojects = ['a']\nstreams = ['index.html']", "has the stream 'index.html'"),
        (
            "[[index]]\nurl = 'http://h/'\nprojects = ['a*']\n[[index]]\nurl = 'http://i/'\nprojects = ['A_B']",
            "index 2 lists a-b, which belongs to index 1",
        ),
        ("pool = ['B']\n[[index]]\nurl = 'http://h/'\nprojects = ['a']", "pool lists 'B', which no index has"),
    ],
)
def test_an_invalid_listing_is_an_error(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "indexes.toml"
    path.write_text(text)
    with pytest.raises((InputError, ProblemsError)) as caught:
        read_upstreams(path)
    assert str(path) in str(caught.value)
    assert found in str(caught.value)
