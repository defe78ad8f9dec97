"""Files of kernel libraries that can be offered to no other GPU, whatever is in them, and why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.core.reading import iter_pieces
from rocwheel.targets.kernel_files.classify import processors_of_name
from rocwheel.targets.kernel_files.table import Difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rocwheel.core.reading import Data
    from rocwheel.targets.kernel_files.table import Shared
    from rocwheel.targets.retarget_pairs import TargetPair

__all__ = ["shared_file", "unknown_file"]


def unknown_file(path: str, pairs: Sequence[TargetPair]) -> Iterator[tuple[str, InputError]]:
    """Yield for which processors a kernel file that is named for a target gets no copy, and why."""
    named = processors_of_name(path)
    for pair in pairs:
        agent = pair.agent.processor
        if pair.code.processor in named and agent not in named:
            reason = "no rule says how its library looks for it"
            yield agent, InputError(path, f"not offered to {agent}: {reason}")


def shared_file(path: str, data: Data, row: Shared, pairs: Sequence[TargetPair]) -> Iterator[tuple[str, InputError]]:
    """Yield which processors a file for all GPUs does not name, though it names those whose code they run.

    Lists of files are not looked up, and so they may lack some.
    """
    for pair in () if row.differs is Difference.LINES else pairs:
        code, agent = pair.code.processor, pair.agent.processor
        if _contains(data, code) and not _contains(data, agent):
            yield agent, InputError(path, f"names {code} and not {agent}: {row.reason}")


def _contains(data: Data, text: str) -> bool:
    """Return whether a text stands in a file as a word; memory holds a few megabytes of it."""
    word = re.compile(rb"(?<![0-9a-zA-Z])" + text.encode() + rb"(?![0-9a-zA-Z])")
    end = b""
    for piece in iter_pieces(data):
        joined = end + piece
        if word.search(joined):
            return True
        end = joined[-len(text) - 2 :]
    return False
