"""What tests of messages look at."""

from __future__ import annotations

import io

import pytest
from rich.console import Console


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Catch what goes to standard error, as a log would."""
    stream = io.StringIO()
    for module in ("errors", "logs", "progress"):
        console = Console(file=stream, soft_wrap=True, highlight=False)
        monkeypatch.setattr(f"rocwheel.cli.output.{module}.messages", console)
    return stream
