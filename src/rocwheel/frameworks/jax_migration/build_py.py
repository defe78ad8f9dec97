"""Command lines of rocm-jax's ``build/build.py``, read as its argparse reads them."""

from __future__ import annotations

import argparse
import functools
import re
import shlex
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import msgspec

from rocwheel.core.decoding import read_table
from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.given_options import require_values
from rocwheel.frameworks.jax.words import Reference, bare, has_references, is_reference, pieces, reference, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rocwheel.frameworks.jax.words import Lookup

__all__ = [
    "SUBCOMMANDS",
    "TOOL",
    "TOOL_PATH",
    "Fate",
    "OldCommand",
    "option_fates",
    "parse_build_py",
    "variable_fates",
    "wheel_cpus",
]

TOOL = "build.py"
"""The name of the old tool's file."""
TOOL_PATH = f"build/{TOOL}"
"""Where it stands in rocm-jax's workspace."""
SUBCOMMANDS = ("build", "requirements_update")
"""What it can be told to do."""

_FILE = "build_py.toml"
_COMMAND = "command line"
_EXPECTED = f"a command line that {TOOL_PATH} takes"
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_HELD = re.compile("\3([0-9]+)\3")
_MAKES = ("make", "gmake")
_INTERPRETER = re.compile(r"python(3\.[0-9]{1,2})")


class Fate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of an option: ``now`` replaces it, or it is ``dropped`` for a reason; ``wrong`` says what it did."""

    kind: Literal["value", "optional", "flag", "append"] = "value"
    """``optional``: a value that may be left out, which means ``true``."""
    now: str = ""
    dropped: str = ""
    wrong: str = ""
    pattern: str = ""
    """A regular expression for the values that can be translated; empty for any."""
    expected: str = ""
    """The same in words."""
    carried: tuple[str, ...] = ()
    """Options of Bazel, up to their value, that say the same when the value is known only to the shell or make."""
    decides: bool = False
    """Whether the value has to be known for a translation."""


class OldCommand(msgspec.Struct, frozen=True):
    """A parsed command line. Options that were not given are absent."""

    subcommand: str
    options: dict[str, str | bool | list[str]]
    variables: dict[str, str]
    interpreter: str = ""
    """The Python that ran the old tool, such as ``3.12``; empty if the program's name doesn't say it."""
    parted: tuple[str, ...] = ()
    """Values that the old tool's shell split into several words, or removed quotes from."""
    carried: dict[str, str] = {}
    """Options and variables whose values a shell, make, a workflow or Python fills in; they are in no other field."""

    def text(self, name: str, default: str = "") -> str:
        """Return the value of an option that takes one."""
        value = self.options.get(name, default)
        return value if isinstance(value, str) else default

    def texts(self, name: str) -> list[str]:
        """Return the values of an option that may be given several times."""
        value = self.options.get(name, [])
        return value if isinstance(value, list) else []

    def value(self, name: str, default: str = "") -> str:
        """Return the value of an option or variable, whoever fills it in."""
        return self.carried.get(name) or self.text(name) or self.variables.get(name, default)

    def has(self, name: str) -> bool:
        """Return whether an option was given."""
        return name in self.options


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    wheel_cpus: frozenset[str]
    options: dict[str, Fate]
    variables: dict[str, Fate]


@functools.cache
def _data() -> _Data:
    return read_table(__package__, _FILE, _Data)


def wheel_cpus() -> frozenset[str]:
    """Return the values of ``--target_cpu`` that the old tool had a wheel tag for."""
    return _data().wheel_cpus


def option_fates() -> dict[str, Fate]:
    """Return what becomes of each option, by its name without dashes."""
    return _data().options


def variable_fates() -> dict[str, Fate]:
    """Return what becomes of each environment variable that the old wheel scripts read."""
    return _data().variables


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        remedy = "Give the whole old command line after --."
        raise InputError(_COMMAND, message, expected=_EXPECTED, remedy=remedy)


def parse_build_py(words: Sequence[str]) -> OldCommand:
    """Parse ``[NAME=VALUE ...] [python] build/build.py build|requirements_update OPTIONS``.

    Options may be abbreviated, as the old tool's argparse allowed. Raises `InputError` for any other command line.
    """
    rest = list(words)
    start = next((index for index, word in enumerate(rest) if word.endswith(TOOL)), -1)
    if start < 0:
        _check_caller(rest)
    assignments = (_ASSIGNMENT.fullmatch(word) for word in rest[: max(start, 0)])
    variables = {match[1]: match[2] for match in assignments if match}
    given = vars(_parser().parse_args(rest[start + 1 :]))
    subcommand = given.pop("subcommand")
    options = {name: value for name, value in given.items() if value is not None}
    require_values(options)
    carried = _take_carried(options, option_fates(), "--") | _take_carried(variables, variable_fates(), "")
    _check_patterns(options)
    texts = [text for value in options.values() if isinstance(value, list) for text in value]
    parted = tuple(shown(text) for text in texts if not is_reference(text) and _shell_words(text) != [text])
    for name, value in options.items():
        if isinstance(value, list):
            options[name] = [word for text in value for word in _shell_words(text)]
    interpreter = _interpreter(rest[: max(start, 0)])
    return OldCommand(subcommand, options, variables, interpreter, parted, carried)


def _check_caller(words: Sequence[str]) -> None:
    """Raise `InputError` for a command that runs a file which calls the old tool."""
    program = next((word for word in words if not _ASSIGNMENT.fullmatch(word)), "")
    script = next((word for word in words if word.endswith((".sh", ".bash", ".mk"))), "")
    if program.rpartition("/")[2] in _MAKES:
        script = script or "Makefile"
    if script:
        found = f"{shown(program)!r} runs {shown(script)!r}, not {TOOL_PATH}"
        remedy = f"Translate the calls in that file: --file {shown(script)}"
        raise InputError(_COMMAND, found, expected=_EXPECTED, remedy=remedy)


def _take_carried(values: dict[str, Any], fates: Mapping[str, Fate], dashes: str) -> dict[str, str]:
    """Remove the values with references and return them; raise `InputError` for one that has to be known."""
    found = {name: value for name, value in values.items() if isinstance(value, str) and has_references(value)}
    for name, value in found.items():
        if name in fates and fates[name].decides:
            option, remedy = f"{dashes}{name}", "Give the value that it has."
            text = f"is {shown(value)}, which is known only when the command runs"
            raise InputError(
                option, text, expected="the value itself, since it decides what the new ones are", remedy=remedy
            )
        del values[name]
    return found


def _check_patterns(options: Mapping[str, Any]) -> None:
    """Raise `InputError` for a value that the old tool did not take."""
    for name, fate in option_fates().items():
        value = options.get(name)
        if fate.pattern and value is not None and not re.fullmatch(fate.pattern, value):
            option = f"--{name}"
            raise InputError(option, f"is {value!r}", expected=fate.expected)


def _shell_words(text: str) -> list[str]:
    """Return the words into which the old tool's shell split a value; variables stay as they are written."""
    if is_reference(text):
        return [bare(text)]
    parts = list(pieces(text))
    held = "".join(part if isinstance(part, str) else f"\3{index}\3" for index, part in enumerate(parts))
    try:
        words = shlex.split(held)
    except ValueError as e:
        raise InputError(
            _COMMAND, f"has {shown(text)!r}, which a shell can't read ({e})", remedy="Close the quotes."
        ) from e
    return [_restored(word, parts) for word in words]


def _restored(word: str, parts: Sequence[str | Reference | Lookup]) -> str:
    def spelled(match: re.Match[str]) -> str:
        part = parts[int(match[1])]
        return reference(part.text, part.language, part.quoting) if isinstance(part, Reference) else match[0]

    restored = _HELD.sub(spelled, word)
    return bare(restored) if is_reference(restored) else restored


def _interpreter(words: Sequence[str]) -> str:
    names = (match[1] for word in words if (match := _INTERPRETER.fullmatch(word.rpartition("/")[2])))
    return next(names, "")


def _parser() -> argparse.ArgumentParser:
    # Options may stand before or behind the subcommand, whichever the old tool wanted.
    parser = _Parser(prog=TOOL, add_help=False, argument_default=None)
    parser.add_argument("subcommand", choices=SUBCOMMANDS)
    for name, fate in option_fates().items():
        if fate.kind == "flag":
            parser.add_argument(f"--{name}", action="store_const", const=True)
        elif fate.kind == "optional":
            parser.add_argument(f"--{name}", nargs="?", const="true")
        else:
            parser.add_argument(f"--{name}", action="append" if fate.kind == "append" else "store")
    return parser
