"""The merged prefix of a folder of artifacts."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rocwheel.artifacts.catalog import ArtifactName, Catalog, Entry, FileKind, make_catalog, open_catalog
from rocwheel.artifacts.model.artifact import Artifact, Member
from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileRange

MakeArtifact = Callable[..., Path]
BLAS = ArtifactName("blas", "lib", "generic")
RAND = ArtifactName("rand", "lib", "generic")
BLAS_SPARSE = "math-libs/BLAS/rocSPARSE/stage"


def shape(catalog: Catalog) -> list[tuple[str, str, str, int, bytes | str | None]]:
    """Return all of a catalogue but where its bytes are."""
    return [
        (entry.path, entry.kind.value, str(entry.artifact), entry.mode, _content(entry)) for entry in catalog.entries
    ]


def _content(entry: Entry) -> bytes | str | None:
    if entry.source is None:
        return entry.link
    with entry.source.view() as data:
        return bytes(data)


def test_stage_folders_of_all_artifacts_overlay_into_one_prefix(tmp_path: Path, make_artifact: MakeArtifact) -> None:
    make_artifact(
        "rand_lib_generic",
        {"r/stage/lib/librand.so": "librand.so.1", "r/stage/lib/librand.so.1": b"R"},
        manifest="r/stage",
    )
    make_artifact(
        "blas_lib_generic", {"s/stage/lib/libs.so.1": b"S", "b/stage/lib/libb.so.1": b"B"}, manifest="s/stage\nb/stage"
    )
    with open_catalog(tmp_path / "artifacts") as catalog:
        assert shape(catalog) == [
            ("lib", "directory", "blas_lib_generic", 0o755, None),
            ("lib", "directory", "rand_lib_generic", 0o755, None),
            ("lib/libb.so.1", "file", "blas_lib_generic", 0o644, b"B"),
            ("lib/librand.so", "symlink", "rand_lib_generic", 0o777, "librand.so.1"),
            ("lib/librand.so.1", "file", "rand_lib_generic", 0o644, b"R"),
            ("lib/libs.so.1", "file", "blas_lib_generic", 0o644, b"S"),
        ]
        assert catalog.artifacts == (BLAS, RAND)
        assert catalog.root == str(tmp_path / "artifacts")
        assert catalog.manifest is None


def test_a_path_that_several_artifacts_hold_is_kept_for_each() -> None:
    file = Member("stage/x", FileKind.FILE, 0o644, source=FileRange("/a", 0, 1))
    other = Member("stage/x", FileKind.FILE, 0o644, source=FileRange("/b", 0, 1))
    artifacts = [Artifact(RAND, "r", ("stage",), (file,)), Artifact(BLAS, "b", ("stage",), (other,))]
    catalog = make_catalog(Path("d"), artifacts)
    assert [(entry.path, entry.artifact, entry.source) for entry in catalog.entries] == [
        ("x", BLAS, FileRange("/b", 0, 1)),
        ("x", RAND, FileRange("/a", 0, 1)),
    ]


def test_a_folder_in_two_stages_of_one_artifact_is_one_entry_and_files_are_kept() -> None:
    members = tuple(
        member
        for stage in ("b", "a")
        for member in (
            Member(f"{stage}/lib", FileKind.DIRECTORY, 0o755),
            Member(f"{stage}/lib/x", FileKind.FILE, 0o644, source=FileRange(f"/{stage}", 0, 1)),
        )
    )
    catalog = make_catalog(Path("d"), [Artifact(BLAS, "l", ("b", "a"), members)])
    assert [(entry.path, entry.source) for entry in catalog.entries] == [
        ("lib", None),
        ("lib/x", FileRange("/b", 0, 1)),
        ("lib/x", FileRange("/a", 0, 1)),
    ]


@pytest.mark.parametrize("tool", ["xz", "zstd"])
def test_an_archive_gives_the_catalogue_of_its_folder(tmp_path: Path, make_artifact: MakeArtifact, tool: str) -> None:
    tree = {
        f"{BLAS_SPARSE}/lib/librocsparse.so.1": bytes(range(256)) * 9,
        f"{BLAS_SPARSE}/lib/librocsparse.so": "librocsparse.so.1",
        f"{BLAS_SPARSE}/.kpack/blas_lib_gfx942.kpack": b"K",
        f"{BLAS_SPARSE}/empty": None,
    }
    folder = make_artifact("blas_lib_generic", tree, manifest=f"{BLAS_SPARSE}\n")
    (folder / BLAS_SPARSE / "lib/librocsparse.so.1").chmod(0o755)
    (tmp_path / "archives").mkdir()
    archive = tmp_path / "archives" / f"blas_lib_generic.tar.{'xz' if tool == 'xz' else 'zst'}"
    command = ["tar", "-C", str(folder), f"--use-compress-program={tool}", "-cf", str(archive)]
    subprocess.run([*command, "artifact_manifest.txt", BLAS_SPARSE], check=True)
    with open_catalog(folder.parent) as exploded, open_catalog(archive.parent) as archived:
        assert shape(archived) == shape(exploded)
        assert len(archived.entries) == 6


def test_the_order_does_not_depend_on_that_of_the_file_system(tmp_path: Path, make_artifact: MakeArtifact) -> None:
    names = [f"n{number}" for number in range(40)]
    catalogs = []
    for seed in (1, 2):
        random.Random(seed).shuffle(names)
        make_artifact("blas_lib_generic", {f"stage/{name}/{name}": b"" for name in names}, directory=f"d{seed}")
        make_artifact("rand_lib_generic", {f"stage/{name}/{name}": b"" for name in names}, directory=f"d{seed}")
        with open_catalog(tmp_path / f"d{seed}") as catalog:
            catalogs.append(shape(catalog))
    assert catalogs[0] == catalogs[1]


def test_the_manifest_of_the_sdk_is_read_from_wherever_it_is(tmp_path: Path, make_artifact: MakeArtifact) -> None:
    text = b'{"rocm_version": "7.1.0", "flags": {"KPACK_SPLIT_ARTIFACTS": true}}'
    make_artifact(
        "base_lib_generic",
        {"base/aux-overlay/stage/share/therock/therock_manifest.json": text},
        manifest="base/aux-overlay/stage",
    )
    with open_catalog(tmp_path / "artifacts") as catalog:
        assert catalog.manifest is not None
        assert catalog.manifest.rocm_version == "7.1.0"
        assert catalog.manifest.kpack_split


def test_a_malformed_manifest_of_the_sdk_is_reported(tmp_path: Path, make_artifact: MakeArtifact) -> None:
    make_artifact("base_lib_generic", {"stage/share/therock/therock_manifest.json": b"{"})
    with pytest.raises(InputError) as caught, open_catalog(tmp_path / "artifacts"):
        pass
    assert str(caught.value) == (
        "base_lib_generic: share/therock/therock_manifest.json: is not a usable SDK manifest "
        "(Input data was truncated); expected TheRock's JSON"
    )
