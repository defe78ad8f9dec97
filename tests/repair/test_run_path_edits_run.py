"""Tests of `rocwheel.repair.run_path_edits`."""

from __future__ import annotations

from importlib.resources import files as resources
from typing import TYPE_CHECKING

import msgspec
import pytest

from rocwheel.audit.settings import AuditSettings
from rocwheel.audit.wheel_toolkits import Toolkit, sdk_library_folders
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.elf.facts import read_elf
from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.demo import SAMPLE_SDK
from rocwheel.environment.run_path_choice import SetRunpath
from rocwheel.environment.tree import split_environments
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.repair_plan import RepairPlan, RepairPlanner
from rocwheel.repair.run_path_edits import run_path_edits
from tests.repair.wheels import repaired_plugin
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.trees import data, library, package, program, tree, with_files
from tests.support.wheels import make_wheel, members

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.environment.tree import InstalledFile, Tree
    from tests.support.command_line import Run


pytestmark = pytest.mark.slow

OTHER = (package("other", is_context=True), [library("other/lib/libq.so")])


def edits(made: Tree, settings: AuditSettings | None = None) -> dict[str, SetRunpath]:
    options = RepairOptions(settings=settings or AuditSettings())
    return run_path_edits(made, made.distributions[0], options, Toolkit(is_sdk=True))


def of_wheel(*files: InstalledFile, requires: tuple[str, ...] = ()) -> dict[str, SetRunpath]:
    return edits(tree((package(requires=requires), list(files)), OTHER))


def test_a_correct_rpath_stays_an_rpath_wherever_it_points() -> None:
    file = library("demo/_e.so", "libq.so", rpath="$ORIGIN/../other/lib")
    assert of_wheel(file, requires=("other",)) == {}
    assert of_wheel(file, requires=("other==1.0",)) == {}


def test_sdk_folders_are_collected_once_per_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were collected from the whole tree nine times for each file of a wheel for another toolkit."""
    asked: list[Tree] = []

    def folders(made: Tree) -> frozenset[str]:
        asked.append(made)
        return sdk_library_folders(made)

    monkeypatch.setattr("rocwheel.repair.run_path_edits.sdk_library_folders", folders)
    made = tree((package(), [library(f"demo/_{index}.so", "libq.so", rpath="/builds/x") for index in range(9)]), OTHER)
    options = RepairOptions(settings=AuditSettings())
    found = run_path_edits(made, made.distributions[0], options, Toolkit(is_sdk=False))
    assert found["demo/_8.so"] == SetRunpath("$ORIGIN/../other/lib", RunpathTag.RPATH)
    assert len(asked) == 1


def test_a_wrong_run_path_keeps_its_tag() -> None:
    files = [
        library("demo/_r.so", "libq.so", rpath="/builds/x"),
        library("demo/_s.so", "libq.so", runpath="/builds/x"),
        library("demo/_t.so", "libq.so"),
    ]
    path = "$ORIGIN/../other/lib"
    assert of_wheel(*files) == {
        "demo/_r.so": SetRunpath(path, RunpathTag.RPATH),
        "demo/_s.so": SetRunpath(path, RunpathTag.RUNPATH),
        "demo/_t.so": SetRunpath(path, RunpathTag.RUNPATH),
    }
    assert {edit.tag for edit in of_wheel(files[0], files[2]).values()} == {RunpathTag.RPATH}


def test_entries_for_unavailable_packages_stay_only_in_files_that_may_use_them() -> None:
    entry = "$ORIGIN/../elsewhere/lib"
    files = [
        library("demo/opens.so", runpath=entry, imports_dlopen=True),
        library("demo/lacks.so", "libelsewhere.so", runpath=entry),
        library("demo/whole.so", "libc.so.6", runpath=entry),
    ]
    assert of_wheel(*files, requires=("elsewhere",)) == {"demo/whole.so": SetRunpath("", RunpathTag.RUNPATH)}


def test_a_file_without_dlopen_gets_a_run_path_to_libraries_that_settings_say_it_opens() -> None:
    files = [
        library("demo/libx.so", "libr.so", runpath="$ORIGIN/r"),
        library("demo/r/libr.so"),
        library("demo/plug/libplug.so"),
    ]
    found = edits(tree((package(), files)), AuditSettings(dlopen={"demo/*.so": ("libplug.so",), "demo/r/*": ()}))
    assert found["demo/libx.so"] == SetRunpath("$ORIGIN/r:$ORIGIN/plug", RunpathTag.RUNPATH)
    assert "demo/plug/libplug.so" not in found


def test_the_sdk_is_not_assumed_in_a_closed_environment() -> None:
    made = tree((package(), [library("demo/_e.so", "libamdhip64.so.7")]))
    assert edits(made, AuditSettings(closed=True)) == {}
    assert edits(made) == {"demo/_e.so": SetRunpath("$ORIGIN/../_rocm_sdk_core/lib", RunpathTag.RUNPATH)}


def test_a_plugin_folder_without_known_libraries_stays_in_files_that_open_libraries_by_name() -> None:
    opener = library("demo/_e.so", runpath="$ORIGIN/plugins:/build", imports_dlopen=True)
    for more in ([data("demo/plugins/first.plugin")], []):
        assert of_wheel(opener, *more)["demo/_e.so"].value == "$ORIGIN/plugins"


@needs_compiler
@pytest.mark.parametrize("tag", ["rpath", "runpath"])
def test_packages_made_by_build_need_no_repair(run: Run, tmp_path: Path, tag: str) -> None:
    recipe = tmp_path / "recipe.toml"
    text = (resources("rocwheel.build") / "rocm.toml").read_text()
    recipe.write_text(text.replace('run-path-tag = "rpath"', f'run-path-tag = "{tag}"'))
    BuildJob(PlanJob(SAMPLE_SDK, recipe=recipe), tmp_path / "made").run()
    done = run("repair", *sorted((tmp_path / "made/dist").glob("*.whl")), "--check")
    assert (done.status, {line.rpartition(": ")[2] for line in done.stdout.splitlines()}) == (0, {"no changes"})


@needs_compiler
def test_the_old_rpath_tag_can_be_requested(run: Run, plugin_wheel: Path, sdk_wheel: Path, tmp_path: Path) -> None:
    run("repair", plugin_wheel, "--with", sdk_wheel, "--output", tmp_path / "out", "--rpath")
    after = members(repaired_plugin(tmp_path / "out"))
    elf = read_elf(after["plugin/_right.so"], name="right")
    assert (elf.rpath, elf.runpath) == ("$ORIGIN", None)


@needs_compiler
@pytest.mark.parametrize("option", [(), ("--no-rpath",)], ids=["by default", "with --no-rpath"])
def test_an_rpath_into_other_releases_becomes_a_runpath_on_request(
    run: Run, sdk_wheel: Path, tmp_path: Path, option: tuple[str, ...]
) -> None:
    lib = Lib("a.so", ("libamdhip64.so.7",), "$ORIGIN/../_rocm_sdk_core/lib:/opt/rocm/lib", is_rpath=True)
    tree = build_tree(tmp_path / "tree", lib)
    wheel = make_wheel(tmp_path / "dist", "ext", {"ext/a.so": tree / "a.so"}, requires=("rocm-sdk-core",))
    assert run("repair", wheel, "--with", sdk_wheel, "--output", tmp_path / "out", *option).status == 0
    (repaired,) = (tmp_path / "out").glob("*.whl")
    elf = read_elf(members(repaired)["ext/a.so"], name="a")
    to_core = "$ORIGIN/../_rocm_sdk_core/lib"
    assert (elf.rpath, elf.runpath) == ((None, to_core) if option else (to_core, None))
    found = run("audit", repaired, "--with", sdk_wheel).stdout
    assert ("rpath-into-others" in found) is not bool(option)
    assert "run rocwheel repair" not in found
    assert run("repair", repaired, "--with", sdk_wheel, "--check", *option).status == 0


@needs_compiler
def test_a_correct_rpath_within_the_package_stays_even_if_other_files_have_runpaths(run: Run, tmp_path: Path) -> None:
    tree = build_tree(
        tmp_path / "tree",
        Lib("old.so", ("libhelp.so",), "$ORIGIN", is_rpath=True),
        Lib("new.so", ("libhelp.so",), "$ORIGIN"),
        Lib("wrong.so", ("libhelp.so",), "/opt/lib"),
        Lib("libhelp.so"),
    )
    files: dict[str, Path | bytes] = {f"demo/{path.name}": path for path in sorted(tree.glob("*.so"))}
    wheel = make_wheel(tmp_path / "dist", "demo", files)
    run("repair", wheel, "--output", tmp_path / "out")
    (repaired,) = (tmp_path / "out").iterdir()
    before, after = members(wheel), members(repaired)
    assert [name for name in before if name.endswith(".so") and before[name] != after[name]] == ["demo/wrong.so"]


@needs_compiler
def test_an_unused_runpath_among_rpaths_does_not_convert_them(run: Run, tmp_path: Path) -> None:
    tree = build_tree(
        tmp_path / "tree",
        Lib("old.so", ("libhelp.so",), "$ORIGIN", is_rpath=True),
        Lib("none.so", ("libhelp.so",)),
        Lib("libhelp.so", (), "/usr/local/lib"),
    )
    files: dict[str, Path | bytes] = {f"demo/{path.name}": path for path in sorted(tree.glob("*.so"))}
    run("repair", make_wheel(tmp_path / "dist", "demo", files), "--output", tmp_path / "out")
    (repaired,) = (tmp_path / "out").iterdir()
    found = {name: read_elf(data, name=name) for name, data in members(repaired).items() if name.endswith(".so")}
    assert {name: (elf.rpath, elf.runpath) for name, elf in found.items()} == {
        "demo/old.so": ("$ORIGIN", None),
        "demo/none.so": ("$ORIGIN", None),
        "demo/libhelp.so": (None, None),
    }


def test_a_library_only_for_newer_processors_gets_a_run_path_if_settings_name_one() -> None:
    files = [library("demo/b/u.so", "libb.so"), library("demo/a/glibc-hwcaps/x86-64-v2/libb.so")]
    made = tree((package(), files))
    options = RepairOptions(settings=AuditSettings(cpu_level="x86-64-v2"))
    assert (
        RepairPlanner(split_environments(made), options).plan(made.distributions[0]).edits["demo/b/u.so"].value
        == "$ORIGIN/../a"
    )
    assert RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[0]).edits == {}


@pytest.mark.parametrize(
    ("tag", "site"),
    [
        ("cp311-cp311", "python3.11"),
        ("cp39-none", "python3.9"),
        ("cp313-cp313t", "python3.13t"),
        ("pp310-pypy310_pp73", "pypy3.10"),
        ("cp311-abi3", ""),
        ("cp311.cp312-none", ""),
        ("py311-none", ""),
        ("py3-none", ""),
    ],
)
def test_a_program_gets_a_run_path_to_site_packages_if_the_tags_name_its_python(tag: str, site: str) -> None:
    value = f"$ORIGIN/../lib/{site}/site-packages/other/lib" if site else ""
    found = plan_of_program(tag, "/builds/x")
    assert [edit.value for edit in found.edits.values()] == [value]
    told = (
        "demo-1.0.data/scripts/tool needs libq.so, which is in other/lib, but no run path can lead from a "
        "program's folder to site-packages, whose path depends on the Python version"
    )
    assert found.unmended == (() if site else (told,))
    assert plan_of_program(tag, value or None).edits == {}


@pytest.mark.parametrize("tag", ["py3-none", "cp39-abi3"])
def test_a_program_for_several_pythons_drops_wrong_site_packages_and_keeps_possible_ones(tag: str) -> None:
    assert [
        edit.value for edit in plan_of_program(tag, "$ORIGIN/../lib/python3/site-packages/other/lib").edits.values()
    ] == [""]
    assert plan_of_program(tag, "$ORIGIN/../lib/python3.11/site-packages/other/lib").edits == {}


def plan_of_program(tag: str, run_path: str | None) -> RepairPlan:
    """Return the plan for a wheel that has a program in its data, for the Python of a tag."""
    tool = program("../../../bin/tool", "libq.so", runpath=run_path)
    made = tree((package(requires=("other",), tag=f"{tag}-manylinux_2_17_x86_64"), [tool]), OTHER)
    files = [
        msgspec.structs.replace(file, source=f"{file.distribution}!demo-1.0.data/scripts/tool")
        if file.name == "tool"
        else file
        for file in made.files
    ]
    made = with_files(made, files)
    return RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[0])


@needs_compiler
def test_an_environment_audit_reads_its_programs(run: Run, tmp_path: Path) -> None:
    tree = build_tree(tmp_path / "tree", Lib("a.so", ("libq.so",), "$ORIGIN/../lib/python3/site-packages/q"))
    site = tmp_path / "env/lib/python3.11/site-packages"
    for name, text in {"METADATA": "Metadata-Version: 2.1\nName: demo\nVersion: 1\n", "INSTALLER": "pip\n"}.items():
        (site / "demo-1.dist-info").mkdir(parents=True, exist_ok=True)
        (site / "demo-1.dist-info" / name).write_text(text)
    (site / "demo-1.dist-info/RECORD").write_text("../../../bin/tool,,\n")
    (site / "q").mkdir()
    (tmp_path / "env/bin").mkdir()
    (tmp_path / "env/bin/tool").write_bytes((tree / "a.so").read_bytes())
    (site / "q/libq.so").write_bytes(build_tree(tmp_path / "more", Lib("libq.so")).joinpath("libq.so").read_bytes())
    assert "unreachable-library" in run("audit", tmp_path / "env").stdout
