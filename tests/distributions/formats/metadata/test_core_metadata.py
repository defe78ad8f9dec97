"""Core metadata that others wrote."""

from __future__ import annotations

import pytest

from rocwheel.distributions.formats.metadata.core_metadata import CoreMetadataError, parse_core_metadata


def test_known_fields_are_read_and_others_kept_apart() -> None:
    assert parse_core_metadata(b"Name: a\nColour: red\n") == ({"name": "a"}, {"colour": ["red"]})


@pytest.mark.parametrize(
    "part",
    ['Content-Type: multipart/mixed; boundary="b{0}"\n\n--b{0}\n', "Content-Type: message/rfc822\n\n"],
    ids=["multipart", "message"],
)
def test_messages_within_messages_are_refused(part: str) -> None:
    text = "Name: a\n" + "".join(part.format(number) for number in range(3000))
    with pytest.raises(CoreMetadataError, match=r"^messages are nested too deeply in it$"):
        parse_core_metadata(text.encode())
