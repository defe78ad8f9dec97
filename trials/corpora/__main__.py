"""``python -m trials.corpora [NAME ...]``: fetch the corpora, and do all checks, or those whose names begin so.

``--record`` writes what came of it into RESULTS.md; ``--offline`` takes the wheels that are here. Reasons of
``explained.toml`` that explain nothing are told: a newer tool or a mend may have made them untrue.
"""

from __future__ import annotations

import logging
import sys

from tests.support.given_words import read_words
from trials.corpora.checks import CHECKS
from trials.corpora.results import add_rows
from trials.corpora.row import is_explained, unused_explanations
from trials.corpora.wheels import fetch, read_list


def main(words: list[str]) -> int:
    """Do the checks and print what they came to; return 1 where a difference has no explanation."""
    logging.getLogger("elftools").setLevel(logging.ERROR)
    try:
        options, names = read_words(words, ("--record", "--offline"), tuple(CHECKS), "check")
    except ValueError as e:
        print(e, file=sys.stderr)
        return 2
    if "--offline" not in options:
        fetch(read_list())
    rows = []
    for name in names:
        rows.append(CHECKS[name].run())
        known = sum(map(is_explained, rows[-1].differences))
        print(f"{name}: {rows[-1].files:,} files, {rows[-1].answers:,} answers, {known:,} differences explained")
        for one in rows[-1].differences:
            if not is_explained(one):
                print(f"  {one.file}: {one.tool}: {one.fact}: {one.text}", flush=True)
        for unused in unused_explanations(rows[-1]):
            print(f"  explains nothing (any more?): {unused.tool}: {unused.fact}: {unused.why}", flush=True)
    if "--record" in options:
        add_rows(rows)
    return 1 if any(not is_explained(one) for row in rows for one in row.differences) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
