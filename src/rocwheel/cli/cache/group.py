"""``rocwheel cache``: the group of the commands about the cache of packed files."""

from __future__ import annotations

from rocwheel.cli.parsing.app import app
from rocwheel.cli.parsing.command import CommandApp

__all__ = ["cache", "cache_app"]

cache_app = CommandApp("cache", help="What builds keep for one another, and what was fetched from URLs.")
app.add_typer(cache_app)


@cache_app.callback()
def cache() -> None:
    """Hold the commands about the cache."""
