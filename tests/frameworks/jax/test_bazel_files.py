"""Tests of `rocwheel.frameworks.jax.bazel_files`."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.bazel_files import (
    StarlarkFile,
    above,
    added_load,
    added_to_attribute,
    config_options,
    environment,
    rc_lines,
    spliced,
    without_lines,
    without_statement,
    without_string,
)


def test_configs_have_their_options_with_values_of_either_form() -> None:
    text = (
        "# x\nbuild --jobs=1\nbuild:rocm --repo_env A=1 --copt=-g\n"
        'build:rocm --action_env=B="2 3" \\\n  --define c=d\ntest:rocm -k\nbuild:broken \'\n'
    )
    assert config_options(text) == {
        "rocm": ["--repo_env=A=1", "--copt=-g", "--action_env=B=2 3", "--define=c=d", "-k"],
    }
    assert environment(config_options(text)["rocm"]) == {"A": "1", "B": "2 3"}


@given(st.text("ab\n\\ \t'\"#", max_size=40))
def test_the_lines_of_any_text_make_up_the_text(text: str) -> None:
    assert "".join(line.text for line in rc_lines(text)) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a 1\n\n# about b\nb 2\n\nc 3\n", "a 1\n\nc 3\n"),
        ("a 1\n# about both\nb 2\nc 3\n", "a 1\n# about both\nc 3\n"),
        ("a 1\n\n# about b\nb 2\n", "a 1\n"),
        ("b 2\nb 3\n\na 1\n", "a 1\n"),
        ("a 1\n", "a 1\n"),
    ],
)
def test_a_line_goes_with_the_comment_that_stands_for_it_alone(before: str, after: str) -> None:
    assert without_lines(before, lambda line: line.command == "b") == after


def with_linkopts(text: str) -> str:
    file = StarlarkFile("BUILD", text)
    (call,) = file.calls("cc_binary")
    return spliced(file, added_to_attribute(file, call, "linkopts", "more()"))


def with_feature(text: str) -> str:
    file = StarlarkFile("BUILD", text)
    (call,) = file.calls("cc_binary")
    return spliced(file, added_to_attribute(file, call, "features", '"x"', element=True))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('cc_binary(name = "a")\n', 'cc_binary(name = "a", linkopts = more())\n'),
        ('cc_binary(\n    name = "a",\n)\n', 'cc_binary(\n    name = "a",\n    linkopts = more(),\n)\n'),
        (
            'cc_binary(\n  name = "a",  # é\n  tags = [],\n)\n',
            'cc_binary(\n  name = "a",  # é\n  linkopts = more(),\n  tags = [],\n)\n',
        ),
        ('cc_binary(name = "a", tags = [])\n', 'cc_binary(name = "a", linkopts = more(), tags = [])\n'),
        ('cc_binary(name = "a", **more)\n', 'cc_binary(name = "a", linkopts = more(), **more)\n'),
        ("cc_binary(**more)\n", "cc_binary(linkopts = more(), **more)\n"),
        ('cc_binary(linkopts = ["-a"])\n', 'cc_binary(linkopts = ["-a"] + more())\n'),
        ("cc_binary(linkopts = A + B)\n", "cc_binary(linkopts = A + B + more())\n"),
        ("cc_binary(linkopts = A if B else C)\n", "cc_binary(linkopts = (A if B else C) + more())\n"),
    ],
)
def test_an_expression_joins_an_attribute(before: str, after: str) -> None:
    assert with_linkopts(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("cc_binary()\n", 'cc_binary(features = ["x"])\n'),
        ("cc_binary(features = [])\n", 'cc_binary(features = ["x"])\n'),
        ('cc_binary(features = ["a"])\n', 'cc_binary(features = ["a", "x"])\n'),
        ("cc_binary(features = A)\n", 'cc_binary(features = A + ["x"])\n'),
        (
            'cc_binary(\n    features = [\n        "a",  # why\n    ],\n)\n',
            'cc_binary(\n    features = [\n        "a",  # why\n        "x",\n    ],\n)\n',
        ),
        (
            'cc_binary(\n    features = [\n        "a"  # no comma\n    ],\n)\n',
            'cc_binary(\n    features = [\n        "a",  # no comma\n        "x",\n    ],\n)\n',
        ),
    ],
)
def test_an_element_joins_a_list(before: str, after: str) -> None:
    assert with_feature(before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'load("//a:b.bzl", "c")\n\n'),
        ("# License.\n\npackage()\n", '# License.\n\nload("//a:b.bzl", "c")\n\npackage()\n'),
        ('"""About."""\n\nX = 1\n', '"""About."""\n\nload("//a:b.bzl", "c")\n\nX = 1\n'),
        (
            'package()\nload("//x:y.bzl", "z")\nX = 1\n',
            'package()\nload("//x:y.bzl", "z")\nload("//a:b.bzl", "c")\nX = 1\n',
        ),
        ('load("//x:y.bzl", "c")\n', 'load("//x:y.bzl", "c")\n'),
        ('load("//x:y.bzl", c = "d")\n', 'load("//x:y.bzl", c = "d")\n'),
    ],
)
def test_a_load_stands_below_the_others(before: str, after: str) -> None:
    file = StarlarkFile("BUILD", before)
    assert spliced(file, added_load(file, "//a:b.bzl", "c")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('f([\n    "a",\n    "b",\n])\n', 'f([\n    "b",\n])\n'),
        ('f(["a", "b"])\n', 'f(["b"])\n'),
        ('f(["b", "a"])\n', 'f(["b"])\n'),
        ('f(["a"])\n', "f([])\n"),
        ('f(["b"])\n', 'f(["b"])\n'),
    ],
)
def test_a_string_leaves_a_list(before: str, after: str) -> None:
    file = StarlarkFile("BUILD", before)
    (call,) = file.calls("f")
    items = call.args[0]
    assert isinstance(items, ast.List)
    assert spliced(file, without_string(file, items, "a")) == after


def test_a_statement_goes_with_the_blank_lines_behind_it() -> None:
    file = StarlarkFile("BUILD", "a()\n\nb(\n)\n\n\nc()\n")
    assert spliced(file, [without_statement(file, file.tree.body[1])]) == "a()\n\nc()\n"


def test_lines_above_a_call_are_indented_as_it_is() -> None:
    file = StarlarkFile("x.bzl", "def f():\n    g()\n")
    (call,) = file.calls("g")
    assert spliced(file, [above(file, call, "# 1\n# 2\n")]) == "def f():\n    # 1\n    # 2\n    g()\n"


@pytest.mark.parametrize("text", ["cc_binary(", "\0", "(" * 500, "é = )"])
def test_what_is_no_starlark_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^BUILD: isn't valid Starlark"):
        StarlarkFile("BUILD", text)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\f\"'\\#\0"), max_size=8))
def test_places_hold_behind_any_text(comment: str) -> None:
    text = f"# {comment}\ncc_binary()\n"
    assert with_linkopts(text) == f"# {comment}\ncc_binary(linkopts = more())\n"


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        StarlarkFile("BUILD", text)
    except InputError as e:
        assert e.source == "BUILD"  # noqa: PT017 (either way is right)
