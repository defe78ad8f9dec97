"""Finds calls of rocm-jax's ``build/build.py`` in Python files."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.decoding import parse_python
from rocwheel.core.messages import shortened
from rocwheel.frameworks.jax.build_py import TOOL, TOOL_PATH, old_options, takes_value
from rocwheel.frameworks.jax.calls import (
    OldCall,
    OldCalls,
    OptionalWords,
    UndecidedCall,
    UndecidedError,
    call_start,
    check_indirect,
    read_makefile_calls,
    read_shell_calls,
)
from rocwheel.frameworks.jax.words import MARKS, has_references, only_reference, pieces, reference, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_FORMAT = re.compile(r"%(?:\((?P<name>\w+)\))?(?P<kind>[sdi%])")
_LONGEST = 200


def python_word(node: ast.expr) -> str:
    """Return the word that an expression evaluates to.

    References represent parts that only the running program knows.
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _expression(node) if MARKS & set(node.value) else node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(python_word(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        plain = node.conversion == -1 and node.format_spec is None
        return python_word(node.value) if plain else _expression(ast.JoinedStr([node]))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return python_word(node.left) + python_word(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _formatted(node)
    names_tool = any(
        isinstance(item, ast.Constant) and isinstance(item.value, str) and item.value.rpartition("/")[2] == TOOL
        for item in ast.walk(node)
    )
    return TOOL_PATH if names_tool else _expression(node)


def _expression(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return reference(text if len(text) <= _LONGEST and not MARKS & set(text) else "...", "python")


def _formatted(node: ast.BinOp) -> str:
    """Return the result of ``TEXT % VALUES``."""
    if not (isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)):
        return _expression(node)
    values = list(node.right.elts) if isinstance(node.right, ast.Tuple) else [node.right]
    parts, end = [], 0
    text = node.left.value
    for match in _FORMAT.finditer(text):
        parts.append(text[end : match.start()])
        end = match.end()
        if match["kind"] == "%":
            parts.append("%")
        elif match["name"]:
            parts.append(_expression(ast.Subscript(node.right, ast.Constant(match["name"]), ast.Load())))
        elif values:
            parts.append(python_word(values.pop(0)))
        else:
            return _expression(node)
    return "".join([*parts, text[end:]])


_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


class ArgumentList(msgspec.Struct):
    """A list of arguments, including arguments that are added later or conditionally."""

    first_line: int
    last_line: int
    words: list[str]
    depth: int
    """The number of conditions around the list."""
    function: ast.FunctionDef | ast.AsyncFunctionDef | None
    optional: list[OptionalWords]


def argument_lists(tree: ast.Module) -> Iterator[ArgumentList]:
    """Yield the argument lists in a file."""
    yield from _Scope(None).lists(tree.body)
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            yield from _Scope(node).lists(node.body)


class _Scope:
    """The argument lists of a function or of the module, keyed by variable name."""

    def __init__(self, function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> None:
        self.function = function
        self.named: dict[str, ArgumentList] = {}
        self.found: list[ArgumentList] = []

    def lists(self, body: Sequence[ast.stmt]) -> list[ArgumentList]:
        self._walk(body, [])
        return self.found

    def _walk(self, body: Sequence[ast.stmt], conditions: list[str]) -> None:
        for statement in body:
            if isinstance(statement, (*_Function, ast.ClassDef)):
                continue
            self._statement(statement, conditions)
            for inner, condition in _inner_bodies(statement):
                self._walk(inner, [*conditions, condition] if condition else conditions)

    def _statement(self, statement: ast.stmt, conditions: list[str]) -> None:
        expressions = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            name = statement.targets[0]
            made = self._made(statement.value, len(conditions))
            if made and isinstance(name, ast.Name):
                self.named[name.id] = made
                return
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            self._extend(statement.target.id, statement.value, conditions)
            return
        for expression in expressions:
            for node in ast.walk(expression):
                self._node(node, conditions)

    def _node(self, node: ast.AST, conditions: list[str]) -> None:
        if isinstance(node, (ast.List, ast.Tuple)):
            self._made(node, len(conditions))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
            owner = node.func.value
            if isinstance(owner, ast.Name) and node.func.attr == "append":
                self._extend(owner.id, ast.List([node.args[0]], ast.Load()), conditions, node.lineno)
            elif isinstance(owner, ast.Name) and node.func.attr == "extend":
                self._extend(owner.id, node.args[0], conditions, node.lineno)

    def _made(self, node: ast.expr, depth: int) -> ArgumentList | None:
        words = _words(node)
        if words is None:
            return None
        made = ArgumentList(node.lineno, node.end_lineno or node.lineno, words, depth, self.function, [])
        self.found.append(made)
        return made

    def _extend(self, name: str, node: ast.expr, conditions: list[str], line: int = 0) -> None:
        grown = self.named.get(name)
        if grown is None:
            return
        words = _words(node)
        if words is None:
            words = ["*" + python_word(node)]
        line = line or node.lineno
        if len(conditions) > grown.depth:
            grown.optional.append(OptionalWords(line, ", ".join(conditions[grown.depth :]), tuple(words)))
        else:
            grown.words += words
            grown.last_line = max(grown.last_line, line)


def _words(node: ast.expr) -> list[str] | None:
    """Return the elements of a list, a tuple, or a sum of both, or `None` for another expression.

    An element that represents several arguments begins with an asterisk.
    """
    if isinstance(node, (ast.List, ast.Tuple)):
        return [
            "*" + python_word(item.value) if isinstance(item, ast.Starred) else python_word(item) for item in node.elts
        ]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _words(node.left), _words(node.right)
        if left is None and right is None:
            return None
        return [
            *(["*" + python_word(node.left)] if left is None else left),
            *(["*" + python_word(node.right)] if right is None else right),
        ]
    return None


def _inner_bodies(statement: ast.stmt) -> Iterator[tuple[Sequence[ast.stmt], str]]:
    """Yield a statement's blocks, each with its condition. An unconditional block has an empty condition."""
    condition, opposite = "", ""
    if isinstance(statement, (ast.If, ast.While)):
        text = ast.unparse(statement.test)
        condition, opposite = f"{'if' if isinstance(statement, ast.If) else 'while'} {text}", f"if not ({text})"
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        condition = opposite = f"for {ast.unparse(statement.target)} in {ast.unparse(statement.iter)}"
    yield getattr(statement, "body", []), condition
    yield getattr(statement, "orelse", []), opposite
    yield getattr(statement, "finalbody", []), ""
    for handler in getattr(statement, "handlers", []):
        yield handler.body, "after an exception"
    for case in getattr(statement, "cases", []):
        yield case.body, f"case {ast.unparse(case.pattern)}"


_RECIPE = re.compile(r"^\t.*\bbuild", re.MULTILINE)
_PLACEHOLDER = re.compile(r"%\(\w+\)s")
_FIELD = re.compile(r"(?<!\$)\{[\w.]*(?:\[[^][{}]*\])*(?:![rsa])?(?::[^{}]*)?\}|(?<!%)%(?:\(\w+\))?[0-9.]*[sdir]")
"""Placeholders for ``str.format`` and ``%``."""


def read_python_calls(text: str) -> OldCalls:
    """Return the calls in a Python file. Raises `UndecidedError` for invalid Python."""
    try:
        tree = parse_python(text)
        found = [*_calls_of_lists(tree), *_calls_of_texts(tree)]
    except (SyntaxError, ValueError) as e:
        message = f"isn't valid Python: {shortened(str(e))}"
        raise UndecidedError(message) from e
    except (RecursionError, MemoryError) as e:
        message = "is nested too deeply to parse as Python"
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
    """Raise `UndecidedError` for a word that may be an unknown option."""
    before = ""
    for word in words[1:]:
        if word.startswith(("*\0", "\0")) and not takes_value(before):
            message = f"{shown(word)} contains options that aren't known before the program runs"
            raise UndecidedError(message)
        before = word


def _decided(tree: ast.Module, made: ArgumentList, words: list[str]) -> Iterator[OldCall]:
    """Yield the call with each value that its function's callers pass for an option that decides the translation."""
    last_line = max([made.last_line, *(item.line for item in made.optional)])
    call = OldCall(made.first_line, last_line, tuple(words), "python", optional=tuple(made.optional))
    for index, word in enumerate(words):
        option, _, value = word.partition("=")
        old_option = old_options().get(option.removeprefix("--"))
        if old_option is not None and old_option.decides and has_references(value):
            for given in _given_values(tree, made, value):
                yield msgspec.structs.replace(call, words=(*words[:index], f"{option}={given}", *words[index + 1 :]))
            return
    yield call


def _given_values(tree: ast.Module, made: ArgumentList, value: str) -> list[str]:
    """Return the constants that a name can have: its only value, or the arguments that callers of the function pass."""
    only = only_reference(value)
    values = _constants(tree, made, only.text) if only is not None and only.text.isidentifier() else []
    if not values:
        message = f"{shown(value)} decides the new commands, and isn't known before the program runs"
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
            reason = "is in an f-string: translate the resulting command line separately"
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
    # With escapes in a string, its line numbers don't match the file's line numbers.
    has_lines = text.count("\n") == last_line - node.lineno
    for item in (*map(_unless_filled_in, found.calls), *found.undecided):
        yield item if has_lines else msgspec.structs.replace(item, first_line=node.lineno, last_line=last_line)


def _unless_filled_in(call: OldCall) -> OldCall | UndecidedCall:
    """Return a call. It is undecided if a placeholder for Python would be mistaken for a literal value."""
    literal = (part for word in call.words for part in pieces(word) if isinstance(part, str))
    field = next((match[0] for part in literal if (match := _FIELD.search(part))), "")
    if not field:
        return call
    reason = f"contains {shortened(field)}, which the program fills in: translate the resulting command line separately"
    return UndecidedCall(call.first_line, call.last_line, reason)
