"""Computed platform tags, held against auditwheel's policy and pip's own idea of what a machine accepts."""

from __future__ import annotations

import json
import platform
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest
from packaging.tags import sys_tags

from rocwheel.binary.elf.facts import Elf, ElfKind, read_elf
from rocwheel.binary.elf.header import Segment
from rocwheel.binary.elf.symbols import VersionNeed
from rocwheel.wheels.platform_floor import PlatformFloor, oldest_tag, platform_floor

MACHINES = {"x86_64": 62, "aarch64": 183, "ppc64le": 21, "riscv64": 243}
CODE_OBJECT = 224


def library(*versions: str, machine: int = 62, kind: ElfKind = ElfKind.SHARED_OBJECT) -> Elf:
    needs = tuple(VersionNeed("libc.so.6", version) for version in versions)
    return Elf(machine=machine, kind=kind, type=3, osabi=0, segments=(), version_needs=needs)


def first_policies(architecture: str) -> dict[str, tuple[int, int]]:
    """Return the oldest manylinux policy of auditwheel that allows each symbol version."""
    first: dict[str, tuple[int, int]] = {}
    for policy in json.loads(files("auditwheel.policy").joinpath("manylinux-policy.json").read_text()):
        for name, versions in policy["symbol_versions"].get(architecture, {}).items():
            major, minor = map(int, policy["name"].split("_")[1:])
            for version in versions:
                first.setdefault(f"{name}_{version}", (major, minor))
    return first


def floor_of(symbol_version: str, machine: int) -> tuple[int, int]:
    floor = platform_floor([("lib.so", library(symbol_version, machine=machine))])
    assert floor is not None
    return floor.glibc


def test_every_library_version_has_the_auditwheel_floor_on_x86_64() -> None:
    policies = {version: first for version, first in first_policies("x86_64").items() if "GLIBC_2" not in version}
    assert len(policies) > 50
    assert {version: floor_of(version, 62) for version in policies} == policies


@pytest.mark.parametrize("architecture", ["aarch64", "ppc64le"])
def test_no_floor_is_lower_than_in_auditwheel_on_other_machines(architecture: str) -> None:
    policies = first_policies(architecture)
    ours = {version: floor_of(version, MACHINES[architecture]) for version in policies if "GLIBC_2" not in version}
    assert {version: floor for version, floor in ours.items() if floor < policies[version]} == {}


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (
            ElfKind.SHARED_OBJECT,
            ((2, 35), "lib.so: a segment at 0xa00000 that requires an alignment of 0x200000", True),
        ),
        (ElfKind.EXECUTABLE, ((2, 17), "lib.so: GLIBC_2.17", False)),
    ],
)
def test_a_library_edited_by_patchelf_018_needs_the_first_glibc_that_accepts_any_alignment(
    kind: ElfKind, reason: tuple[tuple[int, int], str, bool]
) -> None:
    first = Segment(1, 4, 0, 0, 0, 0x1000, 0x1000, 0x200000)
    added = Segment(1, 6, 0x701000, 0xA00000, 0xA00000, 0x40, 0x40, 0x200000)
    elf = msgspec.structs.replace(library("GLIBC_2.17", kind=kind), segments=(first, added), is_dynamic=True)
    floor = platform_floor([("lib.so", elf)])
    assert floor is not None
    assert (floor.glibc, floor.reason, floor.is_by_alignment) == reason


@pytest.mark.parametrize("architecture", MACHINES)
def test_a_glibc_version_is_its_own_floor(architecture: str) -> None:
    """Policies exist for some versions of glibc only; the tag is as exact as :pep:`600` allows."""
    machine = MACHINES[architecture]
    oldest = tuple(map(int, oldest_tag(machine).split("_")[1:3]))
    for symbol_version in first_policies(architecture):
        if symbol_version.startswith("GLIBC_2."):
            numbers = tuple(map(int, symbol_version.removeprefix("GLIBC_").split(".")))
            assert floor_of(symbol_version, machine) == max(numbers[:2], oldest)


@pytest.mark.parametrize(
    ("architecture", "tag"),
    [
        ("x86_64", "manylinux_2_5_x86_64"),
        ("aarch64", "manylinux_2_17_aarch64"),
        ("ppc64le", "manylinux_2_17_ppc64le"),
        ("riscv64", "manylinux_2_31_riscv64"),
    ],
)
def test_the_oldest_tag_matches_the_first_policy(architecture: str, tag: str) -> None:
    assert oldest_tag(MACHINES[architecture]) == tag
    major, minor = min(first_policies(architecture).values())
    assert tag == f"manylinux_{major}_{minor}_{architecture}"


def test_the_highest_floor_of_all_files_wins_with_its_reason() -> None:
    files = [
        ("lib/a.so", library("GLIBC_2.17", "GLIBCXX_3.4.29")),
        ("lib/b.so", library("GLIBC_2.28")),
        ("lib/c.so", library("ROCR_1", "hip_4.2", "GLIBC_PRIVATE")),
    ]
    assert platform_floor(files) == PlatformFloor(62, (2, 34), "lib/a.so: GLIBCXX_3.4.29", "lib/a.so")


@pytest.mark.parametrize("version", ["ROCR_1", "hip_4.2", "GLIBC_PRIVATE", "GLIBC_2", "GLIBCXX_", "GLIBCXX_3..4", ""])
def test_versions_unrelated_to_a_glibc_release_raise_no_floor(version: str) -> None:
    floor = platform_floor([("a.so", library(version))])
    assert floor is not None
    assert (floor.glibc, floor.reason) == ((2, 5), "a.so: oldest tag for its architecture")


def test_a_private_glibc_version_raises_no_floor_but_needs_glibc() -> None:
    floor = PlatformFloor(62, (2, 5), "a.so: oldest tag for its architecture", "a.so")
    assert platform_floor([("a.so", library("GLIBC_PRIVATE"))]) == floor


def test_the_first_file_that_needs_glibc_is_reported() -> None:
    kernels, plain = library(machine=CODE_OBJECT, kind=ElfKind.CODE_OBJECT), library()
    files = [("a.co", kernels), ("b.so", plain), ("c.so", msgspec.structs.replace(plain, needed=("libc.so.6",)))]
    floor = platform_floor([*files, ("d.so", library("GLIBC_2.30"))])
    assert floor is not None
    assert floor.needs_glibc == "c.so"


def test_a_version_newer_than_the_table_gets_the_last_row() -> None:
    assert floor_of("GLIBCXX_3.4.99", 62) == (2, 39)


def test_gpu_code_does_not_count() -> None:
    kernels = library(machine=CODE_OBJECT, kind=ElfKind.CODE_OBJECT)
    assert platform_floor([("a.co", kernels)]) is None
    assert platform_floor([("a.co", kernels), ("a.so", library("GLIBC_2.30"))]) == PlatformFloor(
        62, (2, 30), "a.so: GLIBC_2.30", "a.so"
    )


def test_an_empty_list_of_files_has_no_floor() -> None:
    assert platform_floor([]) is None


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="tags of glibc are for machines with glibc")
def test_this_machine_accepts_the_tag_of_its_own_libraries() -> None:
    found = sorted(Path("/usr/lib").glob(f"{platform.machine()}-linux-gnu/lib*.so.*"))[:200]
    if not found:
        pytest.skip("no libraries in the multiarch folder")
    elves = [(str(path), read_elf(memoryview(path.read_bytes()), name=str(path))) for path in found if path.is_file()]
    floor = platform_floor(elves)
    assert floor is not None
    assert floor.tag in {tag.platform for tag in sys_tags()}
