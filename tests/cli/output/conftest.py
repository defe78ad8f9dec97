"""What tests of messages look at."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rocwheel.cli.output import LazyConsole


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Catch what goes to standard error, as a log would."""
    stream = io.StringIO()
    console = LazyConsole(stderr=True)
    console.rich = Console(file=stream, soft_wrap=True, highlight=False)
    for module in ("output", "progress"):
        monkeypatch.setattr(f"rocwheel.cli.{module}.messages", console)
    return stream
