"""Reading Python by its own parser."""

from __future__ import annotations

import ast
import gc
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rocwheel.foundation.parsing.python_source import parse_python

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_module_becomes_its_syntax_tree() -> None:
    (statement,) = parse_python("x = 1").body
    assert ast.unparse(statement) == "x = 1"


@pytest.fixture
def _threads_change_at_any_object() -> Iterator[None]:
    """Collect garbage all the time, and let another thread go on each time."""
    threshold = gc.get_threshold()
    gc.set_threshold(50)
    gc.callbacks.append(_give_way)
    yield
    gc.callbacks.remove(_give_way)
    gc.set_threshold(*threshold)


def _give_way(_: object, __: object) -> None:
    time.sleep(0)


@pytest.mark.usefixtures("_threads_change_at_any_object")
def test_several_threads_may_parse_at_once() -> None:
    text = "x = " + "[" * 60 + "1" + "]" * 60
    with ThreadPoolExecutor(4) as threads:
        trees = [*threads.map(parse_python, [text] * 300)]
    assert {len(tree.body) for tree in trees} == {1}


def test_warnings_of_the_text_are_not_ours() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(parse_python(r"x = '\d'").body) == 1


def test_an_error_names_the_module() -> None:
    with pytest.raises(SyntaxError, match=r"\(BUILD, line 2\)"):
        parse_python("x = 1\nx = = 2", "BUILD")
