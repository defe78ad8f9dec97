"""The process that fuzzes one harness: libFuzzer by atheris, guided by the coverage of rocwheel's code.

``python -m trials.fuzz.worker NAME FOLDER SECONDS``; faults become files in ``FOLDER/found``, a fault of one kind and
place once, and fuzzing goes on. What Python can't interrupt ends the process, and libFuzzer writes the file.
"""

from __future__ import annotations

import hashlib
import resource
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import atheris

from trials.fuzz.attempt import Fault, attempt
from trials.fuzz.harness import find_harness
from trials.fuzz.merging import write_inputs

if TYPE_CHECKING:
    from trials.fuzz.harness import Harness

GUIDES = ("rocwheel", "configparser", "email", "html", "packaging", "tarfile", "tomli", "tomllib", "zipfile")
"""Packages whose coverage guides: ours, and the parsers in Python that ours ask, to which all inputs looked alike."""
_ADDRESS_SPACE = 6 << 30
"""Bytes; libFuzzer's own tables are in it, too."""
_RESIDENT = 2048
"""MiB, of the process."""
_STUCK = 30
"""Seconds on the clock for one input: for what waits, which `trials.fuzz.attempt` doesn't count."""


class _Target:
    """Runs the harness over what the fuzzer makes, and keeps what went wrong."""

    def __init__(self, harness: Harness, found: Path) -> None:
        self._harness = harness
        self._found = found
        self._known = {path.read_text().partition("\n")[0] for path in found.glob("*.txt")}

    def __call__(self, data: bytes) -> None:
        fault = attempt(self._harness, data)
        if fault is not None:
            self._keep(fault, data)

    def _keep(self, fault: Fault, data: bytes) -> None:
        title = f"{self._harness.name}: {fault.kind}: {fault.place}"
        if title in self._known:
            return
        self._known.add(title)
        path = self._found / f"{self._harness.name}-{hashlib.sha256(data).hexdigest()[:12]}"
        path.write_bytes(data)
        path.with_name(path.name + ".txt").write_text(f"{title}\n{fault.text}", errors="backslashreplace")


def main(name: str, folder: str, seconds: str) -> None:
    """Fuzz until the time is over; libFuzzer ends the process."""
    harness, seeds = load_harness(name)
    from trials.fuzz.corpora import read_corpus  # noqa: PLC0415 (tarfile, which it needs, has to be loaded as a guide before)

    corpus, found = Path(folder, "corpus", name), Path(folder, "found")
    found.mkdir(parents=True, exist_ok=True)
    write_inputs([*seeds, *read_corpus(name)], corpus)
    _forget_mended(harness, found)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    atheris.Setup([sys.argv[0], *_options(harness, folder, seconds), str(corpus)], _Target(harness, found))
    atheris.Fuzz()


def _forget_mended(harness: Harness, found: Path) -> None:
    """Remove inputs that were found before, and that nothing is wrong about any more."""
    for note in found.glob(f"{harness.name}-*.txt"):
        path = note.with_suffix("")
        if attempt(harness, path.read_bytes()) is None:
            path.unlink()
            note.unlink()


def load_harness(name: str) -> tuple[Harness, list[bytes]]:
    """Return a harness and its seeds, with the code that these run made to count coverage."""
    with atheris.instrument_imports(include=list(GUIDES), enable_loader_override=False):
        harness = find_harness(name)
        return harness, list(harness.seeds())


def _options(harness: Harness, folder: str, seconds: str) -> list[str]:
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={harness.largest}",
        f"-artifact_prefix={folder}/found/{harness.name}-",
    ]
    options += [f"-timeout={_STUCK}", f"-rss_limit_mb={_RESIDENT}", "-print_final_stats=1"]
    if harness.tokens:
        with tempfile.NamedTemporaryFile("w", suffix=".dict", delete=False) as file:
            file.writelines(f'"{_escaped(token)}"\n' for token in harness.tokens)
        options.append(f"-dict={file.name}")
    return options


def _escaped(token: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in token)


if __name__ == "__main__":
    main(*sys.argv[1:])
