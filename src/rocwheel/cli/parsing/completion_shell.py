"""Completion for a shell that is named: the library installs and shows that of the shell it is called from."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from typer.completion import install_callback, show_callback

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["complete_named_shell", "describe_named_shell"]

_SHELLS = ("bash", "zsh", "fish")
_OPTIONS: dict[str, Any] = {"--install-completion": install_callback, "--show-completion": show_callback}
_HELP = {
    "--install-completion": "Install completion for the current shell",
    "--show-completion": "Print the script of completion for the current shell",
}


def complete_named_shell(context: Any, words: Sequence[str]) -> None:
    """Install or show completion, and exit, if the options before any command ask for that and a shell is behind them.

    Raises `InputError` for a shell that has none, and for other words beside it.
    """
    options = list(takewhile(lambda word: word.startswith("-"), words))
    place = next((place for place, word in enumerate(options) if word.partition("=")[0] in _OPTIONS), None)
    if place is None:
        return
    option, _, value = words[place].partition("=")
    named = [word for word in (value, *words[place + 1 :]) if word not in {"", "--"}]
    if all(word.startswith("-") for word in named):  # none, so it is that of the process around
        return
    if named[0] not in _SHELLS:
        remedy = "Without a word it takes the shell that it is called from."
        raise InputError(option, f"is {named[0]!r}", expected=f"one of {', '.join(_SHELLS)}", remedy=remedy)
    if named[1:]:
        raise InputError(option, f"is followed by {named[1]!r}", expected=f"nothing behind {named[0]}")
    _OPTIONS[option](context, None, named[0])


def describe_named_shell(parameters: Iterable[Any]) -> None:
    """Say in the help of these options that they take a shell's name."""
    for parameter in parameters:
        if _OPTIONS.keys() & {*parameter.opts}:
            parameter.help = f"{_HELP[max(parameter.opts, key=len)]}, or for bash, zsh or fish where one is named."
