"""How often Python looks for garbage in cycles."""

from __future__ import annotations

import gc

from rocwheel.foundation.garbage import rare_collections


def test_collections_are_rare_in_the_block_alone() -> None:
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold() == (200_000, *before[1:])
    assert gc.get_threshold() == before


def test_collections_that_somebody_turned_off_stay_off() -> None:
    before = gc.get_threshold()
    gc.set_threshold(0)
    try:
        with rare_collections():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
