"""``rocwheel about`` and ``version``."""

from __future__ import annotations

import json
import os
import platform
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rocwheel import __version__
from rocwheel.cli import load_commands
from rocwheel.cli.about import text_lines
from rocwheel.cli.app import app
from rocwheel.environment.about import read_about

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


def run(*arguments: str) -> tuple[int, str]:
    load_commands()
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.output


def test_json_has_the_versions_of_rocwheel_python_and_codecs() -> None:
    document = json.loads(run("about", "--json")[1])
    assert document["schema"] == "rocwheel.about/1"
    assert document["rocwheel"] == __version__
    assert document["python"] == f"CPython {platform.python_version()}"
    assert document["executable"] == sys.executable
    assert document["cpus"] == len(os.sched_getaffinity(0))
    assert list(document["codecs"]) == ["deflate", "zlib-ng", "zlib", "zstd"]
    assert "not installed" not in document["codecs"].values()
    assert list(document["packages"]) == ["click", "msgspec", "packaging", "rich"]


@pytest.mark.parametrize("arguments", [["about"], ["--version", "--verbose"], ["-v", "--version"]], ids=" ".join)
def test_text_begins_with_versions_and_platform(arguments: list[str], run: Run) -> None:
    status, output, _ = run(*arguments)
    labels = [line.split("  ")[0] for line in output.splitlines()]
    assert (status, labels[:5]) == (0, ["rocwheel", "Python", "platform", "codecs", "packages"])


def test_the_version_option_prints_one_line() -> None:
    assert run("--version") == (0, f"rocwheel {__version__}\n")


def test_a_prefix_without_a_version_is_shown_as_a_folder(tmp_path: Path) -> None:
    (tmp_path / "opt/rocm").mkdir(parents=True)
    lines = list(text_lines(read_about({}, root=tmp_path)))
    assert f"ROCm         default: {tmp_path}/opt/rocm: a folder without .info/version" in lines
    assert "GPUs         none found" in lines


def test_the_gpus_in_the_machine_are_listed(tmp_path: Path) -> None:
    node = tmp_path / "sys/class/kfd/kfd/topology/nodes/1"
    node.mkdir(parents=True)
    (node / "gpu_id").write_text("4660\n")
    (node / "properties").write_text("gfx_target_version 90006\nsimd_count 240\ndrm_render_minor 128\n")
    found = read_about({}, root=tmp_path)
    assert (found.gpus, found.problems) == (("gfx906",), ())
    assert "GPUs         gfx906" in list(text_lines(found))


def test_both_spellings_of_the_version_option_print_the_version(run: Run) -> None:
    assert run("--version") == run("-V") == (0, f"rocwheel {__version__}\n", "")


def test_the_version_can_be_printed_as_json(run: Run) -> None:
    assert json.loads(run("--version", "--json").stdout) == {"schema": "rocwheel.version/1", "version": __version__}
