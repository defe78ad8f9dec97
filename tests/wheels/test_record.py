"""RECORD, as the ``installer`` library and the standard library's csv read it."""

from __future__ import annotations

import base64
import csv
import hashlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.wheels.record import MOST_ROWS, RecordEntry, RecordRow, parse_record, render_record, spell_hash

PATHS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=20)


def test_rows_are_sorted_by_path_and_record_is_last_without_a_hash() -> None:
    digest = hashlib.sha256(b"").digest()
    rows = [RecordRow("b/__init__.py", digest, 0), RecordRow("a/lib/liba.so.1", digest, 0)]
    assert render_record(rows, "a-1.dist-info/RECORD").decode() == (
        "a/lib/liba.so.1,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n"
        "b/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n"
        "a-1.dist-info/RECORD,,\n"
    )


def test_a_path_with_a_comma_or_a_quote_is_quoted() -> None:
    row = RecordRow('share/a,"b".txt', bytes(32), 7)
    first = render_record([row], "RECORD").decode().splitlines()[0]
    assert first == f'"share/a,""b"".txt",sha256={"A" * 43},7'


@given(st.dictionaries(PATHS, st.binary(max_size=40)))
def test_any_csv_reader_gets_back_every_path_hash_and_size(members: dict[str, bytes]) -> None:
    rows = [RecordRow(path, hashlib.sha256(data).digest(), len(data)) for path, data in members.items()]
    text = render_record(rows, "x.dist-info/RECORD").decode()
    *read, last = csv.reader(io.StringIO(text, newline=""))
    assert last == ["x.dist-info/RECORD", "", ""]
    assert {path: (_raw(digest), int(size)) for path, digest, size in read} == {
        path: (hashlib.sha256(data).digest(), len(data)) for path, data in members.items()
    }


def _raw(spelled: str) -> bytes:
    algorithm, _, text = spelled.partition("=")
    assert algorithm == "sha256"
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_installer_accepts_every_hash() -> None:
    records = pytest.importorskip("installer.records")
    data = b"import rocm_sdk\n"
    text = render_record([RecordRow("a.py", hashlib.sha256(data).digest(), len(data))], "a.dist-info/RECORD").decode()
    parsed = [records.RecordEntry.from_elements(*row) for row in records.parse_record_file(text.splitlines())]
    assert parsed[0].validate(data)
    assert not parsed[0].validate(data + b"#")
    assert parsed[1].hash_ is None


def test_rows_are_read_unchanged() -> None:
    text = b"a/b.py,sha256=47DEQpj8HBSa,12\na-1.dist-info/RECORD,,\n"
    assert parse_record(text, "RECORD") == (
        RecordEntry("a/b.py", "sha256=47DEQpj8HBSa", "12"),
        RecordEntry("a-1.dist-info/RECORD", "", ""),
    )


def test_missing_cells_of_a_row_are_empty() -> None:
    assert parse_record(b"a/b.py\n\n", "RECORD") == (RecordEntry("a/b.py", "", ""),)


@pytest.mark.parametrize("text", [b"a\rb,,\n", b'"' + b"a" * 200_000 + b'",,\n'], ids=["a bare return", "a long cell"])
def test_the_error_for_invalid_csv_names_the_file(text: bytes) -> None:
    with pytest.raises(InputError, match=r"^x\.whl!RECORD: can't be read \(.+\); expected CSV\. Build"):
        parse_record(text, "x.whl!RECORD")


def test_a_hash_is_written_without_padding() -> None:
    assert spell_hash(hashlib.sha256(b"").digest()) == "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"


def test_a_record_with_far_more_rows_than_published_wheels_have_is_refused() -> None:
    assert len(parse_record(b"a,,\n" * MOST_ROWS, "RECORD")) == 262144
    with pytest.raises(InputError) as caught:
        parse_record(b"a,,\n" * (MOST_ROWS + 1), "RECORD")
    assert str(caught.value) == (
        "RECORD: has more than 262144 rows; expected a row for each file. Build or fetch it again."
    )
