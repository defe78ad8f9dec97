"""Tests of `rocwheel.index.yanked`."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core import reading
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.index.folder_notes import KNOWN_NAME
from rocwheel.index.pages import RawFile, make_project_page
from rocwheel.index.write_index import IndexOptions, write_index
from rocwheel.index.yanked import Yanking, read_yanked
from tests.support.damage import damaged

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.index.conftest import AddWheel


@pytest.mark.parametrize(
    ("value", "reason"), [(True, ""), ("bad code", "bad code"), (False, None), ("", None), (None, None)]
)
def test_a_truthy_value_yanks_a_file(value: bool | str | None, reason: str | None) -> None:
    assert RawFile("", "", yanked=value).yanked_reason == reason


OLD, NEW = "a-1.0-py3-none-any.whl", "a-2.0-py3-none-any.whl"
REASON = 'breaks "b" & <c>'


@pytest.fixture
def output(add_wheel: AddWheel, dist_dir: Path) -> Path:
    add_wheel("a")
    add_wheel("a", "2.0")
    add_wheel("b")
    return dist_dir.parent / "simple"


def marks(output: Path) -> dict[str, str | bool]:
    """Return what the page of the project says in JSON, after comparing it with HTML."""
    files = json.loads((output / "a/index.json").read_text())["files"]
    found = {file["filename"]: file["yanked"] for file in files if "yanked" in file}
    assert (output / "a/index.html").read_text().count("data-yanked=") == len(found)
    return found


@pytest.mark.parametrize(
    ("key", "value"),
    [("size", "848"), ("requires-python", 3), ("hashes", []), ("upload-time", 1), ("core-metadata", 1)],
)
def test_marks_are_read_from_an_entry_with_another_field_of_the_wrong_type(
    dist_dir: Path, output: Path, key: str, value: object
) -> None:
    write_index(dist_dir, output)
    page = output / "a/index.json"
    listed = json.loads(page.read_text())
    listed["files"][0] |= {key: value, "yanked": "broken"}
    page.write_text(json.dumps(listed))
    assert read_yanked(output, ["a"]) == {listed["files"][0]["filename"]: "broken"}


def test_a_yanked_file_is_marked_in_both_page_forms_and_stays_marked(dist_dir: Path, output: Path) -> None:
    write_index(dist_dir, output)
    report = write_index(dist_dir, output, options=IndexOptions(yanking=Yanking({OLD: REASON, NEW: ""})))
    assert report.yanked == {OLD: REASON, NEW: ""}
    assert 'data-yanked="breaks &quot;b&quot; &amp; &lt;c&gt;"' in (output / "a/index.html").read_text()
    for _ in range(2):
        assert marks(output) == {OLD: REASON, NEW: True}
        assert write_index(dist_dir, output).yanked == report.yanked


def test_a_file_can_be_unyanked(dist_dir: Path, output: Path) -> None:
    write_index(dist_dir, output, options=IndexOptions(yanking=Yanking({OLD: REASON, NEW: ""})))
    write_index(dist_dir, output, options=IndexOptions(yanking=Yanking(unyanked=(OLD,))))
    assert marks(output) == {NEW: True}


def forget(output: Path) -> None:
    (output / KNOWN_NAME).unlink()


def forget_the_version(output: Path) -> None:
    known = msgspec.json.decode((output / KNOWN_NAME).read_bytes())
    (output / KNOWN_NAME).write_bytes(msgspec.json.encode({**known, "version": "0.0.1"}))


def note_other_fields(output: Path) -> None:
    known = msgspec.json.decode((output / KNOWN_NAME).read_bytes())
    files = {name: [*values, "a later field", {}][1:] for name, values in known["files"].items()}
    (output / KNOWN_NAME).write_bytes(msgspec.json.encode({**known, "files": files, "projects": {"a": [1]}}))
    remove_pages(output)


def remove_pages(output: Path) -> None:
    (output / "a/index.html").unlink()
    (output / "a/index.json").unlink()


@pytest.mark.parametrize("spoil", [forget, forget_the_version, note_other_fields, remove_pages])
def test_marks_survive_the_loss_of_notes_or_pages(dist_dir: Path, output: Path, spoil: Callable[[Path], None]) -> None:
    write_index(dist_dir, output, options=IndexOptions(yanking=Yanking({OLD: REASON})))
    spoil(output)
    write_index(dist_dir, output)
    assert marks(output) == {OLD: REASON}


@pytest.mark.parametrize("form", ["index.html", "index.json"])
def test_a_mark_added_to_a_page_by_hand_is_kept(dist_dir: Path, output: Path, form: str) -> None:
    write_index(dist_dir, output)
    page = output / "a" / form
    if form == "index.html":
        page.write_text(page.read_text().replace("<a href", '<a data-yanked="bad &amp; old" href', 1))
    else:
        document = json.loads(page.read_text())
        document["files"][0]["yanked"] = "bad & old"
        page.write_text(json.dumps(document))
    write_index(dist_dir, output)
    assert marks(output) == {OLD: "bad & old"}


def test_a_file_that_cannot_be_yanked_is_refused_before_anything_is_written(dist_dir: Path, output: Path) -> None:
    with pytest.raises(ProblemsError) as caught:
        write_index(
            dist_dir, output, options=IndexOptions(yanking=Yanking({"c.whl": "", OLD: "\x1b[m", NEW: ""}, (NEW,)))
        )
    ways = (
        "is not in the folder, so it can't be yanked or unyanked. Specify the name of a wheel or sdist in the folder."
    )
    assert [str(problem) for problem in caught.value.problems] == [
        f"{dist_dir}/c.whl: {ways}",
        f"{dist_dir}/{OLD}: has the reason '\\x1b[m', which contains control characters. Remove them.",
        f"{dist_dir}/{NEW}: can't be both yanked and unyanked. Either yank or unyank the file.",
    ]
    assert not output.exists()


def test_a_removed_file_is_no_longer_yanked_when_it_comes_back(dist_dir: Path, output: Path) -> None:
    write_index(dist_dir, output, options=IndexOptions(yanking=Yanking({OLD: ""})))
    data = (dist_dir / OLD).read_bytes()
    (dist_dir / OLD).unlink()
    write_index(dist_dir, output)
    (dist_dir / OLD).write_bytes(data)
    assert write_index(dist_dir, output).yanked == {}


def test_a_damaged_file_stays_yanked(dist_dir: Path, output: Path) -> None:
    write_index(dist_dir, output, options=IndexOptions(yanking=Yanking({OLD: REASON})))
    data = (dist_dir / OLD).read_bytes()
    (dist_dir / OLD).write_bytes(b"")
    unread: list[InputError] = []
    write_index(dist_dir, output, unread=unread)  # type: ignore[arg-type]
    (dist_dir / OLD).write_bytes(data)
    write_index(dist_dir, output)
    assert (len(unread), marks(output)) == (1, {OLD: REASON})


PAGE = make_project_page("a", [], "../").html.decode()
ANCHOR = '<a href="{}" data-yanked="{}">a</a>'
PIECES = [
    "<a ",
    "href=",
    "data-yanked",
    '"',
    "'",
    ">",
    "<",
    "<!",
    "<![",
    "<![x[",
    "<?",
    "&",
    "&#x110000;",
    "http://[",
    "é",
]


def write_page(folder: Path, text: str) -> None:
    (folder / "a").mkdir()
    (folder / "a/index.html").write_text(PAGE.replace("</body>", text + "</body>"), errors="replace")


@pytest.mark.parametrize(
    "target", ["http://[/a", "http://[::1", "//[x]/a", "a" * 100_000, "%", "%zz", "http://\u2100/a", "\\", "&#0;"]
)
def test_a_page_with_a_hostile_url_still_marks_its_other_files(target: str, tmp_path: Path) -> None:
    write_page(tmp_path, ANCHOR.format(target, "one") + ANCHOR.format(OLD, "two"))
    assert read_yanked(tmp_path, ["a"])[OLD] == "two"


@pytest.mark.parametrize("text", ["<![", "<![x[", "<!DOCTYPE [", "<!a [<!b", "<" * 100_000, "<![CDATA[", "<?"])
def test_a_page_with_hostile_markup_is_read_or_ignored(text: str, tmp_path: Path) -> None:
    write_page(tmp_path, ANCHOR.format(OLD, "x") + text)
    assert set(read_yanked(tmp_path, ["a"])) <= {OLD}


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=20).map("".join))
def test_any_text_in_a_page_is_read_or_ignored(text: str) -> None:
    with TemporaryDirectory() as folder:
        write_page(Path(folder), ANCHOR.format(OLD, "x") + text)
        assert all(isinstance(reason, str) for reason in read_yanked(Path(folder), ["a"]).values())


@given(
    st.binary(max_size=60)
    | damaged([b'{"files": [{"filename": "a.whl", "yanked": "reason"}, {"filename": "b.whl", "yanked": true}]}'])
)
def test_any_project_document_is_read_or_ignored(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "a").mkdir()
        (Path(folder) / "a/index.json").write_bytes(data)
        assert all(isinstance(reason, str) for reason in read_yanked(Path(folder), ["a"]).values())


@pytest.mark.parametrize("has_notes", [False, True], ids=["pages", "notes"])
def test_marks_are_not_lost_after_a_disk_error(
    dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch, has_notes: bool
) -> None:
    """What can't be read would be taken for nothing, and written so."""
    write_index(dist_dir, output)

    def fail(path: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    monkeypatch.setattr(reading, "read_regular", fail)
    if not has_notes:
        (output / KNOWN_NAME).unlink()
    with pytest.raises((InputError, ProblemsError), match=r"can't be read \(Input/output error\)"):
        write_index(dist_dir, output)
