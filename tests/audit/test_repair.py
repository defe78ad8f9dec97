"""Repairing wheels: what changes, what stays to the byte, and that the result loads."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import zipfile
from email import message_from_bytes
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from rocwheel.audit.settings import Configuration
from rocwheel.binary.elf.facts import read_elf
from rocwheel.demo.demo import SAMPLE_SDK
from rocwheel.distributions.zip.reader import read_directory
from rocwheel.installed.environments import split_environments
from rocwheel.packages.job import BuildJob, PlanJob
from rocwheel.repair.options import Pin, RepairOptions
from rocwheel.repair.plan import RepairPlanner
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.trees import library, package
from tests.support.trees import tree as installed
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from tests.support.command_line import Run


pytestmark = needs_compiler

WRONG = "$ORIGIN/../rocm/lib:local/lib:/opt/rocm/lib"


@pytest.fixture
def sdk(tmp_path: Path) -> Path:
    """Return a wheel with two libraries of an SDK, the second in a folder of its own."""
    tree = build_tree(
        tmp_path / "sdk",
        Lib("lib/libamdhip64.so.7", ("librocm_sysdeps_drm.so.2",), "$ORIGIN/rocm_sysdeps/lib"),
        Lib("lib/rocm_sysdeps/lib/librocm_sysdeps_drm.so.2"),
    )
    files = {f"_rocm_sdk_core/{path.relative_to(tree)}": path for path in sorted(tree.rglob("*.so.*"))}
    return make_wheel(
        tmp_path / "sdk-dist", "rocm_sdk_core", files, version="7.1.2", tag="py3-none-manylinux_2_5_x86_64"
    )


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """Return a wheel with one wrong library, one right one, and a tag that promises too little and too much."""
    tree = build_tree(
        tmp_path / "plugin",
        Lib(
            "_wrong.so", ("libamdhip64.so.7", "librocm_sysdeps_drm.so.2"), "$ORIGIN/../rocm/lib:local/lib:/opt/rocm/lib"
        ),
        Lib("_right.so", ("libhelp.so",), "$ORIGIN"),
        Lib("libhelp.so"),
    )
    files: dict[str, Path | bytes] = {f"plugin/{path.name}": path for path in sorted(tree.glob("*.so"))}
    files["plugin/__init__.py"] = b"answer = 42\n"
    return make_wheel(tmp_path / "dist", "plugin", files, is_purelib=True)


def repaired_plugin(folder: Path) -> Path:
    (found,) = folder.glob("plugin-*.whl")
    return found


def test_the_repaired_wheel_has_no_findings_and_loads_in_an_empty_environment(
    run: Run, plugin: Path, sdk: Path, tmp_path: Path
) -> None:
    assert run("audit", plugin, "--with", sdk).status == 1
    done = run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out", "--pin", "minor")
    assert done.status == 0, done.stderr
    repaired = repaired_plugin(tmp_path / "out")
    assert run("audit", repaired, "--with", sdk).stdout.splitlines()[-1].endswith("0 errors, 0 warnings, 0 notes")
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", f"--find-links={sdk.parent}"]
    subprocess.run([*pip, "--target", site, repaired], check=True)
    load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    for name in ("_wrong.so", "_right.so"):
        subprocess.run([sys.executable, "-c", load, site / "plugin" / name], env={}, cwd="/", check=True)


def test_wrong_run_paths_become_the_shortest_list_and_right_files_stay(
    run: Run, plugin: Path, sdk: Path, tmp_path: Path
) -> None:
    run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out")
    before, after = members(plugin), members(repaired_plugin(tmp_path / "out"))
    assert read_elf(after["plugin/_wrong.so"], name="wrong").runpath == (
        "$ORIGIN/../_rocm_sdk_core/lib:$ORIGIN/../_rocm_sdk_core/lib/rocm_sysdeps/lib"
    )
    info = {f"plugin-1.0.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD")}
    assert {name for name in before if before[name] != after[name]} == {"plugin/_wrong.so", *info}
    assert before.keys() == after.keys()


def test_members_that_stay_are_not_packed_anew(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out")

    def packed(wheel: Path, name: str) -> bytes:
        member = next(member for member in read_directory(wheel) if member.name == name)
        with member.packed.map() as data:
            return bytes(data)

    for name in ("plugin/_right.so", "plugin/__init__.py", "plugin-1.0.dist-info/licenses/LICENSE"):
        assert packed(plugin, name) == packed(repaired_plugin(tmp_path / "out"), name)


def test_metadata_and_tags_say_what_the_files_ask_for(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out", "--pin", "exact")
    repaired = repaired_plugin(tmp_path / "out")
    assert repaired.name == "plugin-1.0-py3-none-manylinux_2_5_x86_64.whl"
    texts = members(repaired)
    metadata = message_from_bytes(texts["plugin-1.0.dist-info/METADATA"])
    assert metadata.get_all("Requires-Dist") == ["rocm-sdk-core==7.1.2"]
    assert metadata.get_payload() == "A description.\n"
    wheel = message_from_bytes(texts["plugin-1.0.dist-info/WHEEL"])
    assert (wheel["Tag"], wheel["Root-Is-Purelib"]) == ("py3-none-manylinux_2_5_x86_64", "false")


def test_a_second_repair_copies_the_wheel_to_the_byte(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "once")
    once = repaired_plugin(tmp_path / "once")
    assert run("repair", once, "--with", sdk, "--dest-dir", tmp_path / "twice").stdout == f"{once.name}: no changes\n"
    assert once.read_bytes() == repaired_plugin(tmp_path / "twice").read_bytes()


def test_the_same_repair_gives_the_same_bytes_whenever_it_runs(
    run: Run, plugin: Path, sdk: Path, tmp_path: Path
) -> None:
    run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "a")
    os.utime(plugin, (0, 0))
    run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "b")
    assert repaired_plugin(tmp_path / "a").read_bytes() == repaired_plugin(tmp_path / "b").read_bytes()


def test_a_dry_run_shows_the_changes_and_writes_nothing(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    done = run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out", "--dry-run")
    assert done.status == 0
    assert done.stdout == (
        "plugin-1.0-py3-none-linux_x86_64.whl -> plugin-1.0-py3-none-manylinux_2_5_x86_64.whl: 4 changes\n"
        "  plugin/_wrong.so: RUNPATH\n"
        "    - $ORIGIN/../rocm/lib:local/lib:/opt/rocm/lib\n"
        "    + $ORIGIN/../_rocm_sdk_core/lib:$ORIGIN/../_rocm_sdk_core/lib/rocm_sysdeps/lib\n"
        "  plugin-1.0.dist-info/METADATA: Requires-Dist\n"
        "    + rocm-sdk-core\n"
        "  plugin-1.0.dist-info/WHEEL: Tag\n"
        "    - py3-none-linux_x86_64\n"
        "    + py3-none-manylinux_2_5_x86_64\n"
        "  plugin-1.0.dist-info/WHEEL: Root-Is-Purelib\n"
        "    - true\n"
        "    + false\n"
    )
    assert not (tmp_path / "out").exists()


def test_check_fails_where_anything_would_change(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    assert run("repair", plugin, "--with", sdk, "--check").status == 1
    run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out")
    assert run("repair", repaired_plugin(tmp_path / "out"), "--with", sdk, "--check").status == 0


def test_what_no_repair_mends_is_told_and_fails(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libnowhere.so.6",)))
    wheel = make_wheel(tmp_path / "dist", "old", {"old/a.so": tree / "a.so"})
    done = run("repair", wheel, "--dest-dir", tmp_path / "out", "--quiet")
    assert done.status == 1
    assert done.stderr.splitlines() == [
        (
            "not mended old-1.0-py3-none-linux_x86_64.whl: old/a.so needs libnowhere.so.6, but no package, "
            "SDK library or allowed system library provides it"
        )
    ]


def test_what_was_built_with_another_sdk_gets_no_worse_and_is_told(run: Run, tmp_path: Path) -> None:
    libraries = ("libamdhip64.so.6", "librccl.so.1")
    tree = build_tree(tmp_path / "tree", Lib("a.so", libraries, "/../rocm/lib:/opt/rocm/lib:/home/me/lib"))
    wheel = make_wheel(tmp_path / "dist", "old", {"old/a.so": tree / "a.so"})
    done = run("repair", wheel, "--dest-dir", tmp_path / "out", "--quiet")
    assert done.status == 1
    name = "not mended old-1.0-py3-none-linux_x86_64.whl:"
    assert done.stderr.splitlines() == [
        (
            f"{name} old/a.so needs libamdhip64.so.6, but no package, SDK library or allowed system library "
            "provides it; they provide libamdhip64.so.7 (only a host that has it in /opt/rocm/lib finds it)"
        ),
        (
            f"{name} is for another version of ROCm's packages, by libamdhip64.so.6 (known: libamdhip64.so.7): give "
            "those that it was built with by --with; Requires-Dist gets none of those taken for granted"
        ),
    ]
    (repaired,) = (tmp_path / "out").glob("*.whl")
    after = members(repaired)
    assert read_elf(after["old/a.so"], name="a").runpath == "$ORIGIN/../_rocm_sdk_libraries/lib:/opt/rocm/lib"
    assert b"Requires-Dist" not in after["old-1.0.dist-info/METADATA"]
    assert run("repair", repaired, "--dry-run").stdout == f"{repaired.name}: no changes\n"


def test_the_sdk_that_a_wheel_was_built_with_makes_it_whole(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.6",), "/opt/rocm/lib"), Lib("libamdhip64.so.6"))
    wheel = make_wheel(tmp_path / "dist", "old", {"old/a.so": tree / "a.so"})
    core = make_wheel(
        tmp_path / "sdk",
        "rocm_sdk_core",
        {"_rocm_sdk_core/lib/libamdhip64.so.6": tree / "libamdhip64.so.6"},
        version="6.4",
    )
    done = run("repair", wheel, "--with", core, "--pin", "minor", "--dest-dir", tmp_path / "out", "--quiet")
    assert (done.status, done.stderr) == (0, "")
    (repaired,) = (tmp_path / "out").glob("*.whl")
    after = members(repaired)
    assert read_elf(after["old/a.so"], name="a").runpath == "$ORIGIN/../_rocm_sdk_core/lib"
    assert b"Requires-Dist: rocm-sdk-core==6.4.*\n" in after["old-1.0.dist-info/METADATA"]


def test_requirements_of_packages_that_are_not_at_hand_are_told_to_be_open(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7",)))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"})
    done = run("repair", wheel, "--dry-run")
    assert done.status == 0
    assert done.stderr.splitlines() == [
        (
            "note ext-1.0-py3-none-linux_x86_64.whl: Requires-Dist: rocm-sdk-core is of any version, though its "
            "libraries are taken to be ROCm 7's: give rocm-sdk-core --with, and --pin"
        )
    ]
    assert run("repair", wheel, "--dry-run", "--quiet").stderr == ""


def test_an_initializer_loads_what_the_libraries_need_in_their_order(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libhipblas.so.3", "libamdhip64.so.7", "librocsolver.so.0")))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so", "ext/__init__.py": b""})
    run("repair", wheel, "--dest-dir", tmp_path / "out", "--init")
    (repaired,) = (tmp_path / "out").glob("*.whl")
    calls: list[dict[str, object]] = []

    class Sdk:
        @staticmethod
        def initialize_process(**arguments: object) -> None:
            calls.append(arguments)

    space: dict[str, object] = {}
    exec(members(repaired)["ext/_rocm_init.py"], space)
    sys.modules["rocm_sdk"] = Sdk  # type: ignore[assignment]
    try:
        space["initialize"]()  # type: ignore[operator]
    finally:
        del sys.modules["rocm_sdk"]
    assert calls == [{"preload_shortnames": ["hipblas", "amdhip64"]}]


@pytest.mark.parametrize(
    ("pin", "version"), [("exact", "7.1.2"), ("minor", "7.1.*")], ids=["exactly", "to major and minor"]
)
def test_an_initializer_is_locked_to_the_version_at_hand(
    run: Run, plugin: Path, sdk: Path, tmp_path: Path, pin: str, version: str
) -> None:
    run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out", "--init", "--pin", pin)
    text = members(repaired_plugin(tmp_path / "out"))["plugin/_rocm_init.py"].decode()
    assert f'        check_version="{version}",\n        fail_on_version_mismatch=True,\n' in text


def test_the_old_rpath_can_be_asked_for(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out", "--rpath")
    after = members(repaired_plugin(tmp_path / "out"))
    elf = read_elf(after["plugin/_right.so"], name="right")
    assert (elf.rpath, elf.runpath) == ("$ORIGIN", None)


def test_the_wheel_itself_is_never_overwritten(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out")
    repaired = repaired_plugin(tmp_path / "out")
    before = repaired.read_bytes()
    done = run("repair", repaired, "--with", sdk, "--dest-dir", tmp_path / "out")
    assert done.status == 2
    assert done.stderr.endswith(
        f"error: {tmp_path / 'out'}: holds {repaired.name} itself; expected another folder. Change --dest-dir.\n"
    )
    assert repaired.read_bytes() == before


def test_a_wheel_with_a_symlink_is_refused_and_nothing_is_left(
    run: Run, plugin: Path, sdk: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(plugin, "a") as archive:
        entry = zipfile.ZipInfo("plugin/link.so")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "_right.so")
    done = run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out")
    assert done.status == 2
    assert f"error: {plugin}!plugin/link.so: a symlink; expected files alone. Build the wheel without." in done.stderr
    assert not (tmp_path / "out").exists()


def test_every_member_that_no_repair_mends_is_refused_and_named(run: Run, plugin: Path, tmp_path: Path) -> None:
    library = members(plugin)["plugin/_right.so"]
    with zipfile.ZipFile(plugin, "a") as archive:
        archive.writestr("plugin/cut.so", library[: len(library) // 2])
        archive.writestr("../evil.so", library)
        archive.writestr("plugin/_right.so/x.py", b"")
    done = run("repair", plugin, "--dest-dir", tmp_path / "out")
    assert done.status == 2
    (first, *problems) = done.stderr.splitlines()
    assert first == "error: wheels that no repair mends: 3 problems"
    assert problems[0].startswith(f"  {plugin}!plugin/cut.so: ")
    assert problems[0].endswith("expected a whole ELF file. Build the wheel again.")
    outside = "a path that leads out of the wheel; expected a place inside the environment"
    clash = "plugin/_right.so is a file, and the folder of plugin/_right.so/x.py; expected one file at each path"
    assert problems[1:] == [
        f"  {plugin}!../evil.so: {outside}. Build the wheel again.",
        f"  {plugin}!plugin/_right.so: {clash}. Build the wheel again.",
    ]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("mode", ["--check", "--dry-run"])
def test_what_is_refused_is_refused_without_writing_too(run: Run, plugin: Path, mode: str) -> None:
    with zipfile.ZipFile(plugin, "a") as archive:
        archive.writestr("../evil.so", b"")
    assert run("repair", plugin, mode).status == 2


def test_signatures_of_another_record_are_dropped_and_told(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    info = "plugin-1.0.dist-info"
    with zipfile.ZipFile(plugin, "a") as archive:
        archive.writestr(f"{info}/RECORD.jws", b"{}")
        archive.writestr(f"{info}/RECORD.p7s", b"signed")
    done = run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out")
    assert done.stdout.splitlines()[-4:] == [
        f"  {info}/RECORD.jws: dropped, since it signs another RECORD: sign the repaired wheel",
        "    - a signature of RECORD",
        f"  {info}/RECORD.p7s: dropped, since it signs another RECORD: sign the repaired wheel",
        "    - a signature of RECORD",
    ]
    assert not {f"{info}/RECORD.jws", f"{info}/RECORD.p7s"} & members(repaired_plugin(tmp_path / "out")).keys()


def test_signatures_of_a_wheel_that_is_right_stay(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out")
    repaired = repaired_plugin(tmp_path / "out")
    with zipfile.ZipFile(repaired, "a") as archive:
        archive.writestr("plugin-1.0.dist-info/RECORD.jws", b"{}")
    run("repair", repaired, "--with", sdk, "--dest-dir", tmp_path / "again")
    assert repaired_plugin(tmp_path / "again").read_bytes() == repaired.read_bytes()


@pytest.mark.parametrize("tag", ["rpath", "runpath"])
def test_packages_as_build_makes_them_need_no_repair(run: Run, tmp_path: Path, tag: str) -> None:
    recipe = tmp_path / "recipe.toml"
    text = (files("rocwheel.packages.recipe") / "rocm.toml").read_text()
    recipe.write_text(text.replace('run-path-tag = "rpath"', f'run-path-tag = "{tag}"'))
    BuildJob(PlanJob(SAMPLE_SDK, recipe=recipe), tmp_path / "made").run()
    done = run("repair", *sorted((tmp_path / "made/dist").glob("*.whl")), "--check")
    assert (done.status, {line.rpartition(": ")[2] for line in done.stdout.splitlines()}) == (0, {"no changes"})


@pytest.mark.parametrize(
    ("requires", "kept"), [("rocm-sdk-core==7.1.2", True), ("rocm-sdk-core", False)], ids=["one release", "others"]
)
def test_rpaths_stay_as_long_as_they_lead_into_packages_of_one_release(
    run: Run, sdk: Path, tmp_path: Path, requires: str, kept: bool
) -> None:
    lib = Lib("a.so", ("libamdhip64.so.7",), "$ORIGIN/../_rocm_sdk_core/lib:/opt/rocm/lib", is_rpath=True)
    tree = build_tree(tmp_path / "tree", lib)
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"}, requires=(requires,))
    run("repair", wheel, "--with", sdk, "--dest-dir", tmp_path / "out")
    (repaired,) = (tmp_path / "out").glob("*.whl")
    elf = read_elf(members(repaired)["ext/a.so"], name="a")
    to_core = "$ORIGIN/../_rocm_sdk_core/lib"
    assert (elf.rpath, elf.runpath) == ((to_core, None) if kept else (None, to_core))
    assert "rpath-into-others" not in run("audit", repaired, "--with", sdk).stdout
    assert run("repair", repaired, "--with", sdk, "--check").status == 0


def test_a_right_rpath_within_the_package_stays_beside_runpaths(run: Run, tmp_path: Path) -> None:
    tree = build_tree(
        tmp_path / "tree",
        Lib("old.so", ("libhelp.so",), "$ORIGIN", is_rpath=True),
        Lib("new.so", ("libhelp.so",), "$ORIGIN"),
        Lib("wrong.so", ("libhelp.so",), "/opt/lib"),
        Lib("libhelp.so"),
    )
    files: dict[str, Path | bytes] = {f"demo/{path.name}": path for path in sorted(tree.glob("*.so"))}
    wheel = make_wheel(tmp_path / "dist", "demo", files)
    run("repair", wheel, "--dest-dir", tmp_path / "out")
    (repaired,) = (tmp_path / "out").iterdir()
    before, after = members(wheel), members(repaired)
    assert [name for name in before if name.endswith(".so") and before[name] != after[name]] == ["demo/wrong.so"]


def test_a_useless_runpath_among_rpaths_does_not_turn_them(run: Run, tmp_path: Path) -> None:
    tree = build_tree(
        tmp_path / "tree",
        Lib("old.so", ("libhelp.so",), "$ORIGIN", is_rpath=True),
        Lib("none.so", ("libhelp.so",)),
        Lib("libhelp.so", (), "/usr/local/lib"),
    )
    files: dict[str, Path | bytes] = {f"demo/{path.name}": path for path in sorted(tree.glob("*.so"))}
    run("repair", make_wheel(tmp_path / "dist", "demo", files), "--dest-dir", tmp_path / "out")
    (repaired,) = (tmp_path / "out").iterdir()
    found = {name: read_elf(data, name=name) for name, data in members(repaired).items() if name.endswith(".so")}
    assert {name: (elf.rpath, elf.runpath) for name, elf in found.items()} == {
        "demo/old.so": ("$ORIGIN", None),
        "demo/none.so": ("$ORIGIN", None),
        "demo/libhelp.so": (None, None),
    }


def test_what_the_audit_still_finds_afterwards_is_told_and_fails(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("_ext.so", options=("-Wl,-z,execstack",)))
    done = run("repair", make_wheel(tmp_path / "dist", "demo", {"demo/_ext.so": tree / "_ext.so"}), "--dry-run")
    assert done.status == 1
    assert "demo-1.0-py3-none-linux_x86_64.whl: demo/_ext.so asks for an executable stack" in (
        " ".join(done.stderr.split())
    )


@pytest.mark.parametrize("init", [(), ("--init",)], ids=["requirements", "requirements and module"])
def test_a_pin_without_packages_to_take_versions_from_is_refused(
    run: Run, plugin: Path, sdk: Path, tmp_path: Path, init: tuple[str, ...]
) -> None:
    command = ("repair", plugin, "--pin", "exact", "--dest-dir", tmp_path / "out", *init)
    refused = run(*command)
    assert (refused.status, refused.stdout, (tmp_path / "out").exists()) == (2, "", False)
    found = "uses rocm-sdk-core, which is not there for --pin exact to take a version from"
    assert f"{found}; expected it among the packages that --with gives" in " ".join(refused.stderr.split())
    assert run(*command, "--with", sdk).status == 0


def test_a_module_that_checks_the_version_needs_one(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7",), "$ORIGIN/../_rocm_sdk_core/lib"))
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/a.so": tree / "a.so"}, requires=("rocm-sdk-core==7.2.0",))
    assert run("repair", wheel, "--check", "--pin", "exact", "--init").status == 2
    assert run("repair", wheel, "--dry-run", "--init").status == 0


def test_a_pin_that_has_nothing_to_pin_is_told(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/__init__.py": b""}, tag="py3-none-any")
    done = run("repair", wheel, "--check", "--pin", "minor")
    told = "--pin minor pins nothing: the wheel gets no requirement of a package given by '--with'"
    assert (done.status, told in " ".join(done.stderr.split())) == (0, True)


@pytest.mark.parametrize("place", ["file", "file/out", "dangling"])
def test_a_destination_that_is_no_folder_is_refused_before_the_work(
    run: Run, plugin: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    culprit = tmp_path / place.partition("/")[0]
    expected = "expected one for the repaired wheels. Change --dest-dir."
    assert run("repair", plugin, "--dest-dir", tmp_path / place) == (
        2,
        "",
        f"error: {culprit}: no folder; {expected}\n",
    )


def _with_members(wheel: Path, target: Path, changes: dict[str, bytes | None]) -> Path:
    """Write a copy of a wheel in which members have another content, or none and are absent."""
    target.mkdir()
    contents = members(wheel) | changes
    with zipfile.ZipFile(target / wheel.name, "w") as archive:
        for name, data in contents.items():
            if data is not None:
                archive.writestr(name, data)
    return target / wheel.name


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"WHEEL": None}, "plugin-1.0.dist-info has no WHEEL"),
        ({"WHEEL": b""}, "WHEEL has no Wheel-Version"),
        ({"METADATA": None}, "plugin-1.0.dist-info has no METADATA"),
        ({"METADATA": b"Name: \xff\n"}, "METADATA has no Name"),
        ({"METADATA": b"Metadata-Version: 2.1\nName: other\nVersion: 1.0\n"}, "METADATA is of other 1.0, which"),
    ],
    ids=["no WHEEL", "empty WHEEL", "no METADATA", "not UTF-8", "of another"],
)
def test_metadata_that_installers_refuse_is_refused(
    run: Run, plugin: Path, tmp_path: Path, changes: dict[str, bytes | None], expected: str
) -> None:
    inside = {f"plugin-1.0.dist-info/{name}": data for name, data in changes.items()}
    done = run("repair", _with_members(plugin, tmp_path / "bad", inside), "--dest-dir", tmp_path / "out")
    assert done.status == 2
    assert expected in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()


def test_a_metadata_folder_of_another_name_is_refused(run: Run, plugin: Path, tmp_path: Path) -> None:
    wrong = plugin.with_name(plugin.name.replace("plugin", "other"))
    plugin.rename(wrong)
    done = run("repair", wrong, "--check")
    assert (done.status, "has the metadata folder plugin-1.0.dist-info" in " ".join(done.stderr.split())) == (2, True)


def test_a_record_that_is_absent_is_written_anew(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    bare = _with_members(plugin, tmp_path / "bare", {"plugin-1.0.dist-info/RECORD": None})
    assert run("repair", bare, "--with", sdk, "--dest-dir", tmp_path / "out").status == 0
    assert b"plugin/_wrong.so,sha256=" in members(repaired_plugin(tmp_path / "out"))["plugin-1.0.dist-info/RECORD"]


@pytest.mark.parametrize(
    ("platforms", "expected"),
    [
        ("manylinux1_x86_64", "manylinux1_x86_64"),
        ("manylinux_2_17_x86_64.manylinux2014_x86_64", "manylinux_2_17_x86_64.manylinux2014_x86_64"),
        ("manylinux_2_40_x86_64", "manylinux_2_40_x86_64"),
        ("linux_x86_64", "manylinux_2_5_x86_64"),
        ("any", "manylinux_2_5_x86_64"),
        ("manylinux_2_17_aarch64", "manylinux_2_17_aarch64"),
        ("linux_x86_64.musllinux_1_2_x86_64", "manylinux_2_5_x86_64.musllinux_1_2_x86_64"),
    ],
)
def test_tags_that_promise_no_more_than_the_files_hold_stay(
    run: Run, tmp_path: Path, platforms: str, expected: str
) -> None:
    tree = build_tree(tmp_path / "tree", Lib("_ext.so"))
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/_ext.so": tree / "_ext.so"}, tag=f"py3-none-{platforms}")
    run("repair", wheel, "--dest-dir", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [f"demo-1.0-py3-none-{expected}.whl"]


def test_a_damaged_wheel_is_named_with_the_member(run: Run, plugin: Path, tmp_path: Path) -> None:
    member = next(member for member in read_directory(plugin) if member.name == "plugin/_wrong.so")
    data = bytearray(plugin.read_bytes())
    data[member.packed.offset + 40] ^= 0xFF
    plugin.write_bytes(data)
    done = run("repair", plugin, "--dest-dir", tmp_path / "out")
    assert done.status == 2
    assert f"{plugin}!plugin/_wrong.so" in done.stderr
    assert not (tmp_path / "out").exists()


def test_what_is_no_wheel_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no wheel")
    done = run("repair", tmp_path / "notes.txt", "--check")
    assert done == (
        2,
        "",
        f"error: {tmp_path / 'notes.txt'}: no wheel; expected a file whose name ends with .whl\n",
    )


def test_json_tells_what_was_written(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    done = run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out", "--json")
    document = json.loads(done.stdout)
    assert (document["schema"], document["written"]) == ("rocwheel.repair/1", [str(repaired_plugin(tmp_path / "out"))])


def test_a_folder_that_holds_a_wheel_is_refused_under_any_spelling_and_name(
    run: Run, plugin: Path, sdk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(plugin.parent)
    done = run("repair", plugin, "--with", sdk, "--dest-dir", ".")
    assert done.status == 2
    assert done.stderr.endswith(f"error: .: holds {plugin.name} itself; expected another folder. Change --dest-dir.\n")
    assert list(plugin.parent.iterdir()) == [plugin]


def test_two_wheels_that_get_one_name_are_refused_before_anything_is_written(
    run: Run, plugin: Path, sdk: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / plugin.name.replace("linux_x86_64", "manylinux_2_4_x86_64")
    other.write_bytes(plugin.read_bytes())
    done = run("repair", plugin, other, "--with", sdk, "--dest-dir", tmp_path / "out")
    assert done.status == 2
    assert done.stderr.endswith(
        f"error: {other}: gets the name plugin-1.0-py3-none-manylinux_2_5_x86_64.whl as {plugin} does. "
        "Repair them into different folders.\n"
    )
    assert not (tmp_path / "out").exists()


def test_several_wheels_are_repaired_at_once(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7",), "/opt/rocm/lib"))
    other = make_wheel(tmp_path / "dist", "other", {"other/a.so": tree / "a.so"})
    assert run("repair", plugin, other, "--with", sdk, "--dest-dir", tmp_path / "out").status == 0
    assert [path.name.partition("-")[0] for path in sorted((tmp_path / "out").iterdir())] == ["other", "plugin"]


def test_many_libraries_take_few_open_files(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", (), "/opt/rocm/lib"))
    wheel = make_wheel(tmp_path / "dist", "many", {f"many/m{number}.so": tree / "a.so" for number in range(150)})
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) + 100, limits[1]))
    try:
        done = run("repair", wheel, "--dest-dir", tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert done.status == 0, done.stderr
    assert "/opt/rocm" not in run("runpath", "show", next((tmp_path / "out").iterdir())).stdout


def test_modes_of_changed_and_of_kept_members_stay(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out")
    modes = {member.name: oct(member.mode & 0o777) for member in read_directory(repaired_plugin(tmp_path / "out"))}
    assert {modes[f"plugin/{name}"] for name in ("_wrong.so", "_right.so")} == {"0o755"}
    assert modes["plugin/__init__.py"] == "0o644"


def test_an_initializer_is_added_once(run: Run, plugin: Path, sdk: Path, tmp_path: Path) -> None:
    run("repair", plugin, "--with", sdk, "--dest-dir", tmp_path / "out", "--init")
    repaired = repaired_plugin(tmp_path / "out")
    done = run("repair", repaired, "--with", sdk, "--init", "--check")
    assert (done.status, done.stdout) == (0, f"{repaired.name}: no changes\n")


def test_an_initializer_of_other_text_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7",)))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so", "ext/_rocm_init.py": b"# mine\n"})
    done = run("repair", wheel, "--init", "--check")
    assert done.status == 2
    assert done.stderr == (
        f"error: {wheel}!ext/_rocm_init.py: another text than a repair adds. "
        "Leave it out when building, or repair without --init.\n"
    )


def test_an_initializer_needs_a_package_to_be_in(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7",)))
    files: dict[str, Path | bytes] = {"a.so": tree / "a.so", "ext.libs/b.so": tree / "a.so"}
    wheel = make_wheel(tmp_path / "dist", "ext", files)
    done = run("repair", wheel, "--init", "--check")
    assert done.status == 2
    assert done.stderr == (
        f"error: {wheel}: has its libraries in no Python package; expected one that _rocm_init.py can go to. "
        "Repair without --init.\n"
    )


def test_an_initializer_tells_of_libraries_that_it_does_not_load(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libamdhip64.so.7", "librocsolver.so.0", "libc.so.6")))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"})
    run("repair", wheel, "--dest-dir", tmp_path / "out", "--init")
    (repaired,) = (tmp_path / "out").glob("*.whl")
    text = members(repaired)["ext/_rocm_init.py"].decode()
    assert "        # Left to run paths, since rocm_sdk has no names for them: librocsolver.so.0\n" in text


def test_a_wrong_record_alone_is_a_change(run: Run, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "dist", "pure", {"pure/a.py": b"x"}, tag="py3-none-any")
    wheel = _with_members(wheel, tmp_path / "changed", {"pure/a.py": b"y"})
    done = run("repair", wheel, "--check")
    assert done.status == 1
    assert done.stdout == (
        f"{wheel.name}: 1 changes\n"
        "  pure-1.0.dist-info/RECORD: written anew\n"
        "    - RECORD has a different hash for pure/a.py\n"
    )
    run("repair", wheel, "--dest-dir", tmp_path / "out")
    assert run("repair", tmp_path / "out" / wheel.name, "--check").status == 0


@pytest.mark.parametrize("requires", [("other-pkg",), ()], ids=["required, not at hand", "of nobody"])
def test_run_paths_that_alone_may_lead_to_what_is_not_at_hand_stay(
    run: Run, tmp_path: Path, requires: tuple[str, ...]
) -> None:
    needed = ("libother.so.1", "libamdhip64.so.7")
    run_path = "/opt/lib:$ORIGIN/../other_pkg/lib:$ORIGIN/gone:$ORIGIN/external/x:$ORIGIN/../../.."
    tree = build_tree(tmp_path / "tree", Lib("a.so", needed, run_path))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"}, requires=requires)
    run("repair", wheel, "--dest-dir", tmp_path / "out")
    (repaired,) = (tmp_path / "out").glob("*.whl")
    value = read_elf(members(repaired)["ext/a.so"], name="a").runpath
    core = "$ORIGIN/../_rocm_sdk_core/lib"
    kept = ["$ORIGIN/../other_pkg/lib", "$ORIGIN/gone", core] if requires else [core, "/opt/lib"]
    assert value == ":".join(kept)
    again = run("repair", repaired, "--dry-run")
    assert again.stdout == f"{repaired.name}: no changes\n"


def test_system_libraries_of_the_settings_are_nothing_to_mend(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libvendor.so.1",)))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"}, tag="py3-none-manylinux_2_5_x86_64")
    config = tmp_path / "settings.toml"
    config.write_text('[tool.rocwheel.audit]\nsystem-libraries = ["libvendor.so.1"]\n')
    assert run("repair", wheel, "--check").status == 1
    assert run("repair", wheel, "--check", "--config", config).status == 0


OPENER = 'void *dlopen(const char *, int); void *f(void) { return dlopen("libamdhip64.so.7", 1); }'


@pytest.mark.parametrize("way", ["option", "settings"])
def test_libraries_that_are_opened_by_name_get_an_entry_and_a_requirement(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.chdir(tmp_path)
    tree = build_tree(tmp_path / "tree", Lib("a.so", source=OPENER, options=("-lc",)))
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"})
    if way == "settings":
        (tmp_path / "pyproject.toml").write_text('[tool.rocwheel.audit.dlopen]\n"ext/*" = ["libamdhip64.so.7"]\n')
    run("repair", wheel, "--dest-dir", "out", *(("--dlopen", "libamdhip64.so.7") if way == "option" else ()))
    (repaired,) = (tmp_path / "out").glob("*.whl")
    after = members(repaired)
    assert read_elf(after["ext/a.so"], name="a").runpath == "$ORIGIN/../_rocm_sdk_core/lib"
    assert b"Requires-Dist: rocm-sdk-core\n" in after["ext-1.0.dist-info/METADATA"]


@pytest.mark.parametrize(
    ("version", "pin", "requirement"),
    [
        ("7.10.0a20251006", "minor", "rocm-sdk-core==7.10.*,>=7.10.0a20251006"),
        ("7.10rc1", "minor", "rocm-sdk-core==7.10.*,>=7.10rc1"),
        ("7.10rc1+abc", "minor", "rocm-sdk-core==7.10.*,>=7.10rc1"),
        ("7.10+abc", "minor", "rocm-sdk-core==7.10.*"),
        ("7", "minor", "rocm-sdk-core==7.0.*"),
        ("1!7.2.0", "minor", "rocm-sdk-core==1!7.2.*"),
        ("7.10+abc", "exact", "rocm-sdk-core==7.10+abc"),
        ("7.10rc1", "exact", "rocm-sdk-core==7.10rc1"),
        ("7.10rc1", "none", "rocm-sdk-core"),
    ],
)
def test_pins_are_requirements_that_the_version_at_hand_meets(version: str, pin: Pin, requirement: str) -> None:
    core = package("rocm-sdk-core", version=version, is_context=True)
    made = installed(
        (package(), [library("demo/a.so", "libamdhip64.so.7")]),
        (core, [library("_rocm_sdk_core/lib/libamdhip64.so.7")]),
    )
    assert RepairPlanner(split_environments(made), RepairOptions(pin=pin)).plan(made.distributions[0]).requires == (
        requirement,
    )
    # As installers do, without --pre, where an older release is there as well.
    assert version in list(Requirement(requirement).specifier.filter(["6.0", version])) or pin == "none"


def test_a_package_that_ships_a_library_itself_requires_no_other_for_it() -> None:
    own = [library("demo/a.so", "libz.so.1", runpath="$ORIGIN"), library("demo/libz.so.1")]
    other = package("other", is_context=True)
    made = installed((other, [library("other/libz.so.1")]), (package(), own))
    assert RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[1]).requires == ()


def test_a_library_for_newer_processors_alone_is_led_to_when_the_settings_name_one() -> None:
    files = [library("demo/b/u.so", "libb.so"), library("demo/a/glibc-hwcaps/x86-64-v2/libb.so")]
    made = installed((package(), files))
    options = RepairOptions(settings=Configuration(cpu_level="x86-64-v2"))
    assert (
        RepairPlanner(split_environments(made), options).plan(made.distributions[0]).edits["demo/b/u.so"].value
        == "$ORIGIN/../a"
    )
    assert RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[0]).edits == {}


def test_a_folder_that_is_named_like_a_wheel_is_refused(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "demo-1.0-py3-none-any.whl"
    folder.mkdir()
    expected = f"error: {folder}: a folder; expected a wheel, which is a file\n"
    assert run("repair", folder, "--check") == (2, "", expected)
