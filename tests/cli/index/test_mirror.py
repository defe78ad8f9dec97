"""``rocwheel index mirror`` as a user runs it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from rocwheel.distributions.index.write_index import write_index
from rocwheel.stores.open_store import open_store
from tests.support.command_line import rocwheel
from tests.support.loopback import served
from tests.support.s3_server import BUCKET
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.s3_server import S3Server

pytestmark = pytest.mark.slow


@pytest.fixture
def there(tmp_path: Path) -> Path:
    for name in ("rocm_sdk_core", "rocm_sdk_device_gfx1100", "rocm_sdk_device_gfx942"):
        make_wheel(tmp_path / "there/dist", name, {}, tag="py3-none-any", is_purelib=True)
    write_index(tmp_path / "there/dist", tmp_path / "there/simple")
    return tmp_path / "there"


@pytest.fixture
def address(there: Path) -> Iterator[str]:
    with served(there) as found:
        yield f"{found}/simple"


def test_it_says_what_was_fetched_and_how_to_install(run: Run, address: str, tmp_path: Path) -> None:
    words = ("index", "mirror", address, "--project", "rocm*", "--targets", "RX 7900 XTX", "-d", tmp_path / "here")
    installed = f"install with: pip install --index-url file://{tmp_path}/here/simple PROJECT\n"
    first, second = run(*words), run(*words)
    assert (first.status, first.stdout) == (0, f"2 files fetched to {tmp_path}/here/dist, 0 there already\n{installed}")
    assert second.status == 0
    assert second.stdout == f"0 files fetched to {tmp_path}/here/dist, 2 there already\n{installed}"


def test_a_dry_run_lists_and_writes_nothing(run: Run, address: str, tmp_path: Path) -> None:
    done = run("index", "mirror", address, "--project", "rocm*", "-d", tmp_path / "here", "--dry-run", "--json")
    assert [one["filename"].partition("-")[0] for one in json.loads(done.stdout)["files"]] == [
        "rocm_sdk_core",
        "rocm_sdk_device_gfx1100",
        "rocm_sdk_device_gfx942",
    ]
    assert not (tmp_path / "here").exists()


def test_a_gpu_without_packages_is_an_error_before_anything_is_fetched(run: Run, address: str, tmp_path: Path) -> None:
    words = ("--project", "rocm*", "--targets", "gfx1201;gfx942", "-d", tmp_path / "here")
    done = run("index", "mirror", address, *words)
    assert (done.status, done.stdout) == (2, "")
    message = "error: --targets: no package of the index serves gfx1201. There are some for gfx1100, gfx942.\n"
    assert done.stderr == message
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("simple", "--project", "x"), "error: simple: is not a URL; expected http://, https://, file:// or s3://\n"),
        (("http://127.0.0.1:1/", "--project", "x"), "error: http://127.0.0.1:1/x/: nobody answers there ("),
        (("file:///no/such", "--project", "x*"), "error: file:///no/such/: has no page of an index"),
        (("file:///no/such", "--project", "x"), "error: x: is no project of file:///no/such/"),
        (("http://h/", "--project", "x", "--version", "new"),
         "error: --version: is 'new'; expected a version specifier"),
        (("http://h/", "--project", "x", "--targets", "gfx9999"), "error: --targets: 'gfx9999' is not a known"),
    ],
    ids=["text", "server", "page", "project", "version", "target"],
)  # fmt: skip
def test_wrong_words_are_said_in_a_line(run: Run, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    done = run("index", "mirror", *words, "-d", tmp_path / "here")
    assert done.status in {1, 2}
    assert done.stderr.startswith(message)
    assert not (tmp_path / "here").exists()


def test_an_index_in_a_bucket_is_mirrored(run: Run, there: Path, tmp_path: Path, s3: S3Server) -> None:
    store = open_store(f"s3://{BUCKET}/rocm")
    for path in sorted(there.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            store.put(path.relative_to(there).as_posix(), path)
    done = run("index", "mirror", f"s3://{BUCKET}/rocm/simple", "--project", "rocm*", "-d", tmp_path / "here", "-q")
    assert (done.status, done.stderr) == (0, "")
    assert len(list((tmp_path / "here/dist").glob("*.whl"))) == 3


def test_a_killed_mirror_is_taken_up(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    make_wheel(there / "dist", "big", {"big.bin": bytes(range(256)) * (1 << 18)}, tag="py3-none-any", is_purelib=True)
    make_wheel(there / "dist", "small", {}, tag="py3-none-any", is_purelib=True)
    write_index(there / "dist", there / "simple")
    words = ["index", "mirror", (there / "simple").as_uri(), "--project", "*", "-d", str(here), "-q"]
    for pause in (0.0, 0.02, 0.1):
        with subprocess.Popen([sys.executable, "-m", "rocwheel", *words]) as process:
            limit = time.monotonic() + 60
            while not here.exists() and time.monotonic() < limit:
                time.sleep(0.002)
            time.sleep(pause)
            process.send_signal(signal.SIGKILL)
        for path in (here / "dist").glob("[a-z]*.whl"):
            assert path.read_bytes() == (there / "dist" / path.name).read_bytes()
    done = rocwheel(*words)
    assert done.returncode == 0, done.stderr
    found = sorted(path.name for path in (here / "dist").iterdir())
    assert found == sorted(path.name for path in (there / "dist").iterdir())
    shutil.rmtree(there)
