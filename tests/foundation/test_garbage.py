"""How often Python looks for garbage in cycles."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from typing import TYPE_CHECKING

import pytest

from rocwheel.foundation.garbage import loading_without_collections, rare_collections

if TYPE_CHECKING:
    from collections.abc import Iterator


class Knot:
    """What only a search for cycles frees."""

    def __init__(self) -> None:
        self.itself = self


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


@pytest.fixture
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_thawed")
@pytest.mark.parametrize("is_wanted", [True, False], ids=["on", "off"])
def test_loading_stops_collections_and_leaves_them_as_they_were(*, is_wanted: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if is_wanted else gc.disable)()
        with loading_without_collections():
            assert not gc.isenabled()
        assert gc.isenabled() == is_wanted
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.usefixtures("_thawed")
def test_collections_go_on_after_a_module_that_can_not_be_loaded() -> None:
    with pytest.raises(ImportError), loading_without_collections():
        raise ImportError
    assert gc.isenabled()


@pytest.mark.usefixtures("_thawed")
def test_later_searches_pass_over_what_was_loaded_alone() -> None:
    with loading_without_collections():
        loaded = weakref.ref(Knot())
    later = weakref.ref(Knot())
    gc.collect()
    assert (loaded() is None, later() is None) == (False, True)


@pytest.mark.slow
def test_a_command_works_with_collections_and_none_of_its_modules_are_searched() -> None:
    code = (
        "import atexit, gc, sys; sys.argv = ['rocwheel', '--version']; from rocwheel.__main__ import main\n"
        "atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > 10_000, file=sys.stderr)); main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "True True\n")
