"""Tests of files that come in pieces, in one run or in several."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import time
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.core import part_file
from rocwheel.core.errors import InputError, WorkError
from rocwheel.core.part_file import Expected, is_part, receive

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = bytes(range(256)) * 40
SHA256 = hashlib.sha256(DATA).hexdigest()


class Source:
    """Gives bytes in pieces of 1000, notes from where it is asked, and fails where it is told to."""

    def __init__(self, data: bytes = DATA, ends_at: int | None = None) -> None:
        self.data, self.ends_at = data, ends_at
        self.starts: list[int] = []

    def read(self, start: int) -> Iterator[bytes]:  # noqa: D102
        self.starts.append(start)
        for place in range(start, len(self.data), 1000):
            if self.ends_at is not None and place >= self.ends_at:
                source = "there"
                raise WorkError(source, "ended")
            yield self.data[place : place + 1000]


def expected(**more: object) -> Expected:
    return Expected(**{"source": "there", "size": len(DATA), "sha256": SHA256, **more})  # type: ignore[arg-type]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_complete_file_gets_its_final_name(tmp_path: Path) -> None:
    steps: list[int] = []
    assert receive(tmp_path / "a" / "x.bin", expected(), Source().read, steps.append) == SHA256
    assert (tmp_path / "a" / "x.bin").read_bytes() == DATA
    assert names(tmp_path / "a") == ["x.bin"]
    assert sum(steps) == len(DATA)


def test_an_interrupted_transfer_is_resumed(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="ended"):
        receive(tmp_path / "x.bin", expected(), Source(ends_at=5000).read)
    assert not (tmp_path / "x.bin").exists()
    assert all(map(is_part, names(tmp_path)))
    steps: list[int] = []
    rest = Source()
    receive(tmp_path / "x.bin", expected(), rest.read, steps.append)
    assert rest.starts == [5000]
    assert (steps[0], sum(steps)) == (5000, len(DATA))
    assert (tmp_path / "x.bin").read_bytes() == DATA
    assert names(tmp_path) == ["x.bin"]


@pytest.mark.parametrize(
    "other",
    [{"sha256": "0" * 64}, {"source": "elsewhere"}, {"size": len(DATA) + 1}, {"version": "new"}],
    ids=["hash", "source", "size", "version"],
)
def test_the_partial_data_of_a_different_file_is_discarded(tmp_path: Path, other: dict[str, object]) -> None:
    with pytest.raises(WorkError):
        receive(tmp_path / "x.bin", expected(**other), Source(ends_at=5000).read)
    source = Source()
    receive(tmp_path / "x.bin", expected(), source.read)
    assert source.starts == [0]


def test_a_file_without_hash_and_version_is_downloaded_from_the_start(tmp_path: Path) -> None:
    with pytest.raises(WorkError):
        receive(tmp_path / "x.bin", expected(sha256=""), Source(ends_at=5000).read)
    source = Source()
    receive(tmp_path / "x.bin", expected(sha256=""), source.read)
    assert source.starts == [0]


@pytest.mark.parametrize(("sha256", "starts"), [("", [0]), (SHA256, [5000])], ids=["version", "hash"])
def test_after_a_reboot_partial_data_is_trusted_only_with_a_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sha256: str, starts: list[int]
) -> None:
    with pytest.raises(WorkError):
        receive(tmp_path / "x.bin", expected(sha256=sha256, version="1"), Source(ends_at=5000).read)
    monkeypatch.setattr(part_file, "_BOOT_ID", tmp_path / "another")
    source = Source()
    receive(tmp_path / "x.bin", expected(sha256=sha256, version="1"), source.read)
    assert source.starts == starts


def test_partial_data_that_breaks_the_hash_is_downloaded_again(tmp_path: Path) -> None:
    with pytest.raises(WorkError):
        receive(tmp_path / "x.bin", expected(), Source(ends_at=5000).read)
    part = tmp_path / ".x.bin.rocwheel-part"
    part.write_bytes(bytes(5000))
    source, steps = Source(), list[int]()
    receive(tmp_path / "x.bin", expected(), source.read, steps.append)
    assert source.starts == [5000, 0]
    assert sum(steps) == len(DATA)
    assert (tmp_path / "x.bin").read_bytes() == DATA


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (DATA[:-1] + b"?", "there: has the SHA-256 "),
        (DATA[:-1], "there: has 10239 bytes; expected 10240 bytes"),
        (DATA + b"x" * 5000, "there: has more than 10240 bytes; expected 10240 bytes"),
    ],
    ids=["other", "short", "long"],
)
def test_wrong_bytes_are_discarded_and_the_existing_file_is_kept(tmp_path: Path, data: bytes, found: str) -> None:
    (tmp_path / "x.bin").write_bytes(b"before")
    with pytest.raises(InputError) as caught:
        receive(tmp_path / "x.bin", expected(), Source(data).read)
    assert str(caught.value).startswith(found)
    assert (tmp_path / "x.bin").read_bytes() == b"before"
    assert names(tmp_path) == ["x.bin"]


def test_a_transfer_that_is_too_long_stops_early(tmp_path: Path) -> None:
    def endless(_: int) -> Iterator[bytes]:
        while True:
            yield bytes(1000)

    with pytest.raises(InputError, match="has more than 10240 bytes"):
        receive(tmp_path / "x.bin", expected(), endless)


def test_concurrent_downloads_of_a_file_do_not_mix(tmp_path: Path) -> None:
    part = tmp_path / ".x.bin.rocwheel-part"
    with part.open("wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(WorkError, match="is being downloaded by another process"):
            receive(tmp_path / "x.bin", expected(), Source().read)


def test_a_symlink_in_place_of_the_part_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / ".x.bin.rocwheel-part").symlink_to(tmp_path / "victim")
    with pytest.raises(WorkError, match="can't be written"):
        receive(tmp_path / "x.bin", expected(), Source().read)
    assert (tmp_path / "victim").read_bytes() == b"mine"


def test_a_folder_in_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.bin").mkdir()
    with pytest.raises(WorkError, match="isn't a regular file"):
        receive(tmp_path / "x.bin", expected(), Source().read)


@pytest.mark.parametrize("name", ["x" * 251 + ".whl", "ü" * 125 + ".whl", "日" * 83 + ".whl"], ids=ascii)
def test_file_names_of_maximum_length_have_part_files(tmp_path: Path, name: str) -> None:
    receive(tmp_path / name, expected(), Source().read)
    assert names(tmp_path) == [name]


PROGRAM = """
import sys, time
from pathlib import Path
from rocwheel.core.part_file import Expected, receive

def slow(start):
    for place in range(start, 1 << 24, 1 << 20):
        yield bytes([place >> 20]) * (1 << 20)
        print(place, flush=True)
        time.sleep(0.02)

receive(Path(sys.argv[1]), Expected(source="there", size=1 << 24, sha256=sys.argv[2]), slow)
"""


@pytest.mark.slow
def test_a_killed_run_leaves_no_final_file_and_the_next_run_completes_it(tmp_path: Path) -> None:
    whole = b"".join(bytes([place]) * (1 << 20) for place in range(16))
    sha256 = hashlib.sha256(whole).hexdigest()
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "x.bin"), sha256]
    for _ in range(3):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout
            process.stdout.readline()
            time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
        assert not (tmp_path / "x.bin").exists()
    left = (tmp_path / ".x.bin.rocwheel-part").stat().st_size
    assert 0 < left < len(whole)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[0]) >= left - (1 << 20)
    assert (tmp_path / "x.bin").read_bytes() == whole
    assert names(tmp_path) == ["x.bin"]


def test_an_interrupt_after_the_final_rename_leaves_no_part_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody fetches what is there already, so nobody would remove its stamp."""

    def rename_and_end(path: Path, target: Path) -> None:
        path.rename(target)
        if target.name == "x.bin":
            raise KeyboardInterrupt

    monkeypatch.setattr(type(tmp_path), "replace", rename_and_end)
    with pytest.raises(KeyboardInterrupt):
        receive(tmp_path / "x.bin", expected(), Source().read)
    assert names(tmp_path) == ["x.bin"]


def test_a_disk_failure_is_not_mistaken_for_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    monkeypatch.setattr(type(tmp_path), "lstat", fail)
    with pytest.raises(WorkError) as caught:
        receive(tmp_path / "x.bin", expected(), Source().read)
    assert str(caught.value) == (
        f"{tmp_path}/x.bin: can't be written (Input/output error). "
        "Check the free space and the permissions of the folder."
    )


class LosingDisk:
    """Tells at the sync of a part that some of its bytes are lost, so many times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def sync(self, descriptor: int) -> None:  # noqa: D102
        if Path(f"/proc/self/fd/{descriptor}").readlink().name.endswith(".rocwheel-part") and self.times:
            self.times -= 1
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))


@pytest.mark.parametrize(("sha256", "starts"), [("", [0]), (SHA256, [])], ids=["version", "hash"])
def test_data_a_disk_may_have_lost_is_downloaded_again_without_a_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sha256: str, starts: list[int]
) -> None:
    monkeypatch.setattr(os, "fsync", LosingDisk(1).sync)
    with pytest.raises(WorkError, match="Disk quota exceeded"):
        receive(tmp_path / "x.bin", expected(sha256=sha256, version="1"), Source().read)
    source = Source()
    receive(tmp_path / "x.bin", expected(sha256=sha256, version="1"), source.read)
    assert source.starts == starts
    assert (tmp_path / "x.bin").read_bytes() == DATA
    assert names(tmp_path) == ["x.bin"]


def test_partial_data_lost_by_the_disk_is_downloaded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed run was told nothing; the system tells the next that syncs the file."""
    with pytest.raises(WorkError):
        receive(tmp_path / "x.bin", expected(sha256="", version="1"), Source(ends_at=5000).read)
    monkeypatch.setattr(os, "fsync", LosingDisk(1).sync)
    source = Source()
    receive(tmp_path / "x.bin", expected(sha256="", version="1"), source.read)
    assert source.starts == [0]


def test_an_endless_file_leaves_free_disk_space_and_no_part_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(_: object) -> None:
        if (tmp_path / ".x.rocwheel-part").stat().st_size > 10 << 20:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("rocwheel.core.part_file.require_reserve", is_full)
    with pytest.raises(WorkError, match="No space left on device"):
        receive(tmp_path / "x", Expected(source="https://host/x"), lambda _: repeat(bytes(1 << 20)))
    assert list(tmp_path.iterdir()) == []


def test_partial_data_writable_by_others_is_not_resumed(tmp_path: Path) -> None:
    with pytest.raises(WorkError, match="ended"):
        receive(tmp_path / "x", expected(), Source(ends_at=5000).read)
    (tmp_path / ".x.rocwheel-part").chmod(0o666)
    source = Source()
    receive(tmp_path / "x", expected(), source.read)
    assert source.starts == [0]
