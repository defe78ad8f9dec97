"""The comparison of two versions' outputs: what it takes for a difference."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from scripts.compare_outputs import Row, compare_file, compare_names, compare_texts, differences, verdict_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ({"size": 1}, {"size": 1}, "identical"),
        ({"size": 1}, {"size": 2}, "different"),
        ({"size": 1}, {}, "different"),
        ({"files": [1]}, {"files": [1, 2]}, "different"),
        ({"findings": [{"found": "a", "rule": "r"}]}, {"findings": [{"found": "b", "rule": "r"}]}, "wording"),
        ({"findings": [{"found": "a", "rule": "r"}]}, {"findings": [{"found": "b", "rule": "s"}]}, "different"),
        ({"warnings": ["a"]}, {"warnings": ["b"]}, "wording"),
        ({"warnings": ["a"]}, {"warnings": ["a", "b"]}, "different"),
        ({"distributions": [{"size": 1}]}, {"distributions": [{"size": 2}]}, "SDK source"),
        ({"sdists": [{"files": {"rocm_sdk/a.py": ""}}]}, {"sdists": [{"files": {"rocm_sdk/b.py": ""}}]}, "SDK source"),
        ({"sdists": [{"files": {"PKG-INFO": ""}}]}, {"sdists": [{"files": {}}]}, "different"),
    ],
)
def test_a_document_differs_in_values_or_only_in_wording(old: object, new: object, verdict: str) -> None:
    assert verdict_of(differences(old, new)) == verdict


def test_wheels_that_differ_only_in_sdk_python_source_get_their_own_verdict(tmp_path: Path) -> None:
    old = _wheel(tmp_path / "old.whl", {"rocm_sdk/__init__.py": b"1", "x-1.dist-info/RECORD": b"1", "lib/a.so": b""})
    new = _wheel(tmp_path / "new.whl", {"rocm_sdk/__init__.py": b"2", "x-1.dist-info/RECORD": b"2", "lib/a.so": b""})
    assert compare_file("x.whl", old, new).verdict == "SDK source"


def test_a_different_member_is_named(tmp_path: Path) -> None:
    old = _wheel(tmp_path / "old.whl", {"rocm_sdk/__init__.py": b"1", "lib/a.so": b"1"})
    new = _wheel(tmp_path / "new.whl", {"rocm_sdk/__init__.py": b"2", "lib/a.so": b"2"})
    assert compare_file("x.whl", old, new) == Row("file: x.whl", "different", "lib/a.so")


def test_a_different_member_of_a_tar_inside_a_wheel_is_named(tmp_path: Path) -> None:
    old = _wheel(tmp_path / "old.whl", {"rocm_sdk_devel/_devel.tar": _tar(b"1")})
    new = _wheel(tmp_path / "new.whl", {"rocm_sdk_devel/_devel.tar": _tar(b"2")})
    assert compare_file("x.whl", old, new).detail == "rocm_sdk_devel/_devel.tar!include/a.h"


def test_a_symlink_that_points_outside_a_tar_is_compared_by_its_target_text(tmp_path: Path) -> None:
    old = _wheel(tmp_path / "old.whl", {"_devel.tar": _tar(b"1", link="../a"), "b": b""})
    new = _wheel(tmp_path / "new.whl", {"_devel.tar": _tar(b"1", link="../b"), "b": b""})
    assert compare_file("x.whl", old, new) == Row("file: x.whl", "different", "_devel.tar!link")


def test_a_report_with_only_text_differences_gets_the_verdict_wording(tmp_path: Path) -> None:
    (tmp_path / "old").write_text('{"results": [{"message": {"text": "a"}, "ruleId": "r"}]}')
    (tmp_path / "new").write_text('{"results": [{"message": {"text": "b"}, "ruleId": "r"}]}')
    assert compare_file("audit.sarif", tmp_path / "old", tmp_path / "new").verdict == "wording"


def test_file_times_in_index_notes_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "old").write_text('{"files": {"dist/a.whl": ["sha256", [1, 2, 3, 4, 5]]}}')
    (tmp_path / "new").write_text('{"files": {"dist/a.whl": ["sha256", [1, 7, 3, 8, 9]]}}')
    assert compare_file(".rocwheel-index.json", tmp_path / "old", tmp_path / "new").verdict == "identical"


def test_a_text_difference_shows_the_first_differing_lines() -> None:
    row = compare_texts("text: plan", "rocm\nold line\n", "rocm\nnew line\n")
    assert row == Row("text: plan", "wording", "-old line\n            +new line")


def test_identical_members_packed_differently_are_different(tmp_path: Path) -> None:
    old = _wheel(tmp_path / "old.whl", {"a": b"", "b": b""})
    new = _wheel(tmp_path / "new.whl", {"b": b"", "a": b""})
    assert compare_file("x.whl", old, new).detail == "the same members, packed in another way"


def test_a_file_on_only_one_side_is_different(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    assert compare_file("a", tmp_path / "old", tmp_path / "new") == Row("file: a", "different", "only in old")


@pytest.mark.parametrize(
    ("old", "new", "verdict", "detail"),
    [
        (["--json"], ["--json"], "identical", ""),
        (["--json"], ["--json", "--new"], "new", "+--new"),
        (["--json", "--old"], ["--json"], "different", "---old"),
        (None, ["--json"], "new", ""),
        (["--json"], None, "different", "is gone"),
    ],
)
def test_options_may_be_added_but_not_removed(
    old: list[str] | None, new: list[str] | None, verdict: str, detail: str
) -> None:
    assert compare_names("rocwheel plan", old, new) == Row("options: rocwheel plan", verdict, detail)


def _wheel(path: Path, members: dict[str, bytes]) -> Path:
    with ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def _tar(data: bytes, link: str = "a.h") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("include/a.h")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
        symlink = tarfile.TarInfo("link")
        symlink.type, symlink.linkname = tarfile.SYMTYPE, link
        archive.addfile(symlink)
    return buffer.getvalue()
