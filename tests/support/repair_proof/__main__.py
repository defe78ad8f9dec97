"""Runs the proof over published wheels (``make repair-proof``), or over those of them that are named.

Prints the table. The exit status is 1 if a repair made anything worse.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.places import CACHE
from tests.support.repair_proof.chroot import obstacle
from tests.support.repair_proof.corpus import CorpusWheel, download, read_corpus
from tests.support.repair_proof.report import HEAD, line, losses_of
from tests.support.repair_proof.run import Trial
from tests.support.repair_proof.stubs import Stubs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.support.repair_proof.report import Row

_FOLDER = CACHE / "repair-proof"
_DOWNLOADS = _FOLDER / "wheels"


def main() -> int:
    """Run the proof; return the exit status."""
    parser = ArgumentParser(prog="make repair-proof", description=__doc__)
    parser.add_argument("projects", nargs="*", help="take these alone; by default all of corpus.toml")
    parser.add_argument("--losses", type=Path, help="write each loss to this file, as Markdown")
    parser.add_argument("--option", action="append", default=[], help="repair with this option")
    arguments = parser.parse_args()
    if unknown := {*arguments.projects} - {wheel.project for wheel in read_corpus()}:
        parser.error(f"corpus.toml has no {', '.join(sorted(unknown))}; its projects are written as there")
    if reason := obstacle():
        print(f"skipped: {reason}", file=sys.stderr)
        return 0
    print(HEAD)
    rows = []
    for row in _rows(arguments.projects, tuple(arguments.option)):
        print(line(row), flush=True)
        rows.append(row)
    if arguments.losses:
        arguments.losses.write_text("\n".join(losses_of(row) for row in rows if row.has_fault or row.refusal))
    return int(any(row.has_fault for row in rows))


def _rows(projects: Sequence[str], options: tuple[str, ...]) -> Iterator[Row]:
    _FOLDER.mkdir(parents=True, exist_ok=True)
    stubs = Stubs(_FOLDER / "stubs")
    corpus = read_corpus()
    for wheel in corpus:
        if not projects or wheel.project in projects:
            for trial in _trials(wheel, corpus, options):
                yield trial.run(_FOLDER, stubs)


def _trials(wheel: CorpusWheel, corpus: Sequence[CorpusWheel], options: tuple[str, ...]) -> Iterator[Trial]:
    """Yield the wheel by itself, with the packages that it is installed with, and for the toolkit that it is told."""
    path = download(wheel, _DOWNLOADS)
    yield Trial(path, options=options)
    if wheel.beside:
        others = (download(other, _DOWNLOADS) for other in corpus if other.project in wheel.beside)
        yield Trial(path, tuple(others), options)
    if wheel.toolkit and not options:
        yield Trial(path, options=(*options, "--toolkit", wheel.toolkit))


if __name__ == "__main__":
    sys.exit(main())
