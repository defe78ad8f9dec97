"""Wheels and sdists that rocwheel writes: what the tools that people install and publish with say of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support.places import ROOT
from trials.corpora.row import Difference, Row
from trials.corpora.wheels import local_wheels

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TOOLS", "ask", "ask_tools", "write_own"]

_SAMPLE = ROOT / "src/rocwheel/sample"
_LONGEST = 1500
_PIP: Final = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")

TOOLS: Final[dict[str, tuple[str, ...]]] = {
    "pip": (sys.executable, *_PIP, "--target", "FOLDER", "FILE"),
    "uv": ("uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--target", "FOLDER", "FILE"),
    "installer": (sys.executable, "-m", "installer", "--destdir", "FOLDER", "FILE"),
    "wheel unpack": ("wheel", "unpack", "--dest", "FOLDER", "FILE"),
    "check-wheel-contents": ("check-wheel-contents", "FILE"),
    "twine check": ("twine", "check", "FILE"),
    "auditwheel show": ("auditwheel", "show", "FILE"),
}
"""How each is asked about a FILE; what it writes goes to a FOLDER of its own."""
_FOR_SDISTS: Final = ("twine check",)


def ask_tools() -> Row:
    """Write packages of every kind, and ask every tool about each; raises `FileNotFoundError` where one is absent."""
    with tempfile.TemporaryDirectory(prefix="rocwheel-corpus.") as folder:
        written = write_own(Path(folder))
        found = [difference for path in written for difference in ask(path)]
        answers = sum(len(_tools_for(path)) for path in written)
    return Row("own-wheels", len(written), answers, tuple(sorted(found)))


def write_own(folder: Path) -> list[Path]:
    """Write the sample SDK, its libraries split by target, and a repaired wheel, where one to be repaired is here."""
    _rocwheel("build", "--artifact-dir", _SAMPLE, "--dest-dir", folder / "sdk")
    libraries = next((folder / "sdk/dist").glob("rocm_sdk_libraries-*.whl"))
    _rocwheel("device", "split", libraries, "--dest-dir", folder / "split")
    for wheel in (one for one in local_wheels("linux") if one.name.startswith("shapely-")):
        _rocwheel("repair", wheel, "--output", folder / "repaired")
    places = ("sdk/dist/*.whl", "sdk/dist/*.tar.gz", "split/*.whl", "repaired/*.whl")
    return [path for place in places for path in sorted(folder.glob(place))]


def _rocwheel(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "rocwheel", *map(str, words), "--quiet"], check=True, capture_output=True)


def ask(path: Path) -> Iterator[Difference]:
    """Yield what tools say against a wheel or sdist."""
    for tool in _tools_for(path):
        with tempfile.TemporaryDirectory(prefix="rocwheel-corpus.") as folder:
            places = {"FILE": str(path), "FOLDER": folder}
            said = list(_run([places.get(word, word) for word in TOOLS[tool]]))
        yield from (Difference("own-wheels", path.name, tool, *one) for one in said)


def _tools_for(path: Path) -> tuple[str, ...]:
    return tuple(TOOLS) if path.suffix == ".whl" else _FOR_SDISTS


def _run(command: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each complaint: the code that a line names, or the exit status, and the text."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    program = shutil.which(command[0], path=programs)
    if program is None:
        msg = f"no {command[0]}: pip install -e '.[corpus]' brings it"
        raise FileNotFoundError(msg)
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    text = (done.stdout + done.stderr).strip()
    codes = [part.split(": ", 2) for part in text.splitlines() if ": W" in part]
    if codes:
        yield from ((parts[1], parts[2][:_LONGEST]) for parts in codes if len(parts) == 3)
    else:
        yield f"exit status {done.returncode}", text[:_LONGEST]
