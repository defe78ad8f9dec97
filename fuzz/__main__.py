"""``python -m fuzz [NAME ...]``: fuzz with these harnesses, whose names may be beginnings, or with all.

``--record`` adds what came of it to docs/trust.md; ``--long`` tries long inputs of one repeated word instead.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fuzz.harness import all_harnesses
from fuzz.long_inputs import try_long_inputs
from fuzz.runner import run_harness, table
from fuzz.trust import add_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fuzz.harness import Harness

_FOLDER = Path(".cache/fuzz")
_SECONDS = 60


def main(words: list[str]) -> int:
    """Run the harnesses and print what came of them; return 1 where something was found."""
    wanted = tuple(word for word in words if not word.startswith("--"))
    harnesses = [harness for harness in all_harnesses() if not wanted or harness.name.startswith(wanted)]
    if not harnesses:
        print(f"no such harness: {', '.join(wanted)}", file=sys.stderr)
        return 2
    return _try_long(harnesses) if "--long" in words else _fuzz(harnesses, is_recorded="--record" in words)


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
    for name in (harness.name for harness in harnesses):
        rows.append(run_harness(name, _FOLDER, int(os.environ.get("FUZZ_SECONDS") or _SECONDS)))
        print(f"{name}: {rows[-1].executions:,} executions, {len(rows[-1].found)} found", file=sys.stderr, flush=True)
    print(table(rows))
    found = [title for row in rows for title in row.found]
    for title in found:
        print(f"found: {title}")
    if found:
        print(f"The inputs are in {_FOLDER}/found.")
    if is_recorded:
        add_rows(rows)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
