"""The examples of the documentation do what the pages say."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from tests.docs.not_run import NOT_RUN
from tests.support.examples import Example, blocks, matches, run_page, steps
from tests.support.places import ROOT
from tests.support.sample_pages import prepare

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
RUN = {"console", "sh"}
_COMMAND = re.compile(r"\$ |(rocwheel|rocm-sdk|pip|python|make|cmake|cd|mkdir|docker|dask) ")
_KIND = re.compile(r"^<!-- examples: (\w+) -->$", re.MULTILINE)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _runs(path: Path) -> bool:
    return any(isinstance(step, Example) for step in steps(path.read_text()))


def quick_python(folder: Path) -> Path:
    """Return a folder with a ``python`` that makes environments faster, and is this Python else."""
    folder.mkdir()
    python, program = shlex.quote(sys.executable), shlex.quote(str(ROOT / "tests/support/quick_venv.py"))
    text = f'#!/bin/sh\n[ "$1 $2 $#" = "-m venv 3" ] && exec {python} {program} "$3"\nexec {python} "$@"\n'
    (folder / "python").write_text(text)
    (folder / "python").chmod(0o755)
    return folder


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in PAGES if _runs(path)], ids=_name)
def test_examples_print_the_output_on_the_page(path: Path, tmp_path: Path) -> None:
    page = path.read_text()
    if "gcc " in page and shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    folder = tmp_path / "clean"
    folder.mkdir()
    kind = _KIND.search(page)
    fails = kind is not None and kind[1] == "mistakes"  # All commands of that page end with an error.
    if kind:
        prepare(kind[1], folder)
    tools = quick_python(tmp_path / "tools")
    paths = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": paths, "ROCWHEEL_CACHE_DIR": str(tmp_path / ".cache/rocwheel")}
    finished = run_page(page, folder, environment)
    wrong = [
        f"$ {example.command}\n{printed}\n[exit status {status}]\nbut the page shows:\n{example.output}\n"
        for i, (example, printed, status) in enumerate(finished)
        if not matches(example.output, printed)
        or ((status != 0) is not fails and not _is_asked_for([example.command for example, *_ in finished], i))
    ]
    assert not wrong, "\n".join(wrong)


def _is_asked_for(commands: list[str], i: int) -> bool:
    """Return whether a page shows the exit status of a command."""
    return commands[i + 1 : i + 2] == ["echo $?"]


@pytest.mark.parametrize("path", TUTORIALS, ids=_name)
def test_tutorials_skip_only_commands_that_need_a_real_compiler(path: Path) -> None:
    reasons = [block.reason for block in blocks(path.read_text()) if block.reason]
    assert reasons in ([], ["the sample SDK's compiler compiles nothing"])


@pytest.mark.parametrize("path", PAGES, ids=_name)
def test_every_command_on_a_page_is_run_or_has_a_reason_to_be_skipped(path: Path) -> None:
    left_out = [block for block in blocks(path.read_text()) if not block.reason and block.language not in RUN]
    assert [line for block in left_out for line in block.text.splitlines() if _COMMAND.match(line)] == []


def test_the_reasons_for_skipped_commands_are_known() -> None:
    found = {_name(path): [block.reason for block in blocks(path.read_text()) if block.reason] for path in PAGES}
    assert {page: reasons for page, reasons in found.items() if reasons} == NOT_RUN


def test_a_shell_block_runs_line_by_line_with_any_output() -> None:
    assert steps("```sh\ntrue\necho a \\\n  b\n```\n") == [Example("true", "..."), Example("echo a    b", "...")]
    assert matches("...", "")
    assert matches("...", "a\nb\n")


def test_each_of_the_four_user_groups_has_a_tutorial() -> None:
    assert [path.stem for path in TUTORIALS] == [
        "distribution-maintainer",
        "end-user",
        "framework-builder",
        "sdk-distributor",
    ]


def test_an_ellipsis_matches_anything_and_progress_lines_are_ignored() -> None:
    assert matches("a\n...\nz 1...3", "building ...\nbuilding 25%\n\na\nb  \nc\nz 123\n")
    assert not matches("a\n...\nz", "a\nb\n")


def test_a_command_can_continue_on_lines_that_begin_with_an_angle_bracket() -> None:
    page = "```console\n$ for i in 1 2; do\n>   echo $i\n> done\n1\n2\n$ true\n```\n"
    assert steps(page) == [Example("for i in 1 2; do\n  echo $i\ndone", "1\n2"), Example("true", "")]


@pytest.mark.parametrize(
    ("shown", "printed", "fits"),
    [
        ("core 149.3 kB ...", "core   150.1 kB   2.0 MB", True),
        ("core 149.3 kB ...", "core   181.0 kB   2.0 MB", False),
        ("core 149.3 kB", "core 149.3 MB", False),
        ("67 files", "68 files", False),
    ],
)
def test_only_sizes_may_differ_slightly(shown: str, printed: str, fits: bool) -> None:
    assert matches(shown, printed) is fits
