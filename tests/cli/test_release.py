"""``rocwheel promote``, ``attest`` and ``selector merge``."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.planning.options import PlanOptions
from rocwheel.demo import SAMPLE_SDK
from rocwheel.wheels.build_manifest import write_manifest
from tests.build.merging.selectors import facts_of, windows, write_plan, write_selector
from tests.support.command_line import rocwheel, run_json
from tests.support.loopback import served
from tests.support.places import ROOT
from tests.wheels.build_manifest.manifests import manifest_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


@pytest.mark.slow
def test_the_files_of_a_release_are_listed_with_the_new_version(sample_dist: Path, tmp_path: Path) -> None:
    done = rocwheel("promote", sample_dist, "--to", "7.0.1", "--output", "release", cwd=tmp_path)
    assert done.returncode == 0
    listed = {line.split()[0] for line in done.stdout.splitlines() if line.startswith((" release/", "  release/"))}
    assert listed == {f"release/{path.name}" for path in (tmp_path / "release").iterdir()}
    assert done.stderr.splitlines()[-1] == "version 7.0.0 is now 7.0.1"


@pytest.mark.slow
def test_a_release_folder_name_cannot_start_a_new_line(sample_dist: Path, tmp_path: Path) -> None:
    done = rocwheel("promote", sample_dist, "--to", "7.0.1", "--output", "a\n::error::b", cwd=tmp_path)
    assert done.returncode == 0
    assert "a\\n::error::b/rocm-7.0.1.tar.gz" in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("::")] == []


@pytest.mark.slow
def test_skipped_packages_and_kept_targets_are_reported(sample_dist: Path, tmp_path: Path) -> None:
    options = ["--to", "7.0.1", "--dest-dir", "release", "--targets", "gfx906,gfx1030"]
    done = rocwheel("promote", sample_dist, *options, cwd=tmp_path)
    left_out, last = done.stderr.splitlines()[-2:]
    assert left_out.startswith(f"left out: {sample_dist}/rocm_sdk_device_gfx90a-7.0.0-")
    assert last == "version 7.0.0 is now 7.0.1, GPU targets: gfx906, gfx1030"


@pytest.mark.slow
def test_a_quiet_promotion_prints_nothing(sample_dist: Path, tmp_path: Path) -> None:
    done = rocwheel("promote", sample_dist, "--to", "7.0.1", "--output", "release", "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "release/rocm-7.0.1.tar.gz").exists()


@pytest.mark.slow
def test_json_describes_a_release(sample_dist: Path, tmp_path: Path) -> None:
    value = run_json("promote", sample_dist, "--to", "7.0.1", "--output", "release", cwd=tmp_path)
    made = value.pop("distributions")
    assert {row["path"]: row["size"] for row in made} == {
        f"release/{path.name}": path.stat().st_size for path in (tmp_path / "release").iterdir()
    }
    assert {row["source"] for row in made} == {str(path) for path in sample_dist.iterdir() if path.is_file()}
    assert value == {
        "schema": "rocwheel.promote/1", "old_version": "7.0.0", "version": "7.0.1", "left_out": [], "targets": [],
    }  # fmt: skip


@pytest.mark.slow
def test_an_empty_target_list_is_a_usage_error(sample_dist: Path, tmp_path: Path) -> None:
    done = rocwheel("promote", sample_dist, "--to", "7.0.1", "--output", "out", "--targets", "", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --targets: doesn't specify a GPU target; expected at least one, such as gfx1100\n"
    assert list(tmp_path.iterdir()) == []


OUTPUTS = {"dist/gfx906/rocm-1.tar.gz": b"a", "dist/gfx90a/rocm-1.tar.gz": b"b"}


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """Return the folder of a build of two families, which have distributions of one name."""
    for path, data in OUTPUTS.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(data)
    write_manifest(tmp_path, manifest_of(OUTPUTS))
    return tmp_path


def test_the_default_builder_id_is_the_unnamed_builder(run: Run, build: Path) -> None:
    assert run("attest", build, "--quiet").status == 0
    predicate = json.loads((build / "attestations/provenance.json").read_bytes())
    place = "https://github.com/rocwheel/rocwheel/blob/main/docs/verify.md#unnamed-builder"
    assert predicate["runDetails"]["builder"]["id"] == place
    assert "### Unnamed builder" in (ROOT / "docs/verify.md").read_text()


def test_a_build_folder_name_cannot_start_a_new_line(run: Run, build: Path) -> None:
    folder = build / "a\n::error::b"
    folder.mkdir()
    (build / "dist").rename(folder / "dist")
    (build / "rocwheel-build.json").rename(folder / "rocwheel-build.json")
    done = run("attest", folder)
    assert done.stderr.startswith(f"unsigned; the predicate of all statements: {build}/a\\n::error::b/")
    assert [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("::")] == []


@pytest.mark.parametrize("given", ["", "rocwheel-build.json"])
def test_each_output_gets_a_provenance_statement(run: Run, build: Path, given: str) -> None:
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


def test_the_same_build_produces_the_same_statements(run: Run, build: Path) -> None:
    texts = []
    for _ in range(2):
        assert run("attest", build).status == 0
        texts.append({path: path.read_bytes() for path in (build / "attestations").rglob("*.json")})
    assert texts[0] == texts[1]
    assert len(texts[0]) == 3
    assert run("verify", build).status == 0


def test_a_build_that_has_changed_is_not_attested(run: Run, build: Path) -> None:
    (build / "dist/gfx906/rocm-1.tar.gz").write_bytes(b"c")
    (build / "dist/gfx90a/rocm-1.tar.gz").unlink()
    done = run("attest", build)
    assert (done.status, done.stdout) == (1, "")
    assert f"{build}/rocwheel-build.json: 2 problems" in done.stderr
    assert f"{build}/dist/gfx90a/rocm-1.tar.gz: is missing; expected a file" in done.stderr
    assert not (build / "attestations").exists()


@pytest.mark.parametrize("uri", ["", "me", "https://a b", "https://[", "x:\n"])
def test_a_builder_id_that_is_not_a_uri_is_refused(run: Run, build: Path, uri: str) -> None:
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
    assert "older-1-py3-none-any.whl: isn't in the manifest; expected only files from this build" in done.stderr


def test_the_manifest_hash_in_the_provenance_is_the_hash_of_the_file(run: Run, build: Path) -> None:
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
    expected = "no file, or a file that rocwheel attest wrote"
    message = (
        f"error: {signed}: wasn't written by rocwheel attest; expected {expected}. Move the file to another folder.\n"
    )
    assert (done.status, done.stderr) == (2, message)
    assert signed.read_text() == '{"payload": "c2lnbmVk"}'
    assert not (build / "attestations/provenance.json").exists()


def test_merge_prints_the_platforms_of_each_family(run: Run, tmp_path: Path) -> None:
    linux = write_selector(tmp_path / "linux", "gfx942", "gfx1100")
    win = write_selector(tmp_path / "win", "gfx1100", "gfx1151", change=windows)
    finished = run("selector", "merge", win, linux, "--output", tmp_path / "dist")
    assert finished.status == 0
    assert finished.stdout.splitlines() == [
        "gfx942: linux",
        "gfx1100: linux, win32",
        "gfx1151: win32",
        f"created {tmp_path}/dist/rocm-7.0.0.tar.gz from 2",
    ]


def test_the_json_of_merge_lists_the_merged_selectors(run: Run, tmp_path: Path) -> None:
    linux = write_selector(tmp_path / "linux", "gfx942")
    win = write_selector(tmp_path / "win", "gfx1151", change=windows)
    finished = run("selector", "merge", win, linux, "--output", tmp_path / "dist", "--json")
    document = json.loads(finished.stdout)
    size = (tmp_path / "dist/rocm-7.0.0.tar.gz").stat().st_size
    assert document == {
        "schema": "rocwheel.selector-merge/1",
        "path": f"{tmp_path}/dist/rocm-7.0.0.tar.gz",
        "size": size,
        "version": "7.0.0",
        "families": {"gfx942": ["linux"], "gfx1151": ["win32"]},
        "merged": [str(linux), str(win)],
    }


def test_the_default_family_can_be_a_product_name(run: Run, tmp_path: Path) -> None:
    one, two = write_selector(tmp_path / "one", "gfx942"), write_selector(tmp_path / "two", "gfx1100")
    run("selector", "merge", one, two, "-o", tmp_path / "dist", "--default-family", "MI300X")
    assert facts_of(tmp_path / "dist/rocm-7.0.0.tar.gz")["DEFAULT_FAMILY"] == "gfx942"


def test_different_versions_are_refused_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    one = write_selector(tmp_path / "one", "gfx942")
    two = write_selector(tmp_path / "two", "gfx950", options=PlanOptions(version="7.0.1"))
    finished = run("selector", "merge", one, two, "--output", tmp_path / "dist")
    assert (finished.status, finished.stderr) == (
        2,
        f"error: {two}: is rocm 7.0.1; expected rocm 7.0.0, as in {one}. Merge selectors with the same version.\n",
    )
    assert not (tmp_path / "dist").exists()


def test_merging_json_plans_gives_the_same_result_as_merging_built_selectors(run: Run, tmp_path: Path) -> None:
    plan = run("build", "--dry-run", "--artifact-dir", SAMPLE_SDK, "--json", "--quiet")
    (tmp_path / "plan.json").write_text(plan.stdout, encoding="utf-8")
    BuildJob(PlanJob(SAMPLE_SDK), tmp_path / "built").run()
    for given, dest in ((tmp_path / "plan.json", "one"), (tmp_path / "built", "two")):
        assert run("selector", "merge", given, "--output", tmp_path / dest).status == 0
    one, two = ((tmp_path / dest / "rocm-7.0.0.tar.gz").read_bytes() for dest in ("one", "two"))
    assert one == two


def test_sdists_plans_and_folders_can_be_at_urls(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    sdist = write_selector(tmp_path / "www/one", "gfx942")
    folder = write_selector(tmp_path / "www/two/dist/family", "gfx90a").parents[2]
    plan = write_plan(tmp_path / "www/plan.json", "gfx1100")
    run("selector", "merge", sdist, folder, plan, "--output", tmp_path / "local")
    with served(tmp_path / "www") as address:
        urls = [f"{address}/one/rocm-7.0.0.tar.gz", f"{address}/two", f"{address}/plan.json"]
        finished = run("selector", "merge", *urls, "--output", tmp_path / "remote", "--json")
        files = [f"file://{path}" for path in (sdist, folder, plan)]
        assert run("selector", "merge", *files, "--output", tmp_path / "files").status == 0
    document = json.loads(finished.stdout)
    assert (list(document["families"]), urls[0] in document["merged"], urls[2] in document["merged"]) == (
        ["gfx90a", "gfx942", "gfx1100"],
        True,
        True,
    )
    results = [(tmp_path / place / "rocm-7.0.0.tar.gz").read_bytes() for place in ("local", "remote", "files")]
    assert results == results[:1] * 3
