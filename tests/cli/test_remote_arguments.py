"""Every command and URLs, as the table in docs/commands.md has it: it asks the place, or says that it takes no URL."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.cli.remote import URL_ARGUMENTS
from tests.support.commands import COMMANDS
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

NOBODY = "http://127.0.0.1:1/place"
"""Where nobody answers: whoever says so has asked there."""
WHEEL = f"{NOBODY}/x-1.0-py3-none-any.whl"
TAKEN = [
    ("build", "--artifact-dir", NOBODY, "--dest-dir", "out"),
    ("build", NOBODY, "--dry-run"),
    ("artifacts list", NOBODY),
    ("artifacts archive", NOBODY, "--output", "out"),
    ("artifacts merge", NOBODY, "--primary", NOBODY, "--output", "out"),
    ("artifacts fetch", NOBODY, "--output", "out"),
    ("index", NOBODY, "--files", "copy", "--output", "out"),
    ("index mirror", NOBODY, "--project", "rocm", "--output", "out"),
    ("publish", NOBODY, "out"),
    ("promote", NOBODY, "--to", "7.0.0", "--output", "out"),
    ("selector merge", NOBODY, "--output", "out"),
    ("audit", NOBODY),
    ("audit", WHEEL),
    ("audit", "here", "--with", NOBODY),
    ("audit", "here", f"--with={WHEEL}"),
    ("verify", NOBODY),
    ("verify", WHEEL),
    ("diff", NOBODY, "here"),
    ("diff", "here", WHEEL),
    ("report", NOBODY),
    ("report", WHEEL),
    ("report", "here", "--against", NOBODY),
    ("inspect", WHEEL),
    ("device list", WHEEL),
]
WRITTEN = [
    ("index yank", f"{NOBODY}/dist/x-1.0-py3-none-any.whl"),
    ("index yank", "--undo", "x-1.0-py3-none-any.whl", "--output", NOBODY),
]
"""Those that write to a store, and say so of a web server before they ask it."""
OTHERS = sorted({*COMMANDS} - {words[0] for words in (*TAKEN, *WRITTEN)} - {"lock", "publish", "help"})
BY_THEMSELVES = {"lock"}
"""Those whose URLs pip and uv read."""


def table() -> set[str]:
    """Return the commands that the page has in its table, but for its last line."""
    page = (ROOT / "docs/commands.md").read_text()
    rows = page.partition("## Commands that take URLs")[2].partition("\n|")[2].partition("\n\n")[0].splitlines()[1:]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


def test_the_documentation_lists_the_commands_that_accept_urls() -> None:
    assert table() == {words[0] for words in (*TAKEN, *WRITTEN)} | BY_THEMSELVES == URL_ARGUMENTS.keys()


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("rocwheel.stores.retry.MOST_ATTEMPTS", 1)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()


@pytest.mark.parametrize("words", WRITTEN, ids=" ".join)
def test_a_command_that_writes_reports_that_web_servers_are_read_only(run: Run, words: tuple[str, ...]) -> None:
    done = run(*words[0].split(), *words[1:])
    assert (done.status, "can't be written to: web servers are read-only." in done.stderr) == (2, True)


@pytest.mark.parametrize("words", TAKEN, ids=" ".join)
def test_a_command_that_accepts_a_url_contacts_the_server(run: Run, words: tuple[str, ...], tmp_path: Path) -> None:
    finished = run(*words[0].split(), *words[1:])
    assert finished.status == 1
    assert f"{NOBODY}/" in finished.stderr
    assert "can't connect to the server" in finished.stderr
    assert not (tmp_path / "http:").exists()


@pytest.mark.parametrize("command", OTHERS)
def test_other_commands_refuse_a_url(run: Run, command: str, tmp_path: Path) -> None:
    finished = run(*command.split(), "https://me:secret@127.0.0.1:1/place")
    assert (finished.status, finished.stdout) == (2, "")
    assert "https://127.0.0.1:1/place: is a URL, but this command requires a path here" in finished.stderr
    assert not (tmp_path / "https:").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "https://me:secret@127.0.0.1:1/x-1.tar.gz"),
        ("audit", "here", "--config", "https://me:secret@127.0.0.1:1/x.toml"),
        ("audit", "here", "--config=https://me:secret@127.0.0.1:1/x.toml"),
        ("diff", "here", "https://me:secret@127.0.0.1:1/x-1.tar.gz"),
        ("device", "prune", "--", "https://me:secret@127.0.0.1:1/x.whl"),
        ("repair", "here", "--with=https://me:secret@127.0.0.1:1/x"),
    ],
    ids=" ".join,
)
def test_a_url_in_another_argument_is_refused_without_printing_its_password(run: Run, words: tuple[str, ...]) -> None:
    finished = run(*words)
    assert (finished.status, finished.stdout) == (2, "")
    assert finished.stderr.startswith("error: https://127.0.0.1:1/x")
    assert ": is a URL, but this command requires a path here. Download its files first" in finished.stderr
    assert "secret" not in finished.stderr


OUTPUTS = [
    ("index", "here", "--output", "s3://bucket/simple"),
    ("index", "here", "--output=s3://bucket/simple"),
    ("build", "--dest-dir", "s3://bucket/out"),
    ("artifacts", "fetch", "here", "-o", "s3://bucket/out"),
    ("index", "mirror", "file:///nowhere", "--project", "rocm", "--output", "s3://bucket/out"),
    ("audit", "here", "--sarif", "s3://bucket/out"),
]


@pytest.mark.parametrize("words", OUTPUTS, ids=" ".join)
def test_an_output_url_is_refused_with_a_remedy(run: Run, words: tuple[str, ...], tmp_path: Path) -> None:
    finished = run(*words)
    assert (finished.status, finished.stdout) == (2, "")
    assert (
        "is a URL, but this command can't write to URLs. Specify a folder. Then upload the packages" in finished.stderr
    )
    assert not (tmp_path / "s3:").exists()


S3 = [(*(word.replace(NOBODY, "s3://bucket/place") for word in words),) for words in TAKEN]


@pytest.mark.parametrize("words", [*S3, ("publish", "here", "s3://bucket/place")], ids=" ".join)
def test_every_command_says_how_to_install_a_missing_extra(
    run: Run, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "obstore"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "rocwheel.stores.objects", raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    finished = run(*words[0].split(), *words[1:])
    assert finished.status == 2
    assert 'Install it: pip install "rocwheel[stores]".' in finished.stderr
