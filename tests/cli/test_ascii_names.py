"""Names of files beyond ASCII where Python takes all names for ASCII: each command says what it says elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.artifacts import artifact
from tests.support.command_line import ASCII, rocwheel
from tests.support.places import ELF_FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.slow

ELSEWHERE: Mapping[str, str] = {}
WHEEL = "dist/demo-1.0-py3-none-linux_x86_64.whl"
LIBRARY = (ELF_FIXTURES / "libplain.so").read_bytes()
FILES = {"demo/__init__.py": b"", "demo/café.txt": b"x", "demo/日本.so": LIBRARY}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with a wheel, an environment that has it, the same below a folder é, and artifacts."""
    wheel = make_wheel(tmp_path / "dist", "demo", FILES)
    for name in ("env", "é/env"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path / name)
    artifact(tmp_path / "artifacts", "base_lib_generic", {"share/base.txt": b"base"})
    artifact(tmp_path / "artifacts", "core-hip_lib_generic", {"lib/café.so": LIBRARY, "share/日本.txt": b"x"})
    artifact(tmp_path / "artifacts", "blas_lib_generic", {"lib/libblas.so": LIBRARY})
    return tmp_path


@pytest.mark.deep
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("verify", WHEEL), 0),
        (("verify", "env"), 0),
        (("verify", "é/env"), 0),
        (("inspect", WHEEL, "env/demo/日本.so", "é/env"), 0),
        (("audit", "env"), 0),
        (("audit", "é/env", "--select", "record-*"), 0),
        (("diff", WHEEL, "env"), 0),
        (("runpath", "show", "env"), 0),
        (("artifacts", "list", "-v", "artifacts"), 0),
        (("plan", "--artifact-dir", "artifacts", "--version", "7.0.0"), 0),
        (("verify", "é/nothing"), 2),
    ],
    ids=ascii,
)
def test_an_ascii_locale_does_not_change_the_output(place: Path, words: tuple[str, ...], status: int) -> None:
    done, elsewhere = (rocwheel(*words, "--json", cwd=place, environ=environ) for environ in (ASCII, ELSEWHERE))
    assert (done.returncode, elsewhere.returncode) == (status, status), done.stderr
    assert done.stdout == elsewhere.stdout


@pytest.mark.deep
@pytest.mark.parametrize(
    "words",
    [
        ("repair", WHEEL, "--output", "é/OUT"),
        ("build", "--artifact-dir", "artifacts", "--version", "7.0.0", "--dest-dir", "é/OUT"),
        ("report", "env", "-o", "é/OUT"),
        ("promote", "dist", "--to", "2.0", "--output", "é/OUT"),
        ("index", "dist", "-o", "é/OUT", "--files", "copy"),
    ],
    ids=ascii,
)
def test_an_ascii_locale_does_not_change_the_written_files(place: Path, words: tuple[str, ...]) -> None:
    written = {}
    for name, environ in (("ascii", ASCII), ("elsewhere", ELSEWHERE)):
        given = [word.replace("OUT", name) for word in words]
        done = rocwheel(*given, cwd=place, environ={**environ, "SOURCE_DATE_EPOCH": "1700000000"})
        assert done.returncode == 0, done.stderr
        written[name] = digests(place / "é" / name)
    assert written["ascii"]
    assert written["ascii"] == written["elsewhere"]


def digests(path: Path) -> dict[str, str]:
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    return {str(one.relative_to(path)): hashlib.sha256(one.read_bytes()).hexdigest() for one in files}


def test_a_missing_file_with_a_non_ascii_name_is_reported(place: Path) -> None:
    (place / "env/demo/café.txt").unlink()
    done = rocwheel("verify", "env", "--json", cwd=place, environ=ASCII)
    assert done.returncode == 1
    [fault] = json.loads(done.stdout)["verified"][0]["faults"]
    assert (fault["kind"], fault["place"]) == ("missing", "env/demo/café.txt")


def test_messages_use_the_encoding_of_the_terminal(place: Path) -> None:
    done = rocwheel("verify", "é/nothing", cwd=place, environ=ASCII)
    assert done.stderr.startswith("error: \\xe9/nothing: can't be read (No such file or directory)")


def test_disabling_utf8_mode_with_an_interpreter_option_changes_nothing(place: Path) -> None:
    command = [sys.executable, "-X", "utf8=0", "-m", "rocwheel", "verify", "é/env"]
    done = subprocess.run(
        command, cwd=place, env={**os.environ, **ASCII}, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout.endswith(": good\n")) == (0, True)
