"""Chunks are sent a few at a time."""

from __future__ import annotations

import threading

import pytest

from rocwheel.packages.clustered.sending import AT_ONCE, sending


def test_several_are_on_their_way_at_a_time_and_never_more_than_a_few() -> None:
    """All wait for one another: fewer at a time would wait for ever."""
    together = threading.Barrier(AT_ONCE)
    lock, now, most = threading.Lock(), 0, 0

    def put() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        together.wait(timeout=20)
        with lock:
            now -= 1

    with sending() as send:
        for _ in range(3 * AT_ONCE):
            send(put)
    assert (most, now) == (AT_ONCE, 0)


def test_what_fails_on_its_way_is_told() -> None:
    def fail() -> None:
        msg = "the store is full"
        raise ValueError(msg)

    with pytest.raises(ValueError, match="the store is full"), sending() as send:
        send(fail)
