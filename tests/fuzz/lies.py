"""What makes liars of parsers, for harnesses that compare answers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import msgspec

from trials.fuzz import fat_files
from trials.fuzz.attempt import attempt
from trials.fuzz.beside import moved, moved_words
from trials.fuzz.harness import find_harness

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    import pytest

__all__ = ["always", "each_replaced", "replaced", "replaced_in", "require_found"]


def always(answer: object) -> Callable[..., Any]:
    """Return a function that always gives this answer."""
    return lambda *_, **__: answer


def replaced(**fields: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what makes a function give its answer with other values in these fields."""
    return lambda real: lambda *words, **options: msgspec.structs.replace(real(*words, **options), **fields)


def each_replaced(**fields: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what makes a function give each of its answers with other values in these fields."""

    def lying(real: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *words, **options: [msgspec.structs.replace(one, **fields) for one in real(*words, **options)]

    return lying


def replaced_in(part: str, **fields: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what makes a function give its answer with other values in fields of this part, where it has that."""

    def lying(real: Callable[..., Any]) -> Callable[..., Any]:
        def lie(*words: object, **options: object) -> object:
            found = real(*words, **options)
            inner = getattr(found, part)
            return msgspec.structs.replace(found, **{part: inner and msgspec.structs.replace(inner, **fields)})

        return lie

    return lying


_SHARED = {"fat_files": fat_files, "moved": moved, "moved_words": moved_words}
"""Modules that several harnesses, or a large one, have apart."""


def _module_of(name: str, function: str) -> tuple[ModuleType, str]:
    module, _, own = function.rpartition(".")
    if module:
        return _SHARED[module], own
    return importlib.import_module(f"trials.fuzz.harnesses.{name.partition('.')[0]}"), function


def require_found(name: str, function: str, lie: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Require that a harness notices a wrong answer from its seeds alone, where one of its functions lies."""
    harness = find_harness(name)
    seeds = list(harness.seeds())
    module, function = _module_of(name, function)
    monkeypatch.setattr(module, function, lie(getattr(module, function)))
    faults = [attempt(harness, seed) for seed in seeds]
    assert "wrong answer" in {fault.kind for fault in faults if fault}, faults
