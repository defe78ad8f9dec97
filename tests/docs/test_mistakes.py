"""The page on likely mistakes: how many it has, and that of a library which is missing here."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from tests.support.examples import Example, blocks, steps
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support.command_line import Run


class _Hidden:
    """Finds no obstore, as where it is not installed."""

    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] == "obstore":
            msg = "No module named 'obstore'"
            raise ModuleNotFoundError(msg, name="obstore")


PAGE = (ROOT / "docs/mistakes.md").read_text()


def test_the_page_shows_more_than_thirty_mistakes() -> None:
    assert sum(1 for step in steps(PAGE) if isinstance(step, Example)) > 30


def test_every_message_is_an_error_or_a_missing_library() -> None:
    shown = [step.output for step in steps(PAGE) if isinstance(step, Example)]
    assert [text for text in shown if not text.removeprefix("...\n").startswith(("error", "missing "))] == []


def test_the_error_about_a_missing_module_says_how_to_install_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.startswith(("obstore", "rocwheel.stores.objects"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [_Hidden(), *sys.meta_path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "packages/dist").mkdir(parents=True)
    [block] = [block for block in blocks(PAGE) if block.reason]
    command, message = block.text.splitlines()
    done = run(*shlex.split(command.removeprefix("$ rocwheel ")))
    assert (done.status, done.stderr) == (2, f"{message}\n")
