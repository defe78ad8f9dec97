"""``rocwheel index`` of what nobody should have: each fault is named, and the index lists everything else."""

from __future__ import annotations

import json
import re
import shutil
import sys
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import as_user, needs_setpriv, rocwheel
from tests.support.small_disks import needs_disks, run_on_disk
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

NO_NAME = (
    "not the name of a distribution; expected NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl or NAME-VERSION.tar.gz. "
    "Rename it, or remove it."
)
NAMES = {
    "markup": ("<b>x-1.0-py3-none-any.whl", "<b>x-1.0-py3-none-any.whl"),
    "a script": (
        "<script>alert(1)<!-- -1.0-py3-none-any.whl",
        "<script>alert(1)<!-- -1.0-py3-none-any.whl",
    ),
    "quotes": ("x\"'-1.0-py3-none-any.whl", "x\"'-1.0-py3-none-any.whl"),
    "a blank": ("a b-1.0-py3-none-any.whl", "a b-1.0-py3-none-any.whl"),
    "a line end": ("a\nerror: b-1.0-py3-none-any.whl", "a\\nerror: b-1.0-py3-none-any.whl"),
    "an escape": ("\x1b[31m-1.0-py3-none-any.whl", "\\x1b[31m-1.0-py3-none-any.whl"),
    "text turned around": ("\u202ea-1.0-py3-none-any.whl", "\\u202ea-1.0-py3-none-any.whl"),
    "a second download": ("a-1.0-py3-none-any (1).whl", "a-1.0-py3-none-any (1).whl"),
}


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """Return a folder with a wheel."""
    make_wheel(tmp_path / "dist", "a", {"a.py": b""}, tag="py3-none-any", is_purelib=True)
    return tmp_path / "dist"


def wheel_of(dist: Path) -> Path:
    [wheel] = dist.glob("a-*.whl")
    return wheel


def listed(output: Path) -> dict[str, list[str]]:
    """Return the files of all projects by the JSON pages."""
    names = [one["name"] for one in json.loads((output / "index.json").read_text())["projects"]]
    pages = {name: json.loads((output / name / "index.json").read_text()) for name in names}
    return {name: [file["filename"] for file in page["files"]] for name, page in pages.items()}


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_that_no_distribution_has_is_named_on_one_line(run: Run, dist: Path, kind: str) -> None:
    name, shown = NAMES[kind]
    shutil.copy(wheel_of(dist), dist / name)
    status, _, err = run("index", dist, "-q")
    assert (status, err) == (2, f"error: {dist}/{shown}: {NO_NAME}\n")
    assert listed(dist.parent / "simple") == {"a": ["a-1.0-py3-none-any.whl"]}


@pytest.mark.parametrize("name", ["a\nerror: b.txt", "\x1b[31m.txt"])
def test_a_file_that_is_not_listed_is_named_on_one_line(run: Run, dist: Path, name: str) -> None:
    (dist / name).write_text("")
    status, _, err = run("index", dist)
    shown = name.replace("\n", "\\n").replace("\x1b", "\\x1b")
    assert status == 0
    assert f"not in the index, as it is not a wheel or .tar.gz sdist: {dist}/{shown}\n" in err


class _Texts(HTMLParser):
    def __init__(self, page: Path) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]


def test_a_folder_with_markup_blanks_and_line_ends_in_its_name_is_linked_to(run: Run, tmp_path: Path) -> None:
    dist = tmp_path / '<b> & "\u00e4\n%41' / "dist"
    make_wheel(dist, "a", {"a.py": b""}, tag="py3-none-any", is_purelib=True)
    assert run("index", dist, "--output", tmp_path / "pages", "-q")[0] == 0
    page = _Texts(tmp_path / "pages/a/index.html")
    assert "b" not in page.tags
    assert [link.partition("#")[0] for link in page.links] == [
        "../../%3Cb%3E%20%26%20%22%C3%A4%0A%2541/dist/a-1.0-py3-none-any.whl"
    ]


SPELLING = "expected NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl or NAME-VERSION.tar.gz. Rename it, or remove it."


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("b-1.0-py3-none-any.whl", "its metadata names the project 'a'; expected 'b' as in the file name"),
        ("a-2.0-py3-none-any.whl", "its metadata gives the version '1.0'; expected '2.0' as in the file name"),
        ("\u00e4-1.0-py3-none-any.whl", f"not the name of a distribution; {SPELLING}"),
    ],
    ids=["project", "version", "non-ASCII"],
)
def test_a_wheel_whose_metadata_disagrees_with_its_name_is_left_out(
    run: Run, dist: Path, name: str, found: str
) -> None:
    shutil.copy(wheel_of(dist), dist / name)
    status, _, err = run("index", dist, "-q")
    assert (status, err) == (2, f"error: {dist}/{name}: {found}\n")
    assert listed(dist.parent / "simple") == {"a": ["a-1.0-py3-none-any.whl"]}


def test_two_files_of_one_name_with_different_bytes_leave_the_index_as_it_was(
    run: Run, dist: Path, tmp_path: Path
) -> None:
    make_wheel(tmp_path / "more", "b", {"b.py": b""}, tag="py3-none-any", is_purelib=True)
    command = ("index", dist, tmp_path / "more", "--output", tmp_path / "pages", "-q")
    assert run(*command)[0] == 0
    before = {path: path.read_bytes() for path in (tmp_path / "pages").rglob("*.*") if path.is_file()}
    make_wheel(tmp_path / "more", "a", {"a.py": b"other"}, tag="py3-none-any", is_purelib=True)
    status, _, err = run(*command)
    name = "a-1.0-py3-none-any.whl"
    remedy = "Remove one of the two, or make an index of each folder."
    assert status == 2
    assert f"{tmp_path}/more/{name}: has other bytes than {dist}/{name}; expected the same file. {remedy}\n" in err
    assert {path: path.read_bytes() for path in (tmp_path / "pages").rglob("*.*") if path.is_file()} == before


@pytest.mark.parametrize("page", ["index.html", "index.json", "a/index.html", "a/index.json"])
def test_each_page_that_somebody_edited_is_named_and_mended(
    run: Run, dist: Path, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwheel.core.reading._GRANULARITY", 0)  # instead of two seconds' wait
    for _ in range(2):
        assert run("index", dist, "-q")[0] == 0
    path = dist.parent / "simple" / page
    before = path.read_bytes()
    path.write_bytes(re.sub(rb"\ba\b", b"evil", before))
    status, _, err = run("index", dist)
    assert status == 0
    assert f"{path}: was edited by somebody; it is again as the files are" in err
    assert path.read_bytes() == before


@needs_setpriv
@pytest.mark.parametrize("what", ["the output", "its parent", "the distributions"])
def test_a_folder_that_can_not_be_written_is_named_with_what_to_do(dist: Path, what: str) -> None:
    output = dist.parent / "simple"
    if what == "the output":
        assert rocwheel("index", dist, "-q").returncode == 0
        before = (output / "a/index.json").read_bytes()
        make_wheel(dist, "b", {"b.py": b""}, tag="py3-none-any", is_purelib=True)
    folder = {"the output": output, "its parent": dist.parent, "the distributions": dist}[what]
    folder.chmod(0o500)
    done = rocwheel("index", dist, "-q", before=as_user())
    folder.chmod(0o700)
    path, remedy = {
        "the output": (
            output / ".rocwheel-index-begun.json",
            "Check the free space and the permissions of its folder.",
        ),
        "its parent": (output, "Check the free space and the permissions of its folder."),
        "the distributions": (
            dist / "a-1.0-py3-none-any.whl.metadata",
            "Make its folder writable, or have the index hold the files: --files hardlink or copy.",
        ),
    }[what]
    expected = f"error: {path}: can't be written (Permission denied). {remedy}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)
    if what == "the output":
        assert (output / "a/index.json").read_bytes() == before
        assert listed(output) == {"a": ["a-1.0-py3-none-any.whl"]}


@needs_setpriv
@pytest.mark.parametrize("placement", ["hardlink", "copy"])
def test_distributions_that_can_only_be_read_are_indexed_where_the_index_holds_them(dist: Path, placement: str) -> None:
    dist.chmod(0o500)
    done = rocwheel("index", dist, "--files", placement, "-q", before=as_user())
    dist.chmod(0o700)
    assert (done.returncode, done.stderr) == (0, "")
    assert listed(dist.parent / "simple") == {"a": ["a-1.0-py3-none-any.whl"]}


@needs_disks
@pytest.mark.parametrize("size", ["16k", "200k"])
def test_a_full_disk_is_named_with_the_index(tmp_path: Path, size: str) -> None:
    for number in range(30):
        make_wheel(tmp_path / "dist", f"a{number}", {}, tag="py3-none-any", is_purelib=True)
    disk = tmp_path / "disk"
    disk.mkdir()
    command: list[str | Path] = [
        sys.executable,
        "-m",
        "rocwheel",
        "index",
        tmp_path / "dist",
        "--files",
        "copy",
        "--quiet",
    ]
    done = run_on_disk(disk, f"size={size}", [*command, "--output", disk / "simple"])
    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        (
            f"error: {disk}/simple: can't be written, as its disk, {disk}, is full. "
            "Make room there, and run it again; until then the index lists nothing that is not there.\n"
        ),
    )
