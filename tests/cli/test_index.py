"""``rocwheel index``: what it writes, prints and refuses."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.demo import SAMPLE_SDK
from rocwheel.index import front_content, front_page
from rocwheel.index.pages import FRONT_PAGE
from rocwheel.index.write_index import write_index
from tests.support.command_line import as_user, needs_setpriv, rocwheel
from tests.support.small_disks import needs_disks, run_on_disk
from tests.support.wheels import make_wheel, write_wheel

if TYPE_CHECKING:
    from tests.support.command_line import Run


run = partial(rocwheel, "index")


@pytest.fixture
def dist_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "dist"
    make_wheel(folder, "a", {}, tag="py3-none-any", is_purelib=True)
    return folder


@pytest.mark.slow
def test_index_prints_the_projects_and_the_install_command(dist_dir: Path, tmp_path: Path) -> None:
    finished = run(dist_dir)
    assert (finished.returncode, finished.stdout) == (
        0,
        f"a: 1 file\ninstall with: pip install --index-url file://{tmp_path}/simple PROJECT\n",
    )
    assert (tmp_path / "simple/a/index.html").is_file()


@pytest.mark.slow
def test_sibling_folders_get_separate_indexes(dist_dir: Path) -> None:
    folders = [dist_dir / name for name in ("gfx90X-dcgpu", "gfx94X-dcgpu")]
    wheel = dist_dir / "a-1.0-py3-none-any.whl"
    for folder in folders:
        folder.mkdir()
        (folder / wheel.name).write_bytes(wheel.read_bytes())
        assert f"--index-url file://{dist_dir}/simple-{folder.name} PROJECT\n" in run(folder).stdout
    assert sorted(path.name for path in dist_dir.glob("simple*")) == ["simple-gfx90X-dcgpu", "simple-gfx94X-dcgpu"]


@pytest.mark.slow
def test_verbose_lists_the_files(dist_dir: Path) -> None:
    assert "  a-1.0-py3-none-any.whl\n" in run(dist_dir, "-v").stdout


@pytest.mark.slow
def test_json_describes_the_written_index(dist_dir: Path, tmp_path: Path) -> None:
    (dist_dir / "notes.txt").write_text("")
    finished = run(dist_dir, "--output", tmp_path / "pages", "--files", "copy", "--json", "--quiet")
    assert json.loads(finished.stdout) == {
        "schema": "rocwheel.index/1",
        "output": str(tmp_path / "pages"),
        "projects": {"a": ["a-1.0-py3-none-any.whl"]},
        "ignored": ["notes.txt"],
        "subfolders": [],
        "yanked": {},
        "future": [],
        "edited": [],
        "variants": {},
        "families": {},
    }
    assert finished.stderr == ""


@pytest.mark.slow
def test_files_left_out_of_the_index_are_reported(dist_dir: Path) -> None:
    (dist_dir / "notes.txt").write_text("")
    expected = f"not in the index, because it isn't a wheel or a .tar.gz sdist: {dist_dir}/notes.txt\n"
    assert expected in run(dist_dir).stderr
    assert run(dist_dir, "--quiet").stderr == ""


@pytest.mark.slow
def test_damaged_files_are_reported_with_exit_status_2(dist_dir: Path, tmp_path: Path) -> None:
    (dist_dir / "b-1.0-py3-none-any.whl").write_bytes(b"")
    finished = run(dist_dir, "--quiet")
    assert finished.returncode == 2
    assert finished.stderr == (
        f"error: {dist_dir}/b-1.0-py3-none-any.whl: "
        "is a damaged archive (File is not a zip file). Build or download it again.\n"
    )
    assert [path.name for path in (tmp_path / "simple").iterdir() if path.is_dir()] == ["a"]


@pytest.mark.slow
def test_damaged_files_in_several_folders_are_reported_together(dist_dir: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    for name in ("b", "c"):
        (more / f"{name}-1.0-py3-none-any.whl").write_bytes(b"")
    finished = run(dist_dir, more, "--output", tmp_path / "simple", "--quiet")
    damaged = "is a damaged archive (File is not a zip file). Build or download it again."
    assert (finished.returncode, finished.stderr.splitlines()) == (
        2,
        [
            f"error: {dist_dir}, {more}: 2 problems",
            f"  {more}/b-1.0-py3-none-any.whl: {damaged}",
            f"  {more}/c-1.0-py3-none-any.whl: {damaged}",
        ],
    )


@pytest.mark.slow
def test_yanking_a_file_that_is_in_no_folder_is_refused(dist_dir: Path, tmp_path: Path) -> None:
    make_wheel(tmp_path / "more", "b", {}, tag="py3-none-any", is_purelib=True)
    finished = run(dist_dir, tmp_path / "more", "--output", tmp_path / "simple", "--yank", "c.whl", "--quiet")
    assert (finished.returncode, finished.stderr) == (
        2,
        (
            f"error: {tmp_path}/simple/c.whl: is not in the index, so it can't be yanked or unyanked. "
            "Specify the name of a wheel or sdist in the index.\n"
        ),
    )


@pytest.mark.slow
def test_an_output_that_is_not_a_folder_is_reported_with_exit_status_2(dist_dir: Path) -> None:
    finished = run(dist_dir, "--output", "/etc/passwd")
    assert (finished.returncode, finished.stderr) == (
        2,
        "error: /etc/passwd: is not a folder. Choose a folder for the index with --output.\n",
    )


@pytest.mark.slow
def test_subfolders_with_distributions_are_reported(dist_dir: Path) -> None:
    (dist_dir / "gfx94X-dcgpu" / "more").mkdir(parents=True)
    (dist_dir / "gfx94X-dcgpu" / "more" / "a-1.0-py3-none-any.whl").write_bytes(b"")
    (dist_dir / "empty").mkdir()
    finished = run(dist_dir)
    assert finished.returncode == 0
    assert finished.stderr.endswith(
        f"not in the index, because it is a folder: {dist_dir}/gfx94X-dcgpu. Index the folder separately, because "
        "two folders can have different files with the same name.\n"
    )
    assert run(dist_dir, "--quiet").stderr == ""


@pytest.mark.slow
def test_a_file_can_be_yanked_and_unyanked(dist_dir: Path, tmp_path: Path) -> None:
    name = "a-1.0-py3-none-any.whl"
    yanked = run(dist_dir, "--yank", f"{name}=bad = worse")
    assert yanked.stdout.startswith("a: 1 file, 1 yanked\n")
    assert 'data-yanked="bad = worse"' in (tmp_path / "simple/a/index.html").read_text()
    assert json.loads(run(dist_dir, "--json").stdout)["yanked"] == {name: "bad = worse"}
    assert run(dist_dir, "--unyank", name).stdout.startswith("a: 1 file\n")


@pytest.mark.slow
def test_help_has_an_example() -> None:
    assert "Example:\n    rocwheel index packages/dist" in run("--help").stdout


@pytest.mark.slow
def test_quiet_prints_nothing(dist_dir: Path) -> None:
    finished = run(dist_dir, "--quiet")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


@pytest.mark.slow
def test_a_family_subfolder_gets_its_own_index(dist_dir: Path, tmp_path: Path) -> None:
    make_wheel(dist_dir / "gfx94X-dcgpu", "rocm", {}, tag="py3-none-any", is_purelib=True)
    finished = run(dist_dir)
    assert finished.returncode == 0
    assert finished.stdout == (
        f"a: 1 file\ninstall with: pip install --index-url file://{tmp_path}/simple PROJECT\n"
        f"for gfx94X-dcgpu, 2 projects: pip install --index-url file://{tmp_path}/simple/gfx94X-dcgpu PROJECT\n"
    )
    assert "not in the index" not in finished.stderr


@pytest.mark.slow
def test_several_folders_are_combined_into_one_index(dist_dir: Path, tmp_path: Path) -> None:
    make_wheel(tmp_path / "more", "b", {}, tag="py3-none-any", is_purelib=True)
    missing = run(dist_dir, tmp_path / "more")
    assert (missing.returncode, missing.stderr) == (
        2,
        "error: --output: is missing; expected the folder for the index of several folders\n",
    )
    finished = run(dist_dir, tmp_path / "more", "--output", tmp_path / "pages", "--upload-time", "2026-05-01")
    assert finished.stdout.startswith("a: 1 file\nb: 1 file\n")
    assert '"2026-05-01T00:00:00.000000Z"' in (tmp_path / "pages/b/index.json").read_text()


@pytest.mark.slow
def test_a_hand_edited_page_is_repaired_and_reported(dist_dir: Path, tmp_path: Path) -> None:
    run(dist_dir)
    page = tmp_path / "simple/a/index.html"
    right = page.read_text()
    page.write_text(right.replace("sha256", "sha255"))
    assert (
        f"{page}: was edited by hand; it now matches the files again, and yanked files are still yanked\n"
        in run(dist_dir).stderr
    )
    assert page.read_text() == right
    assert "edited" not in run(dist_dir).stderr


@pytest.mark.slow
def test_a_file_dated_in_the_future_is_reported(dist_dir: Path, tmp_path: Path) -> None:
    os.utime(dist_dir / "a-1.0-py3-none-any.whl", (2**33, 2**33))
    assert (
        "dated in the future, so the index uses the current time as the upload time: 1 file "
        "(a-1.0-py3-none-any.whl). Check the clocks of this machine and of the machine that created the files.\n"
        in run(dist_dir).stderr
    )


@pytest.mark.slow
def test_a_skipped_file_is_reported_with_its_folder(run: Run, tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_wheel(tmp_path / name, f"alpha-{name}", {}, tag="py3-none-any")
    (tmp_path / "b" / "notes.txt").write_text("x")
    done = run("index", tmp_path / "a", tmp_path / "b", "--output", tmp_path / "simple")
    assert f"not in the index, because it isn't a wheel or a .tar.gz sdist: {tmp_path}/b/notes.txt" in done.stderr


NO_NAME = (
    "isn't a valid wheel or sdist file name; expected "
    "NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl or NAME-VERSION.tar.gz. "
    "Rename or remove the file."
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
def test_an_invalid_distribution_name_is_reported_on_one_line(run: Run, dist: Path, kind: str) -> None:
    name, shown = NAMES[kind]
    shutil.copy(wheel_of(dist), dist / name)
    status, _, err = run("index", dist, "-q")
    assert (status, err) == (2, f"error: {dist}/{shown}: {NO_NAME}\n")
    assert listed(dist.parent / "simple") == {"a": ["a-1.0-py3-none-any.whl"]}


@pytest.mark.parametrize("name", ["a\nerror: b.txt", "\x1b[31m.txt"])
def test_a_skipped_file_is_reported_on_one_line(run: Run, dist: Path, name: str) -> None:
    (dist / name).write_text("")
    status, _, err = run("index", dist)
    shown = name.replace("\n", "\\n").replace("\x1b", "\\x1b")
    assert status == 0
    assert f"not in the index, because it isn't a wheel or a .tar.gz sdist: {dist}/{shown}\n" in err


class _Texts(HTMLParser):
    def __init__(self, page: Path) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]


def test_links_to_a_folder_with_markup_spaces_and_newlines_in_its_name_are_escaped(run: Run, tmp_path: Path) -> None:
    dist = tmp_path / '<b> & "\u00e4\n%41' / "dist"
    make_wheel(dist, "a", {"a.py": b""}, tag="py3-none-any", is_purelib=True)
    assert run("index", dist, "--output", tmp_path / "pages", "-q")[0] == 0
    page = _Texts(tmp_path / "pages/a/index.html")
    assert "b" not in page.tags
    assert [link.partition("#")[0] for link in page.links] == [
        "../../%3Cb%3E%20%26%20%22%C3%A4%0A%2541/dist/a-1.0-py3-none-any.whl"
    ]


SPELLING = "expected NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl or NAME-VERSION.tar.gz. Rename or remove the file."


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (
            "b-1.0-py3-none-any.whl",
            (
                "has the metadata folder a-1.0.dist-info; expected a .dist-info folder with the wheel's name. "
                "Build the wheel again."
            ),
        ),
        ("a-2.0-py3-none-any.whl", "its metadata has the version '1.0'; expected '2.0', as in the file name"),
        ("\u00e4-1.0-py3-none-any.whl", f"isn't a valid wheel or sdist file name; {SPELLING}"),
    ],
    ids=["project", "version", "non-ASCII"],
)
def test_a_wheel_whose_metadata_disagrees_with_its_name_is_skipped(run: Run, dist: Path, name: str, found: str) -> None:
    shutil.copy(wheel_of(dist), dist / name)
    status, _, err = run("index", dist, "-q")
    assert (status, err) == (2, f"error: {dist}/{name}: {found}\n")
    assert listed(dist.parent / "simple") == {"a": ["a-1.0-py3-none-any.whl"]}


def test_different_files_with_the_same_name_leave_the_index_unchanged(run: Run, dist: Path, tmp_path: Path) -> None:
    make_wheel(tmp_path / "more", "b", {"b.py": b""}, tag="py3-none-any", is_purelib=True)
    command = ("index", dist, tmp_path / "more", "--output", tmp_path / "pages", "-q")
    assert run(*command)[0] == 0
    before = {path: path.read_bytes() for path in (tmp_path / "pages").rglob("*.*") if path.is_file()}
    make_wheel(tmp_path / "more", "a", {"a.py": b"other"}, tag="py3-none-any", is_purelib=True)
    status, _, err = run(*command)
    name = "a-1.0-py3-none-any.whl"
    remedy = "Remove one of the two files, or index each folder separately."
    assert status == 2
    assert f"{tmp_path}/more/{name}: differs from {dist}/{name}; expected the same bytes. {remedy}\n" in err
    assert {path: path.read_bytes() for path in (tmp_path / "pages").rglob("*.*") if path.is_file()} == before


@pytest.mark.parametrize("page", ["index.html", "index.json", "a/index.html", "a/index.json"])
def test_each_hand_edited_page_is_reported_and_repaired(
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
    assert f"{path}: was edited by hand; it now matches the files again" in err
    assert path.read_bytes() == before


@needs_setpriv
@pytest.mark.parametrize("what", ["the output", "its parent", "the distributions"])
def test_an_unwritable_folder_is_reported_with_a_remedy(dist: Path, what: str) -> None:
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
            "Check the free space and the permissions of the folder.",
        ),
        "its parent": (output, "Check the free space and the permissions of the folder."),
        "the distributions": (
            dist / "a-1.0-py3-none-any.whl.metadata",
            "Make the folder writable, or put the files into the index with --files hardlink or copy.",
        ),
    }[what]
    expected = f"error: {path}: can't be written (Permission denied). {remedy}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", expected)
    if what == "the output":
        assert (output / "a/index.json").read_bytes() == before
        assert listed(output) == {"a": ["a-1.0-py3-none-any.whl"]}


@needs_setpriv
@pytest.mark.parametrize("placement", ["hardlink", "copy"])
def test_read_only_distributions_are_indexed_if_the_index_stores_the_files(dist: Path, placement: str) -> None:
    dist.chmod(0o500)
    done = rocwheel("index", dist, "--files", placement, "-q", before=as_user())
    dist.chmod(0o700)
    assert (done.returncode, done.stderr) == (0, "")
    assert listed(dist.parent / "simple") == {"a": ["a-1.0-py3-none-any.whl"]}


@needs_disks
@pytest.mark.parametrize("size", ["16k", "200k"])
def test_a_full_disk_is_reported_with_the_index_path(tmp_path: Path, size: str) -> None:
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
            f"error: {disk}/simple: can't be written because its disk, {disk}, is full. Free up space on the disk, and "
            "run "
            "the command again. Until then, the index lists only existing files.\n"
        ),
    )


FORM = '<form action="packages.html"><button>What to install for each GPU</button></form>'


@pytest.fixture
def family_dist(tmp_path: Path) -> Path:
    """Return a folder with a framework for a GPU."""
    declared = b'{"schema": "rocwheel.rocm-targets/1", "rocm_targets": ["gfx1100"]}'
    make_wheel(tmp_path / "dist", "bitsandbytes", {"bitsandbytes-1.0.dist-info/rocm_targets.json": declared})
    return tmp_path / "dist"


def test_the_front_page_for_people_is_next_to_the_page_for_installers(run: Run, family_dist: Path) -> None:
    assert run("index", family_dist).status == 0
    page = (family_dist.parent / "simple" / FRONT_PAGE).read_text()
    assert "Radeon RX 7900 XTX" in page
    assert "pip install &quot;bitsandbytes&quot; --index-url &quot;" in page
    assert FORM in (family_dist.parent / "simple/index.html").read_text()


def test_the_page_for_installers_links_only_to_projects(run: Run, family_dist: Path) -> None:
    run("index", family_dist)
    html = (family_dist.parent / "simple/index.html").read_text()
    assert html.count("<a ") == 1
    assert '<a href="bitsandbytes/">bitsandbytes</a>' in html


def test_the_index_url_stays_in_the_commands_after_a_yank(run: Run, family_dist: Path) -> None:
    run("index", family_dist, "--url", "https://example.org/rocm/simple")
    page = family_dist.parent / "simple" / FRONT_PAGE
    assert "https://example.org/rocm/simple/" in page.read_text()
    [wheel] = family_dist.glob("*.whl")
    assert run("index", "yank", wheel, "--reason", "<b>bad").status == 0
    assert "https://example.org/rocm/simple/" in page.read_text()
    assert "yanked: &lt;b&gt;bad" in page.read_text()


def test_the_front_page_is_removed_with_no_front_page(run: Run, family_dist: Path) -> None:
    run("index", family_dist)
    assert run("index", family_dist, "--no-front-page").status == 0
    assert not (family_dist.parent / "simple" / FRONT_PAGE).exists()
    assert "<form" not in (family_dist.parent / "simple/index.html").read_text()
    run("index", "yank", next(family_dist.glob("*.whl")))
    assert not (family_dist.parent / "simple" / FRONT_PAGE).exists()
    run("index", family_dist)
    assert FORM in (family_dist.parent / "simple/index.html").read_text()


def test_the_front_page_is_rebuilt_if_the_index_state_is_missing(run: Run, family_dist: Path) -> None:
    run("index", family_dist)
    page = family_dist.parent / "simple" / FRONT_PAGE
    before = page.read_bytes()
    (family_dist.parent / "simple/.rocwheel-index.json").unlink()
    assert run("index", family_dist).status == 0
    assert page.read_bytes() == before


def test_a_foreign_front_page_is_not_replaced(run: Run, family_dist: Path) -> None:
    page = family_dist.parent / "simple" / FRONT_PAGE
    page.parent.mkdir()
    page.write_text("<p>mine</p>")
    finished = run("index", family_dist)
    assert (finished.status, finished.stderr.splitlines()[-1]) == (
        2,
        f"error: {page}: is a file that this command did not write. Choose a different --output, or remove the file.",
    )
    assert page.read_text() == "<p>mine</p>"


def test_hostile_metadata_and_names_are_escaped(run: Run, family_dist: Path) -> None:
    info = "bar-1.0.dist-info"
    summary = "</style><script>alert(1)</script> \u202e &amp;\n more"
    lines = ["Metadata-Version: 2.4", "Name: bar", "Version: 1.0", f"Summary: {summary}"]
    lines += ["Provides-Extra: device-gfx1100", "Provides-Extra: $(id)-gfx1100", ""]
    members = {
        f"{info}/METADATA": "\n".join(lines).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    wheel = write_wheel(family_dist / "bar-1.0-py3-none-any.whl", info, members)
    assert run("index", family_dist, "--yank", f"{wheel.name}=<img src=x onerror=alert(1)>").status == 0
    page = (family_dist.parent / "simple" / FRONT_PAGE).read_text()
    assert page.count("<script>") == 1
    assert "&lt;/style&gt;&lt;script&gt;alert(1)&lt;/script&gt; \ufffd &amp;amp;" in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert '<a href="bar/">bar</a>' in page
    assert "bar[" not in page
    assert "$(id)" not in page


def test_the_front_page_of_an_index_inside_the_folder_is_not_reported_as_skipped(run: Run, family_dist: Path) -> None:
    run("index", family_dist, "--output", family_dist)
    finished = run("index", family_dist, "--output", family_dist)
    assert (finished.status, "packages.html" in finished.stderr) == (0, False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--url", "javascript:alert(1)"], "--url: is 'javascript:alert(1)'; expected an address such as"),
        (["--url", "https://a@b/", "--front-page"], "--url: contains a user name or a password"),
        (
            ["--url", "https://b/", "--no-front-page"],
            "--url: applies only to the front page; expected no --url with --no-front-page",
        ),
    ],
)
def test_invalid_index_urls_are_refused(run: Run, family_dist: Path, options: list[str], said: str) -> None:
    finished = run("index", family_dist, *options)
    assert finished.status == 2
    assert said in finished.stderr
    assert not (family_dist.parent / "simple").exists()


def test_the_front_page_of_a_family_has_the_url_of_the_family_index(run: Run, family_dist: Path) -> None:
    make_wheel(family_dist / "gfx110X-all", "rocm-sdk-devel", {"x.py": b""})
    assert run("index", family_dist, "--url", "https://example.org/simple/").status == 0
    assert (
        "https://example.org/simple/gfx110X-all/"
        in (family_dist.parent / "simple/gfx110X-all" / FRONT_PAGE).read_text()
    )


def test_an_updated_front_page_equals_the_page_of_a_new_index(
    run: Run, family_dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwheel.core.reading._GRANULARITY", 0)  # instead of two seconds' wait
    for name in "abc":
        make_wheel(family_dist, name, {f"{name}.py": b""})
    run("index", family_dist)
    run("index", family_dist)
    make_wheel(family_dist, "ab", {"ab.py": b""})
    make_wheel(family_dist, "b", {"b.py": b"changed = True"})
    next(family_dist.glob("c-*.whl")).unlink()
    run("index", family_dist, "--yank", next(family_dist.glob("a-*.whl")).name)
    run("index", family_dist, "--output", tmp_path / "new", "--yank", next(family_dist.glob("a-*.whl")).name)
    page = (tmp_path / "simple" / FRONT_PAGE).read_bytes()
    assert page == (tmp_path / "new" / FRONT_PAGE).read_bytes()


def test_a_hand_edited_front_page_is_rebuilt(run: Run, family_dist: Path) -> None:
    run("index", family_dist)
    page = family_dist.parent / "simple" / FRONT_PAGE
    before = page.read_bytes()
    page.write_bytes(before.replace(b">bitsandbytes</a>", b">something</a>"))
    run("index", family_dist)
    assert page.read_bytes() == before
    make_wheel(family_dist, "new", {"new.py": b""})
    page.write_bytes(before.replace(b">bitsandbytes</a>", b">something</a>"))
    run("index", family_dist)
    assert b">bitsandbytes</a>" in page.read_bytes()


def test_front_page_rows_from_a_different_version_are_rebuilt(
    run: Run, family_dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a page whose rows would be kept, and then code that makes other rows, and the same of nothing
    monkeypatch.setattr("rocwheel.core.reading._GRANULARITY", 0)  # instead of two seconds' wait
    run("index", family_dist)
    run("index", family_dist)
    monkeypatch.setattr(front_page, "_file", lambda file: f"<li>now {file.name}</li>")
    monkeypatch.setattr(front_content, "source_hash", lambda _: b"of the other code")
    # When a wheel comes
    make_wheel(family_dist, "new", {"new.py": b""})
    run("index", family_dist)
    # Then all rows are of that code
    page = (tmp_path / "simple" / FRONT_PAGE).read_text()
    assert [page.count("<li>now "), page.count("<li>bitsandbytes")] == [2, 0]


_FOREIGN = ("PIP_", "UV_", "ROCM_", "HSA_")
_STEP = re.compile(r"^for (?P<family>\w+), \d+ projects: (?P<command>.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def installed_dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a build of the sample SDK for three families, below one with a blank in its name."""
    folder = tmp_path_factory.mktemp("per family")
    default = (SAMPLE_SDK.parent / "build/rocm.toml").read_text(encoding="utf-8")
    recipe = folder / "family.toml"
    recipe.write_text(default.replace("schema = 1", 'schema = 1\nlayout = "per-family"'), encoding="utf-8")
    BuildJob(PlanJob(SAMPLE_SDK, recipe), folder).run()
    return folder / "dist"


def shell(command: str, folder: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    own = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_CACHE_DIR": "1",
        "UV_NO_CONFIG": "1",
        "UV_NO_CACHE": "1",
    }
    done = subprocess.run(
        command, shell=True, cwd=folder, env={**kept, **own}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "family"), [("pip", "gfx906"), ("uv pip", "gfx1030")])
def test_the_printed_command_installs_only_the_family(
    installed_dist: Path, tmp_path: Path, tool: str, family: str
) -> None:
    steps = {
        found["family"]: found["command"]
        for found in _STEP.finditer(shell("rocwheel index dist", installed_dist.parent))
    }
    assert list(steps) == ["gfx1030", "gfx906", "gfx90a"]
    copied = steps[family].replace("pip install", f"{tool} install --target {shlex.quote(str(tmp_path / 'site'))}")
    shell(copied.replace("PROJECT", '"rocm[libraries,devel]"'), tmp_path)
    assert sorted(path.name.partition("-")[0] for path in (tmp_path / "site").glob("*.dist-info")) == [
        "rocm",
        "rocm_sdk_core",
        "rocm_sdk_devel",
        f"rocm_sdk_libraries_{family}",
    ]
    program = "from rocm_sdk._dist_info import INSTALLED_FAMILIES; print(*INSTALLED_FAMILIES)"
    site = {"PYTHONPATH": str(tmp_path / "site")}
    found = subprocess.run([sys.executable, "-c", program], env=site, capture_output=True, text=True, check=True)
    assert found.stdout.split() == [family]


NAME = "alpha-1.0-py3-none-any.whl"


@pytest.fixture
def odd_dist(tmp_path: Path) -> Path:
    make_wheel(tmp_path / "dist", "alpha", {"a.py": b""}, tag="py3-none-any", is_purelib=True)
    write_index(tmp_path / "dist", tmp_path / "simple")
    return tmp_path / "dist"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("index", "yank", f"DIST/{NAME}", "--reason", "\udcff"),
            f"DIST/{NAME}: has the reason '\\udcff', which is not valid UTF-8.",
        ),
        (
            ("publish", "DIST", "STORE", "--output", "s\udcff"),
            "--output: is 's\\udcff'; expected a folder",
        ),
        (("index", "mirror", "INDEX", "--project", "\udcff", "-o", "STORE"), "\\udcff: is not a project in INDEX/."),
    ],
    ids=["yank", "publish", "mirror"],
)
def test_arguments_that_are_not_utf8_are_reported(
    odd_dist: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    places = {
        "DIST": str(odd_dist),
        "STORE": str(tmp_path / "store"),
        "INDEX": (tmp_path / "simple").as_uri(),
    }

    def filled(text: str) -> str:
        for word, place in places.items():
            text = text.replace(word, place)
        return text

    done = rocwheel(*map(filled, words))
    assert done.returncode == 2
    assert filled(message) in done.stderr
    assert not (tmp_path / "store").exists()


@pytest.mark.slow
def test_a_family_folder_whose_name_is_not_utf8_is_reported(odd_dist: Path, tmp_path: Path) -> None:
    folder = os.fsdecode(os.fsencode(odd_dist) + b"/f\xff")
    Path(folder).mkdir()
    os.link(odd_dist / NAME, f"{folder}/{NAME}")
    before = sorted((tmp_path / "simple").rglob("*"))
    done = rocwheel("index", odd_dist)
    assert done.returncode == 2
    assert done.stderr.endswith(
        f"error: {odd_dist}/f\\udcff: has a name that is not UTF-8 and can't be in a URL. Rename it.\n"
    )
    assert sorted((tmp_path / "simple").rglob("*")) == before
