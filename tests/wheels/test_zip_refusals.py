"""Headers of wheels that installers refuse: pip, installer and uv are asked, over wheels by their ZIP headers."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.index.entry import read_entry
from rocwheel.wheels.zip_directory import read_archive
from rocwheel.wheels.zip_refusals import outside_reason
from tests.support.raw_zip import RawMember, raw_zip
from tests.support.zip_headers import WHEEL_NAME, zip_headers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.command_line import Run

REFUSERS: dict[str, list[str]] = json.loads((Path(__file__).parents[1] / "fixtures/zip_headers.json").read_text())
"""Which installers refuse a wheel: ``uv`` reads a file, ``uv stream`` a URL, ``uv hash`` a file whose hash is given."""
ALL_TAKE = {
    "own extra: a stale Unicode path",
    "own extra: an empty Unicode path",
    "own extra: a Unicode path of version 2",
    "entry's extra: a stale Unicode path",
    "entry's extra: an empty Unicode path",
    "entry's extra: a Unicode path of version 2",
    "name with U+005C",
    "name with a dot",
    "name with two slashes",
    "name with dots",
    "zeros behind it",
}
"""What rocwheel refuses although all of these installers take it: others would read another name, or more bytes."""


def _is_refused(path: Path) -> bool:
    try:
        read_entry(path)
    except (InputError, ProblemsError):
        return True
    return False


def test_an_index_refuses_every_header_that_an_installer_refuses(tmp_path: Path) -> None:
    path = tmp_path / WHEEL_NAME
    found = {}
    for name, data in zip_headers().items():
        path.write_bytes(data)
        found[name] = _is_refused(path)
    assert found.keys() == REFUSERS.keys()
    assert {name for name, refusers in REFUSERS.items() if refusers and not found[name]} == set()
    assert {name for name, refusers in REFUSERS.items() if found[name] and not refusers} == ALL_TAKE


ZIP64_OF_8 = b"\1\0\x08\0" + bytes(8)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (
            raw_zip(RawMember(b"a", b"content", extra=ZIP64_OF_8)),
            (
                "!a: its own header has a ZIP64 field of 8 bytes; expected no ZIP64 field, because the sizes fit "
                "in the header"
            ),
        ),
        (
            raw_zip(RawMember(b"a", flags=0x20, directory_flags=0), RawMember(b"b", flags=0x20, directory_flags=0)),
            (": 2 members (a, b): its own header marks the member as a patch; expected bit 5 of the flags to be clear"),
        ),
        (
            raw_zip(RawMember(b"a", extra=b"\x55\x54\x09\0\1\0")),
            "!a: its own header has an extra field 0x5455 of 2 bytes; expected the 9 bytes that it declares",
        ),
    ],
    ids=["a ZIP64 field", "a flag of two members", "an extra field that is cut off"],
)
def test_a_refused_header_is_reported_and_its_members_are_read(tmp_path: Path, data: bytes, found: str) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(data)
    archive = read_archive(path)
    assert list(map(str, archive.refused)) == [
        f"{path}{found}. Pack the archive again, for example, with 'rocwheel repair'."
    ]
    assert [member.name for member in archive.members] == ["a", "b"][: data.count(b"PK\1\2")]


def test_a_repaired_wheel_has_clean_headers(run: Run, tmp_path: Path) -> None:
    wheel = tmp_path / WHEEL_NAME
    wheel.write_bytes(zip_headers()["own ZIP64, not needed: 8 bytes"])
    done = run("repair", str(wheel), "--output", str(tmp_path / "repaired"))
    assert "demo/data.bin: its own header has a ZIP64 field of 8 bytes" in done.stdout
    repaired = tmp_path / "repaired" / WHEEL_NAME
    assert read_archive(repaired).refused == ()
    assert not _is_refused(repaired)


IN_PROCESS = """
import contextlib, io, json, sys
from installer.__main__ import _main as install
from pip._internal.cli.main import main as pip
found = {}
for path in sys.argv[2:]:
    refused = found[path] = []
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        options = ["--no-deps", "--no-index", "--no-cache-dir", "--no-compile", "--disable-pip-version-check"]
        if pip(["install", *options, "--target", f"{sys.argv[1]}/pip{len(found)}", path]):
            refused.append("pip")
        try:
            install(["--destdir", f"{sys.argv[1]}/installer{len(found)}", "--no-compile-bytecode", path], "installer")
        except Exception:
            refused.append("installer")
print(json.dumps(found))
"""


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def _uv_refuses(target: Path, *what: str) -> bool:
    uv = Path(sys.executable).parent / "uv"
    options = ["--no-config", "--no-deps", "--no-index", "--no-cache", "--python", sys.executable]
    run = subprocess.run([uv, "pip", "install", *options, "--target", target, *what], capture_output=True, check=False)
    return run.returncode != 0


@pytest.mark.corpus
def test_installers_refuse_the_documented_headers(tmp_path: Path) -> None:
    wheels = {name: tmp_path / str(number) / WHEEL_NAME for number, name in enumerate(zip_headers())}
    for name, data in zip_headers().items():
        wheels[name].parent.mkdir()
        wheels[name].write_bytes(data)
    command = [sys.executable, "-c", IN_PROCESS, str(tmp_path), *map(str, wheels.values())]
    by_python = json.loads(subprocess.run(command, capture_output=True, check=True, cwd=tmp_path).stdout)
    found = {}
    with _served(tmp_path) as url:
        for number, (name, wheel) in enumerate(wheels.items()):
            asked = tmp_path / "asked.txt"
            asked.write_text(f"{wheel} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
            uv = {
                "uv": [str(wheel)],
                "uv stream": [f"demo @ {url}/{number}/{WHEEL_NAME}"],
                "uv hash": ["--require-hashes", "-r", str(asked)],
            }
            refused = [how for how, what in uv.items() if _uv_refuses(tmp_path / f"{number}-{how}", *what)]
            found[name] = sorted([*by_python[str(wheel)], *refused])
    assert found == REFUSERS


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        ("demo/../../evil.so", "a path that points outside the wheel"),
        ("/etc/evil.so", "an absolute path"),
        ("C:/evil.dll", "an absolute path"),
        ("demo\\evil.dll", "a name with a backslash, which separates folders on some systems"),
        ("demo/./a.so", "a path that isn't normalized"),
        ("demo//a.so", "a path that isn't normalized"),
        ("demo/..a/b..so", ""),
    ],
)  # fmt: skip
def test_names_that_point_outside_the_environment_are_reported(member: str, reason: str) -> None:
    assert outside_reason(member) == reason
