"""What a stream gives of ZIP archives, with which the harness compares what their directories name."""

from __future__ import annotations

import pytest

from rocwheel.wheels import zip_directory, zip_reader
from tests.support.raw_zip import RawMember, deflated, raw_zip
from trials.fuzz.beside.zip_stream import stream_names
from trials.fuzz.harness import WrongAnswerError, find_harness

TEXT = b"content"
HIDDEN = RawMember(b"hidden", TEXT)
STREAM = RawMember(b"a", TEXT, deflated(TEXT), 8, flags=8)
BEHIND = RawMember(b"a", TEXT, deflated(TEXT) + STREAM.descriptor() + HIDDEN.local(), 8, flags=8)
LARGE = b"\1\0\x10\0" + len(TEXT).to_bytes(8, "little") * 2
WIDE = RawMember(b"a", TEXT, deflated(TEXT), 8, flags=8, extra=LARGE, behind=STREAM.descriptor("<4sI2Q"))


@pytest.mark.parametrize(
    ("data", "names"),
    [
        pytest.param(raw_zip(), [], id="nothing"),
        pytest.param(raw_zip(RawMember(b"a", TEXT), RawMember(b"b/"), STREAM), [b"a", b"b/", b"a"], id="several"),
        pytest.param(raw_zip(WIDE, RawMember(b"b")), [b"a", b"b"], id="a descriptor of 64 bits"),
        pytest.param(raw_zip(BEHIND, RawMember(b"b")), [b"a", b"hidden"], id="a hidden one"),
        pytest.param(raw_zip(RawMember(b"a", TEXT, flags=8)), None, id="one that says its size behind"),
        pytest.param(raw_zip(RawMember(b"a", TEXT, b"\xff" * 9, 8)), None, id="no deflated one"),
        pytest.param(raw_zip(RawMember(b"a", TEXT, deflated(TEXT)[:3], 8))[:37], None, id="a part of one"),
    ],
)
def test_stream_names_lists_the_members_in_the_local_headers(data: bytes, names: list[bytes] | None) -> None:
    assert stream_names(data) == names


def test_the_harness_finds_a_reader_that_skips_hidden_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_reader, "_require_none_behind", lambda *_: None)
    with pytest.raises(WrongAnswerError, match=r"a stream gives \['a', 'hidden'\], the directory \['a', 'b'\]"):
        find_harness("archives.zip").run(raw_zip(BEHIND, RawMember(b"b", TEXT)))


def test_the_harness_finds_a_reader_that_accepts_folders_with_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_directory, "require_empty", lambda *_: None)
    folder = RawMember(b"f/", b"", b"\3\0" + STREAM.local(), 8)
    with pytest.raises(WrongAnswerError, match=r"a stream gives \['a', 'b'\], the directory \['b'\]"):
        find_harness("archives.zip").run(raw_zip(folder, RawMember(b"b", TEXT)))
