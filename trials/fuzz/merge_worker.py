"""The process in which libFuzzer merges inputs: ``python -m trials.fuzz.merge_worker NAME PROGRAM OPTION...``.

``PROGRAM`` is what libFuzzer starts for the same again after a crash.
"""

from __future__ import annotations

import sys

import atheris

from trials.fuzz.attempt import attempt
from trials.fuzz.worker import load_harness


def main(name: str, command: list[str]) -> None:
    """Merge; libFuzzer ends the process."""
    harness, _ = load_harness(name)

    def run(data: bytes) -> None:
        attempt(harness, data)

    atheris.Setup(command, run)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
