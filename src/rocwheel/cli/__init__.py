"""The command line: one module per command group; parses, calls one function, prints."""

from __future__ import annotations

import sys

from rocwheel.cli import artifacts as artifacts  # importing a group registers its commands
from rocwheel.cli import artifacts_import as artifacts_import
from rocwheel.cli import audit as audit
from rocwheel.cli import build as build
from rocwheel.cli import demo as demo
from rocwheel.cli import device as device
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
from rocwheel.cli.output import report_error
from rocwheel.errors import RocwheelError

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; every error that rocwheel raises on purpose becomes a message and an exit status."""
    try:
        app()
    except RocwheelError as e:
        report_error(e)
        sys.exit(e.exit_status)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)
