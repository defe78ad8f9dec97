"""What counts as wrong about the end of a command that met a hostile input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rocwheel.cli import load_commands
from rocwheel.cli.app import app
from tests.hostile.inputs import INPUTS
from tests.hostile.table import RESIDENT, RESULTS, cells_of_page, wrong
from tests.hostile.trials import MEMORY, SECONDS, WORDS, Ended

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAKE_NONE = (
    *("about", "demo", "wheel", "cache info", "cache prune", "lock", "attest"),
    *(
        "index yank",
        "targets list",
        "targets flags",
        "targets detect",
    ),
    *(
        "jax bazelrc",
        "jax starlark",
        "jax commands",
        "jax translate",
        "jax migrate",
        "jax patch",
        "jax wheel",
        "jax wheel-binary",
    ),
    *("jax wheel-targets", "torch init", "torch requirements", "torch runpath"),
)
"""Commands that read what belongs to the user, or nothing."""
_TAKE_FILES = ("device bundle", "device join", "runpath set", "runpath for")
"""Commands that read single binaries, or what `device split` made: what those may hold is fuzzed."""

ENDED = "ended by the size of files that it may write: "


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (Ended(0, "", 9.9, 1 << 30, []), ""),
        (Ended(1, "warning: a", 0, 0, []), ""),
        (Ended(2, "error: a.whl: is damaged", 0, 0, []), ""),
        (Ended(2, "Error: no such option", 0, 0, []), ""),
        (Ended(2, "a.whl is damaged", 0, 0, []), "refused without a message: a.whl is damaged"),
        (Ended(-1, "Traceback", 0, 0, []), "status -1: Traceback"),
        (Ended(-2, "", 0, 0, []), "status -2: "),
        (Ended(3, "error: a", 0, 0, []), "status 3: error: a"),
        (Ended(0, "Traceback (most recent call last)", 0, 0, []), "status 0: Traceback (most recent call last)"),
        (Ended(0, "a\x1b[31m", 0, 0, []), "control characters in the output: 'a\\x1b[31m'"),
        (
            Ended(1, "error: out: File too large", 0, 0, []),
            "ended by the size of files that it may write: error: out: File too large",
        ),
        (Ended(0, "a\0", 0, 0, []), "control characters in the output: 'a\\x00'"),
        (Ended(0, "", 10.6, 0, []), "11 seconds, 0 MiB"),
        (Ended(0, "", 0, (1 << 30) + (1 << 20), []), "0 seconds, 1025 MiB"),
        (Ended(0, "", 0, 0, ["out -> /etc/passwd", "pipe of mode 10644"]), "out -> /etc/passwd, pipe of mode 10644"),
    ],
)
def test_only_a_quick_refusal_or_containment_is_correct(end: Ended, text: str) -> None:
    assert wrong(end) == text


def test_the_page_lists_each_command_and_each_input() -> None:
    found = cells_of_page()
    assert {kind: list(commands) for kind, commands in found.items()} == {kind: list(WORDS[kind]) for kind in WORDS}
    rows = {kind: {tuple(cells) for cells in commands.values()} for kind, commands in found.items()}
    assert rows == {kind: {tuple(inputs)} for kind, inputs in INPUTS.items()}


def test_the_page_states_the_current_limits() -> None:
    text = " ".join(RESULTS.read_text().split())
    assert f"may have {MEMORY >> 30} GiB of addresses and {SECONDS} seconds" in text
    assert f"half of the time, {RESIDENT >> 30} GiB in memory" in text


def test_every_command_that_reads_untrusted_packages_or_folders_is_tested() -> None:
    tried = {command for commands in WORDS.values() for command in commands}
    load_commands()
    assert {*tried, *_TAKE_NONE, *_TAKE_FILES} == set(_names(app))
    assert not tried.intersection({*_TAKE_NONE, *_TAKE_FILES})


def _names(command: Any, before: tuple[str, ...] = ()) -> Iterator[str]:
    below = getattr(command, "commands", None)
    for name, one in (below or {}).items():
        yield from _names(one, (*before, name))
    if not below:
        yield " ".join(before)
