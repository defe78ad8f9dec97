"""``rocwheel publish`` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rocwheel.index.publish import publish
from rocwheel.stores.folder import FolderStore
from rocwheel.stores.open import open_store
from tests.support.s3_server import BUCKET
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.s3_server import S3Server

NAME = "alpha-1.0-py3-none-any.whl"


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    make_wheel(tmp_path / "dist", "alpha", {"alpha.py": b""}, tag="py3-none-any", is_purelib=True)
    return tmp_path / "dist"


def test_publish_prints_the_uploads_and_the_index_url(run: Run, dist: Path, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/store"
    first, second = run("publish", dist, url), run("publish", dist, url, "--quiet")
    assert first.status == 0
    assert first.stdout.endswith(f", 0 already present; 1 file indexed\nindex: {url}/simple\n")
    assert first.stdout.startswith("1 file uploaded (")
    assert second == (0, "", "")


def test_a_stored_file_that_another_program_replaced_is_found_by_verify_alone(
    run: Run, dist: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    run("publish", dist, store)
    size = (store / "dist" / NAME).stat().st_size
    (store / "dist" / NAME).write_bytes(bytes(size))
    second, verified = run("publish", dist, store), run("verify", store / "simple")
    assert (second.status, second.stdout.partition(";")[0]) == (0, "0 files uploaded (0 bytes), 1 already present")
    assert (verified.status, f"changed {store}/dist/{NAME}: has the SHA-256 " in verified.stdout) == (1, True)


def test_a_dry_run_lists_every_file(run: Run, dist: Path, tmp_path: Path) -> None:
    finished = run("publish", dist, tmp_path / "store", "--dry-run")
    assert f"would be uploaded: {NAME}\nwould be indexed: {NAME}\n" in finished.stdout
    assert not (tmp_path / "store").exists()


def test_json_describes_the_uploads(run: Run, dist: Path, tmp_path: Path) -> None:
    (dist / "notes.txt").touch()
    finished = run("publish", dist, tmp_path / "store", "--json", "--quiet", "--output", "a/simple", "--files", "all")
    assert json.loads(finished.stdout) == {
        "schema": "rocwheel.publish/1",
        "store": f"{tmp_path}/store",
        "index": f"{tmp_path}/store/a/simple",
        "uploaded": [NAME],
        "present": [],
        "listed": [NAME],
        "pages": ["alpha"],
        "ignored": ["notes.txt"],
        "size": (dist / NAME).stat().st_size,
        "is_dry_run": False,
        "families": {},
        "leftovers": [],
        "edited": [],
    }


def test_invalid_arguments_are_errors_and_nothing_is_published(run: Run, dist: Path, tmp_path: Path) -> None:
    assert run("publish", dist, "gs://bucket").status == 2
    assert run("publish", tmp_path / "none", tmp_path / "store").status == 2
    assert run("publish", dist, tmp_path / "store", "--output", "../x").status == 2
    assert run("publish", dist, tmp_path / "store", "--upload-time", "soon").status == 2
    assert not (tmp_path / "store").exists()


def test_the_index_has_a_front_page_unless_disabled(run: Run, dist: Path, tmp_path: Path) -> None:
    assert run("publish", dist, tmp_path / "store", "--no-front-page", "-q").status == 0
    assert not (tmp_path / "store/simple/packages.html").exists()
    assert run("publish", dist, tmp_path / "store", "--url", "https://example.org/simple/", "-q").status == 0
    assert "https://example.org/simple/" in (tmp_path / "store/simple/packages.html").read_text()


def test_each_family_folder_is_published_with_its_own_index(run: Run, dist: Path, tmp_path: Path) -> None:
    make_wheel(dist / "gfx94X", "beta", {}, tag="py3-none-any", is_purelib=True)
    finished = run("publish", dist, tmp_path / "store")
    assert (finished.status, finished.stderr.count("not published")) == (0, 0)
    assert finished.stdout.endswith(f"for gfx94X, 2 files indexed: {tmp_path}/store/simple/gfx94X\n")


@pytest.mark.parametrize("named", ["the URL of the file", "the path of the file", "the URL of the index", "its path"])
def test_published_files_are_yanked_and_unyanked(run: Run, dist: Path, tmp_path: Path, named: str) -> None:
    store = tmp_path / "store"
    run("publish", dist, store)
    ways: dict[str, list[str | Path]] = {
        "the URL of the file": [f"file://{store}/dist/{NAME}"],
        "the path of the file": [store / "dist" / NAME],
        "the URL of the index": [NAME, "--output", f"file://{store}/simple"],
        "its path": [NAME, "--output", store / "simple"],
    }
    words = ways[named]
    page = store / "simple/alpha/index.json"
    finished = run("index", "yank", *words, "--reason", "bad code")
    assert (finished.status, finished.stderr) == (0, "")
    assert finished.stdout.endswith(f"{store}/simple: {NAME}: yanked: bad code\n")
    assert json.loads(page.read_text())["files"][0]["yanked"] == "bad code"
    assert run("index", "unyank", *words).stdout.endswith(f": {NAME}: not yanked\n")
    assert "yanked" not in json.loads(page.read_text())["files"][0]


def test_a_file_of_a_family_is_yanked_if_the_top_index_does_not_list_it(run: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path / "families/gfx94X", "beta", {}, tag="py3-none-any", is_purelib=True)
    store, name = tmp_path / "store", "beta-1.0-py3-none-any.whl"
    assert run("publish", tmp_path / "families", store, "--no-front-page", "-q").status == 0
    for words in ((name, "--output", store / "simple"), (store / "dist/gfx94X" / name,)):
        finished = run("index", "yank", *words)
        assert (finished.status, finished.stderr) == (0, "")
        assert finished.stdout.endswith(f"{store}/simple/gfx94X: {name}: yanked\n")


def test_files_can_be_yanked_if_the_publishing_state_is_missing(run: Run, dist: Path, tmp_path: Path) -> None:
    make_wheel(dist / "gfx94X", "beta", {}, tag="py3-none-any", is_purelib=True)
    store = tmp_path / "store"
    run("publish", dist, store)
    for notes in (store / "simple").rglob(".rocwheel-published.json"):
        notes.unlink()
    finished = run("index", "yank", store / "dist" / NAME)
    assert (finished.status, finished.stderr) == (0, "")
    assert f"{store}/simple: {NAME}: yanked\n" in finished.stdout
    assert f"{store}/simple/gfx94X: {NAME}: yanked\n" in finished.stdout


@pytest.mark.parametrize("name", ["alpha-1.0%2Bx-py3-none-any.whl", "alpha-1.0+x-py3-none-any.whl"])
def test_a_file_can_be_yanked_by_its_percent_encoded_url(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    make_wheel(tmp_path / "dist", "alpha", {}, version="1.0+x", tag="py3-none-any", is_purelib=True)
    publish(tmp_path / "dist", FolderStore(tmp_path / "store"))
    index = FolderStore(tmp_path / "store/simple", "s3://bucket/rocm/simple")
    stores = {index.url: index, "s3://bucket/rocm": FolderStore(tmp_path / "store")}
    monkeypatch.setattr("rocwheel.index.yank.open_store", stores.__getitem__)
    finished = run("index", "yank", f"s3://bucket/rocm/dist/{name}")
    assert (finished.status, finished.stderr) == (0, "")
    assert finished.stdout.endswith("s3://bucket/rocm/simple: alpha-1.0+x-py3-none-any.whl: yanked\n")


def test_a_url_that_is_not_a_distribution_is_an_error(run: Run, dist: Path, tmp_path: Path) -> None:
    run("publish", dist, tmp_path / "store")
    finished = run("index", "yank", f"file://{tmp_path}/store/dist/notes.txt")
    assert finished.status == 2
    assert finished.stderr.endswith("Specify the name of a wheel or sdist in the index.\n")


def test_unfinished_uploads_of_other_runs_are_reported(run: Run, dist: Path, tmp_path: Path) -> None:
    for name in ("0abc", "0abc.begun"):
        path = tmp_path / "store/.rocwheel-uploads" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    finished = run("publish", dist, tmp_path / "store")
    assert (finished.status, finished.stderr.count("warning")) == (0, 1)
    assert (
        "has 1 unfinished upload from runs that were interrupted or are still in progress: .rocwheel-uploads/0abc."
        in finished.stderr
    )


@pytest.mark.slow
def test_files_in_a_bucket_can_be_yanked_by_url(run: Run, dist: Path, s3: S3Server) -> None:
    make_wheel(dist / "gfx94X", "beta", {}, tag="py3-none-any", is_purelib=True)
    assert run("publish", dist, f"s3://{BUCKET}/rocm", "-q").status == 0
    beta = "beta-1.0-py3-none-any.whl"
    for name, shown in ((NAME, NAME), (f"gfx94X/{beta}", beta)):
        finished = run("index", "yank", f"s3://{BUCKET}/rocm/dist/{name}")
        assert (finished.status, finished.stderr) == (0, "")
        assert f"s3://{BUCKET}/rocm/simple/gfx94X: {shown}: yanked\n" in finished.stdout
    pages = [
        json.loads(open_store(f"s3://{BUCKET}/rocm/simple").read(f"{page}/index.json"))
        for page in ("alpha", "gfx94X/alpha", "gfx94X/beta")
    ]
    assert [page["files"][0]["yanked"] for page in pages] == [True, True, True]


def test_yanking_in_a_store_without_an_index_is_refused(run: Run, tmp_path: Path) -> None:
    finished = run("index", "yank", f"file://{tmp_path}/dist/{NAME}")
    assert (finished.status, finished.stdout) == (2, "")
    assert "is not an index that rocwheel wrote" in finished.stderr


def test_a_web_server_is_refused_without_a_request(run: Run, dist: Path) -> None:
    refused = run("publish", dist, "http://me:word@127.0.0.1:1/rocm")
    says = "http://127.0.0.1:1/rocm: can't be written to: web servers are read-only. Use an s3:// or file:// URL"
    assert (refused.status, says in " ".join(refused.stderr.split())) == (2, True)


@pytest.mark.parametrize("command", ["publish", "index"])
@pytest.mark.parametrize("date", ["9999-12-31", "2999-01-01T00:00:00Z"])
def test_an_upload_time_in_the_future_is_refused(run: Run, dist: Path, tmp_path: Path, command: str, date: str) -> None:
    places = (dist, tmp_path / "store") if command == "publish" else (dist,)
    refused = run(command, *places, "--upload-time", date)
    assert (refused.status, f"--upload-time: is '{date}', which is in the future" in refused.stderr) == (2, True)
    assert sorted(tmp_path.iterdir()) == [dist]


def test_the_remedy_for_a_broken_page_warns_about_losing_files(run: Run, dist: Path, tmp_path: Path) -> None:
    run("publish", dist, tmp_path / "store")
    page = tmp_path / "store/simple/alpha/index.json"
    page.write_text("{")
    beside = page.with_name("index.html")
    beside.write_bytes(beside.read_bytes()[:-9])  # else the page would be mended by it
    broken = run("publish", dist, tmp_path / "store")
    page.unlink()
    missing = run("publish", dist, tmp_path / "store")
    advice = (
        "Restore the page from a copy, or repair it from its index.html. Without the page, files and marks from other "
        "publishers are lost."
    )
    for refused in (broken, missing):
        assert (refused.status, advice in " ".join(refused.stderr.split())) == (2, True)


@pytest.mark.parametrize("command", ["publish", "index"])
def test_a_folder_named_like_a_wheel_is_reported(run: Run, dist: Path, tmp_path: Path, command: str) -> None:
    (dist / "z-1.0-py3-none-any.whl").mkdir()
    done = run(command, *((dist, tmp_path / "store") if command == "publish" else (dist,)))
    says = f"because it isn't a wheel or a .tar.gz sdist: {dist}/z-1.0-py3-none-any.whl"
    assert (done.status, says in " ".join(done.stderr.split())) == (0, True)


def test_a_damaged_or_edited_page_is_reported_and_repaired(run: Run, dist: Path, tmp_path: Path) -> None:
    run("publish", dist, tmp_path / "store")
    page = tmp_path / "store/simple/alpha/index.json"
    whole = page.read_bytes()
    page.write_bytes(whole[:99])
    done = run("publish", dist, tmp_path / "store", "--json")
    what = "was edited by hand; it now matches the files again, and yanked files are still yanked"
    assert f"{page}: {what}" in " ".join(done.stderr.split())
    assert json.loads(done.stdout)["edited"] == [str(page)]
    assert page.read_bytes() == whole


def test_a_store_whose_name_is_not_utf8_can_be_addressed_by_path_and_url(run: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist", "demo", {"demo.py": b"1"})
    store = f"{tmp_path}/st\udcff"
    assert run("publish", tmp_path / "dist", f"file://{tmp_path}/st%FF")[0] == 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("st")] == ["st\udcff"]
    assert (run("verify", store)[0], run("verify", f"file://{tmp_path}/st%FF")[0]) == (0, 0)


def test_swapped_store_and_package_folder_are_recognized(run: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path, "alpha", {})
    done = run("publish", "s3://bucket/rocm", tmp_path)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {tmp_path}: is a folder of packages; expected DIST_DIR before STORE. "
        f"Run rocwheel publish {tmp_path} s3://bucket/rocm.\n"
    )


def test_a_store_with_an_unknown_scheme_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("publish", tmp_path, "gs://bucket/rocm")
    assert (done.status, done.stderr) == (
        2,
        "error: gs://bucket/rocm: has the scheme 'gs'; expected s3://BUCKET/PREFIX, file:///PATH, or a folder\n",
    )
