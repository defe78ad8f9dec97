"""``python -m trials.fuzz [NAME ...]``: fuzz with these harnesses, whose names may be beginnings, or with all.

``--record`` adds what came of it to RESULTS.md, and keeps inputs that led further in trials/fuzz/corpus, from which
later runs begin; ``--long`` tries long inputs of one repeated word instead. ``--input FILE`` runs one input again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.given_words import read_words
from trials.fuzz.corpora import write_corpus
from trials.fuzz.harness import all_harnesses, find_harness
from trials.fuzz.long_inputs import try_long_inputs
from trials.fuzz.merging import best_inputs
from trials.fuzz.one_input import choose_harness, run_again, take_file
from trials.fuzz.results import add_rows
from trials.fuzz.runner import run_harness, table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from trials.fuzz.harness import Harness
    from trials.fuzz.runner import Row

_FOLDER = Path(".cache/fuzz")
_SECONDS = 60
_OPTIONS = ("--record", "--long", "--input FILE")


def main(words: list[str]) -> int:
    """Run the harnesses, or one on an input, and print what came of them; return 1 where something was found."""
    known = [one.name for one in all_harnesses()]
    try:
        path, rest = take_file(words)
        options, names = read_words(rest, _OPTIONS, known, "harness")
        if path is not None:
            _require_alone(options)
            return _run_again(choose_harness(path, names if rest else (), known), path)
    except ValueError as e:
        print(e, file=sys.stderr)
        return 2
    harnesses = [find_harness(name) for name in names]
    return _try_long(harnesses) if "--long" in options else _fuzz(harnesses, is_recorded="--record" in options)


def _require_alone(options: Collection[str]) -> None:
    if options:
        msg = f"--input runs one input alone; leave out {', '.join(sorted(options))}"
        raise ValueError(msg)


def _run_again(name: str, path: Path) -> int:
    fault = run_again(find_harness(name), path.read_bytes())
    text = f"{fault.kind}: {fault.place}\n{fault.text.rstrip()}" if fault else "nothing is wrong with it"
    print(text.encode(errors="backslashreplace").decode())
    return 1 if fault else 0


def _try_long(harnesses: Iterable[Harness]) -> int:
    number = 0
    for harness in harnesses:
        faults = try_long_inputs(harness)
        number += len(faults)
        print(f"{harness.name}: {len(faults) or 'nothing'} found", flush=True)
        for fault in faults:
            print(f"{fault.kind}: {fault.text}")
    return 1 if number else 0


def _fuzz(harnesses: Iterable[Harness], *, is_recorded: bool) -> int:
    rows = []
    for harness in harnesses:
        rows.append(run_harness(harness.name, _FOLDER, int(os.environ.get("FUZZ_SECONDS") or _SECONDS)))
        print(_line(rows[-1]), file=sys.stderr, flush=True)
        if is_recorded:
            add_rows(rows[-1:])
            _keep_inputs(harness)
    print(table(rows))
    found = [title for row in rows for title in row.found]
    for title in found:
        print(f"found: {title}")
    if found:
        print(f"The inputs are in {_FOLDER}/found.")
    return 1 if found else 0


def _keep_inputs(harness: Harness) -> None:
    try:
        write_corpus(harness.name, best_inputs(harness, _FOLDER / "corpus" / harness.name))
    except subprocess.TimeoutExpired as e:
        print(
            f"{harness.name}: trials/fuzz/corpus stays as it is: {e.timeout:.0f} s were too few to choose",
            file=sys.stderr,
        )


def _line(row: Row) -> str:
    return f"{row.harness}: {row.executions:,} executions, {len(row.found)} found"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
