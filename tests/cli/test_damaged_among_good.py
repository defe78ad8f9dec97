"""One damaged file among good ones: the good ones are handled, the damaged one is named, and the exit status tells.

What makes one thing of all files, such as an upload, is not done in part.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.demo import SAMPLE_SDK
from tests.support.places import FIXTURES
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.command_line import Run

DAMAGED = "b-1.0-py3-none-any.whl: is a damaged archive (File is not a zip file)"
COMPONENTS = ["dev", "lib", "run"]


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    """Return a good wheel, a damaged one, and a good one."""
    folder = tmp_path / "wheels"
    library = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
    first = make_wheel(folder, "a", {"a/__init__.py": b"", "a/liba.so": library})
    damaged = folder / "b-1.0-py3-none-any.whl"
    damaged.write_bytes(b"no wheel")
    last = make_wheel(folder, "c", {"c/__init__.py": b"", "c/libc.so": library})
    return [first, damaged, last]


@pytest.mark.parametrize("start", [b"\x7fELF", b"\x7fELF\1\1", b"\x7fELF\2\1"], ids=["4 bytes", "32-bit", "64-bit"])
@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "{}"),
        ("runpath", "show", "{}"),
        ("diff", "{}", "{}"),
        ("device", "split", "{}", "-o", "out"),
        ("device", "list", "{}"),
    ],
    ids=["inspect", "runpath show", "diff", "split", "list"],
)
def test_a_file_truncated_in_its_elf_header_is_reported_as_damaged(
    tmp_path: Path, run: Run, command: tuple[str, ...], start: bytes
) -> None:
    path = tmp_path / "t.so"
    path.write_bytes(start)
    finished = run(*(str(tmp_path / word) if word == "out" else word.format(path) for word in command))
    found = f"error: {path}: the ELF header would span 0x0 to 0x40, but the file ends at {len(start):#x}; expected "
    assert finished.stderr.startswith(found)
    assert finished.status == 2


@pytest.mark.parametrize("form", ["files", "folder"])
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["audit", "--verbose"], ["a/liba.so", "c/libc.so"]),
        (["inspect"], ["a/liba.so", "c/libc.so"]),
        (["targets", "coherent"], ["gfx1030"]),
        (["targets", "runs-on", "gfx1030"], ["a/liba.so: gfx1030 on a stock", "c/libc.so: gfx1030 on a stock"]),
        (["runpath", "show"], ["a/liba.so", "c/libc.so"]),
    ],
    ids=["audit", "inspect", "coherent", "runs-on", "runpath show"],
)
def test_reports_include_all_intact_wheels(
    wheels: list[Path], run: Run, command: list[str], shown: list[str], form: str
) -> None:
    finished = run(*command, *(wheels if form == "files" else [wheels[0].parent]))
    assert f"error: {wheels[1]}: is a " in finished.stderr
    assert [text for text in shown if text not in finished.stdout] == []
    assert finished.status == 2


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with a library that is cut off among whole ones."""
    library = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
    folder = tmp_path / "tree"
    folder.mkdir()
    for name, data in [("liba.so", library), ("libb.so", library[:3000]), ("libc.so", library)]:
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["inspect"], 2),
        (["runpath", "show"], 2),
        (["targets", "runs-on", "gfx1030"], 2),
        (["audit", "--verbose"], 1),  # which has a rule for it
        (["device", "list"], 1),  # to which it is a doubt
    ],
    ids=["inspect", "runpath show", "runs-on", "audit", "device list"],
)
def test_reports_include_intact_libraries_in_a_folder(tree: Path, run: Run, command: list[str], status: int) -> None:
    finished = run(*command, tree)
    assert f"{tree}/libb.so" in (finished.stdout if command[0] == "audit" else finished.stderr)
    assert [name for name in ("liba.so", "libc.so") if name not in finished.stdout] == []
    assert finished.status == status


def test_json_has_the_intact_files_and_the_exit_status_reports_the_damage(tree: Path, run: Run) -> None:
    for command in (["runpath", "show"], ["targets", "runs-on", "gfx1030"]):
        finished = run(*command, tree, "--json")
        assert finished.status == 2
        assert {"liba.so", "libc.so"} <= set(re.findall(r"lib[abc]\.so", finished.stdout))
        json.loads(finished.stdout)


@pytest.mark.parametrize("kernels", [(), ("--kernels",)], ids=["entries", "kernels"])
@pytest.mark.parametrize("form", ["files", "folder"])
def test_the_device_code_of_intact_wheels_is_listed(
    wheels: list[Path], run: Run, form: str, kernels: tuple[str, ...]
) -> None:
    finished = run("device", "list", *kernels, *(wheels if form == "files" else [wheels[0].parent]))
    assert f"warning: {wheels[1]}: is a " in finished.stderr
    assert [name for name in ("a/liba.so", "c/libc.so") if name not in finished.stdout] == []
    assert finished.status == 1


@pytest.mark.parametrize("kernels", [(), ("--kernels",)], ids=["entries", "kernels"])
@pytest.mark.parametrize("form", ["files", "folder"])
def test_device_code_of_intact_libraries_is_listed(tree: Path, run: Run, form: str, kernels: tuple[str, ...]) -> None:
    finished = run("device", "list", *kernels, *(sorted(tree.iterdir()) if form == "files" else [tree]))
    assert finished.stderr.startswith(f"warning: {tree}/libb.so: ")
    assert [name for name in ("liba.so", "libc.so") if name not in finished.stdout] == []
    assert finished.status == 1


def test_split_processes_all_intact_wheels(wheels: list[Path], run: Run, tmp_path: Path) -> None:
    finished = run("device", "split", *wheels, "--output", tmp_path / "out")
    assert DAMAGED in finished.stderr
    assert {path.name.partition("-")[0] for path in (tmp_path / "out").iterdir()} == {
        f"{name}{part}" for name in "ac" for part in ("", "_device_gfx1030", "_device_gfx906", "_device_gfx90a")
    }
    assert finished.status == 2


def test_diff_compares_all_intact_wheels(wheels: list[Path], run: Run, tmp_path: Path) -> None:
    make_wheel(tmp_path / "old", "a", {"a/__init__.py": b""})
    shutil.copy(wheels[2], tmp_path / "old")
    finished = run("diff", tmp_path / "old", wheels[0].parent)
    assert DAMAGED in finished.stderr
    assert "a/liba.so" in finished.stdout
    assert finished.status == 2


def test_the_html_report_includes_all_intact_wheels(wheels: list[Path], run: Run, tmp_path: Path) -> None:
    finished = run("report", wheels[0].parent, "--output", tmp_path / "page.html")
    assert DAMAGED in finished.stderr
    page = (tmp_path / "page.html").read_text()
    assert [name for name in ("a/liba.so", "c/libc.so") if name not in page] == []
    assert finished.status == 2


@pytest.mark.parametrize("form", ["files", "folder"])
def test_verify_checks_all_intact_wheels(wheels: list[Path], run: Run, form: str) -> None:
    finished = run("verify", *(wheels if form == "files" else [wheels[0].parent]))
    assert f"damaged {wheels[1]}: is a damaged archive (File is not a zip file)" in finished.stdout
    assert [line.endswith(": good") for line in finished.stdout.splitlines() if " wheel, 6 files" in line] == [True] * 2
    assert finished.status == 1


def test_publish_refuses_a_set_with_a_damaged_wheel(wheels: list[Path], run: Run, tmp_path: Path) -> None:
    finished = run("publish", wheels[0].parent, tmp_path / "store")
    assert (finished.status, DAMAGED in finished.stderr) == (2, True)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    "command", [["device", "extract"], ["device", "split"], ["runpath", "set", "$ORIGIN"]], ids=" ".join
)
def test_commands_on_a_whole_folder_write_nothing_if_one_file_is_damaged(
    tree: Path, run: Run, tmp_path: Path, command: list[str]
) -> None:
    given = sorted(tree.iterdir()) if command[0] == "runpath" else [tree]
    finished = run(*command, *given, "--output", tmp_path / "out")
    assert (finished.status, f"{tree}/libb.so: " in finished.stderr) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["files", "folder"])
def test_repair_processes_all_intact_wheels(wheels: list[Path], run: Run, tmp_path: Path, form: str) -> None:
    finished = run("repair", *(wheels if form == "files" else [wheels[0].parent]), "--output", tmp_path / "out")
    assert DAMAGED in finished.stderr
    assert [path.name[:1] for path in sorted((tmp_path / "out").iterdir())] == ["a", "c"]
    assert finished.status == 2


def test_a_wheel_with_a_damaged_member_does_not_prevent_repair_of_the_others(
    wheels: list[Path], run: Run, tmp_path: Path
) -> None:
    data = bytearray(wheels[0].read_bytes())
    data[data.index(b"liba.so") + 5000] ^= 0xFF
    wheels[0].write_bytes(data)
    finished = run("repair", wheels[0], wheels[2], "--output", tmp_path / "out")
    assert f"{wheels[0]}!a/liba.so" in finished.stderr
    assert [path.name[:1] for path in (tmp_path / "out").iterdir()] == ["c"]
    assert finished.status == 2


def test_an_index_lists_all_intact_wheels(wheels: list[Path], run: Run, tmp_path: Path) -> None:
    finished = run("index", wheels[0].parent, "--output", tmp_path / "simple")
    assert DAMAGED in finished.stderr
    assert sorted(path.parent.name for path in (tmp_path / "simple").glob("*/index.html")) == ["a", "c"]
    assert finished.status == 2


def test_all_intact_artifacts_are_listed(run: Run, tmp_path: Path) -> None:
    for component in COMPONENTS:
        shutil.copy(SAMPLE_SDK / f"base_{component}_generic.tar.xz", tmp_path)
    damaged = tmp_path / "base_lib_generic.tar.xz"
    damaged.write_bytes(damaged.read_bytes()[:200])
    finished = run("artifacts", "list", tmp_path)
    assert f"{damaged}: is truncated" in finished.stderr
    assert [name for name in COMPONENTS if f" {name} " in finished.stdout] == ["dev", "run"]
    assert finished.status == 2


def test_a_baseline_is_not_written_if_an_input_is_unreadable(wheels: list[Path], run: Run, tmp_path: Path) -> None:
    finished = run("audit", *wheels, "--baseline", tmp_path / "known.json", "--update-baseline")
    assert (finished.status, DAMAGED in finished.stderr) == (2, True)
    assert not (tmp_path / "known.json").exists()


def test_the_device_code_of_intact_members_is_listed(run: Run, tmp_path: Path) -> None:
    library = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
    damaged = b"__CLANG_OFFLOAD_BUNDLE__" + b"\xff" * 60
    finished = run(
        "device", "list", make_wheel(tmp_path, "a", {"a/a.so": library, "a/b.co": damaged, "a/c.so": library})
    )
    assert [name for name in ("a.so", "c.so") if name not in finished.stdout] == []
    assert (finished.status, "b.co" in finished.stderr) == (1, True)


@pytest.fixture
def release(sample_dist: Path, tmp_path: Path) -> Path:
    """Return the wheels of an SDK, of which the core's is cut off."""
    folder = tmp_path / "dist"
    shutil.copytree(sample_dist, folder)
    (core,) = folder.glob("rocm_sdk_core-*.whl")
    core.write_bytes(core.read_bytes()[:20000])
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--closed",)], ids=["open", "closed"])
def test_damaged_wheels_cause_no_missing_library_findings(release: Path, run: Run, options: tuple[str, ...]) -> None:
    finished = run("audit", release, *options)
    assert finished.stdout.endswith(" rules: 0 errors, 0 warnings, 0 notes\n")
    error, note = finished.stderr.splitlines()
    assert re.search(r"rocm_sdk_core-.*: is a damaged archive", error)
    assert note == "couldn't check what other packages need from these unreadable packages: rocm-sdk-core"
    assert finished.status == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [("audit",), ("repair", "-o", "OUT"), ("index", "-o", "OUT"), ("targets", "coherent"), ("report", "-o", "OUT")],
    ids=lambda words: words[0],
)
def test_the_damage_is_reported_on_the_first_line(release: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    words = [str(tmp_path / "out") if word == "OUT" else word for word in command]
    finished = subprocess.run(
        [sys.executable, "-m", "rocwheel", *words, release],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = [line for line in finished.stdout.splitlines() if not line.startswith(("reading", "writing", "measuring"))]
    assert (lines[0].startswith("error: "), finished.returncode) == (True, 2), lines
