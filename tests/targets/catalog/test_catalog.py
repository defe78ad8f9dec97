"""The catalog of GPU targets, held against LLVM."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from rocwheel.binary.code_objects import machine_of_number
from rocwheel.targets.catalog import SPIRV, Target, load_catalog, sort_key
from rocwheel.targets.errors import IllegalFeatureError
from rocwheel.targets.target_set import parse_target_set

CATALOG = load_catalog()
TABLES = (
    CATALOG.targets,
    CATALOG.generics,
    CATALOG.families,
    CATALOG.matrices,
    CATALOG.releases,
    CATALOG.packagers,
)
LLVM_VERSIONS = [version for version in range(14, 30) if shutil.which(f"llvm-mc-{version}")]
SEEN_LLVM = (16, 19, 22, 23)

needs_llvm = pytest.mark.skipif(not LLVM_VERSIONS, reason="no llvm-mc (Debian package llvm-22)")


def _newest_llvm() -> int:
    return max(LLVM_VERSIONS)


def _known_processors(version: int) -> set[str]:
    command = [f"llvm-mc-{version}", "-triple=amdgcn-amd-amdhsa", "-mcpu=help", "/dev/null"]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    names = set(re.findall(r"^  (gfx\S+)\s+- Select the", text, re.MULTILINE))
    return {name for name in names if re.fullmatch(r"gfx[0-9a-f]{3,4}|gfx\d+(-\d+)?-generic", name)}


def _e_flags(version: int, processor: str, folder: Path) -> int:
    output = folder / f"{processor}.o"
    command = [f"llvm-mc-{version}", "-triple=amdgcn-amd-amdhsa", f"-mcpu={processor}", "-filetype=obj"]
    subprocess.run([*command, "-o", output, "/dev/null"], check=True)
    with output.open("rb") as file:
        return int(ELFFile(file).header["e_flags"])


@pytest.mark.slow
@needs_llvm
def test_machine_numbers_and_features_are_those_that_llvm_writes(tmp_path: Path) -> None:
    version = _newest_llvm()
    processors = _known_processors(version)
    assert len(processors) > 50
    for name in processors:
        flags = _e_flags(version, name, tmp_path)
        features = [("sramecc", 0xC00), ("xnack", 0x300)]
        written = (flags & 0xFF, tuple(feature for feature, mask in features if flags & mask))
        machine = machine_of_number(flags & 0xFF)
        assert machine is not None
        assert (machine.processor, machine.mach, tuple(sorted(machine.features | machine.any))) == (name, *written)


@pytest.mark.slow
@needs_llvm
@pytest.mark.parametrize("feature", ["sramecc", "xnack"])
def test_features_are_those_that_clang_takes_in_a_target_id(feature: str) -> None:
    version = _newest_llvm()
    clang = f"clang-{version}"
    if not shutil.which(clang):
        pytest.skip(f"no {clang}")
    for name in _known_processors(version):
        command = [clang, "--target=amdgcn-amd-amdhsa", f"-mcpu={name}:{feature}+", "-nogpulib", "-x", "c", "-E"]
        taken = subprocess.run([*command, "/dev/null"], capture_output=True, check=False).returncode == 0
        assert taken == (feature in CATALOG.processor(name).features), name


@pytest.mark.parametrize("name", ["gfx1250", "gfx1250-strict", "gfx1251", "gfx12-5-generic"])
def test_gfx125x_has_no_feature_that_a_target_id_may_set(name: str) -> None:
    assert CATALOG.processor(name).features == ()
    with pytest.raises(IllegalFeatureError, match=re.escape(f"'{name}:xnack+' sets xnack")):
        parse_target_set(f"{name}:xnack+")


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("gfx941", 17, 20),
        ("gfx942", 17, 23),
        ("gfx950", 20, 23),
        ("gfx9-4-generic", 20, 23),
        ("gfx1150", 17, 23),
        ("gfx1151", 17, 23),
        ("gfx1152", 19, 23),
        ("gfx1153", 20, 23),
        ("gfx1200", 18, 23),
        ("gfx1201", 18, 23),
        ("gfx1250", 21, 23),
        ("gfx1251", 22, 23),
        ("gfx1250-strict", 24, 24),
    ],
)
def test_processors_came_with_the_llvm_release_that_lists_them_first(name: str, first: int, last: int) -> None:
    assert CATALOG.processor(name).llvm == (first, last)


def test_early_silicon_of_gfx1250_has_a_number_of_its_own() -> None:
    assert CATALOG.processor("gfx1250-strict").mach == 0xEB
    assert (CATALOG.package_of("gfx1250-strict"), CATALOG.package_of("gfx942")) == ("gfx1250", "gfx942")
    assert parse_target_set("gfx1250;gfx1250-strict").words == ("gfx1250", "gfx1250-strict")


@needs_llvm
@pytest.mark.parametrize("version", [version for version in LLVM_VERSIONS if version in SEEN_LLVM])
def test_processors_are_known_to_the_llvm_versions_that_the_catalog_says(version: int) -> None:
    listed = {row.name for row in CATALOG.processors.values() if row.llvm[0] <= version <= row.llvm[1]}
    assert listed == _known_processors(version)


def test_every_source_of_a_row_is_explained() -> None:
    cited = {source for table in TABLES for row in table for source in row.sources}
    assert cited == set(CATALOG.sources)


def test_products_come_from_a_source_that_names_some() -> None:
    naming = {"llvm-doc", "therock", "amd-matrix", "amd-gpus", "amd-notes", "libdrm"}
    assert [row.name for row in CATALOG.targets if row.products and not naming & set(row.sources)] == []
    assert {row.name for row in CATALOG.targets if "therock" in row.sources and not row.products} == set()


def test_products_of_libdrm_are_those_of_its_table() -> None:
    table = Path("/usr/share/libdrm/amdgpu.ids")
    if not table.exists():
        pytest.skip("no amdgpu.ids (Debian package libdrm-common)")
    names = re.findall(r"^73DF,\s*\w+,\s*(AMD Radeon RX .*)$", table.read_text(), re.MULTILINE)
    row = CATALOG.processor("gfx1031")
    assert isinstance(row, Target)
    assert {name for name in row.products if name.startswith("AMD")} <= set(names)


@pytest.mark.parametrize(
    ("packager", "suite"),
    [
        ("debian-13", "trixie"),
        ("debian-forky", "forky"),
        ("debian-sid", "sid"),
        ("debian-experimental", "experimental"),
        ("ubuntu-26.04", "resolute"),
        ("ubuntu-26.10", "stonking"),
    ],
)
def test_debian_s_lists_are_those_that_its_tool_prints(packager: str, suite: str) -> None:
    data = Path("/usr/share/pkg-rocm-tools/data/build-targets", suite)
    version = ["dpkg-query", "--show", "--showformat=${Version}", "pkg-rocm-tools"]
    if not data.exists() or subprocess.check_output(version, text=True) != "0.9.9~exp2":
        pytest.skip("no pkg-rocm-tools 0.9.9~exp2 (of Debian experimental)")
    lines = [line for line in data.read_text().splitlines() if line and not line.startswith("#")]
    assert list(next(row.targets for row in CATALOG.packagers if row.name == packager)) == lines


@pytest.mark.parametrize("packager", [row.name for row in CATALOG.packagers])
def test_every_packager_s_list_is_a_set(packager: str) -> None:
    listed = next(row.targets for row in CATALOG.packagers if row.name == packager)
    assert parse_target_set(f"list@{packager}").words == listed


def _facts() -> list[tuple[str, str, str, str, str]]:
    """Return what the catalog says of each target: name, kind, families, packagers and products."""
    rows = []
    for target in CATALOG.targets:
        families = sorted(row.name for row in CATALOG.families if target.name in row.targets)
        packagers = sorted(
            row.name for row in CATALOG.packagers if target.name in {listed.partition(":")[0] for listed in row.targets}
        )
        rows.append((target.name, target.kind, " ".join(families), " ".join(packagers), ", ".join(target.products)))
    return rows


def test_each_target_has_the_kind_families_packagers_and_products_that_the_table_of_facts_tells() -> None:
    lines = Path(__file__).with_name("catalog_facts.txt").read_text(encoding="utf-8").splitlines()
    told = [line.split(" | ") for line in lines if not line.startswith("#")]
    assert _facts() == [tuple("" if cell == "-" else cell for cell in row) for row in told]


def test_generic_processors_have_the_members_of_llvm_s_table() -> None:
    assert {row.name: " ".join(row.members) for row in CATALOG.generics} == {
        "gfx9-generic": "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c",
        "gfx9-4-generic": "gfx942 gfx950",
        "gfx10-1-generic": "gfx1010 gfx1011 gfx1012 gfx1013",
        "gfx10-3-generic": "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036",
        "gfx11-generic": "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1154",
        "gfx11-7-generic": "gfx1170 gfx1171 gfx1172",
        "gfx12-generic": "gfx1200 gfx1201",
        "gfx12-5-generic": "gfx1250 gfx1251",
        "gfx13-generic": "gfx1310",
    }


def test_every_row_has_a_source() -> None:
    assert [row for table in TABLES for row in table if not row.sources] == []


def test_every_name_that_a_row_refers_to_is_a_known_processor() -> None:
    lists = [row.members for row in CATALOG.generics] + [row.targets for row in CATALOG.families]
    lists += [targets for row in CATALOG.releases for targets in (row.official, row.unofficial)]
    lists += [row.targets for row in CATALOG.matrices]
    assert {name for names in lists for name in names} - {SPIRV} <= set(CATALOG.processors)


def test_no_two_processors_share_a_machine_number() -> None:
    numbers = [row.mach for row in CATALOG.processors.values()]
    assert len(set(numbers)) == len(numbers) == 64


def test_the_catalog_has_every_processor_that_code_objects_can_name() -> None:
    machines = {machine.processor for number in range(256) if (machine := machine_of_number(number))}
    assert machines == set(CATALOG.processors)


def test_no_release_calls_a_target_both_official_and_unofficial() -> None:
    assert [row.since for row in CATALOG.releases if set(row.official) & set(row.unofficial)] == []


@pytest.mark.parametrize(
    ("name", "version"),
    [
        pytest.param("gfx90a", (9, 0, 10), id="hexadecimal stepping"),
        pytest.param("gfx1100", (11, 0, 0), id="two-digit major"),
        pytest.param("gfx803", (8, 0, 3), id="one-digit major"),
        pytest.param("gfx1153", (11, 5, 3), id="minor"),
    ],
)
def test_the_name_holds_the_version(name: str, version: tuple[int, int, int]) -> None:
    assert next(target.version for target in CATALOG.targets if target.name == name) == version


def test_processors_are_ordered_by_number_with_a_generic_before_its_members() -> None:
    names = ["gfx1100", "gfx942", "gfx90a", "gfx9-4-generic", "gfx11-generic", "gfx9-generic", "gfx900", "gfx908"]
    assert sorted(names, key=sort_key) == [
        "gfx9-generic",
        "gfx900",
        "gfx908",
        "gfx90a",
        "gfx9-4-generic",
        "gfx942",
        "gfx11-generic",
        "gfx1100",
    ]


def test_a_name_with_a_number_without_end_is_sorted_as_a_text() -> None:
    long, generic = "gfx" + "9" * 5000, f"gfx9-{'1' * 5000}-generic"
    assert sorted([long, generic, "gfx906"], key=sort_key) == ["gfx906", generic, long]


def test_generics_of_a_processor_are_those_that_cover_it() -> None:
    assert CATALOG.generics_of("gfx906") == ("gfx9-generic",)
    assert CATALOG.generics_of("gfx908") == ()
