"""What the commands of ``rocwheel targets`` have in common."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from tests.support.bundles import bundle_of
from tests.support.examples import blocks
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


pytestmark = pytest.mark.slow


def test_other_commands_take_names_of_products(run_targets: Run, tmp_path: Path) -> None:
    (tmp_path / "a.co").write_bytes(bundle_of("gfx906"))
    assert run_targets("runs-on", "Radeon VII", tmp_path / "a.co").status == 0
    assert (
        run_targets("flags", "Radeon VII", "--for", "cmake").stdout
        == run_targets("flags", "gfx906", "--for", "cmake").stdout
    )


def test_arguments_of_a_compiler_can_be_pasted_everywhere(run_targets: Run, tmp_path: Path) -> None:
    (tmp_path / "a.hipfb").write_bytes(bundle_of("gfx906"))
    assert run_targets("flags", "--for", "file-name", "--offload-arch=gfx90a:xnack+").stdout == "gfx90a-xnack+\n"
    assert run_targets("list", "--offload-arch=gfx906").stdout.splitlines()[1].startswith("gfx906 ")
    assert run_targets("runs-on", "--offload-arch=gfx906", tmp_path).status == 0


@pytest.mark.parametrize("command", ["list", "expand", "flags", "detect", "check", "coherent", "runs-on"])
def test_every_command_has_an_example_in_its_help(run_targets: Run, command: str) -> None:
    assert f"Example: rocwheel targets {command}" in " ".join(run_targets(command, "--help").stdout.split())


def _documented_commands() -> list[object]:
    shown = [block for block in blocks((ROOT / "docs/targets.md").read_text()) if block.language == "console"]
    examples = [
        example
        for block in shown
        if not block.reason
        for example in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    ]
    return [pytest.param(*example.split("\n", 1), id=example.partition("\n")[0]) for example in examples]


@pytest.mark.parametrize(("command", "output"), _documented_commands())
def test_documented_commands_print_what_the_documentation_shows(run_targets: Run, command: str, output: str) -> None:
    assert run_targets(*shlex.split(command)[2:]) == (0, output, "")


@pytest.mark.parametrize(
    ("arguments", "name", "wanted"),
    [
        (("coherent",), "demo-1.0-py3-none-any.whl", "a file or a folder"),
        (("runs-on", "gfx906"), "kernels.co", "a file or a folder"),
    ],
)
def test_a_pipe_is_refused_rather_than_left_out(
    arguments: tuple[str, ...], name: str, wanted: str, run_targets: Run, tmp_path: Path
) -> None:
    pipe = tmp_path / name
    os.mkfifo(pipe)
    expected = f"error: {pipe}: is not a regular file; expected {wanted}\n"
    assert run_targets(*arguments, pipe) == (2, "", expected)
