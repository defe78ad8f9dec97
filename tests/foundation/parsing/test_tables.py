"""Tables that ship with rocwheel."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock

import msgspec

from rocwheel.foundation.parsing.decoding import decode_json
from rocwheel.foundation.parsing.tables import read_table

ALONE = Lock()
OVERLAP = Event()


def prepared() -> type[int]:
    """Stand for an annotation; msgspec evaluates it when it prepares the type that bears it."""
    if ALONE.acquire(blocking=False):
        OVERLAP.wait(0.3)
        ALONE.release()
    else:
        OVERLAP.set()
    return int


def test_threads_that_read_a_table_first_do_not_prepare_its_type_at_once() -> None:
    table = msgspec.defstruct("Table", [("value", "prepared()", 7)], module=__name__)
    with ThreadPoolExecutor(2) as executor:
        rows = list(executor.map(lambda _: read_table("rocwheel.binary.bundles", "runtimes.toml", table), range(2)))
    assert [row.value for row in rows] == [7, 7]  # type: ignore[attr-defined]
    assert not OVERLAP.is_set()


def test_threads_that_decode_a_document_first_do_not_prepare_its_type_at_once() -> None:
    document = msgspec.defstruct("Document", [("value", "prepared()", 7)], module=__name__)
    with ThreadPoolExecutor(2) as executor:
        values = list(executor.map(lambda _: decode_json(b"{}", document), range(2)))
    assert [value.value for value in values] == [7, 7]  # type: ignore[attr-defined]
    assert not OVERLAP.is_set()
