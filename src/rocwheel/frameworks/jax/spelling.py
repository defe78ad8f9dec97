"""Words of commands, quoted so that they arrive through a shell, make, a workflow's shell or Python as they are."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal

from rocwheel.frameworks.jax.words import Lookup, Reference, pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["CommandForm", "spell_line", "spell_make_value"]

CommandForm = Literal["shell", "makefile", "ci", "python"]
"""``ci``: steps of a workflow file, YAML. ``python``: a list of arguments."""


def spell_line(words: Sequence[str], form: CommandForm, *, template: bool = False) -> str:
    """Return a command in one line; with ``template`` for a text that Python fills in by ``%``."""
    if form == "python":
        return "[" + ", ".join(map(_python_word, words)) + "]"
    word = _WORDS[form]
    literal = (lambda text: _LITERALS[form](text).replace("%", "%%")) if template else _LITERALS[form]
    return " ".join(_joined(item, literal, word) for item in words)


def spell_make_value(words: Sequence[str]) -> str:
    """Return words as the value of a variable of make that a recipe names without quotes."""
    return shlex.join(words).replace("$", "$$").replace("#", r"\#")


def _joined(word: str, literal: Callable[[str], str], filled: Callable[[Reference], str]) -> str:
    parts = []
    for part in pieces(word):
        if isinstance(part, str):
            parts.append(literal(part))
        elif isinstance(part, Reference):
            parts.append(filled(part))
        else:
            dollar = literal("$").strip("'")
            parts.append(f'"{dollar}({" ".join(_joined(inner, literal, filled) for inner in part.words)})"')
    return "".join(parts) or "''"


def _make_literal(text: str) -> str:
    # make expands $ before it gives a line to the shell.
    return shlex.quote(text).replace("$", "$$")


def _ci_literal(text: str) -> str:
    # A workflow's own expressions begin with ${{, wherever they stand.
    return shlex.quote(text).replace("${{", "$'{{'")


def _shell_filled(part: Reference) -> str:
    return part.text if part.language == "template" or part.quoting == "bare" else f'"{part.text}"'


def _make_filled(part: Reference) -> str:
    if part.language in ("make", "either"):
        # The variable's value often has quotes of its own, which then were the shell's.
        if part.quoting == "bare":
            return f'$(subst ",,{part.text})'
        return f'"{part.text}"' if part.language == "make" and part.quoting == "quoted" else part.text
    return _shell_filled(part).replace("$", "$$") if part.language == "shell" else _shell_filled(part)


_LITERALS: dict[CommandForm, Callable[[str], str]] = {
    "shell": shlex.quote,
    "makefile": _make_literal,
    "ci": _ci_literal,
}
_WORDS: dict[CommandForm, Callable[[Reference], str]] = {
    "shell": _shell_filled,
    "makefile": _make_filled,
    "ci": _shell_filled,
}


def _python_word(word: str) -> str:
    parts = list(pieces(word))
    if len(parts) == 1 and isinstance(parts[0], Reference) and parts[0].quoting == "bare":
        return f"*shlex.split(str({parts[0].text}))"
    return " + ".join(map(_python_part, parts)) or '""'


def _python_part(part: str | Reference | Lookup) -> str:
    if isinstance(part, str):
        return _python_text(part)
    if isinstance(part, Reference):
        return f"str({part.text})" if part.language == "python" else _python_text(part.text)
    return f"subprocess.check_output([{', '.join(map(_python_word, part.words))}], text=True).strip()"


def _python_text(text: str) -> str:
    spelled = repr(text)
    return spelled if '"' in text or "\\" in spelled else f'"{spelled[1:-1]}"'
