"""Entry point of ``rocm-sdk``."""

from __future__ import annotations

import sys
from importlib import import_module

from . import _build_info
from ._output import OutputError, drop_output, prepare_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit with its status.

    If the output can't be written, exit with the same status as `rocwheel`.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    prepare_streams()
    try:
        sys.exit(_run(words))
    except KeyboardInterrupt:
        rest = "; the next run starts over" if words[:1] == ["init"] else ""
        sys.stderr.write(f"rocm-sdk: interrupted{rest}\n")
        sys.exit(130)
    except OutputError as e:
        drop_output()
        if e.is_broken_pipe:
            sys.exit(141)
        sys.stderr.write(f"rocm-sdk: error: {e}\n")
        sys.exit(1)


def _run(words: list[str]) -> int:
    """Return the exit status of a command. ``version`` imports nothing else, because builds run it often."""
    try:
        if words in (["version"], ["--version"]):
            sys.stdout.write(f"{_build_info.VERSION}\n")
            return 0
        return int(import_module(f"{__package__}._commands").run_command(words))
    finally:
        # The caller can still report a failure to write.
        sys.stdout.flush()
