"""``--quiet`` prints nothing but errors, in the example of every command that runs where the tests run."""

from __future__ import annotations

import shlex

import pytest

from tests.cli.test_help_examples import ELSEWHERE, FINDINGS, example_of, replaced, rocwheel, world
from tests.support.commands import COMMANDS

pytestmark = pytest.mark.slow

__all__ = ["world"]

GENERATING = {
    "jax starlark",
    "jax translate",
    "targets flags",
    "torch init",
    "torch requirements",
}
"""Commands whose result is a text for a file or a shell: it is asked for, as a document is."""


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - set(ELSEWHERE) - GENERATING))
def test_a_quiet_command_prints_only_errors(world: object, command: str) -> None:
    first, *_ = replaced(example_of(command)).splitlines()
    line = first.replace(" --json", "")
    done = rocwheel(world, f"{line} --quiet")  # type: ignore[arg-type]
    if done.returncode == 0:
        assert (done.stdout, done.stderr) == ("", "")
    else:
        assert command in FINDINGS
        assert shlex.split(first)[:1] == ["rocwheel"]
