"""Attacks on wheels that every command must refuse, each as a wheel with one thing wrong."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

import pytest

from tests.support.wheels import make_wheel, members, pack_members

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.command_line import Run

INFO = "demo-1.0rc1.dist-info"
RECORD = f"{INFO}/RECORD"
MODULE = b"print('good')\n"


def _hash(algorithm: str, data: bytes = MODULE) -> str:
    return base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).rstrip(b"=").decode()


ROWS = {
    "a wrong sha256": f"sha256={_hash('sha256', b'evil')}",
    "a wrong sha384": f"sha384={_hash('sha384', b'evil')}",
    "a wrong sha512": f"sha512={_hash('sha512', b'evil')}",
    "an unknown algorithm": f"sha999={_hash('sha256')}",
    "a name in capitals": f"SHA256={_hash('sha256')}",
    "md5": f"md5={_hash('md5')}",
    "sha1": f"sha1={_hash('sha1')}",
    "no algorithm": f"={_hash('sha256')}",
    "no hash": "",
}
REFUSING: dict[str, Callable[[Path, Path], list[str | Path]]] = {
    "audit": lambda wheel, _: ["audit", wheel, "--select", "record-wrong"],
    "verify": lambda wheel, _: ["verify", wheel],
    "index": lambda wheel, _: ["index", wheel.parent],
    "publish": lambda wheel, out: ["publish", wheel.parent, out],
    "repair --check": lambda wheel, _: ["repair", wheel, "--check"],
    "repair": lambda wheel, out: ["repair", wheel, "--output", out],
    "promote": lambda wheel, out: ["promote", wheel.parent, "--to", "1.0", "--output", out],
}


def _with_row(folder: Path, text: str) -> Path:
    """Return a wheel in whose RECORD the module's hash is another text."""
    wheel = make_wheel(folder, "demo", {"demo/__init__.py": MODULE}, version="1.0rc1", tag="py3-none-any")
    contents = members(wheel)
    contents[RECORD] = contents[RECORD].replace(f"sha256={_hash('sha256')}".encode(), text.encode())
    return pack_members(wheel, contents)


@pytest.mark.parametrize("text", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("command", REFUSING)
def test_no_command_vouches_for_a_file_that_record_does_not_prove(
    run: Run, tmp_path: Path, command: str, text: str
) -> None:
    wheel, out = _with_row(tmp_path / "dist", text), tmp_path / "out"
    done = run(*REFUSING[command](wheel, out))
    assert done.status != 0, done.stdout
    assert "RECORD" in done.stdout + done.stderr or "has the sha" in done.stdout
    assert not list(out.rglob("*.whl"))


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
@pytest.mark.parametrize("command", [name for name in REFUSING if name != "repair --check"])
def test_every_hash_that_the_format_allows_is_accepted(run: Run, tmp_path: Path, command: str, algorithm: str) -> None:
    wheel = _with_row(tmp_path / "dist", f"{algorithm}={_hash(algorithm)}")
    done = run(*REFUSING[command](wheel, tmp_path / "out"))
    assert done.status == 0, done.stdout + done.stderr
