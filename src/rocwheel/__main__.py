"""Runs the command line for ``rocwheel`` and ``python -m rocwheel``. Interrupts never print a traceback."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from rocwheel.core.python import loading_without_collections, start_in_utf8_mode

if TYPE_CHECKING:
    from types import ModuleType

_WITHOUT_MEMORY = ("failed to map", "Cannot allocate memory")
"""Error messages from the dynamic loader and from the kernel. Python raises `MemoryError` or `SystemError`."""


def main() -> None:
    """Load the command line and run it. An interrupt during loading ends the process as the signal itself would."""
    start_in_utf8_mode()
    # Shells start background jobs with the signal ignored. In this case, it stays ignored.
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
    """Import the command line. If there isn't enough memory, print a message instead of a traceback."""
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
    text = "error: rocwheel doesn't have enough memory to start. Allow more memory (see 'ulimit -v')."
    print(text, file=sys.stderr, flush=True)
    # Don't use sys.exit, because without memory the interpreter prints dozens of lines on exit.
    os._exit(1)


if __name__ == "__main__":
    main()
