"""Log records, on standard error."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from rocwheel.cli.output import setup_logging

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.mark.parametrize(
    ("quiet", "verbose", "shown"),
    [
        pytest.param(False, False, ["warning", "error"], id="by default"),
        pytest.param(False, True, ["debug", "warning", "error"], id="verbose"),
        pytest.param(True, False, ["error"], id="quiet"),
        pytest.param(True, True, ["error"], id="quiet wins"),
    ],
)
def test_log_records_are_shown_by_level(messages: io.StringIO, quiet: bool, verbose: bool, shown: list[str]) -> None:
    setup_logging(quiet=quiet, verbose=verbose)
    logger = logging.getLogger("rocwheel.test")
    logger.debug("debug")
    logger.warning("warning")
    logger.error("error")
    assert [line.split()[-1] for line in messages.getvalue().splitlines()] == shown
