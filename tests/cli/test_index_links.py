"""``rocwheel index`` and ``rocwheel publish`` with a file that lists other indexes, and installing from the result."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from rocwheel.index.write_index import IndexOptions, write_index
from rocwheel.index.yanked import Yanking
from rocwheel.stores.open import open_store
from tests.support.loopback import served
from tests.support.s3_server import BUCKET
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.command_line import Run
    from tests.support.s3_server import S3Server


class Front(NamedTuple):
    """The file that lists the indexes, and the addresses of the servers of their files."""

    listing: Path
    release: str
    nightly: str


def make_index(folder: Path, version: str, *names: str) -> Path:
    """Write an index of packages, each with one module, to ``folder/simple``."""
    for name in names:
        module = {f"{name}.py": f"version = {version!r}\n".encode()}
        make_wheel(folder / "dist", name, module, version=version, tag="py3-none-any", is_purelib=True)
    write_index(folder / "dist", folder / "simple")
    return folder


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    """Serve two indexes, and list them with a stream for each."""
    with ExitStack() as stack:
        release = stack.enter_context(served(make_index(tmp_path / "release", "10.0+amd.1", "alpha", "torch")))
        nightly = stack.enter_context(served(make_index(tmp_path / "nightly", "10.1a1", "alpha", "torch", "extra")))
        listing = tmp_path / "indexes.toml"
        listing.write_text(f"""\
pool = ["alpha"]

[[index]]
url = "{release}/simple/"
projects = ["alpha", "torch"]
streams = ["release"]

[[index]]
url = "{nightly}/simple/"
projects = ["*"]
streams = ["nightly"]
""")
        yield Front(listing, release, nightly)


RELEASE, NIGHTLY = "alpha-10.0+amd.1-py3-none-any.whl", "alpha-10.1a1-py3-none-any.whl"


def test_index_prints_projects_and_install_commands_of_each_index(run: Run, front: Front, tmp_path: Path) -> None:
    done = run("index", front.listing)
    simple = f"file://{tmp_path}/simple"
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout == (
        "alpha: 2 files\nextra: 1 file\ntorch: 1 file\n"
        f"install with: pip install --index-url {simple} PROJECT\n"
        f"for release, 2 projects: pip install --index-url {simple}/release PROJECT\n"
        f"for nightly, 3 projects: pip install --index-url {simple}/nightly PROJECT\n"
    )


def test_json_has_the_fields_of_every_index(run: Run, front: Front, tmp_path: Path) -> None:
    found = json.loads(run("index", front.listing, "--output", tmp_path / "www", "--json").stdout)
    assert (found["schema"], found["output"]) == ("rocwheel.index/1", f"{tmp_path}/www")
    assert found["projects"]["alpha"] == [RELEASE, NIGHTLY]
    assert found["families"]["release"]["projects"]["alpha"] == [RELEASE]


def test_publish_prints_the_newly_indexed_files(run: Run, front: Front, tmp_path: Path) -> None:
    words = ("publish", front.listing, tmp_path / "store")
    dry, first, second = run(*words, "--dry-run"), run(*words), run(*words)
    assert dry.stdout.startswith(f"would be indexed: {RELEASE}\nwould be indexed: {NIGHTLY}\n")
    assert first.stdout == (
        "0 files uploaded (0 bytes), 0 already present; 4 files indexed\n"
        f"index: {tmp_path}/store/simple\n"
        f"for release, 2 files indexed: {tmp_path}/store/simple/release\n"
        f"for nightly, 3 files indexed: {tmp_path}/store/simple/nightly\n"
    )
    assert "; 0 files indexed\n" in second.stdout
    assert not list((tmp_path / "store").rglob("*.whl"))


def test_files_that_are_no_longer_listed_are_reported(run: Run, front: Front, tmp_path: Path) -> None:
    run("index", front.listing, "-q")
    shutil.rmtree(tmp_path / "nightly/simple/extra")
    page = tmp_path / "nightly/simple/index.html"
    page.write_text(page.read_text().replace('<a href="extra/">extra</a><br>\n', ""))
    done = run("index", front.listing)
    removed = "removed 1 file that the other indexes no longer list: extra-10.1a1-py3-none-any.whl\n"
    assert (done.status, done.stderr) == (0, f"{removed}nightly: {removed}")


@pytest.mark.parametrize("words", [("--files", "copy"), ("--upload-time", "2026-01-01"), ("--no-front-page",)])
def test_options_for_file_folders_are_refused(run: Run, front: Front, words: tuple[str, ...]) -> None:
    done = run("index", front.listing, *words)
    assert (done.status, done.stdout) == (2, "")
    assert f"is for folders of files, and {front.listing} lists other indexes\n" in done.stderr


def test_folders_next_to_a_listing_are_refused(run: Run, front: Front, tmp_path: Path) -> None:
    done = run("index", front.listing, tmp_path / "release/dist", "-o", tmp_path / "www")
    assert done.status == 2
    assert f"{front.listing}: is a list of indexes; expected no other arguments" in done.stderr


def test_verify_links_checks_linked_files(run: Run, front: Front, tmp_path: Path) -> None:
    run("index", front.listing, "-q")
    pages = run("verify", tmp_path / "simple")
    assert pages.stdout.startswith(f"{tmp_path}/simple: index, 0 files (0 bytes), 4 not compared: good\n")
    done = run("verify", tmp_path / "simple", "--links")
    assert (done.status, done.stdout.count(": good\n")) == (0, 3)
    (tmp_path / "release/dist" / RELEASE).write_bytes(b"other")
    (tmp_path / "nightly/dist" / NIGHTLY).unlink()
    assert run("verify", tmp_path / "simple").status == 0
    done = run("verify", tmp_path / "simple", "--links")
    assert done.status == 1
    address = f"{front.release}/dist/{RELEASE.replace('+', '%2B')}"
    assert f"changed {address}: has 5 bytes; expected " in done.stdout
    assert f"missing {front.nightly}/dist/{NIGHTLY}: is missing; expected a file\n" in done.stdout


def test_verify_links_checks_linked_files_of_an_index_at_a_url(run: Run, front: Front, tmp_path: Path) -> None:
    run("index", front.listing, "-o", tmp_path / "www/simple", "-q")
    with served(tmp_path / "www") as address:
        pages, files = (run("verify", f"{address}/simple/", *words) for words in ((), ("--links",)))
        assert pages.stdout == f"{address}/simple/: index, 0 files (0 bytes), 4 not compared: good\n"
        assert files.stdout.startswith(f"{address}/simple/: index, 4 files (")
        (tmp_path / "release/dist" / RELEASE).unlink()
        assert run("verify", f"{address}/simple/", "--links").status == 1


def test_pages_that_disagree_are_reported_without_reading_the_files(run: Run, front: Front, tmp_path: Path) -> None:
    run("index", front.listing, "-q")
    page = tmp_path / "simple/alpha/index.html"
    page.write_text("".join(line for line in page.read_text().splitlines(keepends=True) if NIGHTLY not in line))
    done = run("verify", tmp_path / "simple")
    assert done.status == 1
    assert f"unlisted {page}: doesn't list {NIGHTLY}; expected the same contents as the other page\n" in done.stdout


@pytest.mark.slow
def test_a_mirror_of_the_index_contains_the_files(run: Run, front: Front, tmp_path: Path) -> None:
    run("index", front.listing, "-o", tmp_path / "www/simple", "-q")
    with served(tmp_path / "www") as address:
        done = run("index", "mirror", f"{address}/simple", "--project", "alpha", "-o", tmp_path / "here", "-q")
    assert (done.status, done.stderr) == (0, "")
    assert {path.name for path in (tmp_path / "here/dist").glob("*.whl")} == {RELEASE, NIGHTLY}


@pytest.mark.slow
@pytest.mark.usefixtures("s3")
def test_pages_are_published_to_a_bucket_without_the_linked_files(run: Run, front: Front, s3: S3Server) -> None:
    del s3
    done = run("publish", front.listing, f"s3://{BUCKET}/rocm", "-q")
    assert (done.status, done.stderr) == (0, "")
    names = [file.name for file in open_store(f"s3://{BUCKET}/rocm").list()]
    assert "simple/nightly/alpha/index.json" in names
    assert not [name for name in names if name.endswith(".whl")]
    assert run("publish", front.listing, f"s3://{BUCKET}/rocm", "-q") == (0, "", "")


ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))},
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_NO_CACHE_DIR": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "UV_NO_CONFIG": "1",
    "UV_NO_CACHE": "1",
}
UV = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
INSTALLERS = {"pip": [sys.executable, "-m", "pip"], "uv": [str(UV), "pip"]}


def install(tool: str, site: Path, index: str, *requirements: str) -> subprocess.CompletedProcess[str]:
    if tool == "uv" and UV is None:
        pytest.skip("needs uv")
    words = [*INSTALLERS[tool], "install", *requirements, "--target", str(site), "--index-url", index]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=ENVIRONMENT)


def installed(site: Path) -> list[str]:
    return sorted(path.name for path in site.glob("*.dist-info"))


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_installers_download_files_from_their_own_servers(run: Run, front: Front, tmp_path: Path, tool: str) -> None:
    run("index", front.listing, "-o", tmp_path / "www/simple", "-q")
    asked: list[str] = []
    with served(tmp_path / "www", asked) as address:
        done = install(tool, tmp_path / "stable", f"{address}/simple/", "alpha", "torch")
        assert done.returncode == 0, done.stderr
        done = install(tool, tmp_path / "new", f"{address}/simple/nightly/", "alpha==10.1a1", "extra==10.1a1")
        assert done.returncode == 0, done.stderr
    assert installed(tmp_path / "stable") == ["alpha-10.0+amd.1.dist-info", "torch-10.0+amd.1.dist-info"]
    assert installed(tmp_path / "new") == ["alpha-10.1a1.dist-info", "extra-10.1a1.dist-info"]
    assert not [path for path in asked if ".whl" in path]


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_installers_refuse_a_file_that_changed_on_its_server(run: Run, front: Front, tmp_path: Path, tool: str) -> None:
    run("index", front.listing, "-o", tmp_path / "www/simple", "-q")
    path = tmp_path / "release/dist" / RELEASE
    path.unlink()
    changed = make_wheel(path.parent, "alpha", {"alpha.py": b"evil"}, version="10.0+amd.1", tag="py3-none-any")
    changed.rename(path)
    with served(tmp_path / "www") as address:
        done = install(tool, tmp_path / "site", f"{address}/simple/release/", "alpha")
    assert done.returncode != 0
    assert "hash" in (done.stdout + done.stderr).lower()


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["pip", "uv"])
def test_installers_skip_a_file_that_its_own_index_yanked(run: Run, front: Front, tmp_path: Path, tool: str) -> None:
    make_wheel(tmp_path / "release/dist", "alpha", {}, version="11.0", tag="py3-none-any", is_purelib=True)
    yanking = Yanking({"alpha-11.0-py3-none-any.whl": "bad code"})
    write_index(tmp_path / "release/dist", tmp_path / "release/simple", options=IndexOptions(yanking=yanking))
    run("index", front.listing, "-o", tmp_path / "www/simple", "-q")
    with served(tmp_path / "www") as address:
        done = install(tool, tmp_path / "site", f"{address}/simple/release/", "alpha")
    assert done.returncode == 0, done.stderr
    assert installed(tmp_path / "site") == ["alpha-10.0+amd.1.dist-info"]
