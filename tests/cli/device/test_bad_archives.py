"""Archives that are damaged, of another version or of other code, in every command that comes across them."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.compression import zstd
from rocwheel.device.split.split_tree import SplitOrder, split_tree
from rocwheel.device.split.splitting import SplitChoice
from tests.support.fat_libraries import build_fat_library, code_of, lay_over, make_bundle
from tests.support.kpack_files import by_hand, frames, make_kpack, toc
from tests.support.libraries import needs_compiler

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

pytestmark = [needs_compiler, pytest.mark.slow]

NAME, ARCHIVE = "lib/libx.so", ".kpack/libx.so_gfx906.kpack"
CODES = [code_of(unit, "gfx906") for unit in range(2)]
SIZE = len(CODES[0])
MEMORY = 1 << 30
"""Bytes of addresses for a command that meets a frame of gigabytes."""


def entries(*ordinals: int, size: int = SIZE, target: str = "gfx906") -> dict[str, object]:
    found = {"type": "hsaco", "original_size": size}
    return {f"{NAME}#{unit}": {target: {**found, "ordinal": ordinal}} for unit, ordinal in enumerate(ordinals)}


def plain(*, overlap: int = 0, ordinals: tuple[int, int] = (0, 1), target: str = "gfx906") -> bytes:
    blobs = [{"offset": 16, "size": SIZE}, {"offset": 16 + SIZE - overlap, "size": SIZE}]
    table = toc(blobs=blobs, gfx_arches=[target], toc=entries(*ordinals, target=target))
    return by_hand(table, b"".join(CODES))


def framed(first: bytes, size: int = SIZE) -> bytes:
    blob = frames(first, zstd.compress(CODES[1]))
    places = {"zstd_offset": 16, "zstd_size": len(blob), "blobs": None, "compression_scheme": "zstd-per-kernel"}
    return by_hand(toc(**places, toc=entries(0, 1, size=size)), blob)


def zeros(gigabytes: int) -> bytes:
    """Return a frame that decompresses to gigabytes, made of a few kilobytes."""
    compressor = zstd.ZstdCompressor()
    pieces = [compressor.compress(bytes(1 << 26)) for _ in range(gigabytes << 4)]
    return b"".join((*pieces, compressor.flush()))


GOOD = make_kpack({(NAME, unit, "gfx906"): code for unit, code in enumerate(CODES)})
UNREADABLE = {
    "of version 2": (by_hand(toc(), version=2), "offset 0x4: a kpack archive of version 2; expected version 1"),
    "cut off in its table": (GOOD[:-30], "MessagePack that ends early"),
    "cut off in its code": (GOOD[:80], "offset 0x8: a table of contents at "),
    "empty": (b"", "offset 0x0: a file that begins with b''; expected a kpack archive"),
    "with overlapping code": (plain(overlap=1), "code object 1 begins inside of code object 0, which ends at "),
    "with an ordinal out of range": (plain(ordinals=(0, 7)), f"{NAME}#1 for gfx906 has the ordinal 7; expected one of"),
}
READERS = {
    "split": ["device", "split", "TREE", "--dest-dir", "OUT"],
    "mend": ["device", "split", "TREE", "--mend", "--dest-dir", "OUT"],
    "join": ["device", "join", "TREE", "--dest-dir", "OUT"],
    "extract": ["device", "extract", "LIBRARY", "--dest-dir", "OUT"],
    "runs-on": ["targets", "runs-on", "gfx906", "LIBRARY"],
    "list": ["device", "list", "-v", "LIBRARY"],
    "inspect": ["inspect", "LIBRARY"],
}
"""Commands that follow markers or take trees; the last two report what they find, with another status."""
DECODERS = {
    "join": READERS["join"],
    "extract": READERS["extract"],
    "inspect": ["inspect", "--deep", "LIBRARY"],
    "compress": ["device", "compress", "--level", "5", "ARCHIVE", "-o", "OUT"],
    "compress a folder": ["device", "compress", "--level", "5", "TREE", "-o", "OUT"],
    "retarget": ["device", "retarget", "gfx906=gfx900", "--force", "TREE", "-o", "OUT"],
}
"""Commands that look into code."""


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tree with a split library and its archives."""
    folder = tmp_path_factory.mktemp("split")
    bundles = [make_bundle(unit, "gfx906 gfx90a") for unit in range(2)]
    build_fat_library(folder / "tree" / NAME, bundles)
    split_tree(folder / "tree", folder / "out", SplitOrder(choice=SplitChoice()))
    return lay_over(folder / "out", folder / "made")


@pytest.fixture
def tree(split: Path, tmp_path: Path) -> Path:
    return shutil.copytree(split, tmp_path / "tree")


def words(command: list[str], tree: Path) -> list[str | Path]:
    places = {"TREE": tree, "LIBRARY": tree / NAME, "ARCHIVE": tree / ARCHIVE, "OUT": tree.with_name("out")}
    return [places.get(word, word) for word in command]


@pytest.mark.deep
@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("archive", UNREADABLE)
def test_an_archive_that_cannot_be_read_is_named_with_its_place(
    run: Run, tree: Path, command: str, archive: str
) -> None:
    data, found = UNREADABLE[archive]
    (tree / ARCHIVE).write_bytes(data)
    finished = run(*words(READERS[command], tree))
    assert finished.status == (1 if command in {"list", "inspect"} else 2)
    assert f"{ARCHIVE}: offset 0x" in finished.stderr
    assert found in finished.stderr
    assert list(tree.parent.iterdir()) == [tree]


@pytest.mark.deep
@pytest.mark.parametrize("command", DECODERS)
@pytest.mark.parametrize(
    ("frame", "size", "found"),
    [
        pytest.param(zstd.compress(bytes(64 << 20)), SIZE, f"a zstd frame of more than {SIZE} bytes", id="larger"),
        pytest.param(zstd.compress(b"x"), SIZE, f"a zstd frame of 1 byte; expected {SIZE}, as declared", id="smaller"),
        pytest.param(b"noise", SIZE, "a damaged zstd frame", id="noise"),
    ],
)
def test_a_frame_that_is_not_as_declared_is_named_with_its_place(
    run: Run, tree: Path, command: str, frame: bytes, size: int, found: str
) -> None:
    (tree / ARCHIVE).write_bytes(framed(frame, size))
    finished = run(*words(DECODERS[command], tree))
    assert finished.status == 2
    assert f"{ARCHIVE}: offset 0x18: {found}" in finished.stderr
    assert list(tree.parent.iterdir()) == [tree]


@pytest.mark.deep
@pytest.mark.parametrize("command", DECODERS)
def test_memory_is_bounded_whatever_a_frame_decompresses_to(tree: Path, command: str) -> None:
    (tree / ARCHIVE).write_bytes(framed(zeros(4)))
    done = subprocess.run(
        [sys.executable, "-m", "rocwheel", *words(DECODERS[command], tree)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    assert (done.returncode, f"a zstd frame of more than {SIZE} bytes" in done.stderr) == (2, True), done.stderr
    assert list(tree.parent.iterdir()) == [tree]


@pytest.mark.parametrize(
    ("command", "status"), [("split", 2), ("join", 2), ("list", 1), ("inspect", 1), ("runs-on", 1)]
)
def test_an_archive_whose_name_and_content_disagree_is_named(run: Run, tree: Path, command: str, status: int) -> None:
    (tree / ARCHIVE).write_bytes(plain(target="gfx90a"))
    finished = run(*words(READERS[command], tree))
    said = (
        "is for gfx906 by its name, and "
        if command != "runs-on"
        else "gfx906 on a stock runtime from ROCm 7.14 on: finds nothing"
    )
    assert (finished.status, said in finished.stdout + finished.stderr) == (status, True)
    assert list(tree.parent.iterdir()) == [tree]


@pytest.mark.parametrize("command", ["split", "join", "extract", "runs-on"])
def test_an_archive_for_what_is_no_target_is_named(run: Run, tree: Path, command: str) -> None:
    (tree / ARCHIVE).write_bytes(plain(target="a b"))
    finished = run(*words(READERS[command], tree))
    assert (finished.status, ARCHIVE in finished.stderr, "a b" in finished.stderr) == (2, True, True)
    assert list(tree.parent.iterdir()) == [tree]


@pytest.mark.parametrize(
    ("command", "status", "found"),
    [
        ("join", 2, f"error: {NAME}: its archives are missing; expected at least one of ../.kpack/libx.so_@GFXARCH@."),
        ("extract", 2, "its code is in kpack archives that are not there: ../.kpack/libx.so_@GFXARCH@.kpack"),
        ("list", 1, "its code is in kpack archives that are not there: ../.kpack/libx.so_@GFXARCH@.kpack"),
        ("inspect", 1, "its code is in kpack archives that are not there: ../.kpack/libx.so_@GFXARCH@.kpack"),
        ("runs-on", 1, "finds nothing in 2 bundles (no archive at ../.kpack/libx.so_@GFXARCH@.kpack)"),
    ],
)
def test_a_marker_of_missing_archives_is_named_with_them(
    run: Run, tree: Path, command: str, status: int, found: str
) -> None:
    shutil.rmtree(tree / ".kpack")
    finished = run(*words(READERS[command], tree))
    assert (finished.status, found in finished.stdout + finished.stderr) == (status, True)
    assert list(tree.parent.iterdir()) == [tree]


def test_splitting_a_library_without_its_archives_again_says_so(run: Run, tree: Path) -> None:
    shutil.rmtree(tree / ".kpack")
    finished = run(*words(READERS["split"], tree))
    missing = "was split before, and none of these archives of its code is there: ../.kpack/libx.so_@GFXARCH@.kpack"
    assert (finished.status, f"{NAME}: {missing}\n" in finished.stderr) == (0, True)


@pytest.mark.parametrize("command", ["split", "join", "list"])
def test_an_archive_of_another_build_is_named(run: Run, tree: Path, command: str) -> None:
    (tree / ARCHIVE).write_bytes(make_kpack({(NAME, 0, "gfx906"): CODES[0]}))
    finished = run(*words(READERS[command], tree))
    assert finished.status == {"split": 0, "join": 2, "list": 1}[command]
    assert f"{NAME}#1" in finished.stderr or f"{ARCHIVE} lacks 1 unit (1)" in finished.stderr
