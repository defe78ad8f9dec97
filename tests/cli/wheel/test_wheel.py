"""``rocwheel wheel`` and ``rocwheel jax wheel`` as a user runs them."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel, run_json

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SPEC = """
schema = 1
name = "demo"
version = "1.0"
summary = "for {where}"
[values]
where = "here"
[[files]]
from = "demo/__init__.py"
to = "demo/"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "demo.toml").write_text(SPEC)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo/__init__.py").touch()
    return tmp_path


def test_a_wheel_whose_path_is_known_is_assembled_in_silence(project: Path) -> None:
    output = "out/demo-1.0-py3-none-any.whl"
    made = rocwheel("wheel", "--quiet", "--spec", "demo.toml", "--src", ".", "--output", output, cwd=project)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    assert (project / output).is_file()


def test_a_wheel_is_assembled_and_named(project: Path) -> None:
    made = rocwheel("wheel", "--spec", "demo.toml", "--src", ".", "--dest-dir", "out", cwd=project)
    assert (made.returncode, made.stdout) == (0, "out/demo-1.0-py3-none-any.whl\n")
    with zipfile.ZipFile(project / "out/demo-1.0-py3-none-any.whl") as archive:
        assert "Root-Is-Purelib: true\n" in archive.read("demo-1.0.dist-info/WHEEL").decode()


def test_a_missing_input_is_bad_usage(project: Path) -> None:
    failed = rocwheel("wheel", "--spec", "demo.toml", cwd=project)
    assert (failed.returncode, failed.stderr) == (
        2,
        (
            "error: demo/__init__.py: is not among the inputs (none are given). Build the target that makes it, or "
            "give its folder with --src.\n"
        ),
    )


@pytest.mark.parametrize(
    ("options", "name", "summary"),
    [
        ([], "demo-1.0", "for here"),
        (["--version", "2.0", "--set", "where=there"], "demo-2.0", "for there"),
        (["--set", "version=3.0"], "demo-3.0", "for here"),
    ],
    ids=["defaults", "option", "set"],
)
def test_values_fill_the_description(project: Path, options: list[str], name: str, summary: str) -> None:
    made = rocwheel("wheel", "--spec", "demo.toml", "--src", ".", *options, cwd=project)
    assert (made.returncode, made.stdout) == (0, f"dist/{name}-py3-none-any.whl\n")
    with zipfile.ZipFile(project / f"dist/{name}-py3-none-any.whl") as archive:
        assert f"Summary: {summary}\n" in archive.read(f"{name}.dist-info/METADATA").decode()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ["--set", "were=there"],
            "gives were a value, but the description has no such placeholder; expected one of version, where",
        ),
        (
            ["--set", "pair===2"],
            "gives pair a value, but the description has no such placeholder; expected one of version, where",
        ),
        (
            ["--version", "1.0", "--set", "version=2.0"],
            "gives version the value '2.0', but it has the value '1.0'; expected one value",
        ),
    ],
    ids=["misspelled", "computed", "two"],
)
def test_values_without_effect_are_refused(project: Path, options: list[str], text: str) -> None:
    failed = rocwheel("wheel", "--spec", "demo.toml", "--src", ".", *options, cwd=project)
    assert (failed.returncode, failed.stderr) == (2, f"error: --set: {text}\n")
    assert not (project / "dist").exists()


def test_inputs_may_be_listed_in_a_file(project: Path) -> None:
    (project / "inputs").write_text("LICENSE\ndemo/__init__.py\n")
    (project / "LICENSE").write_text("MIT\n")
    made = rocwheel("wheel", "--spec", "demo.toml", "--src-list", "inputs", cwd=project)
    assert (made.returncode, made.stdout) == (0, "dist/demo-1.0-py3-none-any.whl\n")


def test_a_list_of_inputs_that_is_absent_is_bad_usage(project: Path) -> None:
    failed = rocwheel("wheel", "--spec", "demo.toml", "--src-list", "inputs", cwd=project)
    assert failed.returncode == 2
    assert failed.stderr.startswith("error: inputs: can't be read as a list of inputs (")


def test_a_description_that_is_absent_is_bad_usage(project: Path) -> None:
    failed = rocwheel("wheel", "--spec", "absent.toml", "--src", ".", cwd=project)
    assert (failed.returncode, failed.stderr) == (
        2,
        "error: absent.toml: can't be read (No such file or directory). Check --spec.\n",
    )


@pytest.mark.parametrize("command", [["wheel"], ["jax", "wheel", "pjrt", "--version", "1.0"]], ids=["wheel", "jax"])
def test_both_commands_make_the_same_wheel(project: Path, command: list[str]) -> None:
    value = run_json(*command, "--spec", "demo.toml", "--src", ".", cwd=project)
    assert value.pop("schema") == "rocwheel.wheel/1"
    size = (project / "dist/demo-1.0-py3-none-any.whl").stat().st_size
    assert value == {"path": "dist/demo-1.0-py3-none-any.whl", "size": size, "floor_reason": "", "repaired": []}


@pytest.mark.parametrize("command", [["wheel"], ["jax", "wheel"]], ids=" ".join)
def test_the_help_has_an_example(command: list[str], tmp_path: Path) -> None:
    assert "Example: " in rocwheel(*command, "--help", cwd=tmp_path).stdout
