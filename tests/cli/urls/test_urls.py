"""Commands that read wheels at URLs: by range, with the same results as from a folder, and no temporary names shown."""

from __future__ import annotations

import json
import os
import re
import zipfile
from typing import TYPE_CHECKING

import pytest

from rocwheel.stores.open import open_store
from tests.support.kpack_files import make_kpack
from tests.support.loopback import served
from tests.support.places import FIXTURES
from tests.support.processes import run_python
from tests.support.s3_server import BUCKET
from tests.support.web_servers import needs_nginx, nginx
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run
    from tests.support.faulty_server import FaultyServer
    from tests.support.s3_server import S3Server

COMMANDS = [("inspect",), ("audit", "--no-closed"), ("device", "list")]


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Return a wheel of some megabytes, of which little is code."""
    files: dict[str, Path | bytes] = {"demo/libtwo.so": FIXTURES / "v22/libtwo.plain.so", "demo/__init__.py": b""}
    files["demo/data.bin"] = os.urandom(8 << 20)
    return make_wheel(tmp_path / "www", "demo", files)


@pytest.fixture
def ranges(wheel: Path, faulty: FaultyServer) -> str:
    """Return the URL of the wheel on a server that has ranges."""
    faulty.files[f"/{wheel.name}"] = wheel.read_bytes()
    return f"{faulty.address}/{wheel.name}"


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_wheel_at_a_url_gives_the_same_results(run: Run, wheel: Path, ranges: str, command: tuple[str, ...]) -> None:
    local, remote = run(*command, wheel, "--json", "--quiet"), run(*command, ranges, "--json", "--quiet")
    assert remote.status == local.status
    assert json.loads(remote.stdout) == json.loads(local.stdout.replace(str(wheel), ranges))
    assert remote.stderr == local.stderr.replace(str(wheel), ranges)


def test_text_names_the_url_and_how_much_was_read(run: Run, wheel: Path, ranges: str, faulty: FaultyServer) -> None:
    finished = run("device", "list", f"{ranges}?signature=secret")
    assert finished.stdout.startswith("demo/libtwo.so: fat binary, 2 bundles, ")
    found = re.search(r"read ([\d.]+) kB of 8\.[45] MB: (\S+)\n", finished.stderr)
    assert found
    assert found[2] == ranges
    assert float(found[1]) < 200
    assert faulty.sent < 200_000
    assert "rocwheel-" not in finished.stdout + finished.stderr


def test_an_audit_says_what_it_did_not_compare(run: Run, ranges: str, faulty: FaultyServer) -> None:
    finished = run("audit", "--no-closed", ranges)
    assert re.search(r"read \d+\.\d kB of 8\.[45] MB, without comparing what was not read", finished.stderr)
    assert faulty.sent < 200_000


def test_findings_in_files_name_the_url_and_stay_the_same(run: Run, wheel: Path, ranges: str, tmp_path: Path) -> None:
    secret = ranges.replace("://", "://me:password@") + "?signature=secret"
    written = []
    for number, place in enumerate((wheel, ranges, secret)):
        files = tmp_path / f"{number}.sarif", tmp_path / f"{number}.json"
        words = ("--sarif", files[0], "--baseline", files[1], "--update-baseline", "--expect-runpath", "/none")
        assert run("audit", "--closed", place, *words, "--quiet").status == 0
        written.append([file.read_text() for file in files])
    local, plain, with_secret = written
    assert json.loads(local[1])["findings"] != []
    assert plain == with_secret
    assert plain[1] == local[1]
    results = json.loads(plain[0])["runs"][0]["results"]
    places = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results}
    assert places == {ranges}


@pytest.mark.parametrize("words", [("--with", "{}"), ("--with={}",)], ids=["apart", "joined"])
def test_packages_beside_those_that_are_audited_may_be_at_a_url(
    run: Run, tmp_path: Path, ranges: str, words: tuple[str, ...], faulty: FaultyServer
) -> None:
    other = make_wheel(tmp_path / "other", "other", {"other.py": b""}, requires=("demo",))
    finished = run("audit", "--closed", other, *(word.format(ranges) for word in words))
    assert (finished.status, "read " in finished.stderr) == (0, True)
    assert f"of 8.4 MB, without comparing what was not read with its hash in RECORD: {ranges}\n" in finished.stderr
    assert faulty.sent < 200_000
    assert run("audit", "--closed", other).status == 1


def test_a_server_without_ranges_sends_the_whole_file(run: Run, wheel: Path) -> None:
    with served(wheel.parent) as address:
        url = f"{address}/{wheel.name}"
        finished = run("inspect", url)
    assert finished.stdout == run("inspect", wheel).stdout.replace(str(wheel), url)
    assert re.search(r"read 8\.[45] MB of 8\.[45] MB, as the server sends whole files only: ", finished.stderr)


@needs_nginx
def test_a_wheel_behind_nginx_is_read_by_range(run: Run, wheel: Path, tmp_path: Path) -> None:
    with nginx(tmp_path / "work", root=wheel.parent) as address:
        finished = run("inspect", f"{address}/{wheel.name}")
    assert re.search(r"read \d+\.\d kB of 8\.[45] MB", finished.stderr)
    assert "gfx" in finished.stdout


@pytest.mark.slow
def test_a_wheel_in_a_bucket_is_read_by_range(run: Run, wheel: Path, s3: S3Server) -> None:
    open_store(f"s3://{BUCKET}/a").put(wheel.name, wheel)
    finished = run("inspect", f"s3://{BUCKET}/a/{wheel.name}")
    assert finished.status == 0
    assert re.search(r"read \d+\.\d kB of 8\.[45] MB", finished.stderr)
    assert f"s3://{BUCKET}/a/{wheel.name}!demo/libtwo.so" in finished.stdout


def test_a_stored_archive_is_read_where_its_tables_are(run: Run, tmp_path: Path, faulty: FaultyServer) -> None:
    kernels = {("lib/libx.so", 0, "gfx906"): (FIXTURES / "elf/gfx906.co").read_bytes() + os.urandom(6 << 20)}
    path = tmp_path / "x-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/x.kpack", make_kpack(kernels))
    faulty.files["/x.whl"] = path.read_bytes()
    finished = run("inspect", f"{faulty.address}/x.whl")
    assert "gfx906" in finished.stdout
    assert faulty.sent < 400_000


def test_a_library_at_a_url_is_read_as_well(run: Run, faulty: FaultyServer) -> None:
    faulty.files["/libtwo.so"] = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
    local = run("device", "list", FIXTURES / "v22/libtwo.plain.so", "--json", "--quiet")
    remote = run("device", "list", f"{faulty.address}/libtwo.so", "--json", "--quiet")
    assert remote.stdout == local.stdout.replace(str(FIXTURES / "v22/libtwo.plain.so"), f"{faulty.address}/libtwo.so")


def test_a_file_url_is_a_path(run: Run, wheel: Path) -> None:
    assert run("inspect", wheel.as_uri()) == run("inspect", wheel)


def test_what_is_not_there_is_named(run: Run, faulty: FaultyServer) -> None:
    finished = run("inspect", f"{faulty.address}/no.whl?word=secret")
    assert (finished.status, finished.stderr) == (
        1,
        f"error: {faulty.address}/no.whl: is not there. Correct the name.\n",
    )


def test_a_damaged_wheel_at_a_url_is_named(run: Run, wheel: Path, faulty: FaultyServer) -> None:
    faulty.files["/cut-1.0-py3-none-any.whl"] = wheel.read_bytes()[:1_000_000]
    url = f"{faulty.address}/cut-1.0-py3-none-any.whl"
    for command in COMMANDS:
        finished = run(*command, url)
        assert finished.status == 2
        assert f"{url}: " in finished.stderr
        assert "Traceback" not in finished.stderr


def test_other_commands_take_no_urls(run: Run, ranges: str, faulty: FaultyServer) -> None:
    assert run("runpath", "show", ranges).status == 2
    assert faulty.requests == []


def test_a_wheel_that_is_replaced_meanwhile_is_an_error(
    run: Run, ranges: str, wheel: Path, faulty: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(data: object, **_: object) -> None:
        del data
        faulty.files[f"/{wheel.name}"] += b"more"

    monkeypatch.setattr("rocwheel.cli.inspect._print_file", replace)
    finished = run("inspect", ranges)
    assert (finished.status, f"error: {ranges}: was replaced while it was being read" in finished.stderr) == (1, True)


_FETCH = """
import sys
from pathlib import Path
from types import SimpleNamespace
from rocwheel.cli.remote import _fetch
from rocwheel.core.errors import WorkError
store = SimpleNamespace(
    head=lambda name: SimpleNamespace(size=5000, e_tag=""),
    stream=lambda name, e_tag: iter([bytes(5000)]),
    place=lambda name: f"https://x/{name}",
)
try:
    _fetch(store, "a.whl", Path(sys.argv[1]))
except WorkError as e:
    print(e)
"""


def test_a_file_that_does_not_fit_is_never_taken_without_its_end(tmp_path: Path) -> None:
    """A write to a disk that is about to be full takes the bytes that fit, and no error."""
    assert run_python(_FETCH, tmp_path / "a.whl", file_size=4096).startswith("https://x/a.whl: it can't be written to ")
