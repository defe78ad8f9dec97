"""Parses and edits BUILD, ``.bzl``, and ``.bazelrc`` files, and keeps the positions of their parts.

Starlark has the syntax of Python (Bazel's documentation, "Starlark language"). Therefore, Python's ``ast`` module
parses these files.
"""

from __future__ import annotations

import ast
import re
import shlex
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.decoding import parse_python
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_VALUE_OPTIONS = {"--repo_env", "--action_env", "--config", "--copt", "--host_copt", "--define", "--cxxopt"}
_LOGICAL = re.compile(r"(?:[^\n\\]|\\.?)*\n?", re.DOTALL)
_ENVIRONMENT = re.compile(r"--(?:repo|action)_env=(\w+)=(.*)", re.DOTALL)


class RcLine(msgspec.Struct, frozen=True):
    """A logical line: a command, such as ``build:rocm``, and its options.

    A backslash at the end of a line continues the line.
    """

    text: str
    command: str = ""
    options: tuple[str, ...] = ()

    @property
    def config(self) -> str:
        """The config that the line defines, or an empty string if the line is for no config."""
        return self.command.partition(":")[2]


def rc_lines(text: str) -> Iterator[RcLine]:
    """Yield the logical lines. Comments, blank lines, and lines that can't be split into words have no command."""
    for match in _LOGICAL.finditer(text):
        if match[0]:
            command, *options = _words(match[0]) or [""]
            yield RcLine(match[0], command, tuple(_joined(options)))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line.replace("\\\n", " "), comments=True)
    except ValueError:
        return []


def _joined(words: list[str]) -> Iterator[str]:
    """Yield the options. If an option's value is a separate word, join the two with ``=``."""
    rest = iter(words)
    for word in rest:
        yield f"{word}={next(rest, '')}" if word in _VALUE_OPTIONS else word


def config_options(text: str) -> dict[str, list[str]]:
    """Return the options of each config, in the order of the file."""
    options: dict[str, list[str]] = {}
    for line in rc_lines(text):
        if line.config:
            options.setdefault(line.config, []).extend(line.options)
    return options


def environment(options: list[str]) -> dict[str, str]:
    """Return the environment variables that options set for repositories and actions.

    The last value of a variable wins.
    """
    return {match[1]: match[2] for option in options if (match := _ENVIRONMENT.fullmatch(option))}


def without_lines(text: str, is_dropped: Callable[[RcLine], bool]) -> str:
    """Return the text without the dropped lines. A paragraph without remaining commands goes with its comments."""
    blocks = re.split(r"(\n\s*\n)", text)
    kept: list[str] = []
    for block, gap in zip(blocks[::2], [*blocks[1::2], ""], strict=False):
        lines = list(rc_lines(block))
        rest = [line for line in lines if not is_dropped(line)]
        if len(rest) == len(lines):
            kept.append(block + gap)
        elif any(line.command for line in rest):
            kept.append("".join(line.text for line in rest).rstrip("\n") + gap)
    return "".join(kept).rstrip("\n") + "\n"


_NOT_ASCII = re.compile(rb"[^\x00-\x7f]")
"""Bytes that can't occur in names and labels.

One question mark replaces each byte, so that all positions stay the same.
"""


class StarlarkFile:
    """A Starlark file with its syntax tree. Positions are byte offsets.

    Raises `InputError` for a syntax error.
    """

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.data = text.encode(errors="surrogateescape")
        starts = [0]
        for line in self.data.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        self._line_starts = starts
        try:
            self.tree = parse_python(_NOT_ASCII.sub(b"?", self.data), path)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
            number = e.lineno if isinstance(e, SyntaxError) else None
            place = f" (line {number})" if number else ""
            raise InputError(path, f"isn't valid Starlark{place}", remedy="Correct the file.") from e

    def calls(self, *names: str) -> Iterator[ast.Call]:
        """Yield all calls of the functions with these names, including nested calls."""
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and called(node) in names)

    def constants(self) -> dict[str, str]:
        """Return the string constants at the top level, keyed by variable name."""
        assignments = [node for node in self.tree.body if isinstance(node, ast.Assign)]
        return {
            target.id: node.value.value
            for node in assignments
            for target in node.targets
            if isinstance(target, ast.Name)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        }

    def strings(self) -> Iterator[str]:
        """Yield all strings in the file."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value

    def source(self, node: ast.expr | ast.stmt) -> str:
        """Return the source text of a node."""
        return self.data[self.start(node) : self.end(node)].decode(errors="surrogateescape")

    def start(self, node: ast.expr | ast.stmt | ast.keyword) -> int:
        """Return the offset of a node's first byte."""
        return self._line_starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Return the offset after a node's last byte."""
        return self._line_starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def line_start(self, number: int) -> int:
        """Return the offset of a line, counted from 1. For the line after the last one, return the end of the file."""
        return min(self._line_starts[number - 1], len(self.data))

    def before(self, node: ast.expr | ast.stmt | ast.keyword) -> bytes:
        """Return the text before a node on the same line."""
        return self.data[self.line_start(node.lineno) : self.start(node)]

    def indent(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        """Return the indentation of a node's line."""
        line = self.data[self.line_start(node.lineno) : self.line_start(node.lineno + 1)]
        return line[: len(line) - len(line.lstrip())].decode()


def called(node: ast.Call | ast.stmt) -> str:
    """Return the name of the called function, or an empty string if the node isn't a call or a call statement."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return called(node.value)
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def attribute(call: ast.Call, name: str) -> ast.expr | None:
    """Return the value of a rule's attribute, or `None` if the rule doesn't set the attribute."""
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def string_attribute(call: ast.Call, name: str) -> str:
    """Return the value of a rule's attribute if it is a plain string, or an empty string otherwise."""
    value = attribute(call, name)
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def loaded_names(node: ast.stmt) -> list[str]:
    """Return the names that a ``load`` statement defines, or an empty list for any other statement."""
    if called(node) != "load" or not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return []
    call = node.value
    names = [arg.value for arg in call.args[1:] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return [*names, *(keyword.arg for keyword in call.keywords if keyword.arg)]


Splice = tuple[int, int, str]
"""The start and end of a text, in bytes, and its replacement."""

_FIRST_ATTRIBUTES = ("name", "srcs", "hdrs")
"""Attributes that buildifier puts before all others."""


def spliced(file: StarlarkFile, splices: list[Splice]) -> str:
    """Return the file's text after the replacements. Splices must not overlap."""
    data = file.data
    for start, end, new in sorted(splices, reverse=True):
        data = data[:start] + new.encode(errors="surrogateescape") + data[end:]
    return data.decode(errors="surrogateescape")


def added_load(file: StarlarkFile, label: str, symbol: str) -> list[Splice]:
    """Return the splices that load a symbol, or an empty list if the file already loads the symbol.

    The new statement comes after the last ``load``, or before the first statement.
    """
    loads = [node for node in file.tree.body if called(node) == "load"]
    if any(symbol in loaded_names(node) for node in loads):
        return []
    line = f'load("{label}", "{symbol}")\n'
    if loads:
        place = file.line_start((loads[-1].end_lineno or loads[-1].lineno) + 1)
        return [(place, place, line)]
    body = file.tree.body[1:] if ast.get_docstring(file.tree) is not None else file.tree.body
    place = file.line_start(body[0].lineno) if body else len(file.data)
    return [(place, place, line + "\n")]


def added_to_attribute(
    file: StarlarkFile, call: ast.Call, name: str, addition: str, *, element: bool = False
) -> list[Splice]:
    """Return the splices that add an expression to a rule's attribute.

    With ``element``, add one element to its list.
    """
    value = attribute(call, name)
    if value is None:
        return [_new_attribute(file, call, f"{name} = {f'[{addition}]' if element else addition}")]
    if element and isinstance(value, ast.List):
        return _appended(file, value, addition)
    start, end = file.start(value), file.end(value)
    more = f" + [{addition}]" if element else f" + {addition}"
    if isinstance(value, (ast.List, ast.Call, ast.Name, ast.BinOp)):
        return [(end, end, more)]
    return [(start, start, "("), (end, end, f"){more}")]


def _appended(file: StarlarkFile, items: ast.List, element: str) -> list[Splice]:
    """Return the splices that append an element to a list.

    If the other elements have their own lines, so does the new one.
    """
    if not items.elts:
        return [(file.start(items), file.end(items), f"[{element}]")]
    last = items.elts[-1]
    end, last_line = file.end(last), last.end_lineno or last.lineno
    if last_line == items.end_lineno:
        return [(end, end, f", {element}")]
    line_end = file.line_start(last_line + 1)
    has_comma = file.data[end:line_end].lstrip().startswith(b",")
    comma: list[Splice] = [] if has_comma else [(end, end, ",")]
    return [*comma, (line_end, line_end, f"{file.indent(last)}{element},\n")]


def _new_attribute(file: StarlarkFile, call: ast.Call, text: str) -> Splice:
    """Return the splice that adds an attribute to a rule, in buildifier's sort order."""
    name = text.partition(" ")[0]
    later = [word for word in call.keywords if word.arg is None or word.arg not in _FIRST_ATTRIBUTES]
    following = next((word for word in later if word.arg is None or word.arg > name), None)
    if following is not None:
        place = file.start(following)
        return (place, place, f"{text},{_gap(file, following)}")
    if not call.keywords:
        place = file.end(call) - 1
        return (place, place, text)
    last = call.keywords[-1]
    place = file.end(last.value)
    return (place, place, f",{_gap(file, last)}{text}")


def _gap(file: StarlarkFile, keyword: ast.keyword) -> str:
    """Return the separator between this attribute and another one.

    The separator is a line break if this attribute begins its line, or a space otherwise.
    """
    return " " if file.before(keyword).strip() else "\n" + file.indent(keyword)


def without_string(file: StarlarkFile, items: ast.List, text: str) -> list[Splice]:
    """Return the splices that remove a string from a list. Remove the whole line if the line has no other text."""
    splices: list[Splice] = []
    for index, item in enumerate(items.elts):
        if not (isinstance(item, ast.Constant) and item.value == text):
            continue
        start, end = file.line_start(item.lineno), file.line_start((item.end_lineno or item.lineno) + 1)
        if file.data[start:end].strip().rstrip(b",") == file.source(item).encode():
            splices.append((start, end, ""))
        elif index + 1 < len(items.elts):
            splices.append((file.start(item), file.start(items.elts[index + 1]), ""))
        else:
            splices.append((file.end(items.elts[index - 1]) if index else file.start(item), file.end(item), ""))
    return splices


def without_statement(file: StarlarkFile, node: ast.stmt) -> Splice:
    """Return the splice that removes a statement and the blank lines after the statement."""
    start = file.line_start(node.lineno)
    rest = file.data[file.line_start((node.end_lineno or node.lineno) + 1) :]
    blank = len(rest) - len(rest.lstrip(b"\n"))
    return (start, len(file.data) - len(rest) + blank, "")


def above(file: StarlarkFile, node: ast.expr | ast.stmt, lines: str) -> Splice:
    """Return the splice that inserts lines before the first line of a node, with the same indentation."""
    place, indent = file.line_start(node.lineno), file.indent(node)
    return (place, place, "".join(f"{indent}{line}\n" for line in lines.splitlines()))
