"""Finds calls of rocm-jax's ``build/build.py`` in shell scripts, Makefiles, and workflows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from rocwheel.core.messages import quoted
from rocwheel.frameworks.jax.build_py import SUBCOMMANDS, TOOL, old_options, takes_value
from rocwheel.frameworks.jax.shell import ShellCommand, held, shell_commands
from rocwheel.frameworks.jax.words import CommandForm, Reference, only_reference, pieces, reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rocwheel.frameworks.jax.words import Language


class OptionalWords(msgspec.Struct, frozen=True):
    """Arguments that a call has only under a condition."""

    line: int
    condition: str
    """The condition's source text, such as ``if rbe``."""
    words: tuple[str, ...]


class OldCall(msgspec.Struct, frozen=True):
    """A call of the old tool, with the environment variables before the program."""

    first_line: int
    last_line: int
    words: tuple[str, ...]
    """Literal words, except for references from `rocwheel.frameworks.jax.words`."""
    form: CommandForm
    """The syntax for commands at this place."""
    template: bool = False
    """Whether the call is in a Python string that ``%`` fills in."""
    optional: tuple[OptionalWords, ...] = ()


class UndecidedCall(msgspec.Struct, frozen=True):
    """A call whose meaning isn't clear from its file."""

    first_line: int
    last_line: int
    reason: str
    is_broken: bool = False
    """Whether the file isn't valid shell syntax from this place on, so that later calls are uncertain."""


class OldCalls(msgspec.Struct, frozen=True):
    """The calls in a file, sorted by line."""

    calls: tuple[OldCall, ...]
    undecided: tuple[UndecidedCall, ...]


class UndecidedError(Exception):
    """A call's meaning isn't clear. The text is the reason."""


def call_start(words: list[str]) -> int | None:
    """Return the index of the old tool in a command with one of its subcommands, or `None` for other commands."""
    for index, word in enumerate(words):
        if word.rpartition("/")[2] == TOOL:
            behind = words[index + 1 :]
            return index if any(item in SUBCOMMANDS or "\0" in item for item in behind) else None
    return None


_NAME = re.compile(r"\$[({]?([A-Za-z_][\w.-]*)(?:\[[@*]\])?[)}]?")
_MOST_WORDS = 10_000
_REMEDY = "translate the complete command line separately"


class Definition(msgspec.Struct, frozen=True):
    """The value of a variable in an assignment, as the words that result when the variable isn't quoted."""

    line: int
    words: tuple[str, ...]
    certain: bool = True
    """False for a conditional assignment, and for an assignment that appends to the value."""


Definitions = dict[str, list[Definition]]


def expand_arguments(words: Sequence[str], definitions: Mapping[str, list[Definition]]) -> list[str]:
    """Return a call's arguments after the expansion of variables that contain arguments or decide the translation.

    Raises `UndecidedError` for such a variable unless the file sets it exactly once and unconditionally.
    """
    return list(_Expansion(definitions).arguments(words, ()))


class _Expansion:
    def __init__(self, definitions: Mapping[str, list[Definition]]) -> None:
        self.definitions = definitions
        self.count = 0

    def arguments(self, words: Sequence[str], within: tuple[str, ...]) -> Iterator[str]:
        before = ""
        for word in words:
            self.count += 1
            if self.count > _MOST_WORDS:
                message = f"its variables contain more than {_MOST_WORDS} words"
                raise UndecidedError(message)
            part = only_reference(word)
            if part is None or takes_value(before):
                yield self._decided(before, word)
            else:
                yield from self._brought(part, within)
            before = word

    def _brought(self, part: Reference, within: tuple[str, ...]) -> Iterator[str]:
        match = _NAME.fullmatch(part.text)
        name = match[1] if match else ""
        if name in within:
            message = f"{quoted(part.text)} is defined in terms of itself"
            raise UndecidedError(message)
        found = self.definitions.get(name, [])
        if not found:
            message = f"{quoted(part.text)} contains options, and this file doesn't set the variable: {_REMEDY}"
            raise UndecidedError(message)
        if len(found) > 1 or not found[0].certain:
            lines = ", ".join(str(item.line) for item in found[:10])
            message = f"{quoted(part.text)} contains options that depend on earlier commands (line {lines}): {_REMEDY}"
            raise UndecidedError(message)
        yield from self.arguments(found[0].words, (*within, name))

    def _decided(self, before: str, word: str) -> str:
        option, equals, value = word.partition("=")
        name = (option if equals else before).removeprefix("--")
        old_option = old_options().get(name)
        if old_option is None or not old_option.decides or "\0" not in word:
            return word
        parts = pieces(value if equals else word)
        decided = "".join(self._literal(part) if isinstance(part, Reference) else str(part) for part in parts)
        return f"{option}={decided}" if equals else decided

    def _literal(self, part: Reference) -> str:
        match = _NAME.fullmatch(part.text)
        found = self.definitions.get(match[1], []) if match else []
        if len(found) == 1 and found[0].certain and len(found[0].words) == 1 and "\0" not in found[0].words[0]:
            return found[0].words[0]
        message = f"{quoted(part.text)} decides the new commands, and this file doesn't set the variable: {_REMEDY}"
        raise UndecidedError(message)


def split_fields(word: str) -> tuple[str, ...]:
    """Split a value at spaces, as a shell does if the variable isn't quoted. References aren't split."""
    fields, current = [], ""
    for part in pieces(word):
        if isinstance(part, str):
            first, *rest = re.split(r"\s+", part)
            current += first
            for item in rest:
                fields.append(current)
                current = item
        elif isinstance(part, Reference):
            # A shell splits the value if the variable isn't quoted, even if the assignment quotes the value.
            current += reference(part.text, part.language, "unquoted")
    return tuple(field for field in [*fields, current] if field)


_SHELL_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_DECLARING = frozenset({"export", "readonly", "local", "declare", "typeset"})
_OPENING = frozenset({"if", "while", "until", "for", "case", "select"})
_CLOSING = frozenset({"fi", "done", "esac"})
_INNER = frozenset({"then", "else", "elif", "do", "{", "!"})
_PYTHON = re.compile(r"python[0-9.]*")
_PREFIXES = frozenset({"env", "exec", "time", "nohup", "sudo", "then", "else", "do", "!", "{", "command", "if"})
_BUILDERS = ("ci_build", "build_wheels.py")
_INNER_CALL = re.compile(rf"{re.escape(TOOL)}\s+(?:build|requirements)")
"""A call inside a string that is a command."""


def read_shell_calls(text: str, first_line: int = 1, *, certain: bool = True) -> OldCalls:
    """Return the calls in a shell script. If it is ``certain`` to be a script, also report unclosed quotes."""
    commands = list(shell_commands(text, first_line))
    found = calls_of_commands(commands, shell_definitions(commands), "shell")
    unclosed = [_unclosed(command) for command in commands if certain and command.unclosed]
    # For calls after an open quote, the quote is the only reason.
    unclosed_lines = {item.last_line for item in unclosed}
    undecided = [*unclosed, *(item for item in found.undecided if item.last_line not in unclosed_lines)]
    return OldCalls(found.calls, tuple(sorted(undecided, key=lambda item: item.first_line)))


def _unclosed(command: ShellCommand) -> UndecidedCall:
    line, quote = command.unclosed or (command.first_line, "")
    reason = f"the quote {quote} in line {line} is never closed, so this isn't a valid script: close the quote"
    return UndecidedCall(line, command.last_line, reason, is_broken=True)


def calls_of_commands(
    commands: Iterable[ShellCommand], definitions: Definitions, form: CommandForm, *, template: bool = False
) -> OldCalls:
    """Return the calls among commands."""
    calls, undecided = [], []
    for command in commands:
        try:
            words = _call_words(command.words, definitions)
        except UndecidedError as e:
            undecided.append(UndecidedCall(command.first_line, command.last_line, str(e)))
            continue
        if words and command.unclosed:
            undecided.append(_unclosed(command))
        elif words:
            calls.append(OldCall(command.first_line, command.last_line, words, form, template))
    return OldCalls(tuple(calls), tuple(undecided))


def _call_words(words: Sequence[str], definitions: Definitions) -> tuple[str, ...]:
    """Return the words of a call after expansion, or an empty tuple for another command."""
    names = [word.lstrip("@-+") if index == 0 else word for index, word in enumerate(words)]
    start = call_start(names)
    if start is None or not _runs(names[:start]):
        check_indirect(names)
        return ()
    prefix = (word for word in names[:start] if _SHELL_ASSIGNMENT.fullmatch(word) or _is_python(word))
    return (*prefix, names[start], *expand_arguments(names[start + 1 :], definitions))


def check_indirect(words: Sequence[str]) -> None:
    """Raise `UndecidedError` for a command that runs the old tool through another program."""
    for index, word in enumerate(words):
        if index and _INNER_CALL.search(word):
            message = "is part of a string that another shell runs: translate this call separately"
            raise UndecidedError(message)
        if word.rpartition("/")[2] in _BUILDERS and _runs(words[:index]):
            message = f"{word} calls {TOOL}: pass that file, too"
            raise UndecidedError(message)


def _runs(before: Sequence[str]) -> bool:
    """Return whether the words before a program run that program."""
    last = before[-1] if before else ""
    if not last or last in _PREFIXES or _SHELL_ASSIGNMENT.fullmatch(last) or last.endswith("\0"):
        return True
    return _is_python(last) or (last.startswith("-") and _runs(before[:-1]))


def _is_python(word: str) -> bool:
    return bool(_PYTHON.fullmatch(word.rpartition("/")[2]))


def shell_definitions(commands: Iterable[ShellCommand]) -> Definitions:
    """Return the variables that a script sets. Values are split in the same way as for unquoted variables."""
    found: Definitions = {}
    depth = 0
    for command in commands:
        words = list(command.words)
        while words and words[0] in _INNER:
            del words[0]
        first = words[0] if words else ""
        depth += (first in _OPENING) - (first in _CLOSING)
        if first in _DECLARING:
            words = [word for word in words[1:] if not word.startswith("-")]
        matches = [_SHELL_ASSIGNMENT.fullmatch(word) for word in words]
        if not all(matches):
            continue
        for match in filter(None, matches):
            value = split_fields(match[3]) if command.array is None else command.array
            certain = not (depth or command.chained or match[2])
            found.setdefault(match[1], []).append(Definition(command.first_line, value, certain))
    return found


_MAKE_ASSIGNMENT = re.compile(
    r"\s*(?:(?:export|override|private)\s+)*([\w.-]+)\s*(::?:?=|\?=|\+=|!=|=)[ \t]*(.*)", re.DOTALL
)
_CONDITION = re.compile(r"\s*(ifeq|ifneq|ifdef|ifndef)\b")
_CONDITION_END = re.compile(r"\s*endif\b")
_FILLED_IN = re.compile(
    r"(?P<dollar>\$\$)"
    r"|(?P<make>\$\((?:[^()\n]|\([^()\n]*\))*\)|\$\{(?:[^{}\n]|\{[^{}\n]*\})*\}|\$[A-Za-z@<^?*+|%])"
)
_TEMPLATE = re.compile(r"%(?:\((?P<name>\w+)\)s|(?P<percent>%))")
_CONTINUED = re.compile(r"\\\n[ \t]*")


def read_makefile_calls(text: str, first_line: int = 1, *, template: bool = False) -> OldCalls:
    """Return the calls in a Makefile. A ``template`` is a Python string that ``%`` formatting turns into a Makefile."""
    definitions: Definitions = {}
    recipes = []
    depth = 0
    for line, logical in _logical_lines(text, first_line):
        depth += bool(_CONDITION.match(logical)) - bool(_CONDITION_END.match(logical))
        if logical.startswith("\t"):
            recipes.append((line, logical))
        elif match := _MAKE_ASSIGNMENT.fullmatch(logical):
            value = _CONTINUED.sub(" ", match[3])
            words = tuple(word for command in _commands(value, line, template=template) for word in command.words)
            certain = not depth and match[2] not in {"+=", "!="}
            definitions.setdefault(match[1], []).append(Definition(line, words, certain))
    commands = [
        command
        for line, recipe in recipes
        if "build" in recipe
        for command in _commands(recipe, line, template=template)
    ]
    return calls_of_commands(commands, definitions, "makefile", template=template)


def _commands(text: str, line: int, *, template: bool) -> Iterator[ShellCommand]:
    """Yield the shell commands of a recipe. References represent the parts that make and Python fill in."""
    references: list[tuple[str, Language]] = []

    def hold(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        references.append((match["make"], "make"))
        return held(len(references) - 1)

    def hold_name(match: re.Match[str]) -> str:
        if match["percent"]:
            return "%"
        references.append((match[0], "template"))
        return held(len(references) - 1)

    kept = _TEMPLATE.sub(hold_name, text) if template else text
    return shell_commands(_FILLED_IN.sub(hold, kept), line, references)


def _logical_lines(text: str, first_line: int) -> Iterator[tuple[int, str]]:
    """Yield logical lines, each with the number of its first line."""
    collected: list[str] = []
    start = first_line
    for number, line in enumerate(text.split("\n"), first_line):
        if not collected:
            start = number
        collected.append(line)
        if not line.endswith("\\"):
            yield start, "\n".join(collected)
            collected = []
    if collected:
        yield start, "\n".join(collected)


class FoldedStep(NamedTuple):
    """A workflow step whose lines YAML joins."""

    head: int
    """The index of the line with the ``run`` key."""
    indent: str
    """The text before the key."""
    is_whole: bool
    """Whether the step runs nothing except the lines in question."""


_RUN = re.compile(r"(?P<indent>[ ]*(?:-[ ]+)*)(?P<key>run|[\"']run[\"'])[ ]*:(?:[ ]+(?P<value>.*))?$")
_BLOCK = re.compile(r"[|>][-+0-9]*[ ]*(#.*)?")
_NO_TEXT = re.compile(r"(?:>[-+0-9]*)?[ ]*(?:#.*)?")
_COMMAND = re.compile(r"(?:\bpython[0-9.]*[ ]+(?:-\S+[ ]+)*|\./)[\w./-]*\bbuild/build\.py\b")
_SCRIPT, _LONGEST = "build/build.py", 1000
_EXPRESSION = re.compile(r"\$\{\{[^\n]*?\}\}")


def read_workflow_calls(text: str) -> OldCalls:
    """Return the calls in a workflow's steps."""
    calls: list[OldCall] = []
    lines = text.split("\n")
    scripts = list(_scripts(lines))
    undecided = list(_elsewhere(lines, scripts))
    for line, script in scripts:
        if "build" not in script:
            continue
        references: list[tuple[str, Language]] = []

        def hold(match: re.Match[str], found: list[tuple[str, Language]] = references) -> str:
            found.append((match[0], "workflow"))
            return held(len(found) - 1)

        commands = list(shell_commands(_EXPRESSION.sub(hold, script), line, references))
        made = calls_of_commands(commands, shell_definitions(commands), "ci")
        calls += made.calls
        undecided += made.undecided
    return OldCalls(tuple(calls), tuple(sorted(undecided, key=lambda call: call.first_line)))


def _elsewhere(lines: list[str], scripts: list[tuple[int, str]]) -> Iterator[UndecidedCall]:
    """Yield the lines with a call outside of ``run`` steps, for example, in an action's input."""
    read = {line + offset for line, script in scripts for offset in range(script.count("\n") + 1)}
    for number, line in enumerate(lines, 1):
        if number not in read and _has_command(line) and not line.lstrip().startswith("#"):
            reason = "isn't part of a run step: translate the command line separately"
            yield UndecidedCall(number, number, reason)


def _has_command(line: str) -> bool:
    """Return whether a line calls the tool.

    A very long line counts if it mentions the tool, because matching would be slow.
    """
    return _SCRIPT in line and (len(line) > _LONGEST or bool(_COMMAND.search(line)))


def _scripts(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the text of each ``run`` key with the number of its first line."""
    index = 0
    while index < len(lines):
        match = _RUN.match(lines[index])
        index += 1
        if match is None:
            continue
        value = (match["value"] or "").strip()
        start = index
        index = _block_end(lines, index, len(match["indent"]))
        following = "\n".join(lines[start:index]).rstrip()
        if value.startswith("|") and _BLOCK.fullmatch(value):
            yield start + 1, following
        elif not value or _BLOCK.fullmatch(value):
            yield start + 1, _folded(following)
        else:
            yield start, _unquoted(_folded(f"{value}\n{following}".rstrip()))


def folded_step(lines: list[str], first: int, last: int) -> FoldedStep | None:
    """Return the step that joins lines ``first`` up to ``last`` with others, or `None` if there is no such step."""
    column = _column(lines[first])
    for index in range(first - 1, -1, -1):
        match = _RUN.match(lines[index])
        value = ((match["value"] or "") if match else "").strip()
        if match and len(match["indent"]) < column and not value.startswith("|"):
            end = _block_end(lines, index + 1, len(match["indent"]))
            others = [*lines[index + 1 : first], *lines[last:end]]
            is_whole = not any(line.strip() for line in others) and bool(_NO_TEXT.fullmatch(value))
            return FoldedStep(index, match["indent"], is_whole)
        if lines[index].strip() and _column(lines[index]) < column:
            return None
    return None


def _folded(text: str) -> str:
    """Return lines that YAML joins with spaces, with line continuations for the shell."""
    return text.replace("\n", " \\\n")


def _block_end(lines: list[str], index: int, indent: int) -> int:
    while index < len(lines) and (not lines[index].strip() or _column(lines[index]) > indent):
        index += 1
    return index


def _column(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) > 1 and value[0] == value[-1] == '"':
        return re.sub(r'\\(["\\])', r"\1", value[1:-1])
    return value
