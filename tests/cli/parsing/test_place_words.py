"""Empty words and URLs with too few slashes, where commands take files and folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["index", "."], "--output"),
        (["index", "mirror", "http://127.0.0.1:9/simple"], "--dest-dir"),
        (["lock", "rocm"], "--output"),
        (["lock", "rocm"], "--index-url"),
        (["lock", "rocm"], "--find-links"),
        (["publish", ".", "store"], "--output"),
        (["publish", ".", "store"], "--files"),
        (["build"], "--artifact-dir"),
        (["artifacts", "fetch", "."], "--dest-dir"),
    ],
)
def test_an_empty_value_of_an_option_is_no_place(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*words, name, "")
    expected = f"error: {name}: is empty; expected a file, folder or URL. Is a variable unset?"
    assert (done.status, expected in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["repair", "a.whl"], ["runpath", "for", "a.so"]], ids=["repair", "runpath for"])
def test_an_empty_value_is_no_library(run: Run, words: list[str]) -> None:
    done = run(*words, "--dlopen", "")
    assert (done.status, done.stderr) == (
        2,
        "error: --dlopen: is empty; expected the name of a library, such as librccl.so.1. Is a variable unset?\n",
    )


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["index", ""], "DIST_DIR"),
        (["publish", ".", ""], "STORE"),
        (["publish", "", "store"], "DIST_DIR"),
        (["audit", ""], "PATH"),
        (["inspect", ""], "PATH"),
        (["index", "yank", ""], "FILE"),
        (["repair", ""], "WHEEL"),
    ],
)
def test_an_empty_argument_is_no_place(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*words)
    assert (done.status, f"error: {name}: is empty" in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("publish", ".", "s3:/bucket/rocm"),
        ("index", "s3:/bucket/rocm"),
        ("index", ".", "--output", "file:/somewhere"),
        ("inspect", "https:/host/a.whl"),
        ("index", "mirror", "http:/host/simple", "-d", "here"),
    ],
)
def test_a_url_with_one_slash_is_no_path(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    word = next(word for word in words if ":/" in word)
    done = run(*words)
    begin = f"{word.partition(':')[0]}:/"
    expected = f"{word}: has one slash; expected {begin}/ for a URL. For a path that begins so, write ./{begin}..."
    assert (done.status, expected in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("word", ["file:store", "s3:bucket/rocm", "https:host"])
def test_a_url_without_slashes_is_no_path(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("publish", ".", word, "--dry-run")
    begin = f"{word.partition(':')[0]}:"
    expected = (
        f"{word}: has no slashes behind its scheme; expected {begin}// for a URL. For a path that begins so, write "
    )
    assert (done.status, f"{expected}./{begin}..." in done.stderr) == (2, True), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_path_may_begin_as_a_url_behind_a_dot(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "error: file:x: can't be read (No such file" in run("inspect", "./file:x").stderr
