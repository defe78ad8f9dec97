"""The command line: one module for each command or group; it parses, calls one function, and prints."""

from __future__ import annotations

import os
import signal
import sys

from rocwheel.cli import about as about  # importing a group registers its commands
from rocwheel.cli import artifacts as artifacts
from rocwheel.cli import artifacts_import as artifacts_import
from rocwheel.cli import audit as audit
from rocwheel.cli import build as build
from rocwheel.cli import demo as demo
from rocwheel.cli import device as device
from rocwheel.cli import device_edit as device_edit
from rocwheel.cli import index as index
from rocwheel.cli import inspect as inspect
from rocwheel.cli import jax as jax
from rocwheel.cli import repair as repair
from rocwheel.cli import runpath as runpath
from rocwheel.cli import runpath_for as runpath_for
from rocwheel.cli import targets as targets
from rocwheel.cli import targets_code as targets_code
from rocwheel.cli import targets_machine as targets_machine
from rocwheel.cli import torch as torch
from rocwheel.cli import wheel as wheel
from rocwheel.cli._app import app
from rocwheel.cli.output import prepare_streams, report_error
from rocwheel.foundation.errors import RocwheelError, WorkError

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line. Every error that rocwheel raises on purpose becomes a message and an exit status."""
    # Ended from outside, a command removes its temporary files like any that fails.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    prepare_streams()
    try:
        _run()
    except RocwheelError as e:
        report_error(e)
        sys.exit(e.exit_status)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        _drop_output()
        sys.exit(141)
    except OSError as e:
        if e.filename is not None:
            raise
        _drop_output()
        report_error(WorkError("the output", f"cannot be written ({e.strerror})", remedy="Check where it goes."))
        sys.exit(1)


def _run() -> None:
    try:
        app()
    finally:
        # A failure to write can still be reported here.
        sys.stdout.flush()


def _drop_output() -> None:
    """Redirect standard output to nowhere, so that Python's own last flush doesn't fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
