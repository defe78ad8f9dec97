"""Wheels by their ZIP headers: what writers of archives do well, carelessly and wrongly, field by field.

`tests/fixtures/zip_headers.json` has which installers refuse each one.
"""

from __future__ import annotations

import base64
import bz2
import hashlib
import struct
import zlib
from typing import Any

import msgspec

from tests.support.raw_zip import deflated

__all__ = ["WHEEL_NAME", "zip_headers"]

WHEEL_NAME = "demo-1.0-py3-none-any.whl"
_INFO = "demo-1.0.dist-info"
_TEXT = b"print('good')\n"
_NAME = b"demo/data.bin"
_MAX = 0xFFFFFFFF
_FOLDER = 0o40755 << 16 | 16


class _Member(msgspec.Struct, frozen=True, kw_only=True):
    """A member; ``own`` and ``entry`` replace fields of its own header and of its directory entry."""

    name: bytes = _NAME
    content: bytes = _TEXT
    method: int = 8
    packed: bytes | None = None
    own: dict[str, Any] = {}
    entry: dict[str, Any] = {}
    behind: bytes | None = None
    before: bytes = b""

    @property
    def data(self) -> bytes:
        if self.packed is not None:
            return self.packed
        return deflated(self.content) if self.method == 8 else self.content

    @property
    def sizes(self) -> tuple[int, int]:
        return len(self.data), len(self.content)

    def descriptor(self, layout: str = "<4s3I") -> bytes:
        return struct.pack(layout, b"PK\7\10", zlib.crc32(self.content), *self.sizes)

    def _fields(self, changes: dict[str, Any]) -> dict[str, Any]:
        true = {
            "name": self.name,
            "version": 20,
            "flags": 0,
            "method": self.method,
            "time": (0, 0x5A21),
            "crc": zlib.crc32(self.content),
            "sizes": self.sizes,
            "extra": b"",
            "made": 0x314,
            "comment": b"",
            "disk": 0,
            "internal": 0,
            "attributes": 0o100644 << 16,
            "offset": None,
        }
        assert not changes.keys() - true.keys(), changes
        return true | changes

    @property
    def is_stream(self) -> bool:
        return bool(self.own.get("flags", 0) & 8)

    def local(self) -> bytes:
        field = self._fields(({"crc": 0, "sizes": (0, 0)} if self.is_stream else {}) | self.own)
        fixed = (field["version"], field["flags"], field["method"], *field["time"], field["crc"], *field["sizes"])
        lengths = (len(field["name"]), len(field["extra"]))
        behind = self.behind if self.behind is not None else self.descriptor() if self.is_stream else b""
        header = struct.pack("<4s5H3I2H", b"PK\3\4", *fixed, *lengths)
        return b"".join([header, field["name"], field["extra"], self.data, behind])

    def listed(self, offset: int) -> bytes:
        flags = {"flags": self.own["flags"]} if "flags" in self.own else {}
        field = self._fields(flags | self.entry)
        fixed = (field["made"], field["version"], field["flags"], field["method"], *field["time"], field["crc"])
        lengths = (len(field["name"]), len(field["extra"]), len(field["comment"]))
        rest = (field["disk"], field["internal"], field["attributes"])
        place = offset if field["offset"] is None else field["offset"]
        header = struct.pack("<4s6H3I5H2I", b"PK\1\2", *fixed, *field["sizes"], *lengths, *rest, place)
        return b"".join([header, field["name"], field["extra"], field["comment"]])

    def record(self) -> bytes:
        marked = self.own.get("flags", 0) & 0x800
        name = self.name.decode("utf-8" if marked else "cp437", "replace")
        quoted = f'"{name.replace(chr(34), chr(34) * 2)}"' if set(name) & set('",\r\n') else name
        digest = base64.urlsafe_b64encode(hashlib.sha256(self.content).digest()).rstrip(b"=").decode()
        return b"" if name.endswith("/") else f"{quoted},sha256={digest},{len(self.content)}\n".encode()


def _archive(
    members: list[_Member],
    *,
    comment: bytes = b"",
    prefix: bytes = b"",
    suffix: bytes = b"",
    shift: int = 0,
    number: int | None = None,
    length: int | None = None,
    behind: bytes = b"",
    large: tuple[int, bytes] | None = None,
    is_narrow: bool = True,
    is_reversed: bool = False,
) -> bytes:
    """Return an archive; ``large`` is length and last bytes of a record for large archives."""
    data, entries = prefix, []
    for member in members:
        data += member.before
        entries.append(member.listed(len(data) - shift))
        data += member.local()
    directory = b"".join(reversed(entries) if is_reversed else entries) + behind
    number = len(members) if number is None else number
    length = len(directory) if length is None else length
    counts = (number, number, length, len(data) - shift)
    end = b""
    if large:
        end = struct.pack("<4sQ2H2I4Q", b"PK\6\6", large[0], 45, 45, 0, 0, *counts) + large[1]
        end += struct.pack("<4sIQI", b"PK\6\7", 0, len(data) + len(directory), 1)
    said = counts if is_narrow else (0xFFFF, 0xFFFF, _MAX, _MAX)
    end += struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, *said, len(comment))
    return data + directory + end + comment + suffix


def _wheel(*members: _Member, **how: Any) -> bytes:
    metadata = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
    tags = b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    every = [_Member(name=b"demo/__init__.py", content=b""), *members]
    every += [
        _Member(name=f"{_INFO}/{name}".encode(), content=text)
        for name, text in (("METADATA", metadata), ("WHEEL", tags))
    ]
    record = b"".join(member.record() for member in every) + f"{_INFO}/RECORD,,\n".encode()
    return _archive([*every, _Member(name=f"{_INFO}/RECORD".encode(), content=record)], **how)


def _one(*, own: dict[str, Any] | None = None, entry: dict[str, Any] | None = None, **how: Any) -> bytes:
    return _wheel(_Member(own=own or {}, entry=entry or {}, **how))


def _folder(**how: Any) -> bytes:
    folder: dict[str, Any] = {"name": b"demo/sub/", "content": b"", "method": 0, "entry": {"attributes": _FOLDER}}
    return _wheel(_Member(**folder | how))


def _field(kind: int, data: bytes, length: int | None = None) -> bytes:
    return struct.pack("<2H", kind, len(data) if length is None else length) + data


def _wide(*values: int) -> bytes:
    """Return a ZIP64 field."""
    return _field(1, struct.pack(f"<{len(values)}Q", *values))


def _path(name: bytes, of: bytes = _NAME) -> bytes:
    """Return a Unicode path."""
    return _field(0x7075, struct.pack("<BI", 1, zlib.crc32(of)) + name)


_PACKED, _SIZE = len(deflated(_TEXT)), len(_TEXT)
_OFFSET = len(_Member(name=b"demo/__init__.py", content=b"").local())
_BOTH = _wide(_SIZE, _PACKED)
_STREAM = _Member(own={"flags": 8})


def zip_headers() -> dict[str, bytes]:
    """Return the wheels by what is special about each."""
    return {
        "plain": _one(),
        "stored": _one(method=0),
        "a folder": _folder(),
        "a folder deflated to 2 bytes": _folder(method=8),
        **_zip64_in_own_header(),
        **_zip64_in_directory(),
        **_extra_fields(),
        **_flags_and_versions(),
        **_descriptors(),
        **_contradictions(),
        **_names(),
        **_folders(),
        **_comments(),
        **_places(),
        **_ends(),
    }


def _zip64_in_own_header() -> dict[str, bytes]:
    narrow = {
        "repeats the sizes": _BOTH,
        "other sizes": _wide(_SIZE + 1, _PACKED),
        "8 bytes": _wide(0x854347CF),
        "8 bytes, the size": _wide(_SIZE),
        "no bytes": _wide(),
        "24 bytes": _wide(_SIZE, _PACKED, 0),
        "28 bytes": _field(1, _wide(_SIZE, _PACKED, 0)[4:] + bytes(4)),
        "twice": _BOTH * 2,
    }
    wide = {
        "both": _BOTH,
        "24 bytes": _wide(_SIZE, _PACKED, 0),
        "8 bytes": _wide(_SIZE),
        "absent": b"",
        "twice": _BOTH * 2,
        "17 bytes": _field(1, _BOTH[4:] + b"\0"),
        "wrong sizes": _wide(_SIZE + 1, _PACKED),
        "cut off": _field(1, _BOTH[4:], 24),
        "behind an unknown field": _field(0x5455, b"\1\0\0\0\0") + _BOTH,
    }
    return {
        **{f"own ZIP64, not needed: {name}": _one(own={"extra": extra}) for name, extra in narrow.items()},
        **{f"own ZIP64: {name}": _one(own={"sizes": (_MAX, _MAX), "extra": extra}) for name, extra in wide.items()},
        "own ZIP64, version 4.5": _one(own={"sizes": (_MAX, _MAX), "extra": _BOTH, "version": 45}),
        "own ZIP64: the size": _one(own={"sizes": (_PACKED, _MAX), "extra": _wide(_SIZE)}),
        "own ZIP64: both for the size": _one(own={"sizes": (_PACKED, _MAX), "extra": _BOTH}),
        "own ZIP64: the packed size": _one(own={"sizes": (_MAX, _SIZE), "extra": _wide(_PACKED)}),
        "own ZIP64: both for the packed size": _one(own={"sizes": (_MAX, _SIZE), "extra": _BOTH}),
    }


def _zip64_in_directory() -> dict[str, bytes]:
    narrow = {
        "repeats the sizes": _BOTH,
        "repeats all": _wide(_SIZE, _PACKED, _OFFSET),
        "8 bytes": _wide(_SIZE),
        "no bytes": _wide(),
        "twice": _BOTH * 2,
    }
    wide = {
        "both": _BOTH,
        "24 bytes": _wide(_SIZE, _PACKED, _OFFSET),
        "8 bytes": _wide(_SIZE),
        "absent": b"",
        "twice": _BOTH * 2,
    }
    all_wide = {"sizes": (_MAX, _MAX), "offset": _MAX}
    return {
        **{f"entry's ZIP64, not needed: {name}": _one(entry={"extra": extra}) for name, extra in narrow.items()},
        **{
            f"entry's ZIP64: {name}": _one(entry={"sizes": (_MAX, _MAX), "extra": extra})
            for name, extra in wide.items()
        },
        "entry's ZIP64: the size": _one(entry={"sizes": (_PACKED, _MAX), "extra": _wide(_SIZE)}),
        "entry's ZIP64: the packed size": _one(entry={"sizes": (_MAX, _SIZE), "extra": _wide(_PACKED)}),
        "entry's ZIP64: all": _one(entry={**all_wide, "extra": _wide(_SIZE, _PACKED, _OFFSET)}),
        "entry's ZIP64: a wrong offset": _one(entry={**all_wide, "extra": _wide(_SIZE, _PACKED, _OFFSET + 1)}),
        "entry's ZIP64: no offset": _one(entry={**all_wide, "extra": _BOTH}),
        "entry's ZIP64: the offset": _one(entry={"offset": _MAX, "extra": _wide(_OFFSET)}),
        "entry's ZIP64: offset and disk": _one(
            entry={"offset": _MAX, "disk": 0xFFFF, "extra": _field(1, _wide(_OFFSET)[4:] + bytes(4))}
        ),
        "entry's ZIP64: no disk": _one(entry={"disk": 0xFFFF}),
        "entry's disk is 1": _one(entry={"disk": 1}),
        "both ZIP64, not needed: 8 bytes": _one(own={"extra": _wide(9)}, entry={"extra": _wide(9)}),
        "both ZIP64": _one(own={"sizes": (_MAX, _MAX), "extra": _BOTH}, entry={"sizes": (_MAX, _MAX), "extra": _BOTH}),
    }


def _extra_fields() -> dict[str, bytes]:
    time = _field(0x5455, b"\1\0\0\0\0")
    extras = {
        "an unknown field": time,
        "an empty field": _field(0xCAFE, b""),
        "an unknown field twice": time * 2,
        "two unknown fields": time + _field(0x7875, b"\1\4\0\0\0\0\4\0\0\0\0"),
        "a field that is cut off": _field(0x5455, b"\1\0", 40),
        "3 bytes behind a field": time + bytes(3),
        "3 bytes": bytes(3),
        "1 byte": b"\1",
        "8 zeros": bytes(8),
        "4 zeros": bytes(4),
        "Android's alignment": _field(0xD935, b"\4\0\0\0\0\0"),
        "the Unicode path": _path(_NAME),
        "another Unicode path": _path(b"demo/evil.bin"),
        "a stale Unicode path": _path(b"demo/evil.bin", b"else"),
        "an empty Unicode path": _path(b""),
        "a Unicode path of 3 bytes": _field(0x7075, b"\1\0\0"),
        "a Unicode path of no bytes": _field(0x7075, b""),
        "a Unicode path of version 2": _field(0x7075, b"\2\0\0\0\0demo/evil.bin"),
        "a Unicode path that is not UTF-8": _path(b"\xff\xff"),
        "the Unicode path twice": _path(_NAME) * 2,
        "a Unicode comment": _field(0x6375, b"\1\0\0\0\0hi"),
        "a Unicode comment of 3 bytes": _field(0x6375, b"\1\0\0"),
        "a Unicode comment of no bytes": _field(0x6375, b""),
        "strong encryption": _field(0x17, b"\2\0\0\0\0\0\0\0"),
    }
    return {
        **{f"own extra: {name}": _one(own={"extra": extra}) for name, extra in extras.items()},
        **{f"entry's extra: {name}": _one(entry={"extra": extra}) for name, extra in extras.items()},
    }


def _flags_and_versions() -> dict[str, bytes]:
    bits = [bit for bit in range(16) if bit != 3]
    versions = (0, 10, 45, 63, 64, 255, 0x314, 0x33F, 0x340)
    methods = {1: deflated(_TEXT), 9: deflated(_TEXT), 12: bz2.compress(_TEXT), 14: _TEXT, 93: _TEXT}
    return {
        **{f"bit {bit}": _one(own={"flags": 1 << bit}) for bit in bits},
        **{f"bit {bit} in its own header": _one(own={"flags": 1 << bit}, entry={"flags": 0}) for bit in bits},
        **{f"bit {bit} in its entry": _one(entry={"flags": 1 << bit}) for bit in bits},
        **{f"a folder with bit {bit}": _folder(own={"flags": 1 << bit}) for bit in (0, 5, 6, 13)},
        **{f"version {one:#x}": _one(own={"version": one}, entry={"version": one}) for one in versions},
        **{f"version {one:#x} in its own header": _one(own={"version": one}) for one in versions},
        **{f"version {one:#x} in its entry": _one(entry={"version": one}) for one in versions},
        **{f"made by {made:#x}": _one(entry={"made": made}) for made in (0, 0x14, 0xA14, 0x1314, 0xFF3F)},
        **{f"method {method}": _one(method=method, packed=data) for method, data in methods.items()},
        "stored in its own header": _one(own={"method": 0}),
        "deflated in its own header": _one(method=0, own={"method": 8}),
    }


def _descriptors() -> dict[str, bytes]:
    stream, wide = {"flags": 8}, _STREAM.descriptor("<4sI2Q")
    zip64 = {"flags": 8, "sizes": (_MAX, _MAX), "extra": _wide(0, 0)}
    checksum = zlib.crc32(_TEXT)

    def wrong(*fields: int) -> bytes:
        return _one(own=stream, behind=struct.pack("<4s3I", b"PK\7\10", *fields))

    return {
        "descriptor": _one(own=stream),
        "descriptor without signature": _one(own=stream, behind=_STREAM.descriptor()[4:]),
        "descriptor, ZIP64": _one(own=zip64, behind=wide),
        "descriptor, ZIP64, without signature": _one(own=zip64, behind=wide[4:]),
        "descriptor, ZIP64, without a field": _one(own=stream, behind=wide),
        "descriptor, narrow with a ZIP64 field": _one(own=zip64),
        "descriptor, ZIP64 field of zeros": _one(own={**stream, "extra": _wide(0, 0)}, behind=wide),
        "descriptor and the truth": _one(own={**stream, "sizes": (_PACKED, _SIZE), "crc": checksum}),
        "descriptor and the checksum": _one(own={**stream, "crc": checksum}),
        "descriptor and a wrong size": _one(own={**stream, "sizes": (_PACKED, _SIZE + 1)}),
        "descriptor and a wrong packed size": _one(own={**stream, "sizes": (_PACKED + 1, _SIZE)}),
        "descriptor missing": _one(own=stream, behind=b""),
        "descriptor without its flag": _one(behind=_STREAM.descriptor()),
        "descriptor with a wrong checksum": wrong(1, _PACKED, _SIZE),
        "descriptor with a wrong size": wrong(checksum, _PACKED, _SIZE + 1),
        "descriptor with a wrong packed size": wrong(checksum, _PACKED + 1, _SIZE),
        "descriptor's flag in the entry": _one(entry=stream),
        "descriptor's flag in its own header": _one(own=stream, entry={"flags": 0}),
        "descriptor, stored": _one(method=0, own=stream),
        "descriptor, stored, and the truth": _one(method=0, own={**stream, "sizes": (_SIZE, _SIZE), "crc": checksum}),
        "descriptor, stored nothing": _one(method=0, content=b"", own=stream),
        "descriptor, a stored folder": _folder(own=stream),
        "descriptor, a deflated folder": _folder(method=8, own=stream),
    }


def _contradictions() -> dict[str, bytes]:
    more, longer = (_PACKED, _SIZE + 1), (_PACKED + 1, _SIZE)
    return {
        "own checksum 1": _one(own={"crc": 1}),
        "own checksum 0": _one(own={"crc": 0}),
        "entry's checksum 1": _one(entry={"crc": 1}),
        "both checksums 1": _one(own={"crc": 1}, entry={"crc": 1}),
        "own size wrong": _one(own={"sizes": more}),
        "own packed size wrong": _one(own={"sizes": longer}),
        "own sizes 0": _one(own={"sizes": (0, 0)}),
        "entry's size wrong": _one(entry={"sizes": more}),
        "entry's packed size too large": _one(entry={"sizes": longer}),
        "entry's packed size too small": _one(entry={"sizes": (_PACKED - 1, _SIZE)}),
        "both sizes wrong": _one(own={"sizes": more}, entry={"sizes": more}),
        "both packed sizes too large": _one(own={"sizes": longer}, entry={"sizes": longer}, behind=b"x"),
        "another name": _one(own={"name": b"demo/evil.bin"}),
        "another case": _one(own={"name": b"demo/Data.bin"}),
        "a longer name": _one(own={"name": b"demo/data.bin.x"}),
        "another time": _one(own={"time": (1, 0x5B21)}),
        "no time": _one(own={"time": (0, 0)}, entry={"time": (0, 0)}),
        "an impossible time": _one(own={"time": (0xFFFF, 0xFFFF)}, entry={"time": (0xFFFF, 0xFFFF)}),
        "stored with a byte more": _one(method=0, packed=_TEXT + b"x"),
        "stored with a byte less": _one(method=0, own={"sizes": more}, entry={"sizes": more}),
        "deflated without an end": _one(packed=b"\0" + struct.pack("<2H", _SIZE, _SIZE ^ 0xFFFF) + _TEXT),
        "deflated with bytes behind": _one(packed=deflated(_TEXT) + b"xxxxx"),
        "deflated badly": _one(packed=b"\xff" * 9),
    }


def _names() -> dict[str, bytes]:
    accent = "demo/\xe9.py".encode()
    marked, unmarked = {"flags": 0x800}, {"flags": 0}
    characters = {
        **{
            f"U+{ord(character):04X}": character for character in "\0\1\t\n\r\x7f\x85\xad\u200b\u202e\u2028\ufeff\ue000"
        },
        **{f"U+{ord(character):04X}": character for character in ' \xa0\u0301*:",\\?\U0001f308'},
    }
    ways = {
        "absolute": b"/tmp/zip-headers-evil.py",
        "out of the wheel": b"../zip-headers-evil.py",
        "with a dot": b"./demo/z.py",
        "with two slashes": b"demo//z.py",
        "with dots": b"demo/../z.py",
        "of 300 bytes": b"demo/" + b"a" * 300,
        "empty": b"",
        "that ends in a space": b"demo/x ",
    }
    return {
        "name in UTF-8": _one(name=accent, own=marked),
        "name in UTF-8, not marked": _one(name=accent),
        "name in code page 437": _one(name=b"demo/\x82.py"),
        "name not in UTF-8, but marked": _one(name=b"demo/\xff.py", own=marked),
        "name marked in its own header": _one(name=accent, own=marked, entry=unmarked),
        "name marked in its entry": _one(name=accent, entry=marked),
        "name in ASCII marked in its own header": _one(own=marked, entry=unmarked),
        "name in code page 437 and a Unicode path": _one(
            name=b"demo/\x82.py",
            own={"extra": _path(accent, b"demo/\x82.py")},
            entry={"extra": _path(accent, b"demo/\x82.py")},
        ),
        **{f"name with {name}": _one(name=f"demo/x{one}y".encode(), own=marked) for name, one in characters.items()},
        **{f"name {way}": _one(name=name) for way, name in ways.items()},
        "one name twice": _wheel(_Member(), _Member()),
        "one name twice, other bytes": _wheel(_Member(), _Member(content=_TEXT * 2)),
    }


def _folders() -> dict[str, bytes]:
    folder = _Member(name=b"demo/s/", content=b"", method=0)
    attributes = {"a symlink": 0o120777 << 16, "0": 0, "a folder of DOS": 16, "a folder": 0o40755 << 16}
    return {
        "folder twice": _wheel(folder, folder),
        "folder and file of one name": _wheel(folder, _Member(name=b"demo/s")),
        "folder with content": _folder(content=_TEXT),
        "folder with a checksum": _folder(own={"crc": 5}, entry={"crc": 5}),
        "folder with a checksum of its own": _folder(own={"crc": 5}),
        "folder with a ZIP64 field": _folder(own={"extra": _wide(0)}),
        "folder with a field that is cut off": _folder(own={"extra": _field(0x5455, b"", 9)}),
        "folder by method 12": _folder(method=12),
        "folder for version 6.4": _folder(own={"version": 64}),
        **{f"attributes of {what}": _one(entry={"attributes": bits}) for what, bits in attributes.items()},
        "internal attributes": _one(entry={"internal": 0xFFFF}),
    }


def _comments() -> dict[str, bytes]:
    comments = {
        "text": b"signed by nobody",
        "UTF-8": "\xe9".encode(),
        "Latin-1": b"\xe9",
        "the most": b"a" * 65535,
        "an end": b"PK\5\6" + bytes(18),
        "half an end": b"PK\5\6",
        **{f"byte {byte}": b"a" + bytes([byte]) + b"b" for byte in (0, 1, 2, 8, 9, 10, 31)},
    }
    return {
        "member's comment": _one(entry={"comment": b"hello"}),
        "member's comment with control characters": _one(entry={"comment": b"PK\1\2\3\4"}),
        "member's comment is an archive": _one(entry={"comment": _one()}),
        **{f"comment: {what}": _wheel(comment=comment) for what, comment in comments.items()},
        "comment cut off": _wheel(comment=b"abc")[:-1],
        "comment with a byte more": _wheel(comment=b"abc", suffix=b"d"),
    }


def _places() -> dict[str, bytes]:
    hidden = _Member(name=b"hidden.pth").local()
    return {
        "a script before it": _wheel(prefix=b"#!/bin/sh\n"),
        "a script before it, not counted": _wheel(prefix=b"#!/bin/sh\n", shift=10),
        "a mark of several files before it": _wheel(prefix=b"PK00"),
        "zeros between members": _wheel(_Member(before=bytes(8))),
        "a hidden member": _wheel(_Member(before=hidden)),
        "zeros behind it": _wheel(suffix=bytes(8)),
        "a line end behind it": _wheel(suffix=b"\n"),
        "an archive behind it": _one() + _one(),
        "offset of another": _one(entry={"offset": 0}),
        "offset beyond": _one(entry={"offset": 10**6}),
        "cut off at its end": _one()[:-10],
        "cut off in the middle": _one()[:200],
    }


def _ends() -> dict[str, bytes]:
    return {
        "directory in reverse": _wheel(is_reversed=True),
        "fewer entries": _wheel(number=3),
        "more entries": _wheel(number=9),
        "no entries": _wheel(number=0),
        "shorter directory": _wheel(length=10),
        "no directory": _wheel(length=0),
        "signature in the directory": _wheel(behind=struct.pack("<4sH", b"PK\5\5", 4) + b"sign"),
        "bytes in the directory": _wheel(behind=b"junk"),
        "large record": _wheel(large=(44, b"")),
        "large record that counts": _wheel(large=(44, b""), is_narrow=False),
        "large record with more": _wheel(large=(52, bytes(8))),
        "large record, too short": _wheel(large=(40, b"")),
        "large record, too long": _wheel(large=(60, b"")),
        "no large record": _wheel(is_narrow=False),
    }
