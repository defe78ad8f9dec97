"""A second build into the same folder: wheels that it would write again are left alone, and no others."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.transfer import extract_archives
from rocwheel.build import building
from rocwheel.core.cache import read_contents
from rocwheel.core.hashing import is_intact
from rocwheel.demo import SAMPLE_SDK

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from rocwheel.core.hashing import Seal
    from rocwheel.core.reading import FileRange
    from tests.support.command_line import Run

pytestmark = pytest.mark.slow

FILES = 150
DEVEL = "rocm_sdk_devel-7.0.0-py3-none-manylinux_2_5_x86_64.whl"
LIBRARIES = "rocm_sdk_libraries-7.0.0-py3-none-manylinux_2_5_x86_64.whl"


@pytest.fixture(autouse=True)
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all that is written here lie ten seconds back, and a cache of its own."""
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 10**10)


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the sample's artifacts as folders, whose files have stamps."""
    folder = tmp_path_factory.mktemp("artifacts")
    extract_archives(sorted(SAMPLE_SDK.glob("*.tar.xz")), folder)
    return folder


class Builds:
    """Builds of the same artifacts into the same folder."""

    def __init__(self, run: Run, folder: Path, artifacts: Path) -> None:
        self.dist = folder / "out/dist"
        self.artifacts = artifacts
        self._run = run

    def build(self, *options: str | Path, dest: Path | None = None) -> set[str]:
        """Build, and return the names of the wheels that were left alone."""
        places = ("--artifact-dir", self.artifacts, "--dest-dir", dest or self.dist.parent)
        done = self._run("build", *places, "--json", "--quiet", *(options or ["--cache"]))
        assert (done.status, done.stderr) == (0, "")
        self.result = json.loads(done.stdout)
        return {Path(path).name for path in self.result["standing"]}

    def wheels(self) -> set[str]:
        """Return the names of all wheels."""
        return {path.name for path in self.dist.glob("*.whl")}

    def stamps(self) -> dict[str, tuple[int, int]]:
        """Return inodes and dates of all wheels."""
        return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in self.dist.glob("*.whl")}

    def digests(self, dist: Path | None = None) -> dict[str, str]:
        """Return the hashes of all distributions."""
        folder = dist or self.dist
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}

    def require_clean(self, *options: str | Path) -> None:
        """Require the bytes of a build without a cache."""
        clean = self.dist.parent.with_name("clean")
        assert self.build("--no-cache", *options, dest=clean) == set()
        assert self.digests() == self.digests(clean / "dist")


@pytest.fixture
def builds(run: Run, tmp_path: Path, artifacts: Path) -> Builds:
    found = Builds(run, tmp_path, artifacts)
    assert found.build() == set()
    return found


def test_unchanged_wheels_are_not_rewritten(builds: Builds) -> None:
    before = builds.stamps()
    for _ in range(2):
        assert builds.build() == builds.wheels() != set()
        assert builds.stamps() == before
        members = builds.result["members"]
        assert (members["packed"], members["kept"]) == (0, FILES)
    builds.require_clean()


def test_an_existing_wheel_is_hashed_once_and_then_recognized_by_its_stamp(
    builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []

    def note_and_hash(file: FileRange, sealed: Seal, executor: Executor) -> bool:
        hashed.append(file.path.rpartition("/")[2])
        return is_intact(file, sealed, executor)

    monkeypatch.setattr(building, "is_intact", note_and_hash)
    builds.build()
    assert set(hashed) == builds.wheels()
    hashed.clear()
    assert builds.build() == builds.wheels()
    assert hashed == []


def test_no_cache_rewrites_every_wheel(builds: Builds) -> None:
    before = builds.stamps()
    assert builds.build("--no-cache") == set()
    assert not set(builds.stamps().values()) & set(before.values())


def test_a_changed_file_causes_only_its_wheels_to_be_rewritten(run: Run, tmp_path: Path, artifacts: Path) -> None:
    shutil.copytree(artifacts, tmp_path / "artifacts", symlinks=True)
    builds = Builds(run, tmp_path, tmp_path / "artifacts")
    builds.build()
    library = next((builds.artifacts / "rand_lib_generic").rglob("librocrand.so.1*"))
    library.write_bytes(library.read_bytes() + b"changed")
    written = builds.wheels() - builds.build()
    # The bill of materials of the development files names the artifact's hash, too.
    assert written == {LIBRARIES, DEVEL}
    assert builds.result["members"]["packed"] == 1
    builds.require_clean()


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--version", "7.9.1"], id="version"),
        pytest.param(["--level", "1"], id="level"),
        pytest.param(["--platform-tag", "linux_x86_64"], id="tag"),
    ],
)
def test_a_changed_option_rewrites_the_affected_wheels(builds: Builds, options: list[str]) -> None:
    assert builds.build("--cache", *options) == set()


def test_a_changed_source_date_rewrites_every_wheel(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert builds.build() == set()
    builds.require_clean()


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def flip_and_date_back(path: Path) -> None:
    status = path.stat()
    flip(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_by_link(path: Path) -> None:
    other = path.with_name("other")
    path.rename(other)
    path.symlink_to(other)


@pytest.mark.parametrize(
    "damage",
    [
        flip,
        flip_and_date_back,
        lambda path: path.unlink(),
        lambda path: os.truncate(path, 1000),
        lambda path: path.chmod(0o600),
        replace_by_link,
    ],
    ids=["flipped", "flipped and dated back", "gone", "truncated", "another mode", "a link"],
)
def test_a_modified_wheel_is_rewritten(builds: Builds, damage: Callable[[Path], None]) -> None:
    assert builds.build() == builds.wheels()  # from here on it is known by its stamp
    names, digests = builds.wheels(), builds.digests()
    damage(builds.dist / LIBRARIES)
    assert builds.build() == names - {LIBRARIES}
    (builds.dist / "other").unlink(missing_ok=True)
    assert not (builds.dist / LIBRARIES).is_symlink()
    assert (builds.dist / LIBRARIES).stat().st_mode & 0o777 == 0o644
    assert builds.digests() == digests


def test_a_new_wheel_with_a_flipped_bit_is_rewritten(builds: Builds) -> None:
    """Its stamp is not trusted yet: whoever wrote to it right after the build may have left no trace in that."""
    digests = builds.digests()
    flip_and_date_back(builds.dist / LIBRARIES)
    assert builds.build() == builds.wheels() - {LIBRARIES}
    assert builds.digests() == digests


def test_an_identical_copy_of_a_wheel_is_not_rewritten(builds: Builds) -> None:
    path = builds.dist / LIBRARIES
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)
    inode = path.stat().st_ino
    assert builds.build() == builds.wheels()
    assert path.stat().st_ino == inode


def test_damaged_cache_entries_about_wheels_are_not_trusted(run: Run, builds: Builds) -> None:
    for entry in read_contents(builds.dist.parents[1] / "cache/packed").entries:
        flip(Path(entry.path))
    before = builds.stamps()
    done = run("build", "--artifact-dir", builds.artifacts, "--dest-dir", builds.dist.parent, "--cache")
    assert done.status == 0
    assert "was damaged; rocwheel will recreate it" in done.stderr
    assert not set(builds.stamps().values()) & set(before.values())
    builds.require_clean()


def test_wheels_built_from_archives_are_always_rewritten(run: Run, tmp_path: Path) -> None:
    """Archives are unpacked for each build, so nothing is known by stamps."""
    builds = Builds(run, tmp_path, SAMPLE_SDK)
    assert builds.build() == builds.build() == set()
    builds.require_clean()


KILLED = """
import itertools, os, signal, sys
import rocwheel.core.writing as atomic
last = int(sys.argv.pop(1))
numbers = itertools.count(1)
commit = atomic.AtomicFile.commit
def commit_and_die(*args):
    commit(*args)
    if next(numbers) == last:
        os.kill(os.getpid(), signal.SIGKILL)
atomic.AtomicFile.commit = commit_and_die
from rocwheel.__main__ import main
main()
"""


@pytest.mark.parametrize("wheels", [1, 3])
def test_a_build_killed_between_two_wheels_leaves_no_wrong_wheel(
    run: Run, tmp_path: Path, artifacts: Path, wheels: int
) -> None:
    builds = Builds(run, tmp_path, artifacts)
    places = ("--artifact-dir", artifacts, "--dest-dir", builds.dist.parent, "--cache")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(wheels), "build", *places], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(builds.wheels()) == wheels
    builds.build()
    builds.require_clean()
