"""Tests of `rocwheel.index.store_notes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import obstore.store
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocwheel.index.front_content import next_front_page
from rocwheel.index.publish import PublishOptions, publish
from rocwheel.index.store_notes import Notes, NotesFile
from rocwheel.stores.objects import ObjectStore
from tests.support.example_counts import examples
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.stores.store import Store


NAME = "simple/.rocwheel-published.json"
OPTIONS = PublishOptions(make_front=next_front_page)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    for name in ("alpha", "beta"):
        make_wheel(folder, name, {}, tag="py3-none-any", is_purelib=True)
    return folder


@pytest.fixture(scope="module")
def store(dist: Path) -> Store:
    store = ObjectStore(obstore.store.MemoryStore(), "memory://")
    publish(dist, store, OPTIONS)
    return store


def pages(store: Store) -> dict[str, bytes]:
    return {file.name: store.read(file.name) for file in store.list("simple") if file.name != NAME}


@given(data=st.binary(max_size=200))
def test_malformed_notes_are_read_as_empty(data: bytes) -> None:
    store = ObjectStore(obstore.store.MemoryStore(), "memory://")
    store.put(".rocwheel-published.json", data)
    assert NotesFile(store, "").notes == Notes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60), deadline=None)
@given(start=st.integers(0, 1 << 16), length=st.integers(0, 40), put=st.binary(max_size=40))
def test_damaged_notes_never_change_the_pages(dist: Path, store: Store, start: int, length: int, put: bytes) -> None:
    before, notes = pages(store), store.read(NAME)
    place = start % len(notes)
    store.put(NAME, notes[:place] + put + notes[place + length :], create=False)
    publish(dist, store, OPTIONS)
    after = pages(store)
    store.put(NAME, notes, create=False)
    assert {name: after[name] for name in before if name != "simple/packages.html"} == {
        name: data for name, data in before.items() if name != "simple/packages.html"
    }
