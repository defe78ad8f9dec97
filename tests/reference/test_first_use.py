"""The development files: expanded by many at once, whole or refused, the same bytes under every name and in layers."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tarfile
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.reference.conftest import new_environment
from tests.sdk.installed import FROM_INDEX
from tests.support.sdists import unpack_tar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.reference.conftest import MakeEnvironment
    from tests.sdk.installed import Installed

pytestmark = pytest.mark.slow

LOCKS = Path("/proc/locks")
LOAD_BOTH = """
import ctypes, pathlib, sys
site = pathlib.Path(sys.argv[1])
for tree in ("_rocm_sdk_core", "_rocm_sdk_devel"):
    for name in ("libamd_comgr.so.3", "libamdhip64.so.7"):
        ctypes.CDLL(str(site / tree / "lib" / name))
maps = {line.split()[-1] for line in open("/proc/self/maps") if "/lib" in line}
print(sum("libamd_comgr" in path for path in maps), sum("libamdhip64" in path for path in maps))
"""


def digests(folder: Path) -> dict[str, str]:
    """Return the hash of every file below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_four_compilers_that_expand_the_archive_concurrently_all_succeed(
    dist: Path, make_environment: MakeEnvironment
) -> None:
    # Given four programs that have seen the archive, and wait for the lock to expand it
    if not LOCKS.exists():
        pytest.skip(f"needs {LOCKS}, to see who waits for a lock")
    environment = make_environment(dist)
    environment.install("rocm[devel]")
    commands = [
        [f"{environment.path}/bin/{name}", "--version"] for name in ("hipcc", "hipcc", "amdclang++", "hipconfig")
    ]
    with (environment.site / "rocm_sdk_devel/__init__.py").open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for command in commands]
        wait_until_locked_out(process.pid for process in started)
    outcomes = [(process.communicate()[1], process.returncode) for process in started]
    assert outcomes == [(b"", 0)] * 4
    assert not (environment.site / "rocm_sdk_devel/_devel.tar").exists()


def wait_until_locked_out(processes: Iterable[int]) -> None:
    """Wait until each process waits for the lock of a file, as the kernel tells: ``3: -> FLOCK ADVISORY WRITE PID``."""
    wanted, limit = set(processes), time.monotonic() + 60
    while True:
        rows = [line.split() for line in LOCKS.read_text().splitlines()]
        if wanted <= {int(row[5]) for row in rows if row[1] == "->"}:
            return
        assert time.monotonic() < limit, "the processes don't wait for a lock"
        time.sleep(0.05)


def test_the_devel_extra_installs_the_packages_it_links_to(dist: Path, make_environment: MakeEnvironment) -> None:
    environment = make_environment(dist)
    environment.install("rocm[devel]")
    root = environment.run("rocm-sdk", "path", "--root").stdout.strip()
    assert root == str(environment.root)
    links = [path for path in environment.root.rglob("*") if path.is_symlink()]
    assert len(links) > 50
    assert [path for path in links if not path.exists()] == []


def test_devel_without_the_libraries_is_refused_and_its_archive_is_kept(
    dist: Path, make_environment: MakeEnvironment
) -> None:
    environment = make_environment(dist)
    environment.install("rocm")
    environment.install("--no-deps", "rocm-sdk-devel")
    done = environment.run("rocm-sdk", "init", check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "rocm-sdk: error: The ROCm development files link to packages that are not installed: _rocm_sdk_libraries. "
        f'Install with: pip install "rocm[devel,libraries]==7.0.0" {FROM_INDEX}\n'
    )
    assert (environment.site / "rocm_sdk_devel/_devel.tar").exists()
    assert not environment.root.exists()


def test_the_archive_contains_no_file_of_another_package(dist: Path, tmp_path: Path) -> None:
    names = [name for wheel in dist.glob("*.whl") for name in zipfile.ZipFile(wheel).namelist()]
    shipped = {name.partition("/")[2] for name in names if name.startswith("_rocm")}
    with tarfile.open(_archive(dist, tmp_path)) as archive:
        own = {member.name.partition("/")[2] for member in archive if member.isreg()}
    assert len(own) > 30
    assert own & shipped == set()


def test_unpacking_the_archive_manually_produces_a_working_tree(
    dist: Path, make_environment: MakeEnvironment, tmp_path: Path
) -> None:
    # Given a build system that unpacks wheels and the archive by itself
    environment = make_environment(dist)
    environment.install("rocm[libraries]")
    with tarfile.open(_archive(dist, tmp_path)) as archive:
        unpack_tar(archive, environment.site, "tar")
    root = environment.root
    assert [path for path in root.rglob("*") if path.is_symlink() and not path.exists()] == []
    environment.evaluate(f"import ctypes; ctypes.CDLL({str(root / 'lib/libhipblas.so')!r})")
    assert subprocess.run([root / "bin/hipcc", "--version"], check=False, capture_output=True).returncode == 0


def _archive(dist: Path, folder: Path) -> Path:
    with zipfile.ZipFile(next(dist.glob("rocm_sdk_devel-*.whl"))) as wheel:
        return folder / wheel.extract("rocm_sdk_devel/_devel.tar", folder)


def test_a_library_is_loaded_only_once_from_either_tree(sdk: Installed) -> None:
    assert sdk.run("python", "-c", LOAD_BOTH, str(sdk.site)).stdout == "1 1\n"


def test_a_library_is_loaded_only_once_when_image_layers_break_hard_links(sdk: Installed, tmp_path: Path) -> None:
    # Given a copy as the layers of an image hold it: symlinks kept, each hard link a file of its own
    shutil.copytree(sdk.site, tmp_path / "site", symlinks=True)
    assert sdk.run("python", "-c", LOAD_BOTH, str(tmp_path / "site")).stdout == "1 1\n"
    shown = subprocess.run([tmp_path / "site/_rocm_sdk_devel/bin/hipcc"], check=True, capture_output=True, text=True)
    assert f"InstalledDir: {tmp_path}/site/_rocm_sdk_devel/lib/llvm/bin\n" in shown.stdout


def test_the_tree_works_on_an_overlay_file_system(
    dist: Path, make_environment: MakeEnvironment, tmp_path: Path
) -> None:
    # Given packages installed in a lower layer and expanded in the upper one
    if os.getuid() != 0:
        pytest.skip("mounting an overlay needs root")
    environment = make_environment(dist)
    environment.install("rocm[devel]")
    for name in ("upper", "work"):
        (tmp_path / name).mkdir()
    site, python = environment.site, environment.python
    layers = f"lowerdir={environment.path},upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    script = (
        f"mount -t overlay overlay -o '{layers}' '{environment.path}' || exit 77\n"
        f"'{environment.path}/bin/hipcc' --version && '{python}' -c \"$1\" '{site}'"
    )
    command = ["unshare", "--mount", "sh", "-c", script, "sh", LOAD_BOTH]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(f"no overlay can be mounted here: {done.stderr.strip()}")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 1")
    assert not environment.root.exists()


def test_files_shared_with_the_cache_of_an_installer_are_never_changed(dist: Path, tmp_path: Path) -> None:
    # Given uv, which installs hard links to its cache
    options = ["--cache-dir", str(tmp_path / "cache"), "--link-mode", "hardlink"]
    environment = new_environment(tmp_path / "environment", dist)
    environment.install("rocm[devel]", *options, UV_NO_CACHE="0")
    before = digests(tmp_path / "cache")
    assert (environment.site / "_rocm_sdk_core/lib/libamdhip64.so.7").stat().st_nlink > 1
    environment.run("hipcc", "--version")
    environment.install("rocm[device-gfx906]", *options, UV_NO_CACHE="0")
    environment.run("hipcc", "--version")
    environment.run("rocm-sdk", "test")
    after = digests(tmp_path / "cache")
    assert {name: after.get(name) for name in before} == before
