"""The page for people that ``rocwheel index`` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.index import front_content, front_page
from rocwheel.index.pages import FRONT_PAGE
from tests.support.wheels import make_wheel, write_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

FORM = '<form action="packages.html"><button>What to install for which GPU</button></form>'


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """Return a folder with a framework for a GPU."""
    declared = b'{"schema": "rocwheel.rocm-targets/1", "rocm_targets": ["gfx1100"]}'
    make_wheel(tmp_path / "dist", "bitsandbytes", {"bitsandbytes-1.0.dist-info/rocm_targets.json": declared})
    return tmp_path / "dist"


def test_people_find_what_to_install_beside_the_page_for_installers(run: Run, dist: Path) -> None:
    assert run("index", dist).status == 0
    page = (dist.parent / "simple" / FRONT_PAGE).read_text()
    assert "Radeon RX 7900 XTX" in page
    assert "pip install &quot;bitsandbytes&quot; --index-url &quot;" in page
    assert FORM in (dist.parent / "simple/index.html").read_text()


def test_the_page_for_installers_has_a_link_for_each_project_and_no_other(run: Run, dist: Path) -> None:
    run("index", dist)
    html = (dist.parent / "simple/index.html").read_text()
    assert html.count("<a ") == 1
    assert '<a href="bitsandbytes/">bitsandbytes</a>' in html


def test_an_address_stands_in_the_lines_also_after_a_file_was_yanked(run: Run, dist: Path) -> None:
    run("index", dist, "--url", "https://example.org/rocm/simple")
    page = dist.parent / "simple" / FRONT_PAGE
    assert "https://example.org/rocm/simple/" in page.read_text()
    [wheel] = dist.glob("*.whl")
    assert run("index", "yank", wheel, "--reason", "<b>bad").status == 0
    assert "https://example.org/rocm/simple/" in page.read_text()
    assert "yanked: &lt;b&gt;bad" in page.read_text()


def test_the_page_goes_when_it_is_no_longer_wanted(run: Run, dist: Path) -> None:
    run("index", dist)
    assert run("index", dist, "--no-front-page").status == 0
    assert not (dist.parent / "simple" / FRONT_PAGE).exists()
    assert "<form" not in (dist.parent / "simple/index.html").read_text()
    run("index", "yank", next(dist.glob("*.whl")))
    assert not (dist.parent / "simple" / FRONT_PAGE).exists()
    run("index", dist)
    assert FORM in (dist.parent / "simple/index.html").read_text()


def test_the_page_is_made_again_where_the_notes_are_gone(run: Run, dist: Path) -> None:
    run("index", dist)
    page = dist.parent / "simple" / FRONT_PAGE
    before = page.read_bytes()
    (dist.parent / "simple/.rocwheel-index.json").unlink()
    assert run("index", dist).status == 0
    assert page.read_bytes() == before


def test_a_page_of_somebody_else_is_not_replaced(run: Run, dist: Path) -> None:
    page = dist.parent / "simple" / FRONT_PAGE
    page.parent.mkdir()
    page.write_text("<p>mine</p>")
    finished = run("index", dist)
    assert (finished.status, finished.stderr.splitlines()[-1]) == (
        2,
        f"error: {page}: a file that this command has not written. Give another --output, or remove it.",
    )
    assert page.read_text() == "<p>mine</p>"


def test_hostile_metadata_and_names_stay_text(run: Run, dist: Path) -> None:
    info = "bar-1.0.dist-info"
    summary = "</style><script>alert(1)</script> \u202e &amp;\n more"
    lines = ["Metadata-Version: 2.4", "Name: bar", "Version: 1.0", f"Summary: {summary}"]
    lines += ["Provides-Extra: device-gfx1100", "Provides-Extra: $(id)-gfx1100", ""]
    members = {
        f"{info}/METADATA": "\n".join(lines).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    wheel = write_wheel(dist / "bar-1.0-py3-none-any.whl", info, members)
    assert run("index", dist, "--yank", f"{wheel.name}=<img src=x onerror=alert(1)>").status == 0
    page = (dist.parent / "simple" / FRONT_PAGE).read_text()
    assert page.count("<script>") == 1
    assert "&lt;/style&gt;&lt;script&gt;alert(1)&lt;/script&gt; \ufffd &amp;amp;" in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    assert '<a href="bar/">bar</a>' in page
    assert "bar[" not in page
    assert "$(id)" not in page


def test_an_index_in_the_folder_itself_does_not_name_its_page_as_left_out(run: Run, dist: Path) -> None:
    run("index", dist, "--output", dist)
    finished = run("index", dist, "--output", dist)
    assert (finished.status, "packages.html" in finished.stderr) == (0, False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--url", "javascript:alert(1)"], "--url: is 'javascript:alert(1)'; expected an address such as"),
        (["--url", "https://a@b/", "--front-page"], "--url: has a user or a password in it"),
        (
            ["--url", "https://b/", "--no-front-page"],
            "--url: is for the front page; expected none with --no-front-page",
        ),
    ],
)
def test_addresses_that_cannot_be_named_are_refused(run: Run, dist: Path, options: list[str], said: str) -> None:
    finished = run("index", dist, *options)
    assert finished.status == 2
    assert said in finished.stderr
    assert not (dist.parent / "simple").exists()


def test_the_page_of_a_family_names_the_address_of_the_familys_index(run: Run, dist: Path) -> None:
    make_wheel(dist / "gfx110X-all", "rocm-sdk-devel", {"x.py": b""})
    assert run("index", dist, "--url", "https://example.org/simple/").status == 0
    assert "https://example.org/simple/gfx110X-all/" in (dist.parent / "simple/gfx110X-all" / FRONT_PAGE).read_text()


def test_the_page_is_the_one_of_a_new_index_whatever_came_and_went(
    run: Run, dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocwheel.core.reading._GRANULARITY", 0)  # instead of two seconds' wait
    for name in "abc":
        make_wheel(dist, name, {f"{name}.py": b""})
    run("index", dist)
    run("index", dist)
    make_wheel(dist, "ab", {"ab.py": b""})
    make_wheel(dist, "b", {"b.py": b"changed = True"})
    next(dist.glob("c-*.whl")).unlink()
    run("index", dist, "--yank", next(dist.glob("a-*.whl")).name)
    run("index", dist, "--output", tmp_path / "new", "--yank", next(dist.glob("a-*.whl")).name)
    page = (tmp_path / "simple" / FRONT_PAGE).read_bytes()
    assert page == (tmp_path / "new" / FRONT_PAGE).read_bytes()


def test_a_page_that_somebody_edited_is_made_again(run: Run, dist: Path) -> None:
    run("index", dist)
    page = dist.parent / "simple" / FRONT_PAGE
    before = page.read_bytes()
    page.write_bytes(before.replace(b">bitsandbytes</a>", b">something</a>"))
    run("index", dist)
    assert page.read_bytes() == before
    make_wheel(dist, "new", {"new.py": b""})
    page.write_bytes(before.replace(b">bitsandbytes</a>", b">something</a>"))
    run("index", dist)
    assert b">bitsandbytes</a>" in page.read_bytes()


def test_no_row_stays_that_other_code_has_made(
    run: Run, dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a page whose rows would be kept, and then code that makes other rows, and the same of nothing
    monkeypatch.setattr("rocwheel.core.reading._GRANULARITY", 0)  # instead of two seconds' wait
    run("index", dist)
    run("index", dist)
    monkeypatch.setattr(front_page, "_file", lambda file: f"<li>now {file.name}</li>")
    monkeypatch.setattr(front_content, "source_hash", lambda _: b"of the other code")
    # When a wheel comes
    make_wheel(dist, "new", {"new.py": b""})
    run("index", dist)
    # Then all rows are of that code
    page = (tmp_path / "simple" / FRONT_PAGE).read_text()
    assert [page.count("<li>now "), page.count("<li>bitsandbytes")] == [2, 0]
