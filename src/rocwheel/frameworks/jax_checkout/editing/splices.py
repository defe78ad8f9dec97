"""Starlark files changed in place: all but what changes stays as it is written."""

from __future__ import annotations

import ast

from rocwheel.frameworks.jax_checkout.editing.starlark import StarlarkFile, attribute, called, loaded_names

__all__ = ["Splice", "above", "added_load", "added_to_attribute", "spliced", "without_statement", "without_string"]

Splice = tuple[int, int, str]
"""The beginning and the end of a text, in bytes, and what takes its place."""

_FIRST_ATTRIBUTES = ("name", "srcs", "hdrs")
"""Those that stand before all others, as buildifier sorts them."""


def spliced(file: StarlarkFile, splices: list[Splice]) -> str:
    """Return the text with replacements made; they must not overlap."""
    data = file.data
    for start, end, new in sorted(splices, reverse=True):
        data = data[:start] + new.encode(errors="surrogateescape") + data[end:]
    return data.decode(errors="surrogateescape")


def added_load(file: StarlarkFile, label: str, symbol: str) -> list[Splice]:
    """Return what loads a symbol: below the last load, or above the first statement; nothing if it is loaded."""
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
    """Return what adds an expression to an attribute of a rule, or with ``element`` one element to its list."""
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
    """Return what appends an element to a list, on a line of its own if the others have such lines."""
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
    """Return what gives a rule one more attribute, where buildifier would sort it."""
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
    """Return what parts an attribute from another: a line end if this one begins its line."""
    return " " if file.before(keyword).strip() else "\n" + file.indent(keyword)


def without_string(file: StarlarkFile, items: ast.List, text: str) -> list[Splice]:
    """Return what takes a string out of a list: its line if it has one, else the string with a comma."""
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
    """Return what removes a statement with the blank lines behind it."""
    start = file.line_start(node.lineno)
    rest = file.data[file.line_start((node.end_lineno or node.lineno) + 1) :]
    blank = len(rest) - len(rest.lstrip(b"\n"))
    return (start, len(file.data) - len(rest) + blank, "")


def above(file: StarlarkFile, node: ast.expr | ast.stmt, lines: str) -> Splice:
    """Return what puts lines above the one where a node begins, indented as that is."""
    place, indent = file.line_start(node.lineno), file.indent(node)
    return (place, place, "".join(f"{indent}{line}\n" for line in lines.splitlines()))
