"""Further files that others make of what an index lists."""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.core.errors import InputError, WorkError
from rocwheel.index.extra_files import IndexContent, remove_stale_extras
from rocwheel.index.folder_notes import KNOWN_NAME
from rocwheel.index.write_index import IndexOptions, write_index
from rocwheel.index.yanked import Yanking

if TYPE_CHECKING:
    from pathlib import Path

    from tests.index.conftest import AddWheel

EXTRAS = {"packages.html": b"<p>1</p>", "a/a-1.0-variants.json": b"{}"}


@pytest.fixture
def output(add_wheel: AddWheel, dist_dir: Path) -> Path:
    add_wheel("a")
    return dist_dir.parent / "simple"


def with_extras(files: dict[str, bytes]) -> IndexOptions:
    return IndexOptions(extras=lambda _: files)


def read_extras(output: Path) -> dict[str, bytes]:
    return {name: (output / name).read_bytes() for name in EXTRAS if (output / name).exists()}


def test_extra_files_are_made_from_the_contents_of_the_index(dist_dir: Path, output: Path) -> None:
    seen: list[IndexContent] = []

    def look(content: IndexContent) -> dict[str, bytes]:
        seen.append(content)
        return {}

    name = "a-1.0-py3-none-any.whl"
    write_index(dist_dir, output, options=IndexOptions(yanking=Yanking({name: "bad"}), extras=look))
    content = seen[1]  # after what is made of nothing
    assert [entry.filename for entry in content.projects["a"]] == [name]
    assert (content.yanked, content.bases) == ({name: "bad"}, {name: "../../dist/"})


def test_extra_files_are_written_replaced_and_removed(dist_dir: Path, output: Path) -> None:
    for files in (EXTRAS, {**EXTRAS, "packages.html": b"<p>2</p>"}, {"packages.html": b"<p>2</p>"}, {}):
        write_index(dist_dir, output, options=with_extras(files))
        assert read_extras(output) == files


def test_extra_files_of_a_project_are_written_before_its_page(
    dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, bytes]] = []

    def look(*_: object) -> list[str]:
        seen.append(read_extras(output))
        return []

    monkeypatch.setattr("rocwheel.index.write_index.write_page", look)
    write_index(dist_dir, output, options=with_extras(EXTRAS))
    assert seen == [{"a/a-1.0-variants.json": b"{}"}] * 2
    assert read_extras(output) == EXTRAS


def test_extra_files_of_a_removed_project_are_removed(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    gone = add_wheel("b")
    write_index(dist_dir, output, options=with_extras({"b/b-1.0-variants.json": b"{}"}))
    gone.unlink()
    write_index(dist_dir, output)
    assert not (output / "b").exists()


def test_extra_files_of_a_killed_run_are_known_to_the_next_run(
    dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("rocwheel.index.write_index.remove_stale", _die)
        with pytest.raises(KeyboardInterrupt):
            write_index(dist_dir, output, options=with_extras(EXTRAS))
    assert read_extras(output) == EXTRAS
    write_index(dist_dir, output)
    assert read_extras(output) == {}


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_file_that_rocwheel_did_not_write_is_not_replaced(dist_dir: Path, output: Path) -> None:
    output.mkdir()
    (output / "packages.html").write_text("kept")
    expected = (
        f"{output}/packages.html: is a file that this command did not write. Choose a different --output, or remove "
        "the file."
    )
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(dist_dir, output, options=with_extras(EXTRAS))
    assert [path.name for path in output.iterdir()] == ["packages.html"]


@pytest.mark.parametrize("name", ["../kept", "index.html", "a/index.json", "a/../../kept", "", "linked/kept", "a/b/c"])
def test_edited_notes_do_not_cause_the_removal_of_other_files(dist_dir: Path, output: Path, name: str) -> None:
    (dist_dir / "kept").write_text("kept")
    write_index(dist_dir, output)
    (output.parent / "kept").write_text("kept")
    (output / "linked").symlink_to(dist_dir)
    known = msgspec.json.decode((output / KNOWN_NAME).read_bytes())
    (output / KNOWN_NAME).write_bytes(msgspec.json.encode({**known, "extras": [name]}))
    before = sorted(output.parent.rglob("*"))
    write_index(dist_dir, output)
    assert sorted(output.parent.rglob("*")) == before


def test_an_extra_file_that_cannot_be_removed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *, missing_ok: bool) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    with pytest.raises(WorkError, match=r"packages\.html: can't be removed \(Permission denied\)"):
        remove_stale_extras(tmp_path, ["packages.html"], ())


def test_an_edited_extra_file_is_rewritten_and_reported(dist_dir: Path, output: Path) -> None:
    options = with_extras({"notes.html": b"whole"})
    write_index(dist_dir, output, options=options)
    (output / "notes.html").write_bytes(b"edited")
    assert write_index(dist_dir, output, options=options).edited == (f"{output}/notes.html",)
    assert (output / "notes.html").read_bytes() == b"whole"
    assert write_index(dist_dir, output, options=options).edited == ()
    assert write_index(dist_dir, output, options=with_extras({"notes.html": b"other"})).edited == ()


def test_a_folder_with_the_name_of_an_extra_file_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "alpha").mkdir()
    (tmp_path / "packages.html").touch()
    remove_stale_extras(tmp_path, ["alpha", "packages.html"], ())
    assert [path.name for path in tmp_path.iterdir()] == ["alpha"]
