"""``rocwheel verify`` of builds, indexes and folders at URLs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.wheels.build_manifest import write_manifest
from tests.support.loopback import served
from tests.support.wheels import make_wheel
from tests.wheels.build_manifest.manifests import manifest_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.s3_server import S3Server

pytestmark = pytest.mark.slow

WHEEL = "demo-1.0-py3-none-linux_x86_64.whl"


@pytest.fixture
def build(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a build with one wheel, and with an index of it."""
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    wheel = make_wheel(tmp_path / "out/dist", "demo", {"a.py": b"1\n"})
    write_manifest(tmp_path / "out", manifest_of({f"dist/{wheel.name}": wheel.read_bytes()}))
    assert run("index", tmp_path / "out/dist", "-q").status == 0
    return tmp_path / "out"


@pytest.fixture
def address(build: Path) -> Iterator[str]:
    with served(build) as found:
        yield found.rstrip("/")


def verified(run: Run, url: str) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit status and what was found."""
    done = run("verify", url, "--json", "--quiet")
    assert done.stdout, done.stderr
    return done.status, json.loads(done.stdout)["verified"]


def faults(run: Run, url: str) -> list[tuple[str, str]]:
    """Return kind and place below the server of each fault."""
    status, [found] = verified(run, url)
    assert status == bool(found["faults"])
    return [
        (fault["kind"], fault["place"].partition("/")[2].partition("/")[2].partition("/")[2])
        for fault in found["faults"]
    ]


@pytest.mark.parametrize("name", ["", "/", "/rocwheel-build.json"])
def test_a_build_at_a_url_is_compared_with_its_manifest(name: str, run: Run, build: Path, address: str) -> None:
    status, [found] = verified(run, address + name)
    size = (build / "dist" / WHEEL).stat().st_size
    assert (status, found["path"]) == (0, f"{address}/rocwheel-build.json")
    assert (found["kind"], found["files"], found["size"], found["faults"]) == ("build", 1, size, [])


def test_what_is_wrong_with_a_build_at_a_url_is_named(run: Run, build: Path, address: str) -> None:
    (build / "dist/more-1.0-py3-none-any.whl").touch()
    (build / "SHA256SUMS").write_text("no\n")
    wheel = build / "dist" / WHEEL
    data = bytearray(wheel.read_bytes())
    data[40] ^= 1
    wheel.write_bytes(data)
    expected = [("changed", "SHA256SUMS"), ("extra", "dist/more-1.0-py3-none-any.whl")]
    assert faults(run, address) == [("changed", f"dist/{WHEEL}"), *expected]
    wheel.write_bytes(data + b"more")
    assert faults(run, address) == [("changed", f"dist/{WHEEL}"), *expected]
    wheel.unlink()
    assert faults(run, address) == [("missing", f"dist/{WHEEL}"), *expected]


def test_an_index_at_a_url_is_compared_with_its_pages(run: Run, build: Path, address: str) -> None:
    status, [found] = verified(run, f"{address}/simple/")
    assert (status, found["kind"], found["files"], found["faults"]) == (0, "index", 1, [])
    wheel = build / "dist" / WHEEL
    assert found["size"] == wheel.stat().st_size
    wheel.write_bytes(wheel.read_bytes()[:-1] + b"X")
    [(kind, place)] = faults(run, f"{address}/simple")
    assert (kind, place.endswith(WHEEL)) == ("changed", True)
    next(build.rglob("*.metadata")).write_bytes(b"changed")
    assert [kind for kind, _ in faults(run, f"{address}/simple")] == ["changed", "changed"]


def test_a_store_at_a_url_is_compared_by_the_index_below(run: Run, build: Path, tmp_path: Path) -> None:
    assert run("publish", build / "dist", tmp_path / "store", "--quiet").status == 0
    with served(tmp_path / "store") as address:
        status, [found] = verified(run, address)
    assert (status, found["kind"], found["path"]) == (0, "index", f"{address}/simple/")


@pytest.mark.parametrize(("folder", "kind"), [("", "build"), ("/simple", "index")])
def test_the_query_of_a_url_stays_behind_the_names_of_files(run: Run, address: str, folder: str, kind: str) -> None:
    status, [found] = verified(run, f"{address}{folder}?signature=1")
    assert (status, found["kind"], found["faults"]) == (0, kind, [])


def test_a_folder_of_distributions_at_a_url_is_fetched(run: Run, address: str) -> None:
    status, found = verified(run, f"{address}/dist/")
    assert (status, [one["kind"] for one in found]) == (0, ["wheel"])


def test_what_is_no_folder_is_refused(run: Run, address: str) -> None:
    done = run("verify", f"{address}/dist/rocm-1.tar.gz", f"{address}/gone.json", f"{address}/none/")
    assert done.status != 0
    assert f"{address}/dist/rocm-1.tar.gz: is no folder. Give the URL of the folder that it is in." in done.stderr
    assert f"{address}/gone.json" in done.stderr
    assert f"{address}/none" in done.stderr


def test_a_build_in_a_bucket_is_compared(run: Run, build: Path, s3: S3Server) -> None:
    s3.make_bucket("bucket")
    assert run("publish", build / "dist", "s3://bucket/rocm", "--quiet").status == 0
    status, [found] = verified(run, "s3://bucket/rocm/simple")
    assert (status, found["kind"], found["files"], found["faults"]) == (0, "index", 1, [])
