"""Tests of `rocwheel.build.planning.wheels`."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.platform import Platform
from rocwheel.binary.stubs import make_relay
from rocwheel.build.recipe import load_recipe
from rocwheel.core.errors import RocwheelError
from tests.support.places import ROOT
from tests.support.wine import windows_path

if TYPE_CHECKING:
    from tests.support.command_line import Run
    from tests.support.wine import Wine


SAMPLE = ROOT / "src/rocwheel/sample/windows"
RECIPE = ROOT / "src/rocwheel/build/rocm.toml"


def recipe_with_relays(folder: Path, *more: str) -> Path:
    """Return the default recipe with the rows for relays in force, and with more rows."""
    text = RECIPE.read_text()
    head, table, rest = text.partition("# [platforms.windows.packages.core.relays]\n")
    rows, blank, rest = rest.partition("\n\n")
    path = folder / "mine.toml"
    path.write_text(head + table[2:] + "\n".join([*(row[2:] for row in rows.splitlines()), *more]) + blank + rest)
    return path


def build(run: Run, tmp_path: Path, recipe: Path) -> tuple[zipfile.ZipFile, str]:
    """Build the sample with a recipe; return the wheel of core and what was said."""
    options = ("--recipe", recipe, "--dest-dir", tmp_path / "out")
    done = run("build", "--artifact-dir", SAMPLE, *options)
    assert done.status == 0, done.stderr
    return zipfile.ZipFile(tmp_path / "out/dist/rocm_sdk_core-7.0.0-py3-none-win_amd64.whl"), done.stderr


BIN = "_rocm_sdk_core/lib/llvm/bin"


@pytest.mark.slow
def test_copies_become_relays_and_the_saved_bytes_are_reported(run: Run, tmp_path: Path) -> None:
    wheel, said = build(run, tmp_path, recipe_with_relays(tmp_path))
    assert wheel.read(f"{BIN}/clang++.exe") == make_relay("clang.exe", ["--driver-mode=g++"])
    assert wheel.read(f"{BIN}/wasm-ld.exe") == make_relay("lld.exe", ["-flavor", "wasm"])
    assert wheel.getinfo(f"{BIN}/clang.exe").file_size == 14336
    assert wheel.getinfo(f"{BIN}/amdclang++.exe").file_size == 14336
    assert "7 relays: 35.8 kB instead of 100.4 kB" in said


@pytest.mark.slow
def test_the_default_recipe_keeps_copies(run: Run, tmp_path: Path) -> None:
    wheel, said = build(run, tmp_path, RECIPE)
    assert wheel.read(f"{BIN}/clang++.exe") == wheel.read(f"{BIN}/clang.exe")
    assert "relay" not in said


@pytest.mark.slow
def test_the_development_tree_has_relays_next_to_their_targets(run: Run, tmp_path: Path) -> None:
    build(run, tmp_path, recipe_with_relays(tmp_path))
    with zipfile.ZipFile(tmp_path / "out/dist/rocm_sdk_devel-7.0.0-py3-none-win_amd64.whl") as wheel:
        links = json.loads(wheel.read("rocm_sdk_devel/_links.json"))["links"]
    for name in ("clang.exe", "clang++.exe"):
        assert links[f"lib/llvm/bin/{name}"] == f"{BIN}/{name}"


@pytest.mark.slow
def test_relay_rules_that_have_no_effect_are_reported(run: Run, tmp_path: Path) -> None:
    rows = (
        '"lib/llvm/bin/amdclang.exe" = { target = "lib/llvm/bin/clang.exe" }',
        '"lib/llvm/bin/amdclang++.exe" = { target = "lib/llvm/bin/absent.exe" }',
        '"lib/llvm/bin/flang.exe" = { target = "lib/llvm/bin/flang-new.exe" }',
    )
    done = run("plan", "--artifact-dir", SAMPLE, "--recipe", recipe_with_relays(tmp_path, *rows), "--json")
    document = json.loads(done.stdout)
    warnings = [warning for warning in document["warnings"] if warning["kind"] == "relay"]
    assert [(warning["subject"], warning["found"]) for warning in warnings] == [
        (
            "lib/llvm/bin/amdclang++.exe",
            "ships unchanged, because lib/llvm/bin/absent.exe is not in any wheel of core",
        ),
        ("lib/llvm/bin/amdclang.exe", "ships unchanged, because it is not a copy of lib/llvm/bin/clang.exe"),
        ("lib/llvm/bin/flang.exe", "is not in any wheel of core, so no relay replaces it"),
    ]
    members = {member["path"]: member for wheel in document["wheels"] for member in wheel["members"]}
    assert members[f"{BIN}/amdclang.exe"]["type"] == "file"
    assert members[f"{BIN}/ld.lld.exe"] == {
        "type": "relay",
        "path": f"{BIN}/ld.lld.exe",
        "target": "lld.exe",
        "artifact": "amd-llvm_run_generic",
        "replaced": 14336,
        "arguments": ["-flavor", "gnu"],
    }


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (
            '"bin/a.exe" = { target = "lib/llvm/bin/clang++.exe" }',
            "packages.core.relays.'bin/a.exe' starts 'lib/llvm/bin/clang++.exe', which is also a relay",
        ),
        ('"bin/a.exe" = { target = "bin/b.bat" }', "packages.core.relays.'bin/a.exe': the target isn't a program"),
        (
            '"bin/a.exe" = { target = "bin/b:c.exe" }',
            "packages.core.relays.'bin/a.exe': the target has the name 'b:c.exe', which has a colon, which Windows",
        ),
    ],
)
def test_invalid_relay_rules_are_refused(tmp_path: Path, row: str, problem: str) -> None:
    with pytest.raises(RocwheelError, match=re.escape(problem)):
        load_recipe(recipe_with_relays(tmp_path, row))


@pytest.mark.slow
def test_relays_start_the_compiler_and_the_linker_in_the_right_mode(run: Run, wine: Wine, tmp_path: Path) -> None:
    wheel, _ = build(run, tmp_path, recipe_with_relays(tmp_path))
    wheel.extractall(tmp_path / "site packages")
    folder = tmp_path / "site packages" / BIN
    for name, mode in (("clang++", "g++"), ("clang-cl", "cl"), ("clang-cpp", "cpp"), ("amdclang++", "g++")):
        lines = wine.run(folder / f"{name}.exe", "a b.cpp").stdout.decode().splitlines()
        assert lines[2:4] == [f"InstalledDir: {windows_path(folder)}", f"mode: {mode}"]
        assert lines[-1].endswith("]: a b.cpp")
    for name, flavor in (("ld.lld", "gnu"), ("ld64.lld", "darwin"), ("lld-link", "link"), ("wasm-ld", "wasm")):
        lines = wine.run(folder / f"{name}.exe", "-o", "x y").stdout.decode().splitlines()
        assert lines[1:] == [
            f"flavor: {flavor}",
            "argv[1]: -flavor",
            f"argv[2]: {flavor}",
            "argv[3]: -o",
            "argv[4]: x y",
        ]


LLVM = Path("/usr/lib/llvm-16/bin")
"""LLVM for Linux, which knows the same arguments."""


def steps(folder: Path, name: str, *arguments: str) -> str:
    """Return what a compiler would run, without the name that it was called by and those of temporary files."""
    source = folder / "a.cpp"
    source.touch()
    command = [str(LLVM / name), *arguments, "-###", str(source), "-o", str(folder / "a.out")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return re.sub(r"/a-\w+\.o", "/a-0.o", done.stderr.replace(f"/{name}", "/clang"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["clang++", "clang-cl", "clang-cpp"])
def test_relay_arguments_make_clang_behave_as_under_its_other_names(name: str, tmp_path: Path) -> None:
    if not (LLVM / name).exists():
        pytest.skip("needs Debian's clang-16")
    rules = load_recipe(recipe_with_relays(tmp_path)).platforms[Platform.WINDOWS].packages["core"].relays or {}
    with_arguments = steps(tmp_path, "clang", *rules[f"lib/llvm/bin/{name}.exe"].arguments)
    assert with_arguments == steps(tmp_path, name)
    assert with_arguments != steps(tmp_path, "clang")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ld.lld", "ld64.lld", "lld-link", "wasm-ld"])
def test_relay_arguments_make_lld_behave_as_under_its_other_names(name: str, tmp_path: Path) -> None:
    if not (LLVM / name).exists():
        pytest.skip("needs Debian's lld-16")
    rules = load_recipe(recipe_with_relays(tmp_path)).platforms[Platform.WINDOWS].packages["core"].relays or {}
    option = "/help" if name == "lld-link" else "--help"
    own, ours = (
        subprocess.run([LLVM / program, *arguments, option], capture_output=True, text=True, check=True).stdout
        for program, arguments in ((name, ()), ("lld", rules[f"lib/llvm/bin/{name}.exe"].arguments))
    )
    assert ours == own.replace(f"/{name}", "/lld")
