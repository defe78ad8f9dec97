"""Tests of `rocwheel.wheels.member_cache`."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.cache import EntryStore, read_contents
from rocwheel.core.patch import FilePatch, Replacement
from rocwheel.core.reading import FileRange
from rocwheel.core.remote_file import make_remote
from rocwheel.wheels import member_cache, packing
from rocwheel.wheels.content import BytesContent, EditedContent, FileContent, PatchedContent, TarFile, tar_content
from rocwheel.wheels.packing import PackedCount, Packer
from tests.wheels.doubles import LazyExecutor, ListSink

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from rocwheel.wheels.content import Content


pytestmark = pytest.mark.slow

MIB = 1 << 20
TEXT = b"".join(b"%d kernels for gfx%x\n" % (number, number * number % 4091) for number in range(60_000))
NOISE = random.Random(6).randbytes(700_000)
LIMIT = MIB
"""Members above this size are packed in blocks here."""


class Files:
    """Files with members, which were written long enough ago to be known by their stamps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, data in {"large": TEXT * 5, "whole": TEXT[:300_000], "small": TEXT[:5000], "noise": NOISE}.items():
            self.write(name, data)
        for number in range(170):
            self.write(f"hip{number:03}.h", b"%03d" % number + TEXT[number * 1000 : number * 1000 + 30_000])

    def write(self, name: str, data: bytes) -> None:
        """Put a new file in the place of one of that name."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        path.write_bytes(data)

    def content(self, name: str) -> FileContent:
        """Return a file as a member."""
        return FileContent(FileRange.whole(self.folder / name))

    def contents(self) -> dict[str, Content]:
        """Return all members: of files, of a patched one, and a tar."""
        large = self.content("large")
        patched = PatchedContent(large.source, FilePatch(large.size, (Replacement.of(5 * MIB, b"$ORIGIN/../lib"),)))
        headers = [path.name for path in sorted(self.folder.glob("*.h"))]
        tar = tar_content((TarFile(f"include/{name}", 0o644, self.content(name)) for name in headers), mtime=0)
        files = {name: self.content(name) for name in ("large", "whole", "small", "noise")}
        return {**files, "patched": patched, "tar": tar, "text": BytesContent(TEXT[:2000])}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 10**10)
    monkeypatch.setattr(member_cache, "BLOCK", 4 * MIB)
    monkeypatch.setattr(packing, "BLOCK", 4 * MIB)
    (tmp_path / "files").mkdir()
    return Files(tmp_path / "files")


def pack(
    contents: dict[str, Content], kept: EntryStore | None, executor: Executor | None = None, level: int = 6
) -> tuple[ListSink, PackedCount]:
    sink = ListSink()
    packer = Packer(executor or LazyExecutor(), level, whole_limit=LIMIT, kept=kept)
    for name, content in contents.items():
        packer.add(sink, name, 0o644, content)
    packer.add_encoded(sink, "tar.zst", 0o644, contents["tar"], "zst")
    packer.drain()
    return sink, packer.count


SIZES = {"large": 5 * len(TEXT), "patched": 5 * len(TEXT), "whole": 300_000, "small": 5000, "noise": 700_000}
TAR = 5_232_640
ALL = sum(SIZES.values()) + 2 * TAR


def test_cached_members_equal_members_packed_without_a_cache(files: Files, tmp_path: Path) -> None:
    plain, _ = pack(files.contents(), None)
    first, _ = pack(files.contents(), EntryStore(tmp_path / "kept"))
    second, _ = pack(files.contents(), EntryStore(tmp_path / "kept"))
    assert first.members == plain.members
    assert second.members == plain.members


def test_packing_again_uses_only_the_cache(files: Files, tmp_path: Path) -> None:
    _, first = pack(files.contents(), EntryStore(tmp_path / "kept"))
    _, second = pack(files.contents(), EntryStore(tmp_path / "kept"))
    assert first == PackedCount(packed=7, packed_bytes=ALL, kept=0, kept_bytes=0)
    assert second == PackedCount(packed=0, packed_bytes=0, kept=7, kept_bytes=ALL)


def test_unchanged_files_are_not_read(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(files.contents(), EntryStore(tmp_path / "kept"))
    contents = files.contents()
    read: list[str] = []
    reading = FileRange.read

    def note_and_read(source: FileRange) -> bytes:
        read.append(source.path.rpartition("/")[2])
        return reading(source)

    monkeypatch.setattr(FileRange, "read", note_and_read)
    sink = ListSink()
    packer = Packer(LazyExecutor(), 6, whole_limit=LIMIT, kept=EntryStore(tmp_path / "kept"))
    for name, content in contents.items():
        packer.add(sink, name, 0o644, content)
    packer.drain()
    # A small file is read for its hash, and one that deflate does not shrink for its bytes.
    assert read == ["small", "noise"]


def test_files_with_different_stamps_are_identified_by_their_bytes(files: Files, tmp_path: Path) -> None:
    plain, _ = pack(files.contents(), None)
    pack(files.contents(), EntryStore(tmp_path / "kept"))
    for path in files.folder.iterdir():
        files.write(path.name, path.read_bytes())
    again, count = pack(files.contents(), EntryStore(tmp_path / "kept"))
    assert again.members == plain.members
    assert count == PackedCount(packed=0, packed_bytes=0, kept=7, kept_bytes=ALL)


def test_unnamed_files_are_identified_by_their_bytes(files: Files, tmp_path: Path) -> None:
    """Archives of artifacts are unpacked into such files, which have no stamps."""

    def nameless(content: Content) -> Content:
        return (
            FileContent(FileRange(content.source.path, 0, content.size))
            if isinstance(content, FileContent)
            else content
        )

    contents = {name: nameless(content) for name, content in files.contents().items()}
    pack(contents, EntryStore(tmp_path / "kept"))
    _, count = pack(contents, EntryStore(tmp_path / "kept"))
    assert count == PackedCount(packed=0, packed_bytes=0, kept=7, kept_bytes=ALL)


def test_only_a_changed_file_is_packed_again(files: Files, tmp_path: Path) -> None:
    pack(files.contents(), EntryStore(tmp_path / "kept"))
    files.write("whole", b"new" + TEXT[:300_000])
    again, count = pack(files.contents(), EntryStore(tmp_path / "kept"))
    assert again.members == pack(files.contents(), None)[0].members
    assert count == PackedCount(packed=1, packed_bytes=300_003, kept=6, kept_bytes=ALL - 300_000)


def test_a_file_with_the_same_size_and_date_but_other_bytes_is_packed_again(files: Files, tmp_path: Path) -> None:
    pack(files.contents(), EntryStore(tmp_path / "kept"))
    for name, size in (("large", 5 * len(TEXT)), ("whole", 300_000)):
        path = files.folder / name
        status = path.stat()
        path.write_bytes(bytes(size))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    again, _ = pack(files.contents(), EntryStore(tmp_path / "kept"))
    assert again.members == pack(files.contents(), None)[0].members


def test_unchanged_pieces_of_a_tar_with_a_changed_file_come_from_the_cache(files: Files, tmp_path: Path) -> None:
    pack({"tar": files.contents()["tar"]}, EntryStore(tmp_path / "kept"))
    files.write("hip001.h", b"new\n")
    contents = {"tar": files.contents()["tar"]}
    again, count = pack(contents, EntryStore(tmp_path / "kept"))
    assert again.members == pack(contents, None)[0].members
    # Of the tar as it is, and as one piece of a compressed tar.
    assert (count.packed, count.kept) == (2, 0)
    assert (count.kept_bytes, count.packed_bytes) == (2_242_560, 8_161_280)


@pytest.mark.parametrize("place", [0, 40, -1], ids=["magic", "hash", "last byte"])
def test_entries_with_flipped_bits_are_packed_again(files: Files, tmp_path: Path, place: int) -> None:
    plain, _ = pack(files.contents(), EntryStore(tmp_path / "kept"))
    for entry in read_contents(tmp_path / "kept").entries:
        raw = bytearray(Path(entry.path).read_bytes())
        raw[place] ^= 1
        Path(entry.path).write_bytes(raw)
    mended, count = pack(files.contents(), EntryStore(tmp_path / "kept"))
    assert mended.members == plain.members
    assert count.packed == 7
    _, after = pack(files.contents(), EntryStore(tmp_path / "kept"))
    assert after.packed == 0


@pytest.mark.parametrize("kind", [lambda size: size > 2000, lambda size: size < 2000], ids=["data", "lists and notes"])
def test_missing_entries_are_packed_again(files: Files, tmp_path: Path, kind: Callable[[int], bool]) -> None:
    plain, _ = pack(files.contents(), EntryStore(tmp_path / "kept"))
    for entry in read_contents(tmp_path / "kept").entries:
        if kind(entry.size):
            Path(entry.path).unlink()
    mended, _ = pack(files.contents(), EntryStore(tmp_path / "kept"))
    assert mended.members == plain.members


def test_each_level_has_its_own_entries(files: Files, tmp_path: Path) -> None:
    pack(files.contents(), EntryStore(tmp_path / "kept"))
    other, count = pack(files.contents(), EntryStore(tmp_path / "kept"), level=1)
    assert other.members == pack(files.contents(), None, level=1)[0].members
    # The pieces of the compressed tar have no level.
    assert (count.packed, count.kept) == (6, 1)


def test_other_codecs_have_their_own_entries(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after an update of a library, or of the code that calls it."""
    pack(files.contents(), EntryStore(tmp_path / "kept"))
    for name in ("codec_identity", "xz_identity"):
        monkeypatch.setattr(member_cache, name, lambda: b"another version")
    _, count = pack(files.contents(), EntryStore(tmp_path / "kept"))
    assert (count.packed, count.kept) == (7, 0)


def test_level_zero_caches_only_compressed_streams(files: Files, tmp_path: Path) -> None:
    _, count = pack(files.contents(), EntryStore(tmp_path / "kept"), level=0)
    assert count == PackedCount(packed=1, packed_bytes=TAR)


def test_worker_processes_share_the_cache(files: Files, tmp_path: Path) -> None:
    plain, _ = pack(files.contents(), None)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        first, _ = pack(files.contents(), EntryStore(tmp_path / "kept"), processes)
        second, count = pack(files.contents(), EntryStore(tmp_path / "kept"), processes)
    assert first.members == plain.members
    assert second.members == plain.members
    assert count.packed == 0


def test_pieces_of_an_xz_stream_are_cached(tmp_path: Path) -> None:
    streams, counts = [], []
    for _ in range(2):
        sink, packer = ListSink(), Packer(LazyExecutor(), 6, kept=EntryStore(tmp_path))
        packer.add_encoded(sink, "tar.xz", 0o644, BytesContent(TEXT[:50_000]), "xz")
        packer.drain()
        streams.append(sink.members)
        counts.append((packer.count.packed, packer.count.kept))
    assert streams[0] == streams[1]
    assert counts == [(1, 0), (0, 1)]


def test_a_recently_written_file_is_not_identified_by_its_stamp(tmp_path: Path) -> None:
    path = tmp_path / "new"
    path.write_bytes(TEXT)
    assert member_cache.origin_of(FileContent(FileRange.whole(path))) is None


class Edit:
    """An edit that turns a file into other bytes, and counts how often it is planned."""

    def __init__(self, data: bytes, *, is_costly: bool = True) -> None:
        self._data = data
        self._is_costly = is_costly
        self.plans = 0

    def of(self, source: FileRange) -> EditedContent:
        """Return the edited file, not yet planned."""
        return EditedContent(source, hashlib.sha256(self._data).digest(), self._plan, is_costly=self._is_costly)

    def _plan(self, _executor: object) -> Content:
        self.plans += 1
        return BytesContent(self._data)


def pack_three_times(edit: Edit, files: Files, kept: Path) -> tuple[list[object], list[tuple[int, int, int]]]:
    """Pack an edited file, the last time with another stamp; return the members, and what was packed, kept, planned."""
    members: list[object] = []
    counts: list[tuple[int, int, int]] = []
    for rewritten in (False, False, True):
        if rewritten:
            files.write("large", TEXT * 5)
        sink, packer = ListSink(), Packer(LazyExecutor(), 6, whole_limit=LIMIT, kept=EntryStore(kept))
        packer.add(sink, "lib", 0o755, edit.of(files.content("large").source))
        packer.drain()
        members.append(sink.members)
        counts.append((packer.count.packed, packer.count.kept, edit.plans))
    return members, counts


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(TEXT[:500_000], id="deflated whole"),
        pytest.param(TEXT * 5, id="deflated in blocks"),
        pytest.param(NOISE, id="no smaller"),
        pytest.param(NOISE * 3, id="stored whole"),
        pytest.param(random.Random(3).randbytes(33 * MIB), id="stored in blocks"),
    ],
)
def test_an_edit_is_planned_once_however_the_file_is_stored(files: Files, tmp_path: Path, data: bytes) -> None:
    edit = Edit(data)
    members, counts = pack_three_times(edit, files, tmp_path / "kept")
    plain = ListSink()
    without = Packer(LazyExecutor(), 6, whole_limit=LIMIT)
    without.add(plain, "lib", 0o755, edit.of(files.content("large").source))
    without.drain()
    assert members == [plain.members] * 3
    assert counts == [(1, 0, 1), (0, 1, 1), (0, 1, 1)]


@pytest.mark.parametrize("data", [TEXT[:5000], TEXT[:300_000], TEXT * 5], ids=["small", "whole", "in blocks"])
def test_a_cheap_edit_of_an_unchanged_file_is_not_planned(files: Files, tmp_path: Path, data: bytes) -> None:
    members, counts = pack_three_times(Edit(data, is_costly=False), files, tmp_path / "kept")
    # A file with another stamp is known by its bytes after the edit.
    assert counts == [(1, 0, 1), (0, 1, 1), (0, 1, 2)]
    assert members[0] == members[1] == members[2]


def test_another_edit_of_the_same_file_is_packed(files: Files, tmp_path: Path) -> None:
    for data in (TEXT[:300_000], TEXT[1:300_000]):
        sink, packer = ListSink(), Packer(LazyExecutor(), 6, whole_limit=LIMIT, kept=EntryStore(tmp_path / "kept"))
        packer.add(sink, "lib", 0o755, Edit(data).of(files.content("large").source))
        packer.drain()
        assert sink.members[0][5].size == len(data)
        assert packer.count.packed == 1


DENSE = NOISE[: 64 << 10]
DENSE_WHERE_SAMPLED = DENSE + TEXT[: 640 << 10] + DENSE + TEXT[: 640 << 10] + DENSE
"""By samples, deflate would gain nothing; of the whole, it would."""


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("harm", [Path.unlink, flip], ids=["gone", "damaged"])
@pytest.mark.parametrize("data", [TEXT * 5, DENSE_WHERE_SAMPLED], ids=["deflated in blocks", "stored whole"])
def test_lost_entries_of_an_edited_file_are_created_again(
    files: Files, tmp_path: Path, data: bytes, harm: Callable[[Path], None]
) -> None:
    members = []
    for _ in range(2):
        sink, packer = ListSink(), Packer(LazyExecutor(), 6, whole_limit=LIMIT, kept=EntryStore(tmp_path / "kept"))
        packer.add(sink, "lib", 0o755, Edit(data).of(files.content("large").source))
        packer.drain()
        members.append(sink.members)
        for entry in read_contents(tmp_path / "kept").entries:
            if entry.size > 2000:
                harm(Path(entry.path))
    assert members[0] == members[1]


class _Remote:
    """The bytes of a file elsewhere."""

    size = 5000

    def read(self, start: int, stop: int) -> bytes:
        """Return a range."""
        return TEXT[start:stop]

    def prefetch(self, ranges: object) -> None:
        """Take no note of what will be read."""


def test_a_remote_file_is_not_identified_by_its_stamp(files: Files) -> None:
    path = make_remote(files.folder / "remote", _Remote())
    assert member_cache.origin_of(FileContent(FileRange.whole(path))) is None


@pytest.mark.parametrize("size", [1, 300_000])
def test_the_changes_of_a_patch_are_part_of_the_origin(files: Files, size: int) -> None:
    source = files.content("large").source
    patches = [FilePatch(source.size, (Replacement.of(at, b"x" * size),)) for at in (0, 1)]
    origins = {member_cache.origin_of(PatchedContent(source, patch)) for patch in patches}
    assert len({*origins, member_cache.origin_of(FileContent(source)), None}) == 4
