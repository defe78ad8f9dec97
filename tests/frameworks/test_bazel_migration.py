"""A workspace of rocm-jax's structure, built by real Bazel before and after `rocwheel jax migrate`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from email.parser import BytesParser
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from elftools.elf.elffile import ELFFile

from tests.frameworks.bazel_workspace import NEEDS_BAZEL
from tests.support.bazel import STARTUP
from tests.support.command_line import rocwheel, run_json
from tests.support.rocm_jax_checkout import RocmJaxCheckout, commit_all, make_rocm_jax_checkout
from tests.support.tools import system_programs

TOOLS = Path(sys.executable).parent
VERSION = "0.12.0"
PJRT = f"jax_rocm7_pjrt-{VERSION}"
PLUGIN = f"jax_rocm7_plugin-{VERSION}"
ROCM = [
    "_rocm_sdk_libraries/lib",
    "_rocm_sdk_core/lib",
    "_rocm_sdk_core/lib/rocm_sysdeps/lib",
    "_rocm_sdk_core/lib/host-math/lib",
    "_rocm_sdk_core/lib/llvm/lib",
]

pytestmark = [
    pytest.mark.slow,
    *NEEDS_BAZEL,
    pytest.mark.skipif(not (TOOLS / "patchelf").exists(), reason="patchelf is not installed"),
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
]


class Migrated(msgspec.Struct, frozen=True):
    """The wheels that the old builders made, and those of the migrated workspace."""

    checkout: RocmJaxCheckout
    before: Path
    after: Path


@pytest.fixture(scope="module")
def migrated(sample_dist: Path, rocm_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Migrated:
    folder = tmp_path_factory.mktemp("migrated")
    made = make_rocm_jax_checkout(folder)
    write_user_settings(made.workspace, folder / "bazel", rocm_path)
    dist = made.workspace / "dist"
    try:
        old = [sys.executable, "build/build.py", "build", f"--rocm_path={rocm_path}"]
        run(made.workspace, *old, tools=["patchelf"])
        before = dist.rename(folder / "before")
        applied = rocwheel("jax", "migrate", made.folder, "--jax", made.jax, "--apply")
        assert applied.returncode == 0, applied.stderr
        commit_all(made.folder)
        run(made.workspace, "make", "dist", tools=["rocwheel"])
    finally:
        run(made.workspace, "bazel", "shutdown", tools=[])
    return Migrated(made, before, dist)


def write_user_settings(workspace: Path, output_root: Path, rocm_path: Path) -> None:
    """Write what is this machine's own: one job, its ROCm and its compiler."""
    lines = [
        f"startup --output_user_root={output_root}",
        *(f"startup {option}" for option in STARTUP),
        "build --jobs=1",
        f"build --repo_env=ROCWHEEL_PYTHON={sys.executable}",
        f"build:rocm_build --repo_env=ROCM_PATH={rocm_path}",
        f"build:rocm_build --action_env=ROCM_PATH={rocm_path}",
        "build:rocm_build --repo_env=CC=/usr/bin/gcc",
        "build:rocm_build --repo_env=BAZEL_COMPILER=/usr/bin/gcc",
    ]
    (workspace / ".bazelrc.user").write_text("".join(f"{line}\n" for line in lines))


def run(folder: Path, *command: str, tools: list[str]) -> None:
    """Run a command with nothing on PATH but the system's programs but patchelf, and some of the environment's."""
    programs = folder.parent.parent / "-".join(["programs", *tools])
    if not programs.exists():
        system_programs(programs, without={"patchelf", "rocwheel"})
        for name in tools:
            (programs / name).symlink_to(TOOLS / name)
    variables = {"PATH": str(programs), "HOME": str(programs.parent)}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def wheel(folder: Path, stem: str) -> dict[str, bytes]:
    """Return the members of a wheel; of those for several Pythons, the first one's."""
    path = min(folder.glob(f"{stem}-*.whl"))
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def code(data: bytes) -> dict[str, Any]:
    """Return what a library is, but for its run path and the layout that follows from it."""
    file = ELFFile(BytesIO(data))
    sections: dict[str, Any] = {section.name: section for section in file.iter_sections()}
    dynamic, symbols = sections[".dynamic"], sections[".dynsym"]
    return {
        "needed": [tag.needed for tag in dynamic.iter_tags("DT_NEEDED")],
        "symbols": sorted((symbol.name, symbol["st_info"]["bind"]) for symbol in symbols.iter_symbols()),
        "instructions": len(sections[".text"].data()),
        "constants": sections[".rodata"].data() if ".rodata" in sections else b"",
    }


def run_path(data: bytes) -> list[str]:
    dynamic: Any = ELFFile(BytesIO(data)).get_section_by_name(".dynamic")
    (tag,) = dynamic.iter_tags("DT_RUNPATH")
    return str(tag.runpath).split(":")


@pytest.mark.parametrize(
    ("stem", "added"), [(PJRT, set()), (PLUGIN, {"jax_rocm7_plugin/__init__.py"})], ids=["pjrt", "plugin"]
)
def test_the_wheels_have_the_same_files_and_metadata(migrated: Migrated, stem: str, added: set[str]) -> None:
    before, after = wheel(migrated.before, stem), wheel(migrated.after, stem)
    assert set(after) - set(before) == added
    assert set(before) - set(after) == set()
    same = [name for name in before if name.endswith(("__init__.py", "LICENSE.txt", "entry_points.txt"))]
    assert {name: before[name].split() for name in same} == {name: after[name].split() for name in same}
    old, new = (BytesParser().parsebytes(files[f"{stem}.dist-info/METADATA"]) for files in (before, after))
    for field in ("Name", "Version", "Requires-Python", "Requires-Dist", "License-File"):
        assert old.get_all(field) == new.get_all(field), field


@pytest.mark.parametrize("stem", [PJRT, PLUGIN])
def test_the_commits_are_the_same_but_for_the_checkout(migrated: Migrated, stem: str) -> None:
    commits = []
    for folder in (migrated.before, migrated.after):
        (text,) = (data for name, data in wheel(folder, stem).items() if name.endswith("commit_info.py"))
        values: dict[str, dict[str, str]] = {}
        exec(text, values)
        assert len(values["commits"].pop("ROCm/rocm-jax")) == 40
        commits.append(values["commits"])
    assert commits[0] == commits[1]
    assert commits[0].keys() == {"ROCm/xla", "jax"}


@pytest.mark.parametrize(("stem", "count"), [(PJRT, 1), (PLUGIN, 8)])
def test_the_libraries_are_the_same_but_for_their_run_paths(migrated: Migrated, stem: str, count: int) -> None:
    before, after = wheel(migrated.before, stem), wheel(migrated.after, stem)
    libraries = [name for name in before if name.endswith(".so")]
    assert len(libraries) == count
    for name in libraries:
        assert code(before[name]) == code(after[name]), name
        up = "/.." * name.count("/")
        assert run_path(before[name])[:2] == [f"$ORIGIN{up}/_rocm_sdk_core/lib", "$ORIGIN/../rocm/lib"]
        assert run_path(after[name]) == [*(f"$ORIGIN{up}/{entry}" for entry in ROCM), "/opt/rocm/lib"]


def test_the_audit_finds_no_error_after_the_migration(migrated: Migrated, sample_dist: Path) -> None:
    found = {}
    for folder in (migrated.before, migrated.after):
        document = run_json("audit", folder, "--with", sample_dist, cwd=folder)
        found[folder] = {(finding["severity"], finding["rule"]) for finding in document["findings"]}
    assert ("error", "elf-in-purelib") in found[migrated.before]
    # The folder of the system is one that the old builders gave patchelf; that neither wheel requires the SDK's
    # packages is meant as well.
    assert found[migrated.after] == {("warning", "run-path-absolute"), ("warning", "undeclared-requirement")}


def test_there_is_a_wheel_for_each_python_of_the_settings(migrated: Migrated) -> None:
    assert sorted(path.name.rpartition("-")[0] for path in migrated.after.iterdir()) == [
        f"{PJRT}-py3-none",
        f"{PLUGIN}-cp311-cp311",
        f"{PLUGIN}-cp312-cp312",
    ]


def test_nothing_of_the_workspace_calls_patchelf_any_more(migrated: Migrated) -> None:
    search = ["git", "-C", str(migrated.checkout.workspace), "grep", "-l", "patchelf"]
    assert subprocess.run(search, capture_output=True, text=True, check=False).stdout == ""
