"""What several commands about GPU targets print."""

from __future__ import annotations

from collections.abc import Sequence

from rocwheel.cli.output.documents import print_json
from rocwheel.cli.output.text import print_line

__all__ = ["print_target_set"]


def print_target_set(form: str, words: Sequence[str], *, as_json: bool) -> None:
    """Print the words of a set, one a line."""
    if as_json:
        print_json("target-set", 1, {"form": form, "targets": words})
    for word in [] if as_json else words:
        print_line(word)
