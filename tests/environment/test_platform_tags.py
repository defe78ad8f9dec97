"""Tests of `rocwheel.environment.platform_tags`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rocwheel.binary.elf.facts import ElfKind
from rocwheel.environment.platform_tags import repaired_platforms
from rocwheel.environment.tree import split_environments
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.repair_plan import RepairPlanner
from tests.support.libraries import Lib, build_tree, needs_compiler
from tests.support.trees import data, dll, exe, library, package, tree
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

    from rocwheel.environment.tree import InstalledFile
    from tests.support.command_line import Run


X86 = library("demo/a.so", "libc.so.6", versions=("GLIBC_2.28",))
ARM = library("demo/z.so", machine=183, versions=("GLIBC_2.34",))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((dll("demo/a.dll"),), ["win_amd64"]),
        ((dll("demo/a.dll"), dll("demo/b.dll", machine=0xAA64)), ["win_amd64", "win_arm64"]),
        ((X86, dll("demo/a.dll")), ["manylinux_2_28_x86_64", "win_amd64"]),
        ((exe("demo/a.exe"),), ["any"]),
        ((X86, data("demo/a.dylib", is_mach_o=True)), ["any"]),
    ],
)
def test_a_wheel_tagged_any_gets_a_tag_for_each_system_it_has_code_for(
    files: tuple[InstalledFile, ...], expected: list[str]
) -> None:
    assert repaired_platforms(["any"], files) == expected


@pytest.mark.parametrize(
    ("platforms", "expected"),
    [
        ("manylinux_2_17_x86_64", "manylinux_2_28_x86_64"),
        ("manylinux2014_x86_64.manylinux_2_17_x86_64", "manylinux_2_28_x86_64"),
        ("manylinux2014_x86_64.musllinux_1_2_x86_64", "manylinux_2_28_x86_64.musllinux_1_2_x86_64"),
        ("linux_x86_64", "manylinux_2_28_x86_64"),
        ("linux_x86_64.manylinux_2_30_x86_64", "linux_x86_64.manylinux_2_30_x86_64"),
        ("any", "manylinux_2_28_x86_64"),
        ("manylinx_2_28_x86_64", "manylinux_2_28_x86_64"),
        ("manylinx_2_28_x86_64.manylinux_2_30_x86_64", "manylinux_2_30_x86_64"),
        ("manylinux_2_30_x86_64", "manylinux_2_30_x86_64"),
        ("musllinux_1_2_x86_64", "musllinux_1_2_x86_64"),
        ("win_amd64", "win_amd64"),
        ("macosx_11_0_x86_64", "macosx_11_0_x86_64"),
        ("manylinux_2_17_aarch64", "manylinux_2_17_aarch64"),
        ("linux_armv7l", "linux_armv7l"),
    ],
)
def test_only_the_glibc_version_in_the_tag_is_changed(platforms: str, expected: str) -> None:
    assert ".".join(repaired_platforms(platforms.split("."), [X86])) == expected


@pytest.mark.parametrize(
    ("platforms", "expected"),
    [
        ("manylinux_2_17_x86_64", "manylinux_2_28_x86_64"),
        ("linux_aarch64", "manylinux_2_34_aarch64"),
        ("any", "manylinux_2_28_x86_64.manylinux_2_34_aarch64"),
    ],
)
def test_each_machine_gets_a_tag_based_on_its_own_files(platforms: str, expected: str) -> None:
    assert ".".join(repaired_platforms([platforms], [X86, ARM])) == expected


@pytest.mark.parametrize("name", ["libc.musl-x86_64.so.1", "libc.so"])
@pytest.mark.parametrize("platform", ["any", "linux_x86_64"])
def test_files_that_need_musl_are_not_tagged_for_glibc(platform: str, name: str) -> None:
    assert repaired_platforms([platform], [library("demo/a.so", name)]) == [platform]


def test_a_wheel_without_machine_code_keeps_the_tag_any() -> None:
    assert repaired_platforms(["any"], [data("demo/a.py")]) == ["any"]


@pytest.mark.parametrize(
    ("platform", "told"),
    [
        ("win_amd64", "demo/a.so is for Linux, but demo-1.0-py3-none-win_amd64.whl is for win_amd64"),
        ("musllinux_1_2_x86_64", "demo/a.so needs libc.so.6 from glibc, which systems with musl don't have"),
        (
            "manylinux_2_30_aarch64",
            "demo/a.so is for x86_64, but demo-1.0-py3-none-manylinux_2_30_aarch64.whl has no tag for this machine",
        ),
        ("linux_armv7l", "demo/a.so is for x86_64, but demo-1.0-py3-none-linux_armv7l.whl has no tag for this machine"),
    ],
)
def test_files_that_do_not_fit_the_tag_are_reported(platform: str, told: str) -> None:
    made = tree((package(tag=f"py3-none-{platform}"), [X86]))
    plan = RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[0])
    assert (plan.file_name, plan.tags, plan.unmended) == (made.distributions[0].label, (), (told,))


def test_a_tag_that_no_installer_accepts_is_replaced_based_on_the_files() -> None:
    made = tree((package(tag="py3-none-linux_amd64"), [X86]))
    plan = RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[0])
    assert (plan.file_name, plan.unmended) == ("demo-1.0-py3-none-manylinux_2_28_x86_64.whl", ())


@pytest.mark.parametrize(
    "file", [library("demo/a.o", kind=ElfKind.RELOCATABLE), data("demo/a.dylib", is_mach_o=True)], ids=["ELF", "Mach-O"]
)
def test_object_files_and_macos_files_are_moved_to_platlib(file: InstalledFile) -> None:
    made = tree((package(tag="py3-none-any", is_purelib=True), [file]))
    assert RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[0]).is_platlib


def test_a_windows_wheel_is_not_moved_to_platlib() -> None:
    made = tree((package(tag="py3-none-win_amd64", is_purelib=True), [dll("demo/a.dll")]))
    assert not RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[0]).is_platlib


def test_a_different_order_of_wheel_tags_is_not_a_change() -> None:
    tags = ("py3-none-manylinux_2_28_x86_64", "py2-none-manylinux_2_28_x86_64")
    owner = package(tag="py2.py3-none-manylinux_2_28_x86_64", tags=tags)
    made = tree((owner, [X86]))
    assert RepairPlanner(split_environments(made), RepairOptions()).plan(made.distributions[0]).changes == ()


@needs_compiler
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
def test_tags_that_match_the_files_are_kept(run: Run, tmp_path: Path, platforms: str, expected: str) -> None:
    tree = build_tree(tmp_path / "tree", Lib("_ext.so"))
    wheel = make_wheel(tmp_path / "dist", "demo", {"demo/_ext.so": tree / "_ext.so"}, tag=f"py3-none-{platforms}")
    run("repair", wheel, "--output", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [f"demo-1.0-py3-none-{expected}.whl"]
