"""Rich consoles that escape control characters in names and other text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook

from rocwheel.core.messages import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.segment import Segment


class _Printable:
    """An object for Rich with escaped control characters, because names in files can contain any characters."""

    def __init__(self, renderable: Any) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


class _PrintableHook(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Printable(renderable) for renderable in renderables]


class _Terminal(Console):
    """A console that escapes control characters before Rich removes some of them."""

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print the objects."""
        super().print(*(printable(each) if isinstance(each, str) else each for each in objects), **settings)


def new_console(**settings: Any) -> Console:
    """Return a console that prints only its own control characters."""
    console = _Terminal(highlight=False, emoji=False, **settings)
    console.push_render_hook(_PrintableHook())
    return console
