"""Options that several commands take, read in one place into a value that each of them gets."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["takes"]


def takes(**makers: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator for a command some of whose parameters are each made from several options.

    ``makers`` has, by the name of such a parameter, the function that makes its value. The parameters of that function
    are the options. They stand in the place of the command's parameter, but required ones come first.
    """
    groups = {name: inspect.signature(make, eval_str=True).parameters for name, make in makers.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        options = [option for name in own for option in groups.get(name, {name: own[name]}).values()]

        def run(**given: Any) -> None:
            made = {name: make(**{key: given.pop(key) for key in groups[name]}) for name, make in makers.items()}
            command(**made, **given)

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        # Typer reads a function's signature.
        options.sort(key=lambda option: option.default is not option.empty)
        keywords = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in options]
        run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
        return run

    return decorate
