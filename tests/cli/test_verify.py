"""``rocwheel verify``: files, builds, indexes and URLs."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.wheels.build_manifest import write_manifest
from rocwheel.wheels.sdist import write_sdist
from tests.support.loopback import served
from tests.support.wheels import make_wheel
from tests.wheels.build_manifest.manifests import manifest_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.s3_server import S3Server


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """Return the folder of a build with one wheel."""
    wheel = make_wheel(tmp_path / "out/dist", "demo", {"a.py": b"1\n"})
    write_manifest(tmp_path / "out", manifest_of({f"dist/{wheel.name}": wheel.read_bytes()}))
    return tmp_path / "out"


def test_each_valid_item_is_reported_on_one_line(run: Run, build: Path) -> None:
    (wheel,) = (build / "dist").iterdir()
    done = run("verify", build, build / "rocwheel-build.json", build / "dist", wheel)
    manifest = f"{build}/rocwheel-build.json: build, 1 file (1.1 kB): good"
    lines = done.stdout.splitlines()
    assert (done.status, done.stderr, lines[:2]) == (0, "", [manifest, manifest])
    assert [line.rpartition("): ")[2] for line in lines[2:]] == ["good", "good", "good"]
    assert (lines[2], lines[3]) == (lines[4], manifest)
    assert lines[2].startswith(f"{wheel}: wheel, 5 files (")


def test_faults_are_reported_and_result_in_exit_status_1(run: Run, build: Path) -> None:
    (build / "dist/more.whl").touch()
    done = run("verify", build, "--quiet")
    text = f"extra {build}/dist/more.whl: isn't in the manifest; expected only files from this build\n"
    assert (done.status, done.stdout, done.stderr) == (1, text, "")


def test_faults_can_be_printed_as_json(run: Run, build: Path) -> None:
    (build / "dist/more.whl").touch()
    done = run("verify", build, "--json")
    document = json.loads(done.stdout)
    [verified] = document["verified"]
    assert (done.status, document["schema"]) == (1, "rocwheel.verify/1")
    assert (verified["path"], verified["kind"], verified["files"]) == (f"{build}/rocwheel-build.json", "build", 1)
    assert verified["faults"] == [
        {
            "kind": "extra",
            "place": f"{build}/dist/more.whl",
            "found": "isn't in the manifest",
            "expected": "only files from this build",
        }
    ]


def test_unverifiable_paths_are_reported_after_all_others(run: Run, build: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.json").write_text("no")
    (tmp_path / "rocm-1.zip").touch()
    os.mkfifo(tmp_path / "pipe")
    names = ["empty", "text.json", "rocm-1.zip", "pipe", "absent"]
    done = run("verify", *(tmp_path / name for name in names), build)
    assert (done.status, done.stdout.endswith(": good\n")) == (2, True)
    assert "Inputs that can't be verified: 5 problems" in done.stderr
    for name, found in zip(
        names,
        (
            "contains nothing that rocwheel can verify",
            "is not JSON",
            "has no list of files with hashes",
            "can't be read (it isn't a regular file)",
            "can't be read (No such file or directory)",
        ),
        strict=True,
    ):
        assert f"{tmp_path / name}: {found}" in done.stderr


def test_an_unverifiable_file_is_refused_with_the_supported_kinds(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.deb"
    path.write_bytes(b"!<arch>\ndebian-binary   \xff")
    expected = "a rocwheel-build.json, a build folder, an index, wheels, sdists, SHA256SUMS, or an environment"
    error = f"error: {path}: contains nothing that rocwheel can verify; expected {expected}\n"
    assert run("verify", path) == (2, "", error)


def test_control_characters_in_names_are_not_printed_to_the_terminal(run: Run, build: Path) -> None:
    (build / "dist/\x1b[31mred\n.whl").touch()
    done = run("verify", build, "-q")
    assert (done.status, done.stdout.count("\n")) == (1, 1)
    assert "red\\n.whl" in done.stdout
    assert "\x1b" not in done.stdout


def test_names_that_are_not_utf8_are_reported(run: Run, build: Path) -> None:
    (build / "dist/\udcff.whl").touch()
    assert json.loads(run("verify", build, "--json").stdout)["verified"][0]["faults"][0]["place"].endswith("\udcff.whl")
    assert run("verify", build).status == 1


@pytest.mark.parametrize("beside", ["", "pylock.toml"])
def test_verifying_a_mirror_folder_includes_its_index(run: Run, tmp_path: Path, beside: str) -> None:
    make_wheel(tmp_path / "there/dist", "demo", {"a.py": b"1\n"})
    assert run("index", tmp_path / "there/dist", "-q").status == 0
    mirror = tmp_path / "mirror"
    url = (tmp_path / "there/simple").as_uri()
    assert run("index", "mirror", url, "--project", "demo", "-d", mirror, "-q").status == 0
    if beside:
        (mirror / beside).touch()
    done = run("verify", mirror)
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith(f"{mirror}/simple: index, 1 file (")


def test_a_dist_folder_is_compared_with_every_available_hash(run: Run, tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    wheel = make_wheel(dist, "demo", {"a.py": b"1\n"})
    info = b"Metadata-Version: 2.2\nName: rocm\nVersion: 7.0\n"
    write_sdist(dist / "rocm-7.0.tar.gz", "rocm-7.0", {"PKG-INFO": info, "setup.py": b""}, mtime=0)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(dist.iterdir())]
    (dist / "SHA256SUMS").write_text("\n".join(lines))
    assert run("index", dist).status == 0
    done = run("verify", dist)
    said = [line.removeprefix(f"{tmp_path}/").partition(" (")[0] for line in done.stdout.splitlines()]
    assert (done.status, said) == (
        0,
        [
            f"dist/{wheel.name}: wheel, 5 files",
            "dist/rocm-7.0.tar.gz: sdist, 1 file",
            "dist/SHA256SUMS: checksums, 2 files",
            "simple: index, 2 files",
        ],
    )
    assert "rocm-7.0.tar.gz: sdist, 1 file (" in done.stdout
    assert ", 1 not compared: good" in done.stdout
    (dist / "rocm-7.0.tar.gz").write_bytes(b"")
    done = run("verify", dist, "--json")
    found = {one["kind"]: [fault["kind"] for fault in one["faults"]] for one in json.loads(done.stdout)["verified"]}
    assert (done.status, found) == (
        1,
        {"wheel": [], "sdist": ["damaged"], "checksums": ["changed"], "index": ["changed"]},
    )


def test_the_folder_of_a_single_project_is_refused(run: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist", "demo", {"a.py": b"1\n"})
    assert run("index", tmp_path / "dist").status == 0
    done = run("verify", tmp_path / "simple/demo")
    assert done.status == 2
    told = "is the folder of a single project in an index; expected the whole index. Pass its parent folder: "
    assert f"{tmp_path}/simple/demo: {told}{tmp_path}/simple" in done.stderr


WHEEL = "demo-1.0-py3-none-linux_x86_64.whl"


@pytest.fixture
def built(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a build with one wheel, and with an index of it."""
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    wheel = make_wheel(tmp_path / "out/dist", "demo", {"a.py": b"1\n"})
    write_manifest(tmp_path / "out", manifest_of({f"dist/{wheel.name}": wheel.read_bytes()}))
    assert run("index", tmp_path / "out/dist", "-q").status == 0
    return tmp_path / "out"


@pytest.fixture
def address(built: Path) -> Iterator[str]:
    with served(built) as found:
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "/", "/rocwheel-build.json"])
def test_a_build_at_a_url_is_verified_against_its_manifest(name: str, run: Run, built: Path, address: str) -> None:
    status, [found] = verified(run, address + name)
    size = (built / "dist" / WHEEL).stat().st_size
    assert (status, found["path"]) == (0, f"{address}/rocwheel-build.json")
    assert (found["kind"], found["files"], found["size"], found["faults"]) == ("build", 1, size, [])


@pytest.mark.slow
def test_faults_of_a_build_at_a_url_are_reported(run: Run, built: Path, address: str) -> None:
    (built / "dist/more-1.0-py3-none-any.whl").touch()
    (built / "SHA256SUMS").write_text("no\n")
    wheel = built / "dist" / WHEEL
    data = bytearray(wheel.read_bytes())
    data[40] ^= 1
    wheel.write_bytes(data)
    expected = [("changed", "SHA256SUMS"), ("extra", "dist/more-1.0-py3-none-any.whl")]
    assert faults(run, address) == [("changed", f"dist/{WHEEL}"), *expected]
    wheel.write_bytes(data + b"more")
    assert faults(run, address) == [("changed", f"dist/{WHEEL}"), *expected]
    wheel.unlink()
    assert faults(run, address) == [("missing", f"dist/{WHEEL}"), *expected]


@pytest.mark.slow
def test_an_index_at_a_url_is_verified_against_its_pages(run: Run, built: Path, address: str) -> None:
    status, [found] = verified(run, f"{address}/simple/")
    assert (status, found["kind"], found["files"], found["faults"]) == (0, "index", 1, [])
    wheel = built / "dist" / WHEEL
    assert found["size"] == wheel.stat().st_size
    wheel.write_bytes(wheel.read_bytes()[:-1] + b"X")
    [(kind, place)] = faults(run, f"{address}/simple")
    assert (kind, place.endswith(WHEEL)) == ("changed", True)
    next(built.rglob("*.metadata")).write_bytes(b"changed")
    assert [kind for kind, _ in faults(run, f"{address}/simple")] == ["changed", "changed"]


@pytest.mark.slow
def test_a_store_at_a_url_is_compared_with_its_index(run: Run, built: Path, tmp_path: Path) -> None:
    assert run("publish", built / "dist", tmp_path / "store", "--quiet").status == 0
    with served(tmp_path / "store") as address:
        status, [found] = verified(run, address)
    assert (status, found["kind"], found["path"]) == (0, "index", f"{address}/simple/")


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "kind"), [("", "build"), ("/simple", "index")])
def test_the_query_of_a_url_is_kept_after_the_file_names(run: Run, address: str, folder: str, kind: str) -> None:
    status, [found] = verified(run, f"{address}{folder}?signature=1")
    assert (status, found["kind"], found["faults"]) == (0, kind, [])


@pytest.mark.slow
def test_a_dist_folder_at_a_url_is_fetched(run: Run, address: str) -> None:
    status, found = verified(run, f"{address}/dist/")
    assert (status, [one["kind"] for one in found]) == (0, ["wheel"])


@pytest.mark.slow
def test_a_url_that_is_not_a_folder_is_refused(run: Run, address: str) -> None:
    done = run("verify", f"{address}/dist/rocm-1.tar.gz", f"{address}/gone.json", f"{address}/none/")
    assert done.status != 0
    assert f"{address}/dist/rocm-1.tar.gz: isn't a folder. Pass the URL of its folder." in done.stderr
    assert f"{address}/gone.json" in done.stderr
    assert f"{address}/none" in done.stderr


@pytest.mark.slow
def test_a_published_build_in_a_bucket_is_verified(run: Run, built: Path, s3: S3Server) -> None:
    s3.make_bucket("bucket")
    assert run("publish", built / "dist", "s3://bucket/rocm", "--quiet").status == 0
    status, [found] = verified(run, "s3://bucket/rocm/simple")
    assert (status, found["kind"], found["files"], found["faults"]) == (0, "index", 1, [])
