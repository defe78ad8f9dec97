"""``rocwheel wheel``."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel, run_json
from tests.support.commands import COMMANDS
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run


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


@pytest.mark.slow
def test_quiet_assembly_of_a_wheel_prints_nothing(project: Path) -> None:
    output = "out/demo-1.0-py3-none-any.whl"
    made = rocwheel("wheel", "--quiet", "--spec", "demo.toml", "--src", ".", "--output", output, cwd=project)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    assert (project / output).is_file()


@pytest.mark.slow
def test_a_wheel_is_assembled_and_its_path_is_printed(project: Path) -> None:
    made = rocwheel("wheel", "--spec", "demo.toml", "--src", ".", "--output", "out", cwd=project)
    assert (made.returncode, made.stdout) == (0, "out/demo-1.0-py3-none-any.whl\n")
    with zipfile.ZipFile(project / "out/demo-1.0-py3-none-any.whl") as archive:
        assert "Root-Is-Purelib: true\n" in archive.read("demo-1.0.dist-info/WHEEL").decode()


@pytest.mark.slow
def test_a_missing_input_is_a_usage_error(project: Path) -> None:
    failed = rocwheel("wheel", "--spec", "demo.toml", cwd=project)
    assert (failed.returncode, failed.stderr) == (
        2,
        (
            "error: demo/__init__.py: isn't among the inputs (there are no inputs). "
            "Build the target that creates this file, or pass the file's folder with --src.\n"
        ),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "name", "summary"),
    [
        ([], "demo-1.0", "for here"),
        (["--version", "2.0", "--set", "where=there"], "demo-2.0", "for there"),
        (["--set", "version=3.0"], "demo-3.0", "for here"),
    ],
    ids=["defaults", "option", "set"],
)
def test_values_fill_the_placeholders_of_the_spec(project: Path, options: list[str], name: str, summary: str) -> None:
    made = rocwheel("wheel", "--spec", "demo.toml", "--src", ".", *options, cwd=project)
    assert (made.returncode, made.stdout) == (0, f"dist/{name}-py3-none-any.whl\n")
    with zipfile.ZipFile(project / f"dist/{name}-py3-none-any.whl") as archive:
        assert f"Summary: {summary}\n" in archive.read(f"{name}.dist-info/METADATA").decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ["--set", "were=there"],
            "sets were, but the description has no such placeholder; expected one of version, where",
        ),
        (
            ["--set", "pair===2"],
            "sets pair, but the description has no such placeholder; expected one of version, where",
        ),
        (
            ["--version", "1.0", "--set", "version=2.0"],
            "sets version to '2.0', but version already has the value '1.0'; expected one value",
        ),
    ],
    ids=["misspelled", "computed", "two"],
)
def test_values_without_effect_are_refused(project: Path, options: list[str], text: str) -> None:
    failed = rocwheel("wheel", "--spec", "demo.toml", "--src", ".", *options, cwd=project)
    assert (failed.returncode, failed.stderr) == (2, f"error: --set: {text}\n")
    assert not (project / "dist").exists()


@pytest.mark.slow
def test_inputs_can_be_listed_in_a_file(project: Path) -> None:
    (project / "inputs").write_text("LICENSE\ndemo/__init__.py\n")
    (project / "LICENSE").write_text("MIT\n")
    made = rocwheel("wheel", "--spec", "demo.toml", "--src-list", "inputs", cwd=project)
    assert (made.returncode, made.stdout) == (0, "dist/demo-1.0-py3-none-any.whl\n")


@pytest.mark.slow
def test_a_missing_input_list_is_a_usage_error(project: Path) -> None:
    failed = rocwheel("wheel", "--spec", "demo.toml", "--src-list", "inputs", cwd=project)
    assert failed.returncode == 2
    assert failed.stderr.startswith("error: inputs: can't be read as a list of inputs (")


@pytest.mark.slow
def test_a_missing_spec_is_a_usage_error(project: Path) -> None:
    failed = rocwheel("wheel", "--spec", "absent.toml", "--src", ".", cwd=project)
    assert (failed.returncode, failed.stderr) == (
        2,
        "error: absent.toml: can't be read (No such file or directory). Check --spec.\n",
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", [["wheel"], ["jax", "wheel", "pjrt", "--version", "1.0"]], ids=["wheel", "jax"])
def test_both_commands_create_the_same_wheel(project: Path, command: list[str]) -> None:
    value = run_json(*command, "--spec", "demo.toml", "--src", ".", cwd=project)
    assert value.pop("schema") == "rocwheel.wheel/1"
    size = (project / "dist/demo-1.0-py3-none-any.whl").stat().st_size
    assert value == {"path": "dist/demo-1.0-py3-none-any.whl", "size": size, "floor_reason": "", "repaired": []}


@pytest.mark.slow
@pytest.mark.parametrize("command", [["wheel"], ["jax", "wheel"]], ids=" ".join)
def test_the_help_of_each_command_has_an_example(command: list[str], tmp_path: Path) -> None:
    assert "Example:" in rocwheel(*command, "--help", cwd=tmp_path).stdout


LIBRARY = FIXTURES / "v22/libtwo.plain.so"

WITHOUT_FILES = {"device bundle", "targets detect", "targets flags", "targets list"}
"""Commands that look into no file; `device bundle` takes code objects alone."""

CASES = {
    "inspect": "inspect {0}",
    "device list": "device list {0}",
    "device list --kernels": "device list --kernels {0}",
    "device extract": "device extract {0} -t gfx1030 -o {out}",
    "device compress": "device compress {1} -o {out}",
    "device prune": "device prune {1} -k gfx1030 -o {out}",
    "device retarget": "device retarget gfx1030=gfx1031 {1} --compress -o {out}",
    "device split": "device split {fat} -o {out}",
    "device join": "device join {0} -o {out}",
    "targets runs-on": "targets runs-on gfx1030 {0}",
    "targets coherent": "targets coherent {0}",
    "runpath show": "runpath show {host}",
}
"""``{0}`` stands for a fat wheel, or a host wheel with its device wheel; ``{1}`` for the wheel that has the code."""


@pytest.fixture
def wheels(run: Run, tmp_path: Path) -> dict[str, list[Path]]:
    fat = make_wheel(tmp_path, "demo", {"demo/libtwo.so": LIBRARY})
    assert run("device", "split", fat, "-o", tmp_path / "parts", "-t", "gfx1030", "--quiet").status == 0
    [device] = (tmp_path / "parts").glob("demo_device*")
    return {"fat": [fat], "parts": [tmp_path / "parts" / fat.name, device]}


@pytest.mark.slow
def test_the_table_covers_every_command() -> None:
    groups = ("device ", "targets ", "runpath show", "inspect")
    commands = {words for words in COMMANDS if words.startswith(groups)}
    assert commands - WITHOUT_FILES == {words.partition(" --")[0] for words in CASES}


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize(
    ("words", "kind"),
    [(words, kind) for words in CASES for kind in ("fat", "parts") if (words, kind) != ("device join", "fat")],
)
def test_commands_read_wheels(run: Run, tmp_path: Path, wheels: dict[str, list[Path]], words: str, kind: str) -> None:
    given = wheels[kind]
    line = CASES[words]
    names = {"out": tmp_path / "out", "fat": wheels["fat"][0], "host": given[0]}
    filled = [
        word
        for text in line.split()
        for word in (map(str, given) if text == "{0}" else [text.format("", given[-1], **names)])
    ]
    done = run(*filled)
    assert (done.status, "error" in done.stderr) == (0, False)
    made = [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] if "{out}" in line else []
    assert made or any(text in done.stdout for text in ("gfx1030", "libtwo.so", "saxpy"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("device extract {host}", "Install the device package for the GPU in the same environment"),
        ("device split {host} -o {out}", "is already split; expected a wheel with a fat binary or kernel files"),
        ("device split {device} -o {out}", "is a device wheel; expected a wheel with a fat binary or kernel files"),
        ("device join {fat} -o {out}", "no library with code in archives"),
        ("device bundle {fat} -o {out}", "a wheel; expected a linked code object"),
    ],
)
def test_a_wheel_without_the_required_code_is_refused_with_a_reason(
    run: Run, tmp_path: Path, wheels: dict[str, list[Path]], line: str, found: str
) -> None:
    host, device = wheels["parts"]
    words = line.format(host=host, device=device, fat=wheels["fat"][0], out=tmp_path / "out").split()
    done = run(*words)
    assert (done.status, found in done.stderr, (tmp_path / "out").exists()) == (2, True, False), done.stderr
