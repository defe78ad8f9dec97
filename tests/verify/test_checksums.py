"""Files compared with a list of checksums."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT
from rocwheel.verify.files import verify_checksums

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.verify.files import Verified


def verified(path: Path) -> Verified:
    with ThreadPoolExecutor(2) as executor:
        return verify_checksums(path, executor, SILENT)


def test_missing_changed_and_outside_files_are_reported(tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(b"good")
    (tmp_path / "bad").write_bytes(b"bad")
    digest = hashlib.sha256(b"good").hexdigest()
    sums = tmp_path / "SHA256SUMS"
    sums.write_text("".join(f"{digest}  {name}\n" for name in ("good", "bad", "gone", "../outer", "/etc/hostname")))
    found = verified(sums)
    assert (found.kind, found.files, found.size) == ("checksums", 3, 7)
    assert [(fault.kind, fault.place, fault.found.split()[0]) for fault in found.faults] == [
        ("changed", f"{tmp_path}/bad", "has"),
        ("missing", f"{tmp_path}/gone", "is"),
        ("unlisted", str(sums), "lists"),
        ("unlisted", str(sums), "lists"),
    ]


def test_an_invalid_list_is_refused(tmp_path: Path) -> None:
    (tmp_path / "SHA256SUMS").write_text("no")
    with pytest.raises(InputError, match="is invalid on line 1: 'no'"):
        verified(tmp_path / "SHA256SUMS")
