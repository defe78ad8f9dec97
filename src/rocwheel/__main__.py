"""``rocwheel`` and ``python -m rocwheel``: the command line, which an interrupt always ends without a traceback."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from rocwheel.core.python import loading_without_collections, start_in_utf8_mode

if TYPE_CHECKING:
    from types import ModuleType

_WITHOUT_MEMORY = ("failed to map", "Cannot allocate memory")
"""What the loader of C libraries and the kernel say then; Python raises `MemoryError`, or `SystemError`."""


def main() -> None:
    """Load the command line and run it; an interrupt while it loads ends the process as the signal itself does."""
    start_in_utf8_mode()
    # Shells start background jobs with the signal ignored, which is kept.
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command_line = _load()
    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command_line.main()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if interruptible:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _load() -> ModuleType:
    """Import the command line; where memory is too small for that, say so rather than where it ran out."""
    try:
        with loading_without_collections():
            from rocwheel import cli

            cli.load_commands(sys.argv[1:])
    except (MemoryError, SystemError):
        _end_without_memory()
    except (ImportError, OSError) as e:
        if not any(text in str(e) for text in _WITHOUT_MEMORY):
            raise
        _end_without_memory()
    return cli


def _end_without_memory() -> NoReturn:
    text = "error: rocwheel got too little memory to start. Allow more (see 'ulimit -v')."
    print(text, file=sys.stderr, flush=True)
    # Not by sys.exit: without memory, the interpreter's own end prints dozens of lines.
    os._exit(1)


if __name__ == "__main__":
    main()
