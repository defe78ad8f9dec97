"""Tests of `rocwheel.artifacts.catalog`."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.artifacts.artifact import Artifact, ArtifactName, FileKind, Member
from rocwheel.artifacts.catalog import (
    Catalog,
    Entry,
    LinkOutcome,
    LinkTarget,
    PrefixIndex,
    make_catalog,
    open_catalog,
    resolve_link,
)
from rocwheel.core.errors import InputError
from rocwheel.core.reading import FileRange

BASE = ArtifactName("base", "lib", "generic")


def file(path: str) -> Entry:
    return Entry(path, FileKind.FILE, BASE, 0o644, source=FileRange(f"/src/{path}", 0, 1))


def link(path: str, text: str) -> Entry:
    return Entry(path, FileKind.SYMLINK, BASE, 0o777, link=text)


def folder(path: str) -> Entry:
    return Entry(path, FileKind.DIRECTORY, BASE, 0o755)


LIBRARY = file("lib/libx.so.1.2")
PREFIX = PrefixIndex(
    [
        LIBRARY,
        link("lib/libx.so.1", "libx.so.1.2"),
        link("lib/libx.so", "libx.so.1"),
        link("lib64", "lib"),
        link("bin/libx", "../lib64/../lib64//./libx.so"),
        link("llvm", "lib/llvm/"),
        folder("lib/llvm"),
        link("up", "."),
        link("gone", "lib/nothing"),
        link("one", "two"),
        link("two", "one"),
        link("etc", "/etc"),
        link("lib/out", "../../lib"),
        link("lib/deep/under", "../../../x"),
        link("through", "lib/libx.so/../libx.so.1.2"),
        link("slash", "lib/libx.so/"),
    ]
)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("lib/libx.so.1.2", LinkTarget(LinkOutcome.FILE, "lib/libx.so.1.2", LIBRARY)),
        ("lib/libx.so", LinkTarget(LinkOutcome.FILE, "lib/libx.so.1.2", LIBRARY)),
        ("bin/libx", LinkTarget(LinkOutcome.FILE, "lib/libx.so.1.2", LIBRARY)),
        ("lib64/libx.so", LinkTarget(LinkOutcome.FILE, "lib/libx.so.1.2", LIBRARY)),
        ("lib64", LinkTarget(LinkOutcome.DIRECTORY, "lib")),
        ("llvm", LinkTarget(LinkOutcome.DIRECTORY, "lib/llvm")),
        ("up", LinkTarget(LinkOutcome.DIRECTORY, "")),
        ("gone", LinkTarget(LinkOutcome.DANGLING, "lib/nothing")),
        ("one", LinkTarget(LinkOutcome.LOOP, "one")),
        ("etc", LinkTarget(LinkOutcome.OUTSIDE, "etc")),
        ("etc/passwd", LinkTarget(LinkOutcome.OUTSIDE, "etc")),
        ("lib/out", LinkTarget(LinkOutcome.OUTSIDE, "lib/out")),
        ("lib/deep/under", LinkTarget(LinkOutcome.OUTSIDE, "lib/deep/under")),
        ("through", LinkTarget(LinkOutcome.DANGLING, "lib/libx.so.1.2")),
        ("slash", LinkTarget(LinkOutcome.DANGLING, "lib/libx.so.1.2")),
    ],
)
def test_a_path_resolves_through_its_links(path: str, target: LinkTarget) -> None:
    assert resolve_link(PREFIX, path) == target


@pytest.mark.parametrize(("links", "outcome"), [(40, LinkOutcome.FILE), (41, LinkOutcome.LOOP)])
def test_the_limit_on_followed_links_is_the_same_as_on_linux(links: int, outcome: LinkOutcome) -> None:
    chain = [link(f"l{number}", f"l{number - 1}" if number > 1 else "end") for number in range(1, links + 1)]
    assert resolve_link(PrefixIndex([file("end"), *chain]), f"l{links}").outcome is outcome


def test_a_parent_path_without_an_entry_is_a_directory() -> None:
    assert PrefixIndex([file("a/b/c")]).kind("a/b") is FileKind.DIRECTORY


def test_a_file_hides_a_directory_entry_with_the_same_path() -> None:
    index = PrefixIndex([folder("x"), file("x"), link("x", "y")])
    assert index.entries["x"] == file("x")


names = st.sampled_from(["a", "b", "c"])
texts = st.lists(st.sampled_from(["a", "b", "c", "..", ".", ""]), min_size=1, max_size=4).map("/".join)
kinds = st.one_of(st.just(None), st.just(b""), texts.filter(lambda text: text and not text.startswith("/")))
trees = st.dictionaries(st.lists(names, min_size=1, max_size=3).map("/".join), kinds, max_size=8)


def _build(root: Path, tree: dict[str, bytes | str | None]) -> list[Entry]:
    entries = []
    for path, content in sorted(tree.items()):
        place = root / path
        if any(parent.is_symlink() or parent.is_file() for parent in place.parents) or os.path.lexists(place):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            place.mkdir()
            entries.append(folder(path))
        elif isinstance(content, str):
            place.symlink_to(content)
            entries.append(Entry(path, FileKind.SYMLINK, BASE, 0o777, link=content))
        else:
            place.write_bytes(content)
            entries.append(file(path))
    return entries


def _ask_the_kernel(root: Path, path: str) -> tuple[LinkOutcome, str | None]:
    try:
        Path(root, path).stat()
    except OSError as e:
        return LinkOutcome.LOOP if e.errno == errno.ELOOP else LinkOutcome.DANGLING, None
    real = Path(os.path.realpath(root / path))
    kind = LinkOutcome.FILE if real.is_file() else LinkOutcome.DIRECTORY
    return kind, "" if real == root else str(real.relative_to(root))


@given(trees)
def test_links_resolve_as_in_the_kernel(tree: dict[str, bytes | str | None]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary).resolve()
        entries = _build(root, tree)
        index = PrefixIndex(entries)
        for entry in entries:
            target = resolve_link(index, entry.path)
            if target.outcome is not LinkOutcome.OUTSIDE:
                path = target.path if target.outcome in {LinkOutcome.FILE, LinkOutcome.DIRECTORY} else None
                assert (target.outcome, path) == _ask_the_kernel(root, entry.path)


MakeArtifact = Callable[..., Path]
BLAS = ArtifactName("blas", "lib", "generic")
RAND = ArtifactName("rand", "lib", "generic")
BLAS_SPARSE = "math-libs/BLAS/rocSPARSE/stage"


def shape(catalog: Catalog) -> list[tuple[str, str, str, int, bytes | str | None]]:
    """Return all of a catalog but where its bytes are."""
    return [
        (entry.path, entry.kind.value, str(entry.artifact), entry.mode, _content(entry)) for entry in catalog.entries
    ]


def _content(entry: Entry) -> bytes | str | None:
    if entry.source is None:
        return entry.link
    with entry.source.view() as data:
        return bytes(data)


def test_the_stage_folders_of_all_artifacts_form_one_prefix(tmp_path: Path, make_artifact: MakeArtifact) -> None:
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


def test_a_path_in_several_artifacts_has_an_entry_for_each_artifact() -> None:
    file = Member("stage/x", FileKind.FILE, 0o644, source=FileRange("/a", 0, 1))
    other = Member("stage/x", FileKind.FILE, 0o644, source=FileRange("/b", 0, 1))
    artifacts = [Artifact(RAND, "r", ("stage",), (file,)), Artifact(BLAS, "b", ("stage",), (other,))]
    catalog = make_catalog(Path("d"), artifacts)
    assert [(entry.path, entry.artifact, entry.source) for entry in catalog.entries] == [
        ("x", BLAS, FileRange("/b", 0, 1)),
        ("x", RAND, FileRange("/a", 0, 1)),
    ]


def test_a_folder_in_two_stages_is_one_entry_but_each_file_is_kept() -> None:
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
def test_an_archive_has_the_same_catalog_as_its_folder(tmp_path: Path, make_artifact: MakeArtifact, tool: str) -> None:
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


def test_the_order_of_entries_does_not_depend_on_the_file_system(tmp_path: Path, make_artifact: MakeArtifact) -> None:
    names = [f"n{number}" for number in range(40)]
    catalogs = []
    for seed in (1, 2):
        random.Random(seed).shuffle(names)
        make_artifact("blas_lib_generic", {f"stage/{name}/{name}": b"" for name in names}, directory=f"d{seed}")
        make_artifact("rand_lib_generic", {f"stage/{name}/{name}": b"" for name in names}, directory=f"d{seed}")
        with open_catalog(tmp_path / f"d{seed}") as catalog:
            catalogs.append(shape(catalog))
    assert catalogs[0] == catalogs[1]


def test_the_sdk_manifest_is_found_in_any_artifact(tmp_path: Path, make_artifact: MakeArtifact) -> None:
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


def test_a_malformed_sdk_manifest_is_reported(tmp_path: Path, make_artifact: MakeArtifact) -> None:
    make_artifact("base_lib_generic", {"stage/share/therock/therock_manifest.json": b"{"})
    with pytest.raises(InputError) as caught, open_catalog(tmp_path / "artifacts"):
        pass
    assert str(caught.value) == (
        "base_lib_generic: share/therock/therock_manifest.json: is not a usable SDK manifest "
        "(Input data was truncated); expected TheRock's JSON"
    )
