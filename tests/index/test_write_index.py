"""Tests of `rocwheel.index.write_index`."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError, ProblemsError, WorkError
from rocwheel.index.families import write_indexes
from rocwheel.index.folder_notes import KNOWN_NAME, KnownIndex, write_known
from rocwheel.index.placing import FilePlacement
from rocwheel.index.publish import publish
from rocwheel.index.write_index import IndexOptions, locked_index, write_index
from rocwheel.stores.folder import FolderStore
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.index.conftest import AddWheel, MakeSdist


HALTED = """
import sys
from pathlib import Path
import rocwheel.index.write_index as module
from rocwheel.index.families import write_indexes

read_folders = module.read_folders

def halting(*arguments):
    print("listed", flush=True)
    sys.stdin.read()
    return read_folders(*arguments)

module.read_folders = halting
write_indexes([Path(sys.argv[1])], Path(sys.argv[2]))
"""


@pytest.fixture
def halted(add_wheel: AddWheel, dist_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a run that has listed the folder, which has one wheel ``a``, and goes on when its input ends."""
    add_wheel("a")
    command = [sys.executable, "-c", HALTED, str(dist_dir), str(dist_dir.parent / "simple")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "listed\n"
        yield process


def _run_beside(halted: subprocess.Popen[str], *words: str, says: str) -> None:
    """Run a command while another runs, which ends when the command has said something; both have to succeed."""
    command = [sys.executable, "-m", "rocwheel", "index", *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        assert process.stderr.readline() == says
        assert halted.stdin
        halted.stdin.close()
        process.stderr.read()
    assert (process.returncode, halted.wait()) == (0, 0)


def test_files_of_two_concurrent_runs_are_all_in_the_index(
    halted: subprocess.Popen[str], add_wheel: AddWheel, dist_dir: Path
) -> None:
    output = dist_dir.parent / "simple"
    add_wheel("b")
    says = f"warning: {output}: is being written to by another run; waiting until it ends\n"
    _run_beside(halted, str(dist_dir), "--output", str(output), says=says)
    assert json.loads((output / "index.json").read_bytes())["projects"] == [{"name": "a"}, {"name": "b"}]


def test_a_yank_waits_for_a_concurrent_run(halted: subprocess.Popen[str], dist_dir: Path) -> None:
    # Given an index, as a run that is no more has left it
    output = dist_dir.parent / "simple"
    name = "a-1.0-py3-none-any.whl"
    write_known(output, KnownIndex(folders=("../dist/",), placement="relative"))
    says = f"warning: {output}: is being written to by another run; waiting until it ends\n"
    _run_beside(halted, "yank", str(dist_dir / name), "--output", str(output), says=says)
    assert json.loads((output / "a" / "index.json").read_bytes())["files"][0]["yanked"] is True


def test_a_family_index_uses_the_lock_of_its_main_index(
    add_wheel: AddWheel, dist_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (dist_dir / "gfx90x").mkdir(parents=True)
    add_wheel("rocm").rename(dist_dir / "gfx90x" / "rocm-1.0-py3-none-any.whl")
    add_wheel("a")
    output = dist_dir.parent / "simple"
    write_indexes([dist_dir], output)
    locked: list[Path] = []

    @contextmanager
    def lock(folder: Path) -> Iterator[None]:
        locked.append(folder)
        yield

    monkeypatch.setattr("rocwheel.index.write_index.locked_folder", lock)
    with locked_index(output / "gfx90x"), locked_index(output), locked_index(output / "a"):
        pass
    assert locked == [output, output, output / "a"]


def list_files(folder: Path) -> list[str]:
    """Return the files below a folder, without what the index keeps for its next run."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != KNOWN_NAME)
    return sorted(path.relative_to(folder).as_posix() for path in files)


def read_files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in list_files(folder)}


@pytest.fixture
def output(dist_dir: Path) -> Path:
    return dist_dir.parent / "simple"


def test_pages_are_written_next_to_the_folder_and_metadata_into_the_folder(
    add_wheel: AddWheel, make_sdist: MakeSdist, dist_dir: Path, output: Path
) -> None:
    wheel, sdist = add_wheel("ROCm_SDK.core"), make_sdist("rocm", dynamic=("Requires-Dist",))
    report = write_index(dist_dir, output)
    assert list_files(output) == [
        "index.html",
        "index.json",
        "rocm-sdk-core/index.html",
        "rocm-sdk-core/index.json",
        "rocm/index.html",
        "rocm/index.json",
    ]
    assert list_files(dist_dir) == sorted([wheel.name, f"{wheel.name}.metadata", sdist.name])
    assert report.projects == {"rocm": [sdist.name], "rocm-sdk-core": [wheel.name]}


def test_the_metadata_file_next_to_a_wheel_matches_the_wheel(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    wheel = add_wheel("a", "1.0", "Requires-Dist: b")
    write_index(dist_dir, output)
    metadata = dist_dir / f"{wheel.name}.metadata"
    assert metadata.read_text() == "Metadata-Version: 2.4\nName: a\nVersion: 1.0\nRequires-Dist: b\n"


def test_an_index_of_the_same_files_is_identical_in_any_folder(
    add_wheel: AddWheel, dist_dir: Path, output: Path, tmp_path: Path
) -> None:
    wheels = [add_wheel("b"), add_wheel("a"), add_wheel("a", "2.0")]
    write_index(dist_dir, output)
    other = tmp_path / "other" / "dist"
    other.mkdir(parents=True)
    for wheel in reversed(wheels):
        shutil.copy2(wheel, other)
    write_index(other, other.parent / "simple")
    assert read_files(other.parent / "simple") == read_files(output)


def test_a_second_run_does_not_rewrite_unchanged_files(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    add_wheel("a")
    write_index(dist_dir, output)

    def inodes() -> dict[str, int]:
        return {name: (dist_dir.parent / name).stat().st_ino for name in list_files(dist_dir.parent)}

    before = inodes()
    write_index(dist_dir, output)
    assert inodes() == before


@pytest.mark.parametrize("placement", list(FilePlacement), ids=lambda placement: placement.value)
def test_pages_of_removed_projects_are_removed(
    add_wheel: AddWheel, dist_dir: Path, output: Path, placement: FilePlacement
) -> None:
    add_wheel("a")
    gone = add_wheel("b")
    write_index(dist_dir, output, options=IndexOptions(placement=placement))
    gone.unlink()
    write_index(dist_dir, output, options=IndexOptions(placement=placement))
    assert not (output / "b").exists()
    assert b"b/" not in (output / "index.html").read_bytes()


def test_the_copy_of_a_removed_file_is_removed_from_the_index(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    gone, kept = add_wheel("a", "1.0"), add_wheel("a", "2.0")
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    gone.unlink()
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    assert list_files(output / "a") == [kept.name, f"{kept.name}.metadata", "index.html", "index.json"]


def test_unrelated_files_in_the_output_are_kept(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    gone = add_wheel("b")
    add_wheel("a")
    write_index(dist_dir, output)
    (output / "notes.txt").write_text("kept")
    (output / "b" / "notes.txt").write_text("kept")
    (output / "site").mkdir()
    (output / "site" / "index.html").write_text("a page of somebody else")
    gone.unlink()
    write_index(dist_dir, output)
    names = list_files(output)
    assert [name for name in names if not name.startswith("a/")] == [
        "b/notes.txt",
        "index.html",
        "index.json",
        "notes.txt",
        "site/index.html",
    ]


def test_a_distribution_folder_named_like_a_project_keeps_its_files(add_wheel: AddWheel, dist_dir: Path) -> None:
    wheel = add_wheel("dist")
    for placement in FilePlacement:
        write_index(dist_dir, dist_dir.parent, options=IndexOptions(placement=placement))
    assert list_files(dist_dir) == [wheel.name, f"{wheel.name}.metadata", "index.html", "index.json"]


def test_hard_links_are_placed_in_the_index(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    wheel = add_wheel("a")
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.HARDLINK))
    assert (output / "a" / wheel.name).samefile(wheel)
    assert list_files(output / "a") == [wheel.name, f"{wheel.name}.metadata", "index.html", "index.json"]
    assert list_files(dist_dir) == [wheel.name]


def test_a_hard_link_is_updated_when_its_file_is_replaced(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    add_wheel("a").unlink()
    for fields in ((), ("Requires-Dist: b",)):
        wheel = add_wheel("a", "1.0", *fields)
        write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.HARDLINK))
        assert (output / "a" / wheel.name).samefile(wheel)
        wheel.unlink()


def test_copies_are_placed_in_the_index(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    wheel = add_wheel("a")
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    assert (output / "a" / wheel.name).read_bytes() == wheel.read_bytes()
    assert not (output / "a" / wheel.name).samefile(wheel)


@pytest.mark.parametrize("after", [0, 3600 * 10**9], ids=["at once", "an hour later"])
def test_links_and_copies_replace_each_other_when_the_placement_changes(
    add_wheel: AddWheel, dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + after)
    wheel = add_wheel("a")
    placed, right = output / "a" / wheel.name, wheel.read_bytes()
    for placement, is_link in [(FilePlacement.HARDLINK, True), (FilePlacement.COPY, False)] * 2:
        write_index(dist_dir, output, options=IndexOptions(placement=placement))
        assert (placed.samefile(wheel), placed.read_bytes()) == (is_link, right)


def test_a_folder_that_a_web_server_cannot_reach_from_the_index_is_refused(
    add_wheel: AddWheel, dist_dir: Path, tmp_path: Path
) -> None:
    add_wheel("a")
    output = tmp_path / "www" / "simple"
    expected = (
        f"{output}: can't be served from the same folder as {dist_dir}. Write the index next to the folder or above "
        "it, or use --files hardlink or --files copy."
    )
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(dist_dir, output)
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.HARDLINK))


def test_a_missing_folder_is_reported_before_an_unsuitable_output(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"^{re.escape(str(tmp_path))}/absent: can't be listed"):
        write_index(tmp_path / "absent", tmp_path / "www" / "simple")


def test_a_page_of_another_tool_is_not_overwritten(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    add_wheel("a")
    output.mkdir()
    (output / "index.html").write_text("<title>My site</title>")
    expected = (
        f"{output}/index.html: is a page that this command did not write for this path. Choose a different --output, "
        "or remove the page."
    )
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(dist_dir, output)


@pytest.mark.parametrize("placement", list(FilePlacement), ids=lambda placement: placement.value)
def test_an_index_above_other_indexed_folders_leaves_their_indexes_unchanged(
    add_wheel: AddWheel, dist_dir: Path, placement: FilePlacement
) -> None:
    folders = {name: dist_dir / name for name in ("gfx90x", "gfx94x")}
    for name, folder in folders.items():
        folder.mkdir()
        made = add_wheel(f"rocm_{name}")
        made.rename(folder / made.name)
    write_index(folders["gfx90x"], folders["gfx90x"])
    before = read_files(folders["gfx90x"])
    for _ in range(2):
        write_index(folders["gfx94x"], dist_dir, options=IndexOptions(placement=placement))
    assert read_files(folders["gfx90x"]) == before


def test_a_project_folder_that_no_run_listed_is_kept(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    add_wheel("a")
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    (output / "b").mkdir()
    for path in sorted((output / "a").iterdir()):
        (output / "b" / path.name).write_bytes(path.read_bytes())
    before = read_files(output / "b")
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    assert read_files(output / "b") == before


def test_a_distribution_that_another_tool_put_next_to_a_page_is_kept(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    add_wheel("a")
    write_index(dist_dir, output)
    (output / "a" / "a-2.0-py3-none-any.whl").write_text("kept")
    write_index(dist_dir, output)
    assert (output / "a" / "a-2.0-py3-none-any.whl").read_text() == "kept"


@pytest.mark.parametrize("damaged", ["index.json", "a/index.json"])
def test_a_damaged_page_is_rewritten(add_wheel: AddWheel, dist_dir: Path, output: Path, damaged: str) -> None:
    add_wheel("a")
    write_index(dist_dir, output)
    before = read_files(output)
    (output / damaged).write_text("{")
    write_index(dist_dir, output)
    assert read_files(output) == before


def test_unsafe_names_on_a_page_remove_no_files(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    add_wheel("a")
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    (output.parent / "b.whl").write_text("kept")
    page = output / "a" / "index.json"
    page.write_text('{"files": [{"filename": "../../b.whl", "url": "../../b.whl"}]}')
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    assert (output.parent / "b.whl").read_text() == "kept"


def test_a_project_page_that_rocwheel_did_not_write_is_not_overwritten(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    add_wheel("a")
    write_index(dist_dir, output / "a", options=IndexOptions(placement=FilePlacement.COPY))
    expected = (
        f"{output}/a/index.html: is a page that this command did not write for this path. Choose a different --output, "
        "or remove the page."
    )
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    assert not (output / "index.html").exists()


@pytest.mark.parametrize("name", ["index.json", "a/index.json", "a/a-1.0-py3-none-any.whl"])
@pytest.mark.parametrize("is_link", [False, True], ids=["file", "link"])
def test_a_file_that_rocwheel_did_not_write_is_not_replaced(
    add_wheel: AddWheel, dist_dir: Path, output: Path, name: str, is_link: bool
) -> None:
    add_wheel("a")
    theirs = output / name
    theirs.parent.mkdir(parents=True)
    (dist_dir.parent / "kept").write_text("theirs")
    theirs.symlink_to(dist_dir.parent / "kept") if is_link else theirs.write_text("theirs")
    expected = f"{theirs}: is a file that this command did not write. Choose a different --output, or remove the file."
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.COPY))
    assert [path for path in output.rglob("*") if not path.is_dir()] == [theirs]
    assert theirs.read_text() == "theirs"


def test_a_temporary_file_of_another_run_is_kept(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    wheel = add_wheel("a")
    other = output / "a" / f".{wheel.name}.new"
    other.parent.mkdir(parents=True)
    other.write_text("of another run")
    write_index(dist_dir, output, options=IndexOptions(placement=FilePlacement.HARDLINK))
    assert other.read_text() == "of another run"


def test_an_output_that_is_a_file_is_reported(add_wheel: AddWheel, dist_dir: Path, output: Path) -> None:
    add_wheel("a")
    output.write_text("")
    expected = f"{output}: is not a folder. Choose a folder for the index with --output."
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(dist_dir, output)


def test_a_file_in_place_of_a_project_folder_is_reported_before_anything_is_written(
    add_wheel: AddWheel, dist_dir: Path, output: Path
) -> None:
    wheel = add_wheel("a")
    add_wheel("b")
    add_wheel("c")
    output.mkdir()
    (output / "a").symlink_to(dist_dir.parent)
    (output / "b").write_text("")
    os.mkfifo(output / "index.json")
    os.mkfifo(dist_dir / f"{wheel.name}.metadata")
    (output / "c" / "index.html").mkdir(parents=True)
    with pytest.raises(ProblemsError) as caught:
        write_index(dist_dir, output)
    assert str(caught.value).splitlines() == [
        f"{output}: 5 problems",
        f"  {output}/a: is a link to {dist_dir.parent}; expected a regular folder. Remove the link.",
        f"  {output}/b: is not a folder. Choose a different --output, or remove the file.",
        f"  {output}/c/index.html: is a folder; expected a regular file or nothing. Remove it.",
        f"  {dist_dir}/{wheel.name}.metadata: is a pipe; expected a regular file or nothing. Remove it.",
        f"  {output}/index.json: is a pipe; expected a regular file or nothing. Remove it.",
    ]
    assert not (output / "index.html").exists()
    assert not (output / KNOWN_NAME).exists()


def test_a_socket_is_not_replaced(
    add_wheel: AddWheel, dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_wheel("a")
    output.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(output)  # the address of a socket is short
        listener.bind("index.html")
    expected = f"{output}/index.html: is a socket; expected a regular file or nothing. Remove it."
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(dist_dir, output)


@pytest.mark.parametrize("text", [b'{"projects": [{"name": "\xff"}]}', b'{"projects": ' + b"[" * 100_000])
def test_a_page_with_invalid_text_is_rewritten(add_wheel: AddWheel, dist_dir: Path, output: Path, text: bytes) -> None:
    add_wheel("a")
    write_index(dist_dir, output)
    before = read_files(output)
    (output / "index.json").write_bytes(text)
    (output / KNOWN_NAME).write_bytes(text)
    write_index(dist_dir, output)
    assert read_files(output) == before


@pytest.mark.parametrize("placement", [FilePlacement.HARDLINK, FilePlacement.COPY], ids=["hardlink", "copy"])
def test_links_or_copies_cannot_be_placed_among_the_distributions(
    add_wheel: AddWheel, dist_dir: Path, placement: FilePlacement
) -> None:
    add_wheel("a")
    expected = (
        f"{dist_dir}: already contains the distributions. Choose another folder with --output, or link to the "
        "files with --files relative."
    )
    with pytest.raises(InputError, match=f"^{re.escape(expected)}$"):
        write_index(dist_dir, dist_dir, options=IndexOptions(placement=placement))


def test_pages_can_be_written_among_the_distributions(add_wheel: AddWheel, dist_dir: Path) -> None:
    add_wheel("a")
    for _ in range(2):
        report = write_index(dist_dir, dist_dir)
        assert (report.ignored, report.subfolders) == ((), ())


def test_the_root_page_lists_a_project_only_while_it_exists(
    add_wheel: AddWheel, dist_dir: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_wheel("a").rename(dist_dir / "b-1.0-py3-none-any.whl.away")
    gone = add_wheel("c")
    write_index(dist_dir, output)
    gone.unlink()
    add_wheel("d")
    replace, unlink = Path.replace, Path.unlink
    seen: list[tuple[str, list[str]]] = []

    def look(path: Path) -> None:
        listed = [one["name"] for one in json.loads((output / "index.json").read_bytes())["projects"]]
        seen.append((path.name, [name for name in listed if not (output / name / "index.html").is_file()]))

    def replacing(self: Path, target: Path) -> Path:
        result = replace(self, target)
        look(target)
        return result

    def unlinking(self: Path, *, missing_ok: bool = False) -> None:
        unlink(self, missing_ok=missing_ok)
        look(self)

    monkeypatch.setattr(Path, "replace", replacing)
    monkeypatch.setattr(Path, "unlink", unlinking)
    write_index(dist_dir, output)
    assert [(name, missing) for name, missing in seen if missing] == []
    assert "index.html" in {name for name, _ in seen}


@pytest.mark.parametrize("placement", list(FilePlacement), ids=lambda placement: placement.value)
def test_leftovers_of_a_killed_run_are_removed_by_the_next(
    add_wheel: AddWheel, dist_dir: Path, output: Path, placement: FilePlacement, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, kept = add_wheel("a"), add_wheel("b")
    write_index(dist_dir, output, options=IndexOptions(placement=placement))
    gone.unlink()
    new = add_wheel("c")
    with monkeypatch.context() as patch:
        # As if killed when the root is written already, and nothing is removed yet.
        patch.setattr("rocwheel.index.write_index.remove_stale", _die)
        with pytest.raises(KeyboardInterrupt):
            write_index(dist_dir, output, options=IndexOptions(placement=placement))
    assert (output / "a").is_dir()
    new.unlink()
    write_index(dist_dir, output, options=IndexOptions(placement=placement))
    assert sorted(path.name for path in output.iterdir()) == [KNOWN_NAME, "b", "index.html", "index.json"]
    assert kept.exists()


def _die(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (errno.ENOSPC, "its disk, {disk}, is full"),
        (errno.EDQUOT, "the quota on its disk, {disk}, is used up"),
    ],
)
def test_a_full_disk_or_exhausted_quota_is_reported(
    add_wheel: AddWheel, output: Path, dist_dir: Path, monkeypatch: pytest.MonkeyPatch, error: int, why: str
) -> None:
    def refuse(_: int) -> None:
        raise OSError(error, os.strerror(error))

    add_wheel("rocm_sdk_core")
    monkeypatch.setattr(os, "fsync", refuse)
    disk = next(place for place in output.parents if place.is_mount())
    expected = (
        f"{output}: can't be written because {why.format(disk=disk)}. Free up space on the disk, and run the command "
        "again. "
        "Until then, the index lists only existing files."
    )
    with pytest.raises(WorkError, match=f"^{re.escape(expected)}$"):
        write_index(dist_dir, output)


@pytest.mark.parametrize(
    "run",
    [
        lambda folder: write_index(folder, folder.parent / "simple"),
        lambda folder: publish(folder.parent, FolderStore(folder.parent / "store")),
    ],
    ids=["index", "publish"],
)
def test_a_folder_whose_name_cannot_be_in_a_url_is_refused_before_anything_is_written(
    tmp_path: Path, run: Callable[[Path], object]
) -> None:
    folder = tmp_path / "packages" / os.fsdecode(b"bad\xff")
    make_wheel(folder, "alpha", {"a.py": b""}, tag="py3-none-any", is_purelib=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as caught:
        run(folder)
    assert (str(caught.value.source), caught.value.found, caught.value.remedy) == (
        str(folder),
        "has a name that is not UTF-8 and can't be in a URL",
        "Rename it.",
    )
    assert sorted(tmp_path.rglob("*")) == before
