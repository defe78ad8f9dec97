"""Tests of the report command."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.bundles import bundle_of
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from tests.support.command_line import Run


def test_the_html_page_is_written(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "alpha", {"k.hsaco": bundle_of("gfx906")})
    done = run("report", wheel, "-o", tmp_path / "out/report.html")
    page = (tmp_path / "out/report.html").read_bytes()
    assert (done.status, done.stdout) == (0, "")
    assert page.startswith(b"<!DOCTYPE html>")
    assert b"gfx906" in page


def test_the_same_facts_are_printed_as_json(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "alpha", {"k.hsaco": bundle_of("gfx906")})
    done = run("report", wheel, "--json")
    document = json.loads(done.stdout)
    assert (done.status, document["schema"]) == (0, "rocwheel.report/1")
    assert document["totals"]["packed"] == wheel.stat().st_size
    assert [part["target"] for part in document["files"][0]["parts"]] == ["", "gfx906"]


@pytest.mark.parametrize(("output", "found"), [("folder", "a folder"), ("file/x.html", "isn't a folder")])
def test_an_unusable_output_path_is_refused_before_any_input_is_read(
    output: str, found: str, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "bad-1.0-py3-none-any.whl").write_text("no wheel")
    done = run("report", tmp_path / "bad-1.0-py3-none-any.whl", "-o", tmp_path / output)
    assert done.status == 2
    assert found in done.stderr
    assert "bad-1.0" not in done.stderr


def test_a_missing_output_option_is_reported_before_any_input_is_read(run: Run, tmp_path: Path) -> None:
    done = run("report", tmp_path)
    assert done.status == 2
    assert "-o report.html" in done.stderr


def test_a_report_ignores_its_own_previous_output(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"123")
    output = tmp_path / "report.html"
    assert run("report", tmp_path, "-o", output, "-q").status == 0
    first = output.read_bytes()
    assert run("report", tmp_path, "-o", output, "-q").status == 0
    assert output.read_bytes() == first


def test_an_input_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"123")
    done = run("report", tmp_path, "-o", tmp_path / "file")
    assert (done.status, "is one of the report's inputs" in done.stderr) == (2, True)
    assert (tmp_path / "file").read_bytes() == b"123"


@pytest.mark.parametrize("target", ["file", "older.html", "nothing"])
def test_a_symlink_in_the_input_folder_is_not_replaced_by_the_page(run: Run, tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_bytes(b"123")
    assert run("report", tmp_path, "-o", tmp_path / "older.html", "-q").status == 0
    link = tmp_path / "link.html"
    link.symlink_to(target)
    done = run("report", tmp_path, "-o", link)
    assert (done.status, f"{link}: is one of the report's inputs" in done.stderr) == (2, True)
    assert link.readlink() == Path(target)


def test_unreadable_files_are_shown_and_result_in_exit_status_2(run: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path, "alpha", {"a.so": b"\x7fELF\2\1" + os.urandom(4000)})
    done = run("report", tmp_path, "-o", tmp_path / "report.html")
    assert done.status == 2
    assert "a.so" in done.stderr
    assert b"Unreadable files" in (tmp_path / "report.html").read_bytes()


def test_names_that_are_not_utf8_are_shown_with_escapes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / os.fsdecode(b"a\xff")).write_bytes(b"123")
    assert run("report", tmp_path / "tree", "-o", tmp_path / "report.html").status == 0
    assert b'"a\\\\xff"' in (tmp_path / "report.html").read_bytes()
    assert json.loads(run("report", tmp_path / "tree", "--json").stdout)["files"][0]["path"] == "a\udcff"


def test_changes_since_older_packages_are_reported(run: Run, tmp_path: Path) -> None:
    old = make_wheel(tmp_path / "old", "alpha", {"a": b"1"})
    new = make_wheel(tmp_path / "new", "alpha", {"a": b"12"}, version="2.0")
    output = tmp_path / "report.html"
    done = run("report", new, "--against", old, "-o", output, "--estimate", "--json")
    assert done.status == 0
    assert {"a": "grew"}.items() <= {
        one["path"]: one["fate"] for one in json.loads(done.stdout)["against"]["files"]
    }.items()
    assert b'id="against"' in output.read_bytes()


def test_missing_older_packages_and_folders_are_reported_on_the_page(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "new", "alpha", {"a": b"12"})
    output = tmp_path / "report.html"
    done = run("report", wheel, tmp_path / "gone", "--against", tmp_path / "absent", "-o", output)
    page = output.read_text(encoding="utf-8")
    assert done.status == 2
    assert f"{tmp_path}/absent: can't be read" in done.stderr
    assert f"{tmp_path}/gone: can't be read" in done.stderr
    assert "The older packages can't be read: " in page
    assert "Unreadable files" in page
    assert '<th scope="row">alpha</th>' in page


def test_the_older_packages_are_not_overwritten(run: Run, tmp_path: Path) -> None:
    old = make_wheel(tmp_path / "old", "alpha", {"a": b"1"})
    data = old.read_bytes()
    assert run("report", old, "--against", old, "-o", old).status == 2
    assert old.read_bytes() == data
