"""Files that know whether somebody has edited them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.frameworks.jax.generated_file import GeneratedFile, HandEditedError

if TYPE_CHECKING:
    from pathlib import Path

FIRST = GeneratedFile("Made by a test;", "a\nb\n")
SECOND = GeneratedFile("Made by a test;", "a\nc\n")


def test_the_text_is_sealed_by_the_hash_of_the_rest() -> None:
    digest = "911169ddaaf146aff539f58c26c489af3b892dff0fe283c1c264c65ae5aa59a2"
    assert FIRST.text == f"# Made by a test; sha256 of what follows: {digest}\na\nb\n"


def test_writing_it_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert FIRST.write(path).startswith(f"--- {path} (before)\n+++ {path}\n")
    before = path.stat()
    assert FIRST.write(path) == ""
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_a_change_is_shown_as_a_diff(tmp_path: Path) -> None:
    path = tmp_path / "x"
    FIRST.write(path)
    diff = SECOND.write(path).splitlines()
    assert diff[-3:] == [" a", "-b", "+c"]
    assert path.read_text() == SECOND.text


@pytest.mark.parametrize("old", [FIRST.text + "more\n", "other\n", "", FIRST.text.replace("b\n", "B\n")])
def test_a_file_that_was_edited_stays_as_it_is(tmp_path: Path, old: str) -> None:
    path = tmp_path / "x"
    path.write_text(old)
    with pytest.raises(HandEditedError) as caught:
        SECOND.write(path)
    assert str(caught.value) == (
        f"{path}: was edited by hand, or made by something else. "
        "Put the changes elsewhere, or give --force to lose them."
    )
    assert path.read_text() == old


def test_a_diff_alone_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert FIRST.diff(path).splitlines()[-2:] == ["+a", "+b"]
    assert not path.exists()
    FIRST.write(path)
    assert FIRST.diff(path) == ""


def test_force_overwrites_it(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("mine\n")
    assert "-mine\n" in SECOND.write(path, force=True)
    assert path.read_text() == SECOND.text


def test_a_link_is_written_through(tmp_path: Path) -> None:
    target, link = tmp_path / "real", tmp_path / "link"
    GeneratedFile("Made;", "old\n").write(target)
    link.symlink_to(target)
    GeneratedFile("Made;", "new\n").write(link)
    assert link.is_symlink()
    assert target.read_text().endswith("new\n")
