"""Entry point of ``rocm-sdk``."""

from __future__ import annotations

import sys
from importlib import import_module

from . import _build_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and end with its exit status. Builds ask for the version so often that it skips the rest."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words in (["version"], ["--version"]):
        sys.stdout.write(f"{_build_info.VERSION}\n")
        sys.exit(0)
    try:
        sys.exit(import_module(f"{__package__}._commands").run_command(words))
    except KeyboardInterrupt:
        rest = "; the next run starts over" if words[:1] == ["init"] else ""
        sys.stderr.write(f"rocm-sdk: interrupted{rest}\n")
        sys.exit(130)
