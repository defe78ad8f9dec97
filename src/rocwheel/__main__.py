"""``rocwheel`` and ``python -m rocwheel``: the command line, which an interrupt always ends in silence."""

from __future__ import annotations

import signal
import sys
from importlib import import_module

__all__ = ["main"]


def main() -> None:
    """Load the command line and run it; an interrupt while it loads ends the process as the signal itself does."""
    # Shells start background jobs with the signal ignored, which is kept.
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command_line = import_module("rocwheel.cli")
    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command_line.main()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if interruptible:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
