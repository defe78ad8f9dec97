"""Tests of `rocwheel.artifacts.fetching`."""

from __future__ import annotations

import hashlib
import os
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.artifacts.fetching import (
    FetchedArchive,
    Wanted,
    choose_archives,
    fetch_files,
    find_stored_archives,
    match_checksums,
    parse_checksums,
    read_checksums,
)
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.stores.open import open_store
from rocwheel.stores.store import BrokenTransferError, StoredFile
from rocwheel.targets.serving import serves
from rocwheel.targets.target_set import parse_target_set

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


A, B = "a" * 64, "b" * 64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{A}  x.tar.zst\n{B}  y.tar.zst\n", {"x.tar.zst": A, "y.tar.zst": B}),
        (f"{A} *x.tar.zst\r\n\r\n# comment\n", {"x.tar.zst": A}),
        (f"{A.upper()}  ./out/x.tar.zst\n", {"out/x.tar.zst": A}),
        (f"SHA256 (x.tar.zst) = {A}\n", {"x.tar.zst": A}),
        (f"\\{A}  a\\nb.tar.zst\n", {"a\nb.tar.zst": A}),
        (f"{A}  x\u2028y.tar.xz\n", {"x\u2028y.tar.xz": A}),
        (A, {"only": A}),
        ("", {}),
        (f"{A}  x\n{A}  y/x\n", {"x": A, "y/x": A}),
    ],
    ids=["list", "binary", "folder", "bsd", "escaped", "line separator", "bare", "empty", "repeated"],
)
def test_every_output_format_of_sha256sum_is_parsed(text: str, expected: dict[str, str]) -> None:
    assert parse_checksums(text.encode(), "SUMS", "only") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"{A}  x\n<html>\n",
            "SUMS: is invalid on line 2: '<html>'; expected a SHA-256 hash in hexadecimal and a file name",
        ),
        (f"{A[:-1]}  x\n", "SUMS: is invalid on line 1: "),
        (A, "SUMS: is invalid on line 1: "),
        (f"{A}  x\n{B}  x\n", "SUMS: has two different checksums for 'x', the second on line 2"),
        (f"{A}  y/x\n{B}  ./y/x\n", "SUMS: has two different checksums for 'y/x', the second on line 2"),
    ],
    ids=["page", "short", "nameless", "contradiction", "contradiction-in-folder"],
)
def test_text_that_is_not_a_checksum_list_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        parse_checksums(text.encode(), "SUMS")


@given(st.binary(max_size=400), st.sampled_from(["", "x"]))
def test_any_bytes_are_parsed_or_refused(data: bytes, only: str) -> None:
    try:
        found = parse_checksums(data, "SUMS", only)
    except InputError:
        return
    assert all(re.fullmatch("[0-9a-f]{64}", digest) and name for name, digest in found.items())


@pytest.mark.parametrize(
    ("listed", "names", "expected"),
    [
        ({"f/x": A, "g/x": B}, ["f/x", "g/x"], {"f/x": A, "g/x": B}),
        ({"out/f/x": A, "out/g/x": B}, ["f/x", "g/x"], {"f/x": A, "g/x": B}),
        ({"out/x": A}, ["x"], {"x": A}),
        ({"x": A}, ["f/x"], {"f/x": A}),
        ({"x": A}, ["f/x", "g/x"], {}),
        ({"f/x": A, "g/x": B}, ["x"], {}),
        ({"f/x": A, "g/x": A}, ["x"], {"x": A}),
        ({"x": A, "f/x": B}, ["x"], {"x": A}),
        ({"f/x": A}, ["g/x"], {}),
    ],
)
def test_a_full_name_is_matched_before_an_unambiguous_base_name(
    listed: dict[str, str], names: list[str], expected: dict[str, str]
) -> None:
    assert match_checksums(listed, names) == expected


NAMES = (
    "base_lib_generic.tar.zst",
    "base_test_generic.tar.zst",
    "blas_dev_generic.tar.xz",
    "blas_lib_generic.tar.xz",
    "blas_lib_gfx1100.tar.zst",
    "blas_lib_gfx90a:xnack+.tar.zst",
    "blas_lib_gfx942.tar.zst",
    "fft_lib_gfx94X-dcgpu.tar.zst",
)


def choose(there: tuple[str, ...] = NAMES, **wanted: tuple[str, ...]) -> list[str]:
    archives = find_stored_archives([StoredFile(name, 1) for name in there], "there")
    agents = parse_target_set(wanted.get("targets", ()), required=False)
    serving = {str(agent): partial(serves, wanted=(agent,)) for agent in agents}
    return [archive.stored.name for archive in choose_archives(archives, Wanted(**wanted), serving, "there")]


def test_sdk_tests_are_left_out_by_default() -> None:
    assert choose() == [name for name in NAMES if "test" not in name]


def test_targets_select_among_the_archives_for_specific_gpus() -> None:
    assert choose(targets=("gfx942",)) == [
        "base_lib_generic.tar.zst",
        "blas_dev_generic.tar.xz",
        "blas_lib_generic.tar.xz",
        "blas_lib_gfx942.tar.zst",
        "fft_lib_gfx94X-dcgpu.tar.zst",
    ]


def test_a_target_includes_its_variants() -> None:
    assert "blas_lib_gfx90a:xnack+.tar.zst" in choose(targets=("gfx90a",))


def test_components_and_names_narrow_the_choice() -> None:
    assert choose(components=("dev", "test")) == ["base_test_generic.tar.zst", "blas_dev_generic.tar.xz"]
    assert choose(components=(), names=("base",)) == ["base_lib_generic.tar.zst", "base_test_generic.tar.zst"]


def test_the_faster_of_two_formats_is_chosen() -> None:
    names = ("a_lib_generic.tar.xz", "a_lib_generic.tar.zst")
    assert choose(names) == choose(names[::-1]) == ["a_lib_generic.tar.zst"]


def test_names_that_point_to_other_folders_are_not_archives() -> None:
    names = ("../a_lib_generic.tar.zst", "sub/a_lib_generic.tar.zst", ".a_lib_generic.tar.zst", "a_lib_generic.tar.zst")
    assert choose(names) == ["a_lib_generic.tar.zst"]


def test_a_store_without_archives_is_an_error() -> None:
    with pytest.raises(RocwheelError, match="there: does not contain any artifact archives"):
        choose(("index.html",))


def test_all_missing_names_components_and_targets_are_reported_together() -> None:
    with pytest.raises(ProblemsError) as caught:
        choose(targets=("gfx942", "gfx1201"), components=("run",), names=("blas", "rand"))
    assert [str(problem) for problem in caught.value.problems] == [
        "there: has no artifact 'rand'. Available: base, blas, fft.",
        "there: has no artifact with the component 'run'. Available: dev, lib, test.",
        "there: has no artifact that serves gfx1201. Available: gfx1100, gfx90a:xnack+, gfx942, gfx94X-dcgpu.",
    ]


def test_options_that_no_single_archive_matches_are_an_error() -> None:
    with pytest.raises(RocwheelError, match="has no archive that matches all options"):
        choose(components=("test",), names=("blas",))


FETCH_NAMES = ("a_lib_generic.tar.zst", "b_lib_gfx942.tar.zst")


def data_of(name: str) -> bytes:
    return name.encode() * 500_000


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Return a folder that a store is opened on, with two archives and their checksums."""
    folder = tmp_path / "there"
    folder.mkdir()
    for name in FETCH_NAMES:
        (folder / name).write_bytes(data_of(name))
        (folder / f"{name}.sha256sum").write_text(f"{hashlib.sha256(data_of(name)).hexdigest()}  {name}\n")
    return folder


class Failing:
    """A store that ends transfers of one file after some bytes, and notes from where streams begin."""

    def __init__(self, folder: Path, name: str = "", after: int = 0) -> None:
        self._store: Any = open_store(folder)
        self._name, self._after = name, after
        self.starts: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def stream(self, name: str, start: int = 0, *, e_tag: str | None = None) -> Iterator[bytes]:  # noqa: D102
        if not name.endswith("sum"):
            self.starts.append((name, start))
        sent = 0
        for block in self._store.stream(name, start, e_tag=e_tag):
            sent += len(block)
            yield block
            if name == self._name and sent >= self._after:
                raise BrokenTransferError(self._store.place(name), "the transfer ended early")


def fetch(store: Any, dest: Path) -> tuple[FetchedArchive, ...]:
    files = tuple(store.list())
    archives = find_stored_archives(files, store.url)
    stored = [archive.stored for archive in archives]
    return fetch_files(store, stored, dest, read_checksums(store, files, stored))


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_archives_are_verified_against_their_checksums(there: Path, tmp_path: Path) -> None:
    found = fetch(open_store(there), tmp_path / "here")
    assert [(one.name, one.bytes, one.verified, one.is_new) for one in found] == [
        (name, len(data_of(name)), "sha256", True) for name in FETCH_NAMES
    ]
    assert sorted(os.listdir(tmp_path / "here")) == list(FETCH_NAMES)  # noqa: PTH208
    assert all((tmp_path / "here" / name).read_bytes() == data_of(name) for name in FETCH_NAMES)


def test_existing_archives_are_not_fetched_again(there: Path, tmp_path: Path) -> None:
    fetch(open_store(there), tmp_path / "here")
    store = Failing(there)
    assert [one.is_new for one in fetch(store, tmp_path / "here")] == [False, False]
    assert store.starts == []


@pytest.mark.parametrize("has_checksum", [True, False], ids=["checksum", "date"])
def test_archives_changed_in_the_store_are_fetched_again(there: Path, tmp_path: Path, *, has_checksum: bool) -> None:
    if not has_checksum:
        (there / f"{FETCH_NAMES[0]}.sha256sum").unlink()
    fetch(open_store(there), tmp_path / "here")
    new = bytes(len(data_of(FETCH_NAMES[0])))
    (there / FETCH_NAMES[0]).write_bytes(new)
    os.utime(there / FETCH_NAMES[0], (1_900_000_000, 1_900_000_000))
    if has_checksum:
        (there / f"{FETCH_NAMES[0]}.sha256sum").write_text(hashlib.sha256(new).hexdigest())
    assert [one.is_new for one in fetch(open_store(there), tmp_path / "here")] == [True, False]
    assert (tmp_path / "here" / FETCH_NAMES[0]).read_bytes() == new


def test_without_a_checksum_only_the_size_is_verified_and_reported(there: Path, tmp_path: Path) -> None:
    for name in FETCH_NAMES:
        (there / f"{name}.sha256sum").unlink()
    assert {one.verified for one in fetch(open_store(there), tmp_path / "here")} == {"size"}


def test_a_single_checksum_list_for_all_archives_is_used(there: Path, tmp_path: Path) -> None:
    lines = [f"{hashlib.sha256(data_of(name)).hexdigest()}  {name}\n" for name in FETCH_NAMES]
    for name in FETCH_NAMES:
        (there / f"{name}.sha256sum").unlink()
    (there / "SHA256SUMS").write_text("".join(lines))
    assert {one.verified for one in fetch(open_store(there), tmp_path / "here")} == {"sha256"}


@pytest.mark.parametrize("is_beside", [False, True], ids=["of all", "of each folder"])
def test_files_with_one_name_in_several_folders_have_separate_checksums(tmp_path: Path, *, is_beside: bool) -> None:
    digests = {}
    for family in ("gfx94X-dcgpu", "gfx103X-dgpu"):
        (tmp_path / family).mkdir()
        (tmp_path / family / "rocm-1.0.tar.gz").write_bytes(family.encode())
        digests[f"{family}/rocm-1.0.tar.gz"] = hashlib.sha256(family.encode()).hexdigest()
    for name, digest in digests.items():
        folder, _, base = name.partition("/")
        with (tmp_path / (folder if is_beside else "") / "SHA256SUMS").open("a") as file:
            file.write(f"{digest}  {base if is_beside else name}\n")
    store = open_store(tmp_path)
    files = tuple(store.list())
    assert read_checksums(store, files, [one for one in files if one.name in digests]) == digests


def test_a_checksum_file_next_to_a_file_in_a_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / "f/x").write_bytes(b"x")
    (tmp_path / "f/x.sha256sum").write_text(f"{'a' * 64}  x\n")
    store = open_store(tmp_path)
    assert read_checksums(store, tuple(store.list()), [store.head("f/x")]) == {"f/x": "a" * 64}


def test_an_interrupted_transfer_is_resumed_and_the_other_archives_arrive(there: Path, tmp_path: Path) -> None:
    store = Failing(there, FETCH_NAMES[0], 1 << 20)
    with pytest.raises(RocwheelError, match=f"{FETCH_NAMES[0]}: the transfer ended early"):
        fetch(store, tmp_path / "here")
    assert visible(tmp_path / "here") == [FETCH_NAMES[1]]
    again = Failing(there)
    fetch(again, tmp_path / "here")
    ((name, start),) = again.starts
    assert (name, start >= 1 << 20) == (FETCH_NAMES[0], True)
    assert (tmp_path / "here" / FETCH_NAMES[0]).read_bytes() == data_of(FETCH_NAMES[0])


def test_wrong_checksums_are_reported_together_and_no_archive_is_kept(there: Path, tmp_path: Path) -> None:
    for name in FETCH_NAMES:
        (there / f"{name}.sha256sum").write_text("0" * 64)
    with pytest.raises(ProblemsError) as caught:
        fetch(open_store(there), tmp_path / "here")
    assert [name in str(problem) for name, problem in zip(FETCH_NAMES, caught.value.problems, strict=True)] == [
        True,
        True,
    ]
    assert sorted(os.listdir(tmp_path / "here")) == []  # noqa: PTH208


def test_contradictory_checksums_are_an_error(there: Path, tmp_path: Path) -> None:
    (there / "SHA256SUMS").write_text(f"{'0' * 64}  {FETCH_NAMES[0]}\n")
    with pytest.raises(
        RocwheelError, match=re.escape(f"{FETCH_NAMES[0]}: has several different checksums in the store")
    ):
        fetch(open_store(there), tmp_path / "here")
    assert not (tmp_path / "here").exists()


def test_a_checksum_file_for_another_file_is_an_error(there: Path, tmp_path: Path) -> None:
    (there / f"{FETCH_NAMES[0]}.sha256sum").write_text(f"{'0' * 64}  other.tar.zst\n")
    with pytest.raises(RocwheelError, match=f"has no checksum for {FETCH_NAMES[0]}"):
        fetch(open_store(there), tmp_path / "here")
