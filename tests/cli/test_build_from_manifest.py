"""``rocwheel build --from-manifest``: the same bytes again, or a message that says why not."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.demo import SAMPLE_SDK
from tests.support.artifacts import artifact

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

MANIFEST = "rocwheel-build.json"


@pytest.fixture
def first(run: Run, tmp_path: Path) -> Path:
    """Return the folder of a build of small artifacts."""
    artifact(tmp_path / "in", "base_lib_generic", {"share/base.txt": b"base" * 999})
    artifact(tmp_path / "in", "blas_lib_generic", {"lib/blas.txt": b"blas" * 7777})
    recipe = tmp_path / "mine.toml"
    recipe.write_bytes((SAMPLE_SDK.parent / "build/rocm.toml").read_bytes() + b"# mine\n")
    options = ["--version", "7.0", "--selector", "wheel", "--level", "9", "--recipe", recipe, "--quiet"]
    done = run("build", "--artifact-dir", tmp_path / "in", "--dest-dir", tmp_path / "first", *options)
    assert (done.status, done.stderr) == (0, "")
    return tmp_path / "first"


def again(run: Run, first: Path, *options: str | Path) -> tuple[int, str]:
    """Build again; return the exit status and what was told."""
    done = run("build", "--from-manifest", first / MANIFEST, "--dest-dir", first.parent / "again", "--quiet", *options)
    return done.status, done.stderr


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change(first: Path, **values: Any) -> None:
    """Change values of a manifest."""
    path = first / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_build_from_manifest_reproduces_the_bytes_with_the_recorded_date_and_options(
    run: Run, first: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setenv("ROCM_SDK_WHEEL_PLATFORM_TAG", "manylinux_2_99_x86_64")
    assert again(run, first) == (0, "")
    assert files(first.parent / "again") == files(first)


def test_build_from_manifest_accepts_moved_artifacts_and_recipe(run: Run, first: Path, tmp_path: Path) -> None:
    (tmp_path / "in").rename(tmp_path / "moved")
    (tmp_path / "mine.toml").rename(tmp_path / "moved.toml")
    status, told = again(run, first)
    gone = "was made from 2 artifacts that can't be found: base_lib_generic, blas_lib_generic; expected the folder "
    assert (status, f"{first / MANIFEST}: {gone}" in told) == (2, True)
    assert told.endswith("Set their current location with --artifact-dir.\n")
    status, told = again(run, first, "--artifact-dir", tmp_path / "moved")
    assert (status, "mine.toml: can't be read" in told) == (2, True)
    places: list[str | Path] = ["--recipe", tmp_path / "moved.toml", "--artifact-dir", tmp_path / "moved"]
    assert again(run, first, *places) == (0, "")
    assert files(tmp_path / "again/dist") == files(first / "dist")


def test_build_from_manifest_accepts_archives_of_the_same_artifacts(run: Run, first: Path, tmp_path: Path) -> None:
    assert run("artifacts", "archive", tmp_path / "in", "--output", tmp_path / "packed", "-q").status == 0
    assert again(run, first, "--artifact-dir", tmp_path / "packed") == (0, "")
    assert files(tmp_path / "again/dist") == files(first / "dist")


def test_changed_inputs_are_reported_and_nothing_is_written(run: Run, first: Path, tmp_path: Path) -> None:
    before = {used["name"]: used["sha256"] for used in json.loads((first / MANIFEST).read_bytes())["inputs"]}
    (tmp_path / "in/base_lib_generic/stage/share/base.txt").write_text("other")
    (tmp_path / "mine.toml").write_bytes((tmp_path / "mine.toml").read_bytes() + b"\n")
    shutil.rmtree(tmp_path / "in/blas_lib_generic")
    artifact(tmp_path / "in", "rand_lib_generic", {"lib/rand.txt": b""})
    status, told = again(run, first)
    assert status == 2
    assert f"{first / MANIFEST}: 4 problems" in told
    lines = [line.strip() for line in told.splitlines()[1:]]
    assert lines[0].startswith("base_lib_generic: is a different artifact, with the SHA-256 ")
    assert lines[0].endswith(f"; expected {before['base_lib_generic']}")
    assert lines[1] == (
        f"blas_lib_generic: is missing; expected the artifact with the SHA-256 {before['blas_lib_generic']}. "
        "Set its current location with --artifact-dir."
    )
    assert lines[2] == "rand_lib_generic: was not an input to that build; expected only the inputs to that build"
    assert lines[3].startswith("mine.toml: is a different recipe, with the SHA-256 ")
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"rocwheel": "0.0.1"}, "expected 0.0.1, the version used for that build. Install that version."),
        ({"tools": {"deflate": "0.0.1"}}, "deflate: is "),
        (
            {"tools": {"deflate": "0.0.1"}},
            "; expected 0.0.1. Install the same versions, for example with 'uv pip install ",
        ),
        (
            {"tools": {"Python": "2.7.18"}},
            (
                "; expected 2.7.18. Install that version, for example with 'uv python "
                "install 2.7', and run rocwheel with it."
            ),
        ),
        ({"tools": {"machine": "vax"}}, "; expected vax. Build on a machine of that type."),
        ({"codecs": {"zstd": "00"}}, "zstd: compresses a sample to different bytes on this machine ("),
        ({"options": {}}, "is damaged: the options have no level"),
        ({"options": {"level": 6, "target": []}}, "is damaged: options: Object contains unknown field `target`"),
        ({"options": {"level": 6, "targets": 5}}, "is damaged: options: Expected `array`, got `int` - at `$.targets`"),
        ({"inputs": []}, "doesn't list any artifacts; expected a build manifest"),
    ],
)
def test_a_different_version_or_damaged_manifest_is_reported_before_any_input_is_read(
    run: Run, first: Path, values: dict[str, Any], told: str
) -> None:
    change(first, **values)
    shutil.rmtree(first.parent / "in")
    status, text = again(run, first)
    assert (status, told in text) == (2, True), text


def test_artifacts_from_a_url_require_artifact_dir(run: Run, first: Path) -> None:
    found = json.loads((first / MANIFEST).read_text())["inputs"]
    change(first, inputs=[used | {"place": f"s3://bucket/{used['name']}"} for used in found])
    status, told = again(run, first)
    assert status == 2
    assert (
        "was made from artifacts at s3://bucket/base_lib_generic. Set their current location with --artifact-dir."
        in told
    )


@pytest.mark.parametrize("options", [["--version", "7.1"], ["--targets", "gfx906"], ["--variants"], ["--level", "1"]])
def test_other_options_are_refused_with_from_manifest(run: Run, first: Path, options: list[str]) -> None:
    assert again(run, first, *options) == (
        2,
        f"error: {options[0]}: can't be used with --from-manifest, which sets all options. Remove it.\n",
    )


def test_the_default_level_is_also_refused_with_from_manifest(run: Run, first: Path) -> None:
    change(first, level=1)
    assert again(run, first, "--level", "6") == (
        2,
        "error: --level: can't be used with --from-manifest, which sets all options. Remove it.\n",
    )


def test_outputs_that_differ_from_the_manifest_are_reported(run: Run, first: Path) -> None:
    outputs = json.loads((first / MANIFEST).read_text())["outputs"]
    sha256 = outputs[0]["sha256"]
    change(first, outputs=[outputs[0] | {"sha256": "0" * 64}, *outputs[1:]])
    status, told = again(run, first)
    assert (status, told) == (1, f"error: {outputs[0]['path']}: has the SHA-256 {sha256}; expected {'0' * 64}\n")


def test_build_from_manifest_refuses_to_overwrite_the_original_build(run: Run, first: Path) -> None:
    before = files(first)
    done = run("build", "--from-manifest", first / MANIFEST, "--dest-dir", first)
    assert (done.status, files(first) == before) == (2, True)
    assert (
        "--dest-dir: is the manifest's folder, and a build removes the manifest first; expected another" in done.stderr
    )


def test_build_without_artifacts_or_manifest_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("build", "--dest-dir", tmp_path / "out")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr == (
        "error: rocwheel build: the argument ARTIFACTS is missing. To repeat a build, use --from-manifest. "
        "See rocwheel build --help.\n"
    )
