"""``python -m faults [CASE ...]``: run these cases, whose names may be beginnings, or all, with each fault and kills.

``--sample`` tries a few faults of each, as the tests do; ``--record`` adds what came of it to docs/trust.md.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from faults.case import all_cases
from faults.runner import run_case, table, texts
from faults.shim import why_not
from faults.trust import add_rows

_FOLDER = Path(".cache/faults")
_KILLS = 25
_SAMPLE, _FEW_KILLS = 8, 3


def main(words: list[str]) -> int:
    """Run the cases and print what came of them; return 1 where something was found."""
    wanted = tuple(word for word in words if not word.startswith("--"))
    cases = [case for case in all_cases() if not wanted or case.name.startswith(wanted)]
    if not cases or why_not():
        print(why_not() or f"no such case: {', '.join(wanted)}", file=sys.stderr)
        return 2
    is_sample = "--sample" in words
    kills = _FEW_KILLS if is_sample else int(os.environ.get("FAULTS_KILLS") or _KILLS)
    rows = []
    for case in cases:
        rows.append(run_case(case.name, str(_SAMPLE) if is_sample else "all", kills, _FOLDER))
        for text in texts(rows[-1]):
            print(text)
        print(f"{case.name}: {rows[-1].faults:,} faults, {len(rows[-1].found)} found", file=sys.stderr, flush=True)
    print(table(rows))
    if "--record" in words:
        add_rows(rows)
    return 1 if any(row.found for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
