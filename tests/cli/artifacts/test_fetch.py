"""``rocwheel artifacts fetch``, run as users run it, from a web server."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from rocwheel.artifacts.archives import ArchiveFormat
from rocwheel.artifacts.transfer import archive_artifacts
from rocwheel.stores.open import open_store
from rocwheel.wheels.sdist import SourceDate
from tests.support.command_line import rocwheel
from tests.support.loopback import served
from tests.support.s3_server import BUCKET

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.s3_server import S3Server

pytestmark = pytest.mark.slow


@pytest.fixture
def archives(artifacts: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "archives"
    archive_artifacts(artifacts, folder, (), ArchiveFormat.ZST, SourceDate.from_environment({}))
    return folder


def test_a_server_gives_what_a_build_needs(archives: Path, tmp_path: Path) -> None:
    with served(archives) as address:
        done = rocwheel("artifacts", "fetch", address, "--targets", "gfx906,gfx90a", "--dest-dir", tmp_path / "here")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.endswith("has no artifact that serves gfx906. There are gfx90a:xnack+.\n")
        assert not (tmp_path / "here").exists()
        words = ("artifacts", "fetch", address, "--components", "lib", "--dest-dir", tmp_path / "here")
        assert json.loads(rocwheel(*words, "--dry-run", "--json").stdout)["archives"][0]["name"] == (
            "blas_lib_generic.tar.zst"
        )
        assert not (tmp_path / "here").exists()
        done = rocwheel(*words)
        assert (done.returncode, done.stdout) == (
            0,
            "2 archives fetched, 0 there already\ncompared with its size alone: 2 archives\n",
        )
    listed = rocwheel("artifacts", "list", tmp_path / "here", "--json", "--quiet")
    assert [one["artifact"] for one in json.loads(listed.stdout)["artifacts"]] == [
        "blas_lib_generic",
        "blas_lib_gfx90a:xnack+",
    ]


def test_a_bucket_gives_what_a_build_needs(archives: Path, tmp_path: Path, run: Run, s3: S3Server) -> None:
    store = open_store(f"s3://{BUCKET}/12345-linux")
    for path in archives.iterdir():
        store.put(path.name, path)
    words = ("artifacts", "fetch", f"s3://{BUCKET}/12345-linux", "--targets", "gfx90a", "-d", tmp_path / "here")
    assert run(*words).stdout.startswith("3 archives fetched, 0 there already\n")
    assert run(*words).stdout.startswith("0 archives fetched, 3 there already\n")
    assert all((tmp_path / "here" / path.name).read_bytes() == path.read_bytes() for path in archives.iterdir())


def test_a_place_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = rocwheel("artifacts", "fetch", tmp_path / "none", "--dest-dir", tmp_path / "here")
    assert done.returncode in {1, 2}
    assert done.stderr.startswith(f"error: {tmp_path}/none")
    assert "Traceback" not in done.stderr


def test_a_killed_fetch_leaves_whole_archives_alone_and_is_taken_up(archives: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    large = archives / "blas_dev_generic.tar.zst"
    with large.open("ab") as file:
        file.truncate(1 << 28)
    command = [sys.executable, "-m", "rocwheel", "artifacts", "fetch", str(archives), "--dest-dir", str(here), "-q"]
    with subprocess.Popen(command) as process:
        part = here / f".{large.name}.rocwheel-part"
        limit = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size) and time.monotonic() < limit:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert not (here / large.name).exists()
    assert all(path.stat().st_size == (archives / path.name).stat().st_size for path in here.glob("[a-z]*"))
    done = rocwheel(*command[3:])
    assert done.returncode == 0, done.stderr
    assert (here / large.name).stat().st_size == 1 << 28
    assert sorted(path.name for path in here.iterdir()) == sorted(path.name for path in archives.iterdir())
    shutil.rmtree(here)
