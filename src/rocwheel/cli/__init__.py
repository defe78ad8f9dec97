"""The command line.

Each command has a module of the same name, which parses the words, calls one function, and prints the results.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from contextlib import contextmanager
from itertools import takewhile
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

from rocwheel.cli.app import app, check_words, is_help_wanted, run_words, usage_error
from rocwheel.cli.commands import load_commands
from rocwheel.cli.deprecated import replace_deprecated
from rocwheel.cli.output import begin_documents, messages, prepare_streams, report_document, report_error, set_quiet
from rocwheel.cli.progress import end_progress
from rocwheel.cli.reference_options import translate_reference_options
from rocwheel.core.errors import InputError, RocwheelError, WorkError, limit_remedy, memory_error
from rocwheel.core.shown_names import hide_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["app", "load_commands", "main"]

_INTERRUPTED = 130
_ABOUT = [{version, verbose} for version in ("--version", "-V") for verbose in ("--verbose", "-v")]


def main() -> None:
    """Run the command line, and turn intentional errors into a message and an exit status."""
    # If a signal ends a command, the command removes its temporary files, as after an error.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    prepare_streams()
    begin_documents()
    hide_secrets(sys.argv[1:])
    try:
        _end(_run())
    except KeyboardInterrupt:
        _end(_INTERRUPTED)
    except BrokenPipeError:
        _drop(sys.stdout)
        sys.exit(141)
    except OSError as e:
        _drop(sys.stdout)
        report_error(WorkError("the output", f"can't be written ({e.strerror})", remedy="Check its destination."))
        sys.exit(1)


def _end(status: int) -> NoReturn:
    if status == _INTERRUPTED and not _is_quiet(sys.argv[1:]):
        messages.print("interrupted", markup=False)
    sys.exit(status)


def _run() -> int:
    """Run the command, report an error that ends it, and return the exit status."""
    try:
        return _attempt()
    finally:
        end_progress()
        set_quiet(quiet=False)  # quietness applies to only one command
        # The caller can still report a write failure.
        sys.stdout.flush()


def _attempt() -> int:
    try:
        return _call()
    except RocwheelError as e:
        error = e
    except click.ClickException as e:
        error = usage_error(e)
    except (MemoryError, RuntimeError) as e:
        if limit_remedy(e):
            error = memory_error()
        elif isinstance(e.__context__, OSError):
            # Before Python 3.13, Path.resolve() raises this error for circular links.
            error = _file_error(e.__context__)
        else:
            raise
    except OSError as e:
        if isinstance(e, FileNotFoundError) and e.filename is None:
            found = "was removed or moved"
            error = InputError("the working directory", found, remedy="Change to an existing folder.")
        elif e.filename is None and not limit_remedy(e):
            raise
        else:
            error = _file_error(e)
    _report(error)
    return error.exit_status


def _report(error: RocwheelError) -> None:
    """Report an error as text and as a JSON document. If one of them can't be written, still write the other."""
    with _dropping(sys.stderr):
        report_error(error)
    if _is_json_wanted(sys.argv[1:]):
        with _dropping(sys.stdout):
            report_document(error)
            sys.stdout.flush()


@contextmanager
def _dropping(stream: TextIO) -> Iterator[None]:
    """Stop using a stream that can't be written. If its reader closed the stream, end the process."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError:
        _drop(stream)


def _call() -> int:
    """Run the command that the words specify. Raises the error that ends the command."""
    words, notices = replace_deprecated(sys.argv[1:])
    words, notes = translate_reference_options(words)
    set_quiet(quiet=_is_quiet(words))
    for line in (*notices, *(f"note: {note}" for note in notes)):
        messages.print(line, markup=False)
    if len(words) == len(_ABOUT[0]) and set(words) in _ABOUT:
        words = ["about"]
    load_commands(words)
    if is_help_wanted(words) or not any("://" in word for word in words):
        return run_words(words)
    from rocwheel.cli.remote import UrlPlaces, check_urls, fetch_folders, remote_inputs

    if check_urls(words):
        check_words(words, UrlPlaces(words))
    with remote_inputs(words) as inputs:
        return run_words(fetch_folders(words), inputs)


def _file_error(error: OSError) -> WorkError:
    logging.getLogger(__name__).debug("where it happened", exc_info=error)
    found = f"can't be used ({error.strerror})"
    remedy = limit_remedy(error) or "Check the path, its permissions, and the free disk space."
    return WorkError(error.filename or "a file", found, remedy=remedy)


def _is_quiet(words: list[str]) -> bool:
    return not {"--quiet", "-q"}.isdisjoint(words)


def _is_json_wanted(words: list[str]) -> bool:
    """Return whether ``--json`` is among the words, even if the command line is invalid."""
    return "--json" in takewhile(lambda word: word != "--", words)


def _drop(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that Python's final flush doesn't fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
