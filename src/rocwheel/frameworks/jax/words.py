"""Represents words of commands, and quotes them for a shell, make, or a workflow's shell."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


Language = Literal["shell", "make", "either", "workflow"]
"""The program that fills in a reference. ``either``: the same syntax for a shell and make.

``workflow``: GitHub's ``${{ ... }}``.
"""

Quoting = Literal["quoted", "unquoted", "bare"]
"""``bare``: the value is split at spaces, and an empty value isn't a word.

``unquoted``: make adds no quotes around the value, because the value may already contain quotes.
"""

MARKS = frozenset("\0\1\2\3\x1f")
"""Characters that can't occur in the words of commands. They delimit the parts that are filled in."""

_BY_LETTER: dict[str, Any] = {name[0]: name for name in (*get_args(Language), *get_args(Quoting))}
"""Languages and quoting styles, keyed by the letters that represent them in words."""
_PIECE = re.compile("\0([smew])([qub])([^\0]*)\0|\1([^\1\2]*)\2")
_OF_THE_LOADER = "ORIGIN|LIB|PLATFORM|SITE_PACKAGES"
_VARIABLE = re.compile(
    r"(?P<workflow>\$\{\{[^\n]*?\}\})"
    r"|(?P<either>\$\{[A-Za-z_][^{}\n]*\}|\$\([^()\n]*\))"
    rf"|(?P<shell>\$(?!(?:{_OF_THE_LOADER})\b)[A-Za-z_]\w*)"
)
_OF_MAKE = re.compile(r"\$\((?P<name>[A-Z_][A-Z0-9_]*)\)|\$\$(?=[A-Za-z_(]|\{(?!\{))")
"""Syntax in lines from Makefile recipes: make's variables, and dollar signs for the shell."""


class Reference(msgspec.Struct, frozen=True):
    """A part of a word that is filled in later. ``text`` is the source text, such as ``${ROCM_PATH}``."""

    language: Language
    text: str
    quoting: Quoting = "quoted"


class Lookup(msgspec.Struct, frozen=True):
    """A part of a word that is a command's output."""

    words: tuple[str, ...]


def reference(text: str, language: Language, quoting: Quoting = "quoted") -> str:
    """Return a placeholder in a word for a `Reference`."""
    return f"\0{language[0]}{quoting[0]}{text}\0"


def lookup(*words: str) -> str:
    """Return a placeholder in a word for a command's output. The command's words can contain references."""
    return "\1" + "\x1f".join(words) + "\2"


def pieces(word: str) -> Iterator[str | Reference | Lookup]:
    """Yield the parts of a word in order."""
    end = 0
    for match in _PIECE.finditer(word):
        if match.start() > end:
            yield word[end : match.start()]
        end = match.end()
        if match[1]:
            yield Reference(_BY_LETTER[match[1]], match[3], _BY_LETTER[match[2]])
        else:
            yield Lookup(tuple(match[4].split("\x1f")))
    if end < len(word):
        yield word[end:]


def has_references(word: str) -> bool:
    """Return whether the word contains parts that are filled in later."""
    return "\0" in word


def only_reference(word: str) -> Reference | None:
    """Return the reference if the word consists only of a reference, or `None` otherwise."""
    parts = list(pieces(word))
    return parts[0] if len(parts) == 1 and isinstance(parts[0], Reference) else None


def bare(word: str) -> str:
    """Return the word with all references marked as ``bare``."""
    parts = (
        reference(part.text, part.language, "bare") if isinstance(part, Reference) else part
        for part in pieces(word)
        if not isinstance(part, Lookup)
    )
    return "".join(parts)


def shown(word: str) -> str:
    """Return the word in a readable form: references as their source text, and commands instead of their output."""
    return "".join(map(_shown, pieces(word)))


def _shown(part: str | Reference | Lookup) -> str:
    if isinstance(part, Reference):
        return part.text
    return part if isinstance(part, str) else " ".join(part.words)


def mark_variables(word: str) -> str:
    """Return a word in which variables are marked: ``${NAME}``, ``$(NAME)``, ``$NAME``, ``${{ expression }}``.

    Variables for the dynamic loader, such as ``$ORIGIN``, remain literal. Raises `InputError` for a word that contains
    `MARKS`.
    """
    if MARKS & {*word}:
        raise InputError(ascii(word), "isn't text", expected="a word without control characters")

    def marked(match: re.Match[str]) -> str:
        if match["workflow"]:
            return reference(match[0], "workflow")
        return reference(match[0], "either") if match["either"] else reference(match[0], "shell")

    return _VARIABLE.sub(marked, word)


def makes_spellings(word: str) -> list[str]:
    """Return the parts of a word that use make's syntax: ``$(NAME)`` with capital letters, or ``$$NAME``.

    A shell would run a program called NAME, or insert its process ID before the name.
    """
    spelled = (match["name"] for match in _OF_MAKE.finditer(word))
    doubled = re.findall(r"\$\$(?:[A-Za-z_]\w*|\{[^{}\n]*\}|\([^()\n]*\))", word)
    return [*(f"$({name})" for name in spelled if name), *doubled]


def without_make(word: str) -> str:
    """Return the word with the shell's syntax instead of make's: ``${NAME?}`` and ``$NAME``.

    A make variable need not be an environment variable, so the question mark makes the shell exit if it isn't set.
    """
    return _OF_MAKE.sub(lambda match: f"${{{match['name']}?}}" if match["name"] else "$", word)


CommandForm = Literal["shell", "makefile", "ci"]
"""``ci``: steps of a workflow file in YAML."""


def spell_line(words: Sequence[str], form: CommandForm) -> str:
    """Return a command as a single line."""
    return " ".join(_joined(item, _LITERALS[form], _WORDS[form]) for item in words)


def spell_make_value(words: Sequence[str]) -> str:
    """Return words as the value of a make variable that a recipe uses without quotes."""
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
    # make expands $ before it passes a line to the shell.
    return shlex.quote(text).replace("$", "$$")


def _ci_literal(text: str) -> str:
    # GitHub evaluates ${{ everywhere in a workflow.
    return shlex.quote(text).replace("${{", "$'{{'")


def _shell_filled(part: Reference) -> str:
    return part.text if part.quoting == "bare" else f'"{part.text}"'


def _make_filled(part: Reference) -> str:
    if part.language in ("make", "either"):
        # The variable's value often has its own quotes, which the shell would interpret.
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
