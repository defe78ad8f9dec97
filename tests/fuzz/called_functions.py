"""Print, as JSON, the file and first line of each function that runs while all harnesses read seeds and kept inputs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from fuzz.attempt import attempt
from fuzz.corpora import read_corpus
from fuzz.harness import all_harnesses

if TYPE_CHECKING:
    from types import CodeType, FrameType


def called_functions() -> set[CodeType]:
    """Return the code of each function that runs; one whose answer a memo has already given doesn't."""
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            called.add(frame.f_code)

    inputs = [(harness, data) for harness in all_harnesses() for data in (*harness.seeds(), *read_corpus(harness.name))]
    try:
        for harness, data in inputs:
            sys.setprofile(note)  # each time, since Python drops it after an error within, as of recursion
            attempt(harness, data)
    finally:
        sys.setprofile(None)
    return called


if __name__ == "__main__":
    found = sorted({(code.co_filename, code.co_firstlineno) for code in called_functions()})
    print(json.dumps(found))
