"""Wheels compared with their RECORD."""

from __future__ import annotations

import hashlib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.progress import SILENT
from rocwheel.verify.files import Fault, Verified, verify_wheel
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

INFO = "demo-1.0.dist-info"


def verified(wheel: Path) -> Verified:
    with ThreadPoolExecutor(2) as executor:
        return verify_wheel(wheel, executor, SILENT)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path, "demo", {"demo/a.py": b"a = 1\n", "demo/b.py": b"b = 1\n"})


def rewrite(wheel: Path, change: Callable[[dict[str, bytes]], object]) -> None:
    """Change the members of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def test_a_valid_wheel_has_no_faults(wheel: Path) -> None:
    found = verified(wheel)
    assert (found.kind, found.files, found.faults) == ("wheel", 6, ())
    assert found.size == sum(info.file_size for info in zipfile.ZipFile(wheel).infolist())


def test_headers_and_names_that_installers_refuse_are_faults(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        info = zipfile.ZipInfo("demo/\x7f.py")
        info.extra = b"\1\0\x08\0" + bytes(8)
        archive.writestr(info, b"")
    member = f"{wheel}!demo/\x7f.py"
    assert verified(wheel).faults[:3] == (
        Fault(
            "damaged",
            member,
            "its own header has a ZIP64 field of 8 bytes",
            "no ZIP64 field, because the sizes fit in the header",
        ),
        Fault(
            "damaged",
            member,
            "its directory entry has a ZIP64 field of 8 bytes",
            "no ZIP64 field, because the sizes fit in the header",
        ),
        Fault("damaged", member, "has a name with a control character", "a path inside the environment"),
    )


def test_changed_missing_and_extra_members_are_reported_with_both_hashes(wheel: Path) -> None:
    def change(members: dict[str, bytes]) -> None:
        members["demo/a.py"] = b"a = 2\n"
        del members["demo/b.py"]
        members["demo/c.py"] = b""

    rewrite(wheel, change)
    assert verified(wheel).faults == (
        Fault("missing", f"{wheel}!demo/b.py", "is missing", "a member that RECORD lists"),
        Fault("extra", f"{wheel}!demo/c.py", "isn't in RECORD", "only members that RECORD lists"),
        Fault(
            "changed",
            f"{wheel}!demo/a.py",
            f"has the sha256 {hashlib.sha256(b'a = 2' + bytes([10])).hexdigest()}",
            hashlib.sha256(b"a = 1\n").hexdigest(),
        ),
    )


def test_a_flipped_byte_in_a_compressed_member_is_reported_as_damage(wheel: Path) -> None:
    data = bytearray(wheel.read_bytes())
    place = data.index(b"demo/a.py") + len(b"demo/a.py")
    data[place + 3] ^= 1
    wheel.write_bytes(data)
    [fault] = verified(wheel).faults
    assert (fault.kind, fault.place) == ("damaged", f"{wheel}!demo/a.py")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (b",6\n", b",7\n", ("changed", "has 6 bytes", "7, as in RECORD")),
        (
            b"sha256=",
            b"md5=",
            ("unlisted", "has only a hash of type md5 in RECORD", "a sha256, sha384, or sha512 hash"),
        ),
        (b"sha256=", b"=", ("unlisted", "has no hash in RECORD", "a sha256, sha384, or sha512 hash")),
    ],
    ids=["size", "md5", "none"],
)
def test_rows_without_a_correct_size_and_strong_hash_are_reported(
    wheel: Path, old: bytes, new: bytes, fault: tuple[str, str, str]
) -> None:
    def change(members: dict[str, bytes]) -> None:
        lines = members[f"{INFO}/RECORD"].splitlines(keepends=True)
        lines = [line.replace(old, new) if line.startswith(b"demo/a.py,") else line for line in lines]
        members[f"{INFO}/RECORD"] = b"".join(lines)

    rewrite(wheel, change)
    assert [(one.kind, one.found, one.expected) for one in verified(wheel).faults] == [fault]


def test_a_member_listed_twice_in_record_is_reported(wheel: Path) -> None:
    def change(members: dict[str, bytes]) -> None:
        row = next(line for line in members[f"{INFO}/RECORD"].splitlines() if line.startswith(b"demo/a.py,"))
        members[f"{INFO}/RECORD"] += row + b"\n"

    rewrite(wheel, change)
    assert [fault.text for fault in verified(wheel).faults] == [
        f"{wheel}!demo/a.py: is listed 2 times in RECORD; expected each member only once"
    ]


def test_a_wheel_without_record_and_a_file_that_is_not_an_archive_are_faults(wheel: Path, tmp_path: Path) -> None:
    rewrite(wheel, lambda members: members.pop(f"{INFO}/RECORD"))
    assert [fault.text for fault in verified(wheel).faults] == [
        f"{wheel}: has no {INFO}/RECORD; expected a RECORD that lists its members"
    ]
    wheel.write_bytes(b"PK")
    [fault] = verified(wheel).faults
    assert (fault.kind, fault.found) == ("damaged", "is a damaged archive (File is not a zip file)")


def test_a_name_that_is_not_utf8_is_matched_to_its_member_and_reported(tmp_path: Path) -> None:
    """Archives have such names in code page 437, and RECORD has the bytes."""
    name = b"demo/\xff.txt"
    wheel = make_wheel(tmp_path, "demo", {"demo/?.txt": b"a"})
    with zipfile.ZipFile(wheel) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    members[name.decode("cp437")] = members.pop("demo/?.txt")
    members[f"{INFO}/RECORD"] = members[f"{INFO}/RECORD"].replace(b"demo/?.txt", name)
    with zipfile.ZipFile(wheel, "w") as archive:
        for one, data in members.items():
            archive.writestr(one, data)
    assert verified(wheel).faults == (
        Fault("damaged", f"{wheel}!{INFO}/RECORD", "has 1 name that is not valid UTF-8", "UTF-8 text"),
    )
