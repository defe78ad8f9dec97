"""``python -m fuzz [NAME ...]``: fuzz with these harnesses, whose names may be beginnings, or with all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from fuzz.harness import all_harnesses
from fuzz.runner import run_harness, table
from fuzz.trust import add_rows

_FOLDER = Path(".cache/fuzz")
_SECONDS = 60


def main(words: list[str]) -> int:
    """Run the harnesses and print what came of them; return 1 where something was found."""
    is_recorded = "--record" in words
    wanted = tuple(word for word in words if word != "--record")
    names = [harness.name for harness in all_harnesses() if not wanted or harness.name.startswith(wanted)]
    if not names:
        print(f"no such harness: {', '.join(wanted)}", file=sys.stderr)
        return 2
    rows = []
    for name in names:
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
