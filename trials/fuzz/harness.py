"""What a harness is: a parser of foreign bytes, what to begin with, and what it may raise."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from rocwheel.core.errors import RocwheelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["MODULES", "Harness", "WrongAnswerError", "all_harnesses", "find_harness", "require", "take_all"]

T = TypeVar("T")

MODULES = (
    *("elf", "pe", "device_code", "kernel_files", "archives", "sdk"),
    *("wheels", "pages", "texts", "frameworks", "reports", "retargeting"),
    *("edits", "imports", "servers", "doctor", "settings"),
)
"""Modules of `trials.fuzz.harnesses`; each has its harnesses in ``HARNESSES``, whose names begin with the module's."""


@dataclass(frozen=True)
class Harness:
    """A function that takes any bytes: it returns, or raises one of ``expected``; all else is a fault."""

    name: str
    """``MODULE.WHAT``, such as ``elf.facts``."""
    run: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    """Good inputs to begin with; small ones, since each is changed many times."""
    expected: tuple[type[Exception], ...] = (RocwheelError,)
    tokens: tuple[bytes, ...] = ()
    """Words of the format, which the fuzzer puts into inputs."""
    largest: int = 1 << 16
    """Bytes of the largest input that the fuzzer makes."""


class WrongAnswerError(Exception):
    """A parser's answer that is wrong, by another parser or by itself."""


def require(condition: object, text: str) -> None:
    """Raise `WrongAnswerError` with a text unless the condition holds."""
    if not condition:
        raise WrongAnswerError(text)


def take_all(answers: Iterable[T], by_hand: object) -> list[T]:
    """Return what a parser yields; what it raises is wrong where there is an answer ``by_hand``, none for none."""
    try:
        return list(answers)
    except RocwheelError as e:
        require(by_hand is None, f"{e}, by hand it is {by_hand}")
        raise


def all_harnesses() -> tuple[Harness, ...]:
    """Return every harness, in the order of the modules."""
    return tuple(harness for module in MODULES for harness in _harnesses_of(module))


def find_harness(name: str) -> Harness:
    """Return the harness of a name, and import no module but its own; raises `KeyError` for an unknown name."""
    module = name.partition(".")[0]
    found = {harness.name: harness for harness in (_harnesses_of(module) if module in MODULES else ())}
    return found[name]


def _harnesses_of(module: str) -> tuple[Harness, ...]:
    harnesses: tuple[Harness, ...] = importlib.import_module(f"trials.fuzz.harnesses.{module}").HARNESSES
    return harnesses
