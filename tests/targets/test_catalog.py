"""Tests of `rocwheel.targets.catalog`."""

from __future__ import annotations

import re
import shutil
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from rocwheel.binary.code_objects import machine_of_number
from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.targets.catalog import (
    SPIRV,
    expand_families,
    families_of,
    is_family,
    is_target,
    load_catalog,
    matrix_for,
    official_span,
    owned_targets,
    release_for,
    sort_key,
    targets_of,
)
from rocwheel.targets.errors import IllegalFeatureError, UnknownReleaseError, UnknownTargetError
from rocwheel.targets.target_set import parse_target_set, target_of_product

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
def test_machine_numbers_and_features_match_those_that_llvm_writes(tmp_path: Path) -> None:
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
def test_features_match_those_that_clang_accepts_in_a_target_id(feature: str) -> None:
    version = _newest_llvm()
    clang = f"clang-{version}"
    if not shutil.which(clang):
        pytest.skip(f"no {clang}")
    for name in _known_processors(version):
        command = [clang, "--target=amdgcn-amd-amdhsa", f"-mcpu={name}:{feature}+", "-nogpulib", "-x", "c", "-E"]
        taken = subprocess.run([*command, "/dev/null"], capture_output=True, check=False).returncode == 0
        assert taken == (feature in CATALOG.processor(name).features), name


@pytest.mark.parametrize("name", ["gfx1250", "gfx1250-strict", "gfx1251", "gfx12-5-generic"])
def test_gfx125x_has_no_configurable_features(name: str) -> None:
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
def test_processors_are_dated_by_the_first_llvm_release_that_lists_them(name: str, first: int, last: int) -> None:
    assert CATALOG.processor(name).llvm == (first, last)


def test_early_gfx1250_silicon_has_its_own_number() -> None:
    assert CATALOG.processor("gfx1250-strict").mach == 0xEB
    assert (CATALOG.package_of("gfx1250-strict"), CATALOG.package_of("gfx942")) == ("gfx1250", "gfx942")
    assert parse_target_set("gfx1250;gfx1250-strict").words == ("gfx1250", "gfx1250-strict")


@needs_llvm
@pytest.mark.parametrize("version", [version for version in LLVM_VERSIONS if version in SEEN_LLVM])
def test_the_catalog_gives_the_llvm_versions_that_know_each_processor(version: int) -> None:
    listed = {row.name for row in CATALOG.processors.values() if row.llvm[0] <= version <= row.llvm[1]}
    assert listed == _known_processors(version)


def test_every_source_of_a_row_is_explained() -> None:
    cited = {source for table in TABLES for row in table for source in row.sources}
    assert cited == set(CATALOG.sources)


def test_products_come_from_sources_that_name_products() -> None:
    naming = {"llvm-doc", "therock", "amd-matrix", "amd-gpus", "amd-notes", "libdrm"}
    assert [row.name for row in CATALOG.targets if row.products and not naming & set(row.sources)] == []
    assert {row.name for row in CATALOG.targets if "therock" in row.sources and not row.products} == set()


def test_libdrm_products_have_the_target_of_their_device() -> None:
    table = Path("/usr/share/libdrm/amdgpu.ids")
    if not table.exists():
        pytest.skip("no amdgpu.ids (Debian package libdrm-common)")
    names = re.findall(r"^73DF,\s*\w+,\s*(AMD Radeon RX .*)$", table.read_text(), re.MULTILINE)
    assert {target_of_product(name) or "unknown" for name in names} - {"unknown"} == {"gfx1031"}


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
def test_debian_lists_match_the_output_of_the_debian_tool(packager: str, suite: str) -> None:
    data = Path("/usr/share/pkg-rocm-tools/data/build-targets", suite)
    version = ["dpkg-query", "--show", "--showformat=${Version}", "pkg-rocm-tools"]
    if not data.exists() or subprocess.check_output(version, text=True) != "0.9.9~exp2":
        pytest.skip("no pkg-rocm-tools 0.9.9~exp2 (of Debian experimental)")
    lines = [line for line in data.read_text().splitlines() if line and not line.startswith("#")]
    assert list(next(row.targets for row in CATALOG.packagers if row.name == packager)) == lines


@pytest.mark.parametrize("packager", [row.name for row in CATALOG.packagers])
def test_the_list_of_every_packager_is_a_valid_set(packager: str) -> None:
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


def test_each_target_matches_the_table_of_kinds_families_packagers_and_products() -> None:
    lines = Path(__file__).with_name("catalog_facts.txt").read_text(encoding="utf-8").splitlines()
    told = [line.split(" | ") for line in lines if not line.startswith("#")]
    assert _facts() == [tuple("" if cell == "-" else cell for cell in row) for row in told]


def test_generic_processors_have_the_members_in_the_llvm_table() -> None:
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


def test_every_name_in_a_row_is_a_known_processor() -> None:
    lists = [row.members for row in CATALOG.generics] + [row.targets for row in CATALOG.families]
    lists += [targets for row in CATALOG.releases for targets in (row.official, row.unofficial)]
    lists += [row.targets for row in CATALOG.matrices]
    assert {name for names in lists for name in names} - {SPIRV} <= set(CATALOG.processors)


def test_no_two_processors_share_a_machine_number() -> None:
    numbers = [row.mach for row in CATALOG.processors.values()]
    assert len(set(numbers)) == len(numbers) == 64


def test_the_catalog_has_every_processor_a_code_object_can_name() -> None:
    machines = {machine.processor for number in range(256) if (machine := machine_of_number(number))}
    assert machines == set(CATALOG.processors)


def test_no_release_lists_a_target_as_both_official_and_unofficial() -> None:
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
def test_the_name_encodes_the_version(name: str, version: tuple[int, int, int]) -> None:
    assert next(target.version for target in CATALOG.targets if target.name == name) == version


def test_processors_are_sorted_by_number_with_generics_before_their_members() -> None:
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


def test_a_name_with_an_extremely_long_number_is_sorted_as_text() -> None:
    long, generic = "gfx" + "9" * 5000, f"gfx9-{'1' * 5000}-generic"
    assert sorted([long, generic, "gfx906"], key=sort_key) == ["gfx906", generic, long]


def test_generics_of_a_processor_are_the_generics_that_cover_it() -> None:
    assert CATALOG.generics_of("gfx906") == ("gfx9-generic",)
    assert CATALOG.generics_of("gfx908") == ()


def test_families_expand_to_their_targets_in_canonical_order() -> None:
    assert expand_families(["gfx1030", "gfx110X-all", "gfx94X-dcgpu"]) == (
        "gfx942",
        "gfx1030",
        "gfx1100",
        "gfx1101",
        "gfx1102",
        "gfx1103",
    )


def test_a_target_in_two_families_appears_once() -> None:
    assert expand_families(["gfx103X-igpu", "gfx103X-igpu", "gfx1035"]) == ("gfx1033", "gfx1035", "gfx1036")


def test_features_survive_expansion() -> None:
    assert expand_families(["gfx90a:xnack-", "gfx90a:xnack+"]) == ("gfx90a:xnack+", "gfx90a:xnack-")


def test_an_unknown_family_error_suggests_the_nearest_name() -> None:
    message = "GPU targets: 'gfx94X-dgpu' isn't a known GPU target or family. Similar names: gfx94X-dcgpu, "
    with pytest.raises(UnknownTargetError, match=re.escape(message)):
        expand_families(["gfx94X-dgpu"])


def test_several_unknown_names_are_reported_together() -> None:
    with pytest.raises(ProblemsError) as caught:
        expand_families(["gfx1030", "zzz", "rdna7"], source="--targets")
    remedy = "To print all known names, use `rocwheel targets list`."
    assert str(caught.value) == (
        "--targets: 2 problems\n"
        f"  --targets: 'zzz' isn't a known GPU target or family. {remedy}\n"
        f"  --targets: 'rdna7' isn't a known GPU target or family. {remedy}"
    )


def test_families_of_a_target_are_ordered_from_itself_to_the_largest() -> None:
    assert families_of("gfx1035") == ("gfx1035", "gfx103X-igpu", "gfx103X-all", "igpu-all")


def test_families_of_a_target_ignore_its_features() -> None:
    families = ("gfx90a", "gfx90a-dcgpu", "gfx90X-all", "gfx90X-dcgpu", "dcgpu-all")
    assert families_of("gfx90a:xnack+") == families


@pytest.mark.parametrize(
    ("name", "family", "target"),
    [
        pytest.param("gfx94X-dcgpu", True, False, id="family"),
        pytest.param("gfx942", False, True, id="target"),
        pytest.param("gfx90a:xnack+", False, True, id="target with a feature"),
        pytest.param("gfx11-generic", False, True, id="generic processor"),
        pytest.param("generic", False, False, id="the field of an artifact without device code"),
    ],
)
def test_families_and_targets_are_distinguished(name: str, family: bool, target: bool) -> None:
    assert (is_family(name), is_target(name)) == (family, target)


def test_a_target_is_a_family_by_itself() -> None:
    assert targets_of("gfx1201") == ("gfx1201",)


def test_owned_targets_have_a_product_and_a_packager() -> None:
    assert owned_targets() == (
        *("gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx90c", "gfx942", "gfx950"),
        *("gfx1010", "gfx1011", "gfx1012"),
        *("gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"),
        *("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"),
        *("gfx1200", "gfx1201", "gfx1250"),
    )


CDNA = ("gfx906", "gfx908", "gfx90a")


@pytest.mark.parametrize(
    ("version", "official"),
    [
        pytest.param("5.1", (*CDNA, "gfx1030"), id="5.1, the example of rocm.eclass"),
        pytest.param("5.7.1", (*CDNA, "gfx1030"), id="5.7.1"),
        pytest.param("6.3", (*CDNA, "gfx942", "gfx1030", "gfx1100"), id="6.3"),
        pytest.param("6.4.2", ("gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100"), id="6.4.2"),
        pytest.param(
            "6.4.3",
            ("gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201"),
            id="6.4.3",
        ),
        pytest.param(
            "7.1.1",
            ("gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201"),
            id="7.1.1",
        ),
    ],
)
def test_official_targets_depend_on_the_version(version: str, official: tuple[str, ...]) -> None:
    assert release_for(version).official == official


ARMS = {
    "5.[0-3].*": ("906 908 90a 1030", "803 900 1010 1011 1012 1031"),
    "5.*": ("906 908 90a 1030", "803 900 1010 1011 1012 1031 1100 1101 1102"),
    "6.[0-3].*": ("906 908 90a 942 1030 1100", "803 900 940 941 1010 1011 1012 1031 1101 1102"),
    "6.4.[0-2]": ("908 90a 942 1030 1100", "803 900 906 940 941 1010 1011 1012 1031 1101 1102 1200 1201"),
    "6.*": ("908 90a 942 1030 1100 1101 1200 1201", "803 900 906 940 941 1010 1011 1012 1031 1102 1103 1150 1151"),
    "7.*": ("908 90a 942 950 1030 1100 1101 1200 1201", "803 900 906 940 941 1010 1011 1012 1031 1102 1103 1150 1151"),
}
"""The official and unofficial targets of rocm.eclass, by the pattern of the version; the first that matches counts."""

VERSIONS = ["5.0.0", "5.1.3", "5.3.3", "5.4.0", "5.7.1", "6.0.0", "6.3.4", "6.4.0", "6.4.2", "6.4.3", "7.0.0", "7.2.1"]


@pytest.mark.parametrize("version", VERSIONS)
def test_targets_of_a_version_match_the_eclass(version: str) -> None:
    arm = next(lists for pattern, lists in ARMS.items() if fnmatchcase(version, pattern))
    official, unofficial = (tuple(f"gfx{number}" for number in numbers.split()) for numbers in arm)
    assert (release_for(version).official, release_for(version).unofficial) == (official, unofficial)


@pytest.mark.parametrize(
    ("version", "targets"),
    [
        pytest.param("6.0", "908 90a 942 1030 1100", id="6.0, without gfx906"),
        pytest.param("6.4.0", "908 90a 942 1030 1100", id="6.4.0"),
        pytest.param("6.4.1", "908 90a 942 1030 1100 1101 1200 1201", id="6.4.1, which has more than Gentoo's"),
        pytest.param("6.4.2", "908 90a 942 1030 1100 1101 1200 1201", id="6.4.2"),
        pytest.param("7.1.0", "908 90a 942 950 1030 1100 1101 1200 1201", id="7.1.0"),
        pytest.param("7.2.4", "908 90a 942 950 1030 1100 1101 1200 1201", id="7.2.4"),
        pytest.param("7.9", "942 950 1151", id="7.9, the first preview"),
        pytest.param("7.11.0", "90a 942 950 1100 1101 1150 1151 1200 1201", id="7.11.0"),
        pytest.param("7.12", "908 90a 942 950 1100 1101 1102 1103 1150 1151 1200 1201", id="7.12"),
        pytest.param("7.14.1", "908 90a 942 950 1030 1100 1101 1102 1103 1150 1151 1152 1153 1200 1201", id="7.14.1"),
        pytest.param("10.0", "908 90a 942 950 1030 1100 1101 1102 1103 1150 1151 1152 1153 1200 1201", id="10.0"),
        pytest.param("10.1", "908 90a 942 950 1030 1100 1101 1102 1103 1150 1151 1152 1153 1200 1201", id="10.1"),
    ],
)
def test_the_amd_matrix_gives_the_targets_of_a_version(version: str, targets: str) -> None:
    assert " ".join(matrix_for(version).targets).replace("gfx", "") == targets


@pytest.mark.parametrize("version", ["5.7", "6.5", "7.3", "7.8.1", "7.15", "10.2", "9999"])
def test_a_version_without_a_known_matrix_is_refused(version: str) -> None:
    message = (
        f"amd: the targets of ROCm {version} are unknown; expected 6.0 to 6.4, 7.0 to 7.2, 7.9 to 7.14, "
        "10.0 to 10.1. A newer version of rocwheel may support it."
    )
    with pytest.raises(UnknownReleaseError, match=f"^{re.escape(message)}$"):
        matrix_for(version, source="amd")


def test_targets_of_10_match_the_eclass_in_the_overlay() -> None:
    release = release_for("10.0")
    official, unofficial = (" ".join(targets).replace("gfx", "") for targets in (release.official, release.unofficial))
    assert official == "908 90a 942 950 1100 1101 1102 1150 1151 1152 1153 1200 1201"
    assert unofficial == "803 900 906 1010 1011 1012 1030 1031 1103"


@pytest.mark.parametrize(("short", "long"), [("5.3", "5.3.0"), ("6.3", "6.3.0"), ("6.4", "6.4.0"), ("7", "7.0.0")])
def test_two_part_and_three_part_versions_are_equivalent(short: str, long: str) -> None:
    assert release_for(short) == release_for(long)


def test_version_9999_has_the_newest_release() -> None:
    assert release_for("9999").since == "10.0"


def test_a_release_candidate_has_the_targets_of_its_release() -> None:
    assert release_for("6.4.3rc1") == release_for("6.4.3")


def test_targets_new_in_5_4_are_not_in_5_3() -> None:
    assert "gfx1100" not in release_for("5.3.3").unofficial
    assert "gfx1100" in release_for("5.4.0").unofficial


def test_an_unknown_major_version_is_refused_by_name() -> None:
    message = (
        "ROCM_VERSION: the targets of ROCm 8.0 are unknown; expected ROCm 5, 6, 7, or 10. "
        "A newer version of rocwheel may support it."
    )
    with pytest.raises(UnknownReleaseError, match=f"^{re.escape(message)}$"):
        release_for("8.0", source="ROCM_VERSION")


def test_an_invalid_version_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^ROCm version: 'seven' isn't a version; expected a version such as 6.4 or 7\.1\.1$"
    ):
        release_for("seven")


@pytest.mark.parametrize(
    ("target", "span"),
    [
        pytest.param("gfx906", ("5.0", "6.4"), id="dropped at 6.4"),
        pytest.param("gfx1100", ("6.0", ""), id="official since 6.0"),
        pytest.param("gfx1031", ("", ""), id="never official"),
    ],
)
def test_official_support_of_a_target_spans_a_range_of_versions(target: str, span: tuple[str, str]) -> None:
    assert official_span(target) == span
