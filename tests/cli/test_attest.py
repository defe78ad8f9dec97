"""``rocwheel attest`` as its users call it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from rocwheel.wheels.build_manifest import write_manifest
from tests.support.places import ROOT
from tests.wheels.build_manifest.manifests import manifest_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

OUTPUTS = {"dist/gfx906/rocm-1.tar.gz": b"a", "dist/gfx90a/rocm-1.tar.gz": b"b"}


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """Return the folder of a build of two families, which have distributions of one name."""
    for path, data in OUTPUTS.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(data)
    write_manifest(tmp_path, manifest_of(OUTPUTS))
    return tmp_path


def test_without_a_name_no_builder_is_claimed(run: Run, build: Path) -> None:
    assert run("attest", build, "--quiet").status == 0
    predicate = json.loads((build / "attestations/provenance.json").read_bytes())
    place = "https://github.com/rocwheel/rocwheel/blob/main/docs/verify.md#unnamed-builder"
    assert predicate["runDetails"]["builder"]["id"] == place
    assert "### Unnamed builder" in (ROOT / "docs/verify.md").read_text()


def test_a_build_s_name_begins_no_line(run: Run, build: Path) -> None:
    folder = build / "a\n::error::b"
    folder.mkdir()
    (build / "dist").rename(folder / "dist")
    (build / "rocwheel-build.json").rename(folder / "rocwheel-build.json")
    done = run("attest", folder)
    assert done.stderr.startswith(f"unsigned; the predicate of all: {build}/a\\n::error::b/")
    assert [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("::")] == []


@pytest.mark.parametrize("given", ["", "rocwheel-build.json"])
def test_each_output_gets_a_statement(run: Run, build: Path, given: str) -> None:
    done = run("attest", build / given, "--json", "--quiet", "--builder-id", "https://example.org/ci")
    document = json.loads(done.stdout)
    folder = build / "attestations"
    assert (done.status, document["schema"]) == (0, "rocwheel.attest/1")
    assert document["predicate"] == f"{folder}/provenance.json"
    assert document["statements"] == {
        f"{build}/{path}": f"{folder}/{path.removeprefix('dist/')}.intoto.json" for path in OUTPUTS
    }
    for path, place in document["statements"].items():
        with open(place, "rb") as file:  # noqa: PTH123
            statement = json.load(file)
        data = OUTPUTS[path.removeprefix(f"{build}/")]
        assert statement["subject"] == [
            {"name": "rocm-1.tar.gz", "digest": {"sha256": hashlib.sha256(data).hexdigest()}}
        ]
        assert statement["predicate"] == json.loads((folder / "provenance.json").read_bytes())
        assert statement["predicate"]["runDetails"]["builder"]["id"] == "https://example.org/ci"


def test_the_same_build_gives_the_same_statements(run: Run, build: Path) -> None:
    texts = []
    for _ in range(2):
        assert run("attest", build).status == 0
        texts.append({path: path.read_bytes() for path in (build / "attestations").rglob("*.json")})
    assert texts[0] == texts[1]
    assert len(texts[0]) == 3
    assert run("verify", build).status == 0


def test_nothing_is_attested_of_a_build_that_has_changed(run: Run, build: Path) -> None:
    (build / "dist/gfx906/rocm-1.tar.gz").write_bytes(b"c")
    (build / "dist/gfx90a/rocm-1.tar.gz").unlink()
    done = run("attest", build)
    assert (done.status, done.stdout) == (1, "")
    assert f"{build}/rocwheel-build.json: 2 problems" in done.stderr
    assert f"{build}/dist/gfx90a/rocm-1.tar.gz: is missing; expected a file" in done.stderr
    assert not (build / "attestations").exists()


@pytest.mark.parametrize("uri", ["", "me", "https://a b", "https://[", "x:\n"])
def test_a_builder_that_is_no_uri_is_refused(run: Run, build: Path, uri: str) -> None:
    done = run("attest", build, "--builder-id", uri)
    assert done.status == 2
    assert f"--builder-id: is {uri!r}; expected a URI, such as https://example.org/builds" in done.stderr


def test_a_folder_without_a_manifest_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("attest", tmp_path)
    assert done.status == 2
    assert f"{tmp_path}/rocwheel-build.json: can't be read (No such file or directory)" in done.stderr


def test_a_distribution_that_is_not_in_the_manifest_is_refused(run: Run, build: Path) -> None:
    (build / "dist/gfx906/rocm-1.tar.gz.sigstore.json").touch()
    assert run("attest", build).status == 0
    (build / "dist/older-1-py3-none-any.whl").touch()
    done = run("attest", build)
    assert done.status == 1
    assert "older-1-py3-none-any.whl: is not in the manifest; expected files of this build alone" in done.stderr


def test_the_hash_of_the_manifest_is_that_of_its_file(run: Run, build: Path) -> None:
    path = build / "rocwheel-build.json"
    path.write_bytes(path.read_bytes() + b"\n")
    assert run("attest", build).status == 0
    [manifest] = json.loads((build / "attestations/provenance.json").read_bytes())["runDetails"]["byproducts"]
    assert manifest["digest"] == {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def test_a_signed_statement_is_not_replaced(run: Run, build: Path) -> None:
    signed = build / "attestations/gfx906/rocm-1.tar.gz.intoto.json"
    signed.parent.mkdir(parents=True)
    signed.write_text('{"payload": "c2lnbmVk"}')
    done = run("attest", build)
    expected = "nothing, or what rocwheel attest wrote"
    message = f"error: {signed}: was not written by rocwheel attest; expected {expected}. Move it.\n"
    assert (done.status, done.stderr) == (2, message)
    assert signed.read_text() == '{"payload": "c2lnbmVk"}'
    assert not (build / "attestations/provenance.json").exists()
