"""The command line: one module for each command, named as it is typed; it parses, calls one function, and prints."""

from __future__ import annotations

import logging
import os
import signal
import sys
from itertools import takewhile

# Importing a module registers its command; --help lists the commands in this order.
# isort: off
from rocwheel.cli import about as about
from rocwheel.cli import audit as audit
from rocwheel.cli import build as build
from rocwheel.cli import plan as plan
from rocwheel.cli import promote as promote
from rocwheel.cli import demo as demo
from rocwheel.cli import index as index
from rocwheel.cli import inspect as inspect
from rocwheel.cli import repair as repair
from rocwheel.cli import wheel as wheel
from rocwheel.cli import artifacts as artifacts
from rocwheel.cli import artifacts_list as artifacts_list
from rocwheel.cli import artifacts_archive as artifacts_archive
from rocwheel.cli import artifacts_extract as artifacts_extract
from rocwheel.cli import artifacts_from_deb as artifacts_from_deb
from rocwheel.cli import artifacts_from_prefix as artifacts_from_prefix
from rocwheel.cli import targets as targets
from rocwheel.cli import targets_list as targets_list
from rocwheel.cli import targets_expand as targets_expand
from rocwheel.cli import targets_flags as targets_flags
from rocwheel.cli import targets_coherent as targets_coherent
from rocwheel.cli import targets_runs_on as targets_runs_on
from rocwheel.cli import targets_detect as targets_detect
from rocwheel.cli import targets_check as targets_check
from rocwheel.cli import device as device
from rocwheel.cli import device_list as device_list
from rocwheel.cli import device_extract as device_extract
from rocwheel.cli import device_bundle as device_bundle
from rocwheel.cli import device_compress as device_compress
from rocwheel.cli import device_prune as device_prune
from rocwheel.cli import device_retarget as device_retarget
from rocwheel.cli import jax as jax
from rocwheel.cli import jax_bazelrc as jax_bazelrc
from rocwheel.cli import jax_starlark as jax_starlark
from rocwheel.cli import jax_commands as jax_commands
from rocwheel.cli import jax_translate as jax_translate
from rocwheel.cli import jax_wheel as jax_wheel
from rocwheel.cli import runpath as runpath
from rocwheel.cli import runpath_show as runpath_show
from rocwheel.cli import runpath_set as runpath_set
from rocwheel.cli import runpath_for as runpath_for
from rocwheel.cli import torch as torch
from rocwheel.cli import torch_init as torch_init
from rocwheel.cli import torch_requirements as torch_requirements
from rocwheel.cli import torch_runpath as torch_runpath
from rocwheel.cli import version as version
from rocwheel.cli import help as help  # noqa: A004  # named as it is typed
# isort: on

import typer

from rocwheel.cli._app import app
from rocwheel.cli.output import prepare_streams, report_failure
from rocwheel.cli.usage_errors import usage_error
from rocwheel.foundation.errors import RocwheelError, WorkError, limit_remedy, memory_error

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line. Every error that rocwheel raises on purpose becomes a message and an exit status."""
    # Ended from outside, a command removes its temporary files like any that fails.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    prepare_streams()
    try:
        sys.exit(_run())
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        _drop_output()
        sys.exit(141)
    except OSError as e:
        _drop_output()
        report_failure(WorkError("the output", f"cannot be written ({e.strerror})", remedy="Check where it goes."))
        sys.exit(1)


def _run() -> int:
    """Run the command, report an error that ends it, and return the exit status."""
    try:
        return _attempt()
    finally:
        # A failure to write can still be reported by the caller.
        sys.stdout.flush()


def _attempt() -> int:
    try:
        return app(prog_name="rocwheel", standalone_mode=False) or 0
    except RocwheelError as e:
        error = e
    except typer.TyperException as e:
        error = usage_error(e)
    except (MemoryError, RuntimeError) as e:
        if not limit_remedy(e):
            raise
        error = memory_error()
    except OSError as e:
        if e.filename is None and not limit_remedy(e):
            raise
        logging.getLogger(__name__).debug("where it happened", exc_info=e)
        found = f"cannot be used ({e.strerror})"
        remedy = limit_remedy(e) or "Check that it is there, its permissions and the free space."
        error = WorkError(e.filename or "a file", found, remedy=remedy)
    report_failure(error, json=_is_json_wanted(sys.argv[1:]))
    return error.exit_status


def _is_json_wanted(words: list[str]) -> bool:
    """Return whether ``--json`` is among the words, which may be those of a command line that can't be read."""
    return "--json" in takewhile(lambda word: word != "--", words)


def _drop_output() -> None:
    """Redirect standard output to nowhere, so that Python's own last flush doesn't fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
