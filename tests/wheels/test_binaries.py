"""Tests of the binaries in what a command is given."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rocwheel.core.errors import InputError
from rocwheel.wheels.binaries import find_binaries, read_found
from tests.support.bundles import bundle_of
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

BUNDLE = bundle_of("gfx906")


def names_in(path: Path) -> list[tuple[str, str]]:
    return [("", str(f)) if isinstance(f, InputError) else (f.name, f.place) for f in find_binaries(path)]


def test_a_given_file_is_returned_whatever_its_content(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    assert names_in(tmp_path / "text") == [(f"{tmp_path}/text", "")]


def test_binaries_in_a_folder_and_its_wheels_are_returned_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/x.hipfb").write_bytes(BUNDLE)
    (tmp_path / "b/text").write_text("text")
    (tmp_path / "b/y.hipfb").symlink_to("x.hipfb")
    wheel = make_wheel(tmp_path, "a", {"a/lib/z.hipfb": BUNDLE})
    assert names_in(tmp_path) == [(f"{wheel}!a/lib/z.hipfb", "a/lib/z.hipfb"), (f"{tmp_path}/b/x.hipfb", "b/x.hipfb")]


def test_wheel_members_are_unpacked_for_reading(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "a", {"a/z.hipfb": BUNDLE})
    [found] = find_binaries(wheel)
    assert not isinstance(found, InputError)
    with found.view() as data:
        assert bytes(data[:]) == BUNDLE


def test_an_unreadable_file_is_returned_as_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "cut.whl").write_bytes(b"PK\3\4")
    cut = (
        f"{tmp_path}/cut.whl: is a truncated or damaged archive; expected a complete wheel, "
        "with its central directory at the end"
    )
    pipe = f"{tmp_path}/pipe: isn't a regular file; expected a binary, a folder, or a wheel"
    absent = f"{tmp_path}/none: can't be read (No such file or directory). Check whether it exists and is readable."
    texts = [names_in(tmp_path / name) for name in ("cut.whl", "pipe", "none")]
    assert texts == [[("", cut)], [("", pipe)], [("", absent)]]
    assert len(names_in(tmp_path)) == 1


def test_errors_in_a_folder_are_returned_with_the_results(tmp_path: Path) -> None:
    (tmp_path / "x.hipfb").write_bytes(BUNDLE)
    make_wheel(tmp_path, "a", {"a/z.hipfb": BUNDLE * 9})
    results = [
        size if isinstance(size, int) else size.found
        for _, size in read_found(find_binaries(tmp_path), lambda data, _: len(data), limit=len(BUNDLE))
    ]
    assert results == [f"unpacks to {len(BUNDLE) * 9} bytes", len(BUNDLE)]
