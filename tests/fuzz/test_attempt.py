"""What counts as a fault when a harness runs."""

from __future__ import annotations

import pytest

from rocwheel.core.errors import InputError
from trials.fuzz import attempt as attempt_module
from trials.fuzz.attempt import attempt
from trials.fuzz.harness import Harness, require

_NAME, _FOUND = "x", "is bad"


def _raise(error: Exception) -> None:
    raise error


def _raise_from(cause: Exception) -> None:
    raise InputError(_NAME, _FOUND) from cause


def _spin(_: bytes) -> None:
    while True:
        pass


def _harness(run: object) -> Harness:
    return Harness("test.it", run, lambda: [b""])  # type: ignore[arg-type]  # a lambda returns nothing


def test_returning_or_raising_a_typed_error_is_not_a_fault() -> None:
    assert attempt(_harness(bytes), b"x") is None
    assert attempt(_harness(lambda _: _raise(InputError("x", "is bad"))), b"x") is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (KeyError("x"), "crash"),
        (RecursionError(), "crash"),
        (MemoryError(), "memory"),
        (AssertionError(), "crash"),
    ],
)
def test_any_other_error_is_a_fault(error: Exception, kind: str) -> None:
    fault = attempt(_harness(lambda _: _raise(error)), b"x")
    assert fault is not None
    assert fault.kind == kind
    assert fault.place.startswith(f"{type(error).__name__} at tests/fuzz/test_attempt.py:")


def test_a_wrong_answer_is_a_fault() -> None:
    fault = attempt(_harness(lambda _: require(False, "1 is not 2")), b"x")
    assert fault is not None
    assert fault.kind == "wrong answer"
    assert "1 is not 2" in fault.text


def test_the_place_of_a_wrong_answer_is_the_failed_comparison() -> None:
    def run(data: bytes) -> None:
        require(data != b"one", "one is wrong")
        require(data != b"other", "other is wrong")

    first = run.__code__.co_firstlineno
    faults = [attempt(_harness(run), data) for data in (b"one", b"other")]
    places = [fault and fault.place for fault in faults]
    assert places == [
        f"WrongAnswerError at tests/fuzz/test_attempt.py:{first + 1}",
        f"WrongAnswerError at tests/fuzz/test_attempt.py:{first + 2}",
    ]


def test_a_typed_error_caused_by_a_memory_error_is_a_fault() -> None:
    def run(_: bytes) -> None:
        try:
            raise MemoryError
        except MemoryError as e:
            _raise_from(e)

    fault = attempt(_harness(run), b"x")
    assert fault is not None
    assert fault.kind == "memory"


def test_an_input_that_takes_too_long_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt_module, "MOST_SECONDS", 0.05)
    fault = attempt(_harness(_spin), b"x")
    assert fault is not None
    assert fault.kind == "hang"
    assert fault.place.startswith("_HangError at tests/fuzz/test_attempt.py:")


def test_an_input_that_takes_too_much_memory_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt_module, "MOST_MEMORY", 8 << 20)
    peak = iter([100 << 20, 120 << 20])
    monkeypatch.setattr(attempt_module, "_peak", lambda: next(peak))
    fault = attempt(_harness(bytes), b"x")
    assert fault is not None
    assert (fault.kind, fault.text) == ("memory", "20 MiB for an input of 1 bytes")
