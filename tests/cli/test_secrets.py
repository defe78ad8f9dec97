"""No command prints the user, password, or query of a URL that was typed, not even of a URL with a typing error."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import click
import pytest

from tests.support.commands import COMMANDS
from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.command_line import Run

URLS = (
    "http:/ada:hunter2@127.0.0.1:9/dist?token=s3cret",
    "https://ada:hunter2@127.0.0.1:9/x-1.0-py3-none-any.whl?token=s3cret",
    "ada:hunter2@127.0.0.1:9/dist?token=s3cret#s3cret",
    "s3://ada:hunter2/s3cret@bucket/dist",
    "https://ada:hunter2/s3cret@127.0.0.1:9/dist",
)


def _command_lines(name: str, url: str) -> Iterator[list[str]]:
    """Yield the command with the URL as every argument, and then as the value of each option."""
    parameters = COMMANDS[name].params
    arguments = [url for one in parameters if isinstance(one, click.Argument)]
    if arguments:
        yield [*name.split(), *arguments]
        yield [*name.split(), *arguments, "--json"]
    for one in parameters:
        if isinstance(one, click.Option) and not one.is_flag and "--scheduler" not in one.opts:
            yield [*name.split(), *arguments, f"{max(one.opts, key=len)}={url}"]


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"demo"}))  # whose folder can have such a name
def test_no_command_prints_a_secret(run: Run, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROCWHEEL_CACHE_DIR", str(tmp_path / "cache"))
    for url in URLS:
        for words in _command_lines(name, url):
            done = run(*words)
            assert not re.search("hunter2|s3cret", done.stdout + done.stderr), shlex.join(words)


def test_only_the_secret_hiding_code_reads_sys_argv() -> None:
    uses = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in (ROOT / "src/rocwheel/cli").glob("*.py")
        for line in path.read_text().splitlines()
        if "sys.argv" in line
    ]
    assert sorted(uses) == [
        "src/rocwheel/cli/__init__.py: hide_secrets(sys.argv[1:])",
        "src/rocwheel/cli/__init__.py: if _is_json_wanted(sys.argv[1:]):",
        "src/rocwheel/cli/__init__.py: if status == _INTERRUPTED and not _is_quiet(sys.argv[1:]):",
        "src/rocwheel/cli/__init__.py: words, notices = replace_deprecated(sys.argv[1:])",
        'src/rocwheel/cli/plan.py: messages.print(f"next: {_build_command(sys.argv[1:])}", markup=False)',
    ]
