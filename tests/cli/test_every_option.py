"""The options that every command takes, and what 0 means for `--jobs`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import pytest

from tests.support.commands import COMMANDS
from tests.support.option_table import MEANINGS
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_accepts_json_quiet_and_verbose(name: str) -> None:
    names = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    assert names >= {"--json", "--quiet", "-q", "--verbose", "-v"}


def _options() -> dict[str, list[tuple[str, click.Option]]]:
    """Return the commands that list each option, by its name."""
    found: dict[str, list[tuple[str, click.Option]]] = {}
    for command, held in COMMANDS.items():
        for one in held.params:
            if isinstance(one, click.Option) and not (one.hidden or held.hidden):
                found.setdefault(max(one.opts, key=len), []).append((command, one))
    return found


def test_every_shared_option_is_in_the_table() -> None:
    shared = {name for name, holders in _options().items() if len(holders) > 1}
    assert shared == MEANINGS.keys()


@pytest.mark.parametrize("name", MEANINGS)
def test_a_shared_option_has_the_same_spelling_in_every_command(name: str) -> None:
    meaning = MEANINGS[name]
    for command, one in _options()[name]:
        metavar = re.sub("<.*>", "<>", one.metavar or "")
        assert (command, metavar) in {(command, known) for known in meaning.metavars or ("",)}
        assert one.multiple == (meaning.repeatable != (command in meaning.single_in)), command


def test_the_help_of_every_list_option_says_repeatable() -> None:
    given = [(name, command, one) for name, holders in _options().items() for command, one in holders]
    said = [(name, command) for name, command, one in given if (one.help or "").endswith(" (repeatable)")]
    assert said == [(name, command) for name, command, one in given if one.multiple]


def test_the_help_lists_at_most_45_commands_and_100_options() -> None:
    listed = [name for name, one in COMMANDS.items() if not one.hidden and name != "selector merge"]
    assert (len(listed) <= 45, len(_options()) <= 100) == (True, True)


def test_the_help_lists_advanced_options_only_with_verbose(run: Run) -> None:
    short, long = (run("device", "compress", "--help", *words).stdout for words in ([], ["--verbose"]))
    assert short.endswith("\n\nTo see 1 advanced option, add --verbose.\n")
    assert "--header-version" not in short
    advanced = "Write header version 2 or 3. [default: the format for most ROCm releases]\n"
    assert " ".join(long.partition("Advanced options:\n")[2].split()) == f"--header-version N {advanced}".strip()


def test_zero_jobs_means_one_per_core(run: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path / "dist", "alpha", {}, tag="py3-none-any")
    assert run("index", tmp_path / "dist", "--output", tmp_path / "simple").status == 0
    words = ("--project", "alpha", "-o", tmp_path / "mirror", "-j", "0")
    done = run("index", "mirror", (tmp_path / "simple").as_uri(), *words)
    assert done.status == 0, done.stderr
    assert [path.name for path in (tmp_path / "mirror" / "dist").glob("*.whl")] == ["alpha-1.0-py3-none-any.whl"]
