"""Calls of the old tool in Python files: lists of arguments, command strings, and texts that become Makefiles."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.decoding import parse_python
from rocwheel.core.messages import shortened
from rocwheel.frameworks.jax.words import Reference, has_references, pieces, shown
from rocwheel.frameworks.jax_migration.build_py import TOOL, option_fates
from rocwheel.frameworks.jax_migration.reading.argument_lists import argument_lists
from rocwheel.frameworks.jax_migration.reading.makefile_calls import read_makefile_calls
from rocwheel.frameworks.jax_migration.reading.old_call import (
    OldCall,
    OldCalls,
    UndecidedCall,
    UndecidedError,
    call_start,
)
from rocwheel.frameworks.jax_migration.reading.shell.calls import check_indirect, read_shell_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.frameworks.jax_migration.reading.argument_lists import ArgumentList

__all__ = ["read_python_calls"]

_RECIPE = re.compile(r"^\t.*\bbuild", re.MULTILINE)
_PLACEHOLDER = re.compile(r"%\(\w+\)s")
_FIELD = re.compile(r"(?<!\$)\{[\w.]*(?:\[[^][{}]*\])*(?:![rsa])?(?::[^{}]*)?\}|(?<!%)%(?:\(\w+\))?[0-9.]*[sdir]")
"""What ``str.format`` and ``%`` fill in."""


def read_python_calls(text: str) -> OldCalls:
    """Return the calls of a Python file; raise `UndecidedError` for a text that Python can't read."""
    try:
        tree = parse_python(text)
        found = [*_calls_of_lists(tree), *_calls_of_texts(tree)]
    except (SyntaxError, ValueError) as e:
        message = f"can't be read as Python: {shortened(str(e))}"
        raise UndecidedError(message) from e
    except (RecursionError, MemoryError) as e:
        message = "is nested too deeply to be read as Python"
        raise UndecidedError(message) from e
    found.sort(key=lambda item: (item.first_line, item.last_line))
    calls = tuple(item for item in found if isinstance(item, OldCall))
    return OldCalls(calls, tuple(item for item in found if isinstance(item, UndecidedCall)))


def _calls_of_lists(tree: ast.Module) -> Iterator[OldCall | UndecidedCall]:
    for made in argument_lists(tree):
        try:
            start = call_start(made.words)
            if start is None:
                check_indirect(made.words)
                continue
            words = made.words[max(start - 1, 0) :]
            _check_known(words[1 if start else 0 :])
            yield from _decided(tree, made, words)
        except UndecidedError as e:
            yield UndecidedCall(made.first_line, made.last_line, str(e))


def _check_known(words: list[str]) -> None:
    """Raise `UndecidedError` for an argument of which not even the option is known."""
    before = ""
    for word in words[1:]:
        fate = option_fates().get(before.removeprefix("--")) if before.startswith("--") else None
        if word.startswith(("*\0", "\0")) and (fate is None or fate.kind not in {"value", "append"}):
            message = f"{shown(word)} brings options that are known only when the program runs"
            raise UndecidedError(message)
        before = word


def _decided(tree: ast.Module, made: ArgumentList, words: list[str]) -> Iterator[OldCall]:
    """Yield the call with each value that a caller of its function gives for what decides the new commands."""
    last_line = max([made.last_line, *(item.line for item in made.optional)])
    call = OldCall(made.first_line, last_line, tuple(words), "python", optional=tuple(made.optional))
    for index, word in enumerate(words):
        option, _, value = word.partition("=")
        fate = option_fates().get(option.removeprefix("--"))
        if fate is not None and fate.decides and has_references(value):
            for given in _given_values(tree, made, value):
                yield msgspec.structs.replace(call, words=(*words[:index], f"{option}={given}", *words[index + 1 :]))
            return
    yield call


def _given_values(tree: ast.Module, made: ArgumentList, value: str) -> list[str]:
    """Return the constants that a name stands for: its only value, or what callers of the function pass for it."""
    parts = list(pieces(value))
    name = parts[0].text if len(parts) == 1 and isinstance(parts[0], Reference) else ""
    values = _constants(tree, made, name) if name.isidentifier() else []
    if not values:
        message = f"{shown(value)} decides what the new commands are, and is known only when the program runs"
        raise UndecidedError(message)
    return list(dict.fromkeys(values))


def _constants(tree: ast.Module, made: ArgumentList, name: str) -> list[str]:
    function = made.function
    parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs] if function else []
    names = [item.arg for item in parameters]
    if function is None or name not in names:
        nodes = [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            and any(isinstance(item, ast.Name) and item.id == name for item in node.targets)
        ]
        return _texts(list(nodes)) if len(nodes) == 1 else []
    position = names.index(name)
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function.name
    ]
    return _texts([_argument(function, call, name, position) for call in calls])


def _argument(
    function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call, name: str, position: int
) -> ast.expr | None:
    keywords = {item.arg: item.value for item in call.keywords}
    if name in keywords:
        return keywords[name]
    if position < len(call.args):
        return call.args[position]
    positional = [item.arg for item in [*function.args.posonlyargs, *function.args.args]]
    defaults = dict(zip(reversed(positional), reversed(function.args.defaults), strict=False))
    only = {
        item.arg: value
        for item, value in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        if value
    }
    return (defaults | only).get(name)


def _texts(nodes: list[ast.expr | None]) -> list[str]:
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return texts if len(texts) == len(nodes) else []


def _calls_of_texts(tree: ast.Module) -> Iterator[OldCall | UndecidedCall]:
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in documented:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and TOOL in node.value:
            yield from _calls_of_text(node, node.value)
        elif isinstance(node, ast.JoinedStr) and _holds_call(node):
            reason = "stands in an f-string: translate the command line that it makes by itself"
            yield UndecidedCall(node.lineno, node.end_lineno or node.lineno, reason)


def _holds_call(node: ast.JoinedStr) -> bool:
    text = "".join(item.value for item in node.values if isinstance(item, ast.Constant) and isinstance(item.value, str))
    return re.search(r"build\.py\s+(build|requirements_update)\b", text) is not None


def _calls_of_text(node: ast.Constant, text: str) -> Iterator[OldCall | UndecidedCall]:
    last_line = node.end_lineno or node.lineno
    if _RECIPE.search(text):
        found = read_makefile_calls(text, node.lineno, template=_PLACEHOLDER.search(text) is not None)
    else:
        found = read_shell_calls(text, node.lineno, certain=False)
    # Escapes in a string move its lines against those of the file.
    has_lines = text.count("\n") == last_line - node.lineno
    for item in (*map(_unless_filled_in, found.calls), *found.undecided):
        yield item if has_lines else msgspec.structs.replace(item, first_line=node.lineno, last_line=last_line)


def _unless_filled_in(call: OldCall) -> OldCall | UndecidedCall:
    """Return a call, undecided when what Python fills in would be taken for a value as it stands."""
    literal = (part for word in call.words for part in pieces(word) if isinstance(part, str))
    field = next((match[0] for part in literal if (match := _FIELD.search(part))), "")
    if not field:
        return call
    reason = f"holds {shortened(field)}, which the program fills in: translate the command line that it makes by itself"
    return UndecidedCall(call.first_line, call.last_line, reason)
