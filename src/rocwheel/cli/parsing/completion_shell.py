"""Completion for a shell that is named: the library installs and shows that of the shell it is called from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.completion import install_callback, show_callback

from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["complete_named_shell"]

_SHELLS = ("bash", "zsh", "fish")
_OPTIONS: dict[str, Any] = {"--install-completion": install_callback, "--show-completion": show_callback}


def complete_named_shell(context: Any, words: Sequence[str]) -> None:
    """Install or show completion, and exit, if that is what the words are and a shell is behind the option.

    Raises `InputError` for a shell that has none, and for more words.
    """
    option, _, value = words[0].partition("=") if words else ("", "", "")
    named = [*([value] if value else []), *words[1:]]
    if option not in _OPTIONS or not named or named[0].startswith("-"):
        return
    if named[0] not in _SHELLS or len(named) > 1:
        found, remedy = f"is {' '.join(named)!r}", "Without a word it takes the shell that it is called from."
        raise InputError(option, found, expected=f"one of {', '.join(_SHELLS)}", remedy=remedy)
    _OPTIONS[option](context, None, named[0])
