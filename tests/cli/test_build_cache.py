"""``rocwheel build --cache``: what was packed once is not packed again, and the bytes are those of a clean build."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import pytest

from rocwheel.artifacts.transfer import extract_archives
from rocwheel.build import members
from rocwheel.core.cache import read_contents
from rocwheel.demo import SAMPLE_SDK
from tests.support.command_line import Run, as_user, needs_setpriv, rocwheel
from tests.support.small_disks import needs_disks, run_on_disk

pytestmark = pytest.mark.slow

SAMPLE = str(SAMPLE_SDK)
BUILD = (sys.executable, "-m", "rocwheel", "build", "--artifact-dir", SAMPLE, "--cache")
FILES = 150
BYTES = 647_976
"""Of the members that are not stored, before packing."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where packed members are kept in this test."""
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 10**10)
    return tmp_path / "cache/packed"


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sample's artifacts as folders, whose files have stamps."""
    folder = tmp_path_factory.mktemp("artifacts")
    extract_archives(sorted(SAMPLE_SDK.glob("*.tar.xz")), folder)
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("dist/*"))}


def built(run: Run, dest: Path, *options: str | Path) -> tuple[dict[str, str], dict[str, int]]:
    """Build, and return the hashes of the distributions and what was packed."""
    done = run("build", "--dest-dir", dest, "--json", "--quiet", *options)
    assert (done.status, done.stderr) == (0, "")
    return digests(dest), json.loads(done.stdout)["members"]


def test_cached_and_uncached_builds_are_identical(run: Run, tmp_path: Path, artifacts: Path, cache: Path) -> None:
    options = ("--artifact-dir", artifacts)
    clean, without = built(run, tmp_path / "clean", *options, "--no-cache")
    assert not cache.exists()
    first, packed = built(run, tmp_path / "first", *options, "--cache")
    second, kept = built(run, tmp_path / "second", *options, "--cache")
    assert first == clean
    assert second == clean
    assert without == {"packed": FILES, "packed_bytes": BYTES, "kept": 0, "kept_bytes": 0}
    # Files with the same bytes are packed once, or at the same time.
    assert packed["packed"] + packed["kept"] == FILES
    assert kept == {"packed": 0, "packed_bytes": 0, "kept": FILES, "kept_bytes": BYTES}


def test_a_build_without_options_reports_how_many_files_it_packed(tmp_path: Path) -> None:
    told = [
        rocwheel(
            "build", "--artifact-dir", SAMPLE, "--dest-dir", tmp_path / name, "--cache",
            environ={"ROCWHEEL_CACHE_DIR": str(tmp_path / "cache")},
        ).stderr.splitlines()
        for name in ("first", "second")
    ]  # fmt: skip
    lines = [next(line for line in those if line.startswith("packed ")) for those in told]
    assert not lines[0].startswith("packed 0 ")
    assert lines[1] == "packed 0 files (0 bytes), reused 150 from the cache (648.0 kB)"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(["--version", "7.9.1"], id="another version"),
        pytest.param(["--selector", "wheel"], id="another selector"),
        pytest.param(["--platform-tag", "linux_x86_64"], id="another tag"),
        pytest.param(["--recipe", "recipe.toml"], id="another recipe"),
    ],
)
def test_a_metadata_change_does_not_repack_any_file(
    run: Run, tmp_path: Path, artifacts: Path, cache: Path, change: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (files("rocwheel.build") / "rocm.toml").read_text()
    Path("recipe.toml").write_text(text.replace("ROCm", "My ROCm"))
    built(run, tmp_path / "first", "--artifact-dir", artifacts, "--cache")
    clean, _ = built(run, tmp_path / "clean", "--artifact-dir", artifacts, "--no-cache", *change)
    second, count = built(run, tmp_path / "second", "--artifact-dir", artifacts, "--cache", *change)
    assert second == clean
    assert count["packed"] == 0


def test_only_the_changed_artifact_is_repacked(run: Run, tmp_path: Path, artifacts: Path, cache: Path) -> None:
    built(run, tmp_path / "first", "--artifact-dir", artifacts, "--cache")
    changed = tmp_path / "changed"
    shutil.copytree(artifacts, changed, symlinks=True)
    # A copy has other stamps: all files are known by their bytes.
    library = next((changed / "rand_lib_generic").rglob("librocrand.so.1*"))
    library.write_bytes(library.read_bytes() + b"changed")
    second, count = built(run, tmp_path / "second", "--artifact-dir", changed, "--cache")
    assert second == built(run, tmp_path / "clean", "--artifact-dir", changed, "--no-cache")[0]
    assert (count["packed"], count["kept"]) == (1, FILES - 1)


@pytest.mark.parametrize("form", ["compress", "trim"])
def test_device_code_is_compressed_once(
    run: Run, tmp_path: Path, artifacts: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    options = ("--device-code", form)
    clean, _ = built(run, tmp_path / "clean", "--artifact-dir", artifacts, "--no-cache", *options)
    first, _ = built(run, tmp_path / "first", "--artifact-dir", artifacts, "--cache", *options)
    copied = tmp_path / "copied"
    shutil.copytree(artifacts, copied, symlinks=True)
    edited: list[str] = []
    monkeypatch.setattr(members, "device_patch", lambda *_, **options: edited.append(options["name"]))
    for folder in (artifacts, copied):
        again, count = built(run, tmp_path / "again", "--artifact-dir", folder, "--cache", *options)
        assert again == first == clean
        # Archives are looked at, and stay as they are.
        assert (count["packed"], [name for name in edited if not name.endswith(".kpack")]) == (0, [])


def test_each_edit_has_its_own_cache_entries(run: Run, tmp_path: Path, artifacts: Path, cache: Path) -> None:
    options = ("--artifact-dir", artifacts, "--device-code")
    built(run, tmp_path / "first", *options, "compress", "--cache")
    trimmed, count = built(run, tmp_path / "trimmed", *options, "trim", "--cache")
    assert trimmed == built(run, tmp_path / "clean", *options, "trim", "--no-cache")[0]
    assert 0 < count["packed"] < FILES / 2


def test_damaged_cache_entries_are_reported_and_do_not_change_the_wheels(
    run: Run, tmp_path: Path, artifacts: Path, cache: Path
) -> None:
    first, _ = built(run, tmp_path / "first", "--artifact-dir", artifacts, "--cache")
    entries = read_contents(cache).entries
    for entry in entries:
        raw = bytearray(Path(entry.path).read_bytes())
        raw[len(raw) // 2] ^= 16
        Path(entry.path).write_bytes(raw)
    done = run("build", "--artifact-dir", artifacts, "--dest-dir", tmp_path / "first", "--cache")
    assert done.status == 0
    assert digests(tmp_path / "first") == first
    told = [line for line in done.stderr.splitlines() if "was damaged" in line]
    assert set(told) == {f"warning: {entry.path}: was damaged; rocwheel will recreate it" for entry in entries}
    third, count = built(run, tmp_path / "third", "--artifact-dir", artifacts, "--cache")
    assert third == first
    assert count["packed"] == 0


@needs_disks
@pytest.mark.parametrize(
    ("options", "trouble"),
    [("ro", "Read-only file system"), ("size=2m", "less than 256 MiB would remain free on the disk")],
    ids=["read-only", "full"],
)
def test_an_unwritable_or_full_cache_disk_is_reported_once_and_the_build_continues(
    tmp_path: Path, sample_dist: Path, options: str, trouble: str
) -> None:
    (tmp_path / "cache").mkdir()
    command: list[str | Path] = [*BUILD, "--dest-dir", tmp_path]
    done = run_on_disk(tmp_path / "cache", options, command, ROCWHEEL_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0
    told = f"warning: {tmp_path}/cache/packed: can't be written ({trouble}); continuing without the cache"
    assert [line for line in done.stderr.splitlines() if "cache" in line] == [
        told,
        "packed 150 files (648.0 kB), reused 0 from the cache (0 bytes)",
    ]
    assert digests(tmp_path) == digests(sample_dist.parent)


def build_as_user(dest: Path) -> tuple[int, list[str]]:
    """Build as somebody for whom permissions count; return the status and what is said of the cache."""
    command: list[str | Path] = [*as_user(), *BUILD, "--dest-dir", dest]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, [line for line in done.stderr.splitlines() if line.startswith(("warning", "packed"))]


@needs_setpriv
def test_an_unreadable_cache_folder_is_reported_once_and_the_build_continues(
    tmp_path: Path, sample_dist: Path, cache: Path
) -> None:
    assert build_as_user(tmp_path / "first")[0] == 0
    folders = sorted(cache.iterdir())
    closed = next(folder for folder in folders if any(path.stat().st_size > 1000 for path in folder.iterdir()))
    closed.chmod(0)
    status, (told, counts) = build_as_user(tmp_path)
    assert (status, told) == (0, f"warning: {closed}: can't be read (Permission denied); continuing without it")
    assert not counts.startswith(("packed 0 ", "packed 150 "))
    assert digests(tmp_path) == digests(sample_dist.parent)


@needs_setpriv
def test_the_cache_of_another_user_is_reported_once_and_the_build_continues(
    tmp_path: Path, sample_dist: Path, cache: Path
) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0)
    assert build_as_user(tmp_path) == (
        0,
        [
            f"warning: {cache}: can't be read (Permission denied); continuing without the cache",
            "packed 150 files (648.0 kB), reused 0 from the cache (0 bytes)",
        ],
    )
    assert digests(tmp_path) == digests(sample_dist.parent)


def test_a_file_at_the_cache_path_is_reported_and_the_build_continues(
    run: Run, tmp_path: Path, artifacts: Path, cache: Path
) -> None:
    cache.parent.mkdir()
    cache.write_bytes(b"mine")
    done = run("build", "--artifact-dir", artifacts, "--dest-dir", tmp_path, "--cache")
    assert done.status == 0
    assert f"warning: {cache}: can't be written (Not a directory); continuing without the cache" in done.stderr
    assert cache.read_bytes() == b"mine"


def test_concurrent_builds_share_the_cache(tmp_path: Path, sample_dist: Path) -> None:
    environment = {**os.environ, "ROCWHEEL_CACHE_DIR": str(tmp_path / "cache")}
    command: list[str | Path] = [*BUILD, "--quiet", "--dest-dir"]
    builds = [subprocess.Popen([*command, tmp_path / str(number)], env=environment) for number in range(3)]
    assert [build.wait() for build in builds] == [0, 0, 0]
    for number in range(3):
        assert digests(tmp_path / str(number)) == digests(sample_dist.parent)


@pytest.mark.deep
@pytest.mark.parametrize("entries", [1, 20, 60])
def test_the_next_build_can_use_the_cache_of_a_killed_build(tmp_path: Path, sample_dist: Path, entries: int) -> None:
    """The process is killed as soon as it has written so many entries."""
    environment = {**os.environ, "ROCWHEEL_CACHE_DIR": str(tmp_path / "cache")}
    command: list[str | Path] = ["build", "--artifact-dir", SAMPLE, "--cache", "--dest-dir", tmp_path / "out"]
    killed = subprocess.run([sys.executable, "-c", KILLED, str(entries), *command], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert entries * 3 // 4 <= len(read_contents(tmp_path / "cache/packed").entries) <= entries + 2
    done = rocwheel(*command, environ=environment)
    assert done.returncode == 0
    assert "damaged" not in done.stderr
    assert digests(tmp_path / "out") == digests(sample_dist.parent)


KILLED = """
import itertools, os, signal, sys
import rocwheel.core.cache as store
last = int(sys.argv.pop(1))
numbers = itertools.count(1)
put = store.EntryStore.put_hashed
def put_and_die(*args):
    put(*args)
    if next(numbers) == last:
        os.kill(os.getpid(), signal.SIGKILL)
store.EntryStore.put_hashed = put_and_die
from rocwheel.__main__ import main
main()
"""


def test_the_cache_stays_within_its_limit(
    run: Run, tmp_path: Path, artifacts: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWHEEL_CACHE_LIMIT", "50kB")
    first, _ = built(run, tmp_path / "first", "--artifact-dir", artifacts, "--cache")
    assert 0 < sum(entry.size for entry in read_contents(cache).entries) <= 50_000
    second, count = built(run, tmp_path / "second", "--artifact-dir", artifacts, "--cache")
    assert second == first
    assert 0 < count["packed"] < FILES


def test_cache_is_refused_with_scheduler(run: Run, tmp_path: Path, cache: Path) -> None:
    options = ("--cache", "--scheduler", "tcp://127.0.0.1:1")
    done = run("build", "--artifact-dir", SAMPLE, "--dest-dir", tmp_path / "out", *options)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr == (
        "error: --cache: can't be used with --scheduler, because its workers can't reach this machine's cache. "
        "Remove one of them.\n"
    )


def test_jobs_is_refused_with_scheduler(run: Run, tmp_path: Path) -> None:
    options = ("--jobs", 2, "--scheduler", "tcp://127.0.0.1:1")
    done = run("build", "--artifact-dir", SAMPLE, "--dest-dir", tmp_path / "out", *options)
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr == (
        "error: --jobs: can't be used with --scheduler, because its workers already have a fixed number of threads. "
        "Remove one of them.\n"
    )


def test_an_invalid_cache_limit_is_refused_before_the_build(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROCWHEEL_CACHE_LIMIT", "a lot")
    done = run("build", "--artifact-dir", SAMPLE, "--dest-dir", tmp_path / "out", "--cache")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr == "error: ROCWHEEL_CACHE_LIMIT: is 'a lot'; expected a size, such as 20GB or 500MiB\n"
    assert not (tmp_path / "out").exists()
