"""Tests of the comparison of the tables with their public sources."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from scripts.check_tables import __main__ as command
from scripts.check_tables import sources
from scripts.check_tables.checks import Difference, Explanation, compare, load_settings, make_checks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ELF_H = """\
#define AMDGPU_MACH_LIST(X) \\
  X(0x01, EF_AMDGPU_MACH_R600_R600, "r600") \\
  X(0x4c, EF_AMDGPU_MACH_AMDGCN_GFX942, "gfx942") \\
  X(0xeb, EF_AMDGPU_MACH_AMDGCN_GFX1250_STRICT, "gfx1250-strict")
  EF_AMDGPU_MACH_AMDGCN_RESERVED_0X27 = 0x027,
"""
TARGETS_CMAKE = """\
function(therock_add_amdgpu_target gfx_target product_name)
endfunction()
therock_add_amdgpu_target(gfx1000 "A Card / B" FAMILY dgpu-all gfx100X-all
  EXCLUDE_TARGET_PROJECTS
    some_project # https://example.org/1 (a reason)
)
therock_add_amdgpu_target(gfx1001 "C" FAMILY gfx100X-all)
"""
ECLASS = """\
	case ${ROCM_VERSION} in
		6.[0-3].*)
			unofficial_amdgpu_targets=(
				gfx803
				gfx900
			)
			official_amdgpu_targets=( gfx906 )
			;;
		7.*|9999)
			unofficial_amdgpu_targets=( gfx900 )
			official_amdgpu_targets=( gfx942 gfx90a )
			;;
		*)
			die "unknown"
			;;
	esac
"""
GPUS_YAML = """\
_series:
  - &one
    name: A series
AMD Radeon:
  AMD Radeon One:
    gfx: gfx1100
    series: *one
AMD Ryzen:
  AMD Ryzen Two:
    gfx: gfx1152
    igpu: Radeon 2M
  AMD Ryzen Three:
    gfx: gfx1153
    igpu: Radeon 2M
"""
PCI_IDS = """\
1001  Other
\t73ff  Other [Thing]
1002  AMD
\t73ff  Chip 23 WKS [Card A/B]
\t\t1043 0001  Board
\t0001  Old
1003  Next
\t0002  X
"""
AMDGPU_IDS = """\
# List
1.0.0
73FF,\tC1,\tAMD Card A
73FF,\tC3,\tAMD Card B
0001,   00,     AMD Old
0009,\t00,\tAMD New
"""
DIST_INFO = """\
class LibraryEntry: ...
LibraryEntry("amdhip64", "core", "libamdhip64.so*", "amdhip64*.dll")
LibraryEntry("liblzma", "core", "liblzma.so.*", "", "lib/rocm_sysdeps/lib")
LibraryEntry("rocdxg", "core", "librocdxg*.so*", "", optional=True)
"""


@pytest.mark.parametrize(
    ("parse", "text", "found"),
    [
        pytest.param(sources.parse_elf_header, ELF_H, {"gfx942": "0x4c", "gfx1250-strict": "0xeb"}, id="ELF.h"),
        pytest.param(
            sources.parse_therock_targets,
            TARGETS_CMAKE,
            {"dgpu-all": "gfx1000", "gfx100X-all": "gfx1000 gfx1001"},
            id="TheRock's targets",
        ),
        pytest.param(
            sources.parse_gentoo_flags,
            "# flags\n\ngfx900 - Vega\ngfx90a - CDNA\n",
            {"gfx900": "", "gfx90a": ""},
            id="desc",
        ),
        pytest.param(
            sources.parse_eclass,
            ECLASS,
            {
                "6.[0-3].* official": "gfx906",
                "6.[0-3].* unofficial": "gfx803 gfx900",
                "7.*|9999 official": "gfx90a gfx942",
                "7.*|9999 unofficial": "gfx900",
            },
            id="eclass",
        ),
        pytest.param(
            sources.parse_target_lines,
            "gfx900\ngfx90a:xnack+ # x\n\n",
            {"gfx900": "", "gfx90a:xnack+": ""},
            id="Debian",
        ),
        pytest.param(
            sources.parse_bazelrc,
            'common:rocm --repo_env=TF_ROCM_AMDGPU_TARGETS="gfx908,gfx9-4-generic"\n',
            {"gfx908": "", "gfx9-4-generic": ""},
            id="bazelrc",
        ),
        pytest.param(
            sources.parse_amd_gpus,
            GPUS_YAML,
            {
                "AMD Radeon One": "gfx1100",
                "AMD Ryzen Two": "gfx1152",
                "AMD Ryzen Three": "gfx1153",
                "Radeon 2M": "gfx1152 gfx1153",
            },
            id="gpus.yaml",
        ),
        pytest.param(sources.parse_pci_ids, PCI_IDS, {"73ff": "Chip 23 WKS", "0001": "Old"}, id="pci.ids"),
        pytest.param(
            sources.parse_amdgpu_ids,
            AMDGPU_IDS,
            {"AMD Card A": "73ff", "AMD Card B": "73ff", "AMD Old": "0001", "AMD New": "0009"},
            id="amdgpu.ids",
        ),
        pytest.param(
            sources.parse_libraries,
            DIST_INFO,
            {
                "amdhip64": "core lib libamdhip64",
                "amdhip64*.dll": "core",
                "liblzma": "core lib/rocm_sysdeps/lib liblzma",
                "rocdxg": "core lib librocdxg",
            },
            id="dist_info",
        ),
        pytest.param(
            sources.parse_hip_version,
            "#HIP_VERSION_MAJOR\n9\n#HIP_VERSION_MINOR\n0\n",
            {"libamdhip64.so.9": "", "libhiprtc.so.9": "", "libhiprtc-builtins.so.9": ""},
            id="HIP",
        ),
        pytest.param(
            sources.parse_jax_configs,
            "# common:x --y\ncommon:rocm --z\nbuild:wheel --config=rocm\nbuild:wheel --config=more --x\nbuild --z\n",
            {"rocm": "", "wheel": "more rocm"},
            id="configs of JAX",
        ),
        pytest.param(
            sources.parse_jax_targets,
            'jax_wheel(\n    name = "a_wheel",\n    x = 1,\n)\n',
            {"a_wheel": ""},
            id="BUILD of JAX",
        ),
        pytest.param(
            sources.parse_jax_pythons,
            '"3.12": "//build:requirements_lock_3_12.txt",\n"3.14-ft": "//build:requirements_lock_3_14_ft.txt",\n',
            {"3.12": "", "3.14-ft": ""},
            id="WORKSPACE of JAX",
        ),
        pytest.param(
            sources.parse_amdsmi_header, "#define AMDSMI_LIB_VERSION_MAJOR 30\n", {"libamd_smi.so.30": ""}, id="AMD SMI"
        ),
    ],
)
def test_each_source_is_parsed_into_names_and_values(
    parse: Callable[[str, str], sources.Facts], text: str, found: sources.Facts
) -> None:
    assert parse(text, "here") == found


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (sources.parse_elf_header, "  X(0x4c, EF_AMDGPU_MACH_AMDGCN_GFX942, 942)", "here:1: has '  X(0x4c, "),
        (sources.parse_elf_header, "EF_AMDGPU_MACH_AMDGCN_GFX942 = 0x4c,", "here: has no entry"),
        (sources.parse_therock_targets, 'therock_add_amdgpu_target(gfx1000 "A" all FAMILY b)', "here: 0 of 1 calls"),
        (sources.parse_gentoo_flags, "gfx900: Vega", "here:1: has 'gfx900: Vega'; expected FLAG - DESCRIPTION"),
        (sources.parse_eclass, ECLASS.replace("official_amdgpu_targets=( gfx906 )", ""), "here: 1 of 2 cases"),
        (sources.parse_target_lines, "<html>", "here: names the target '<html>'"),
        (sources.parse_target_lines, "", "here: has no entry; expected GPU targets"),
        (sources.parse_bazelrc, "common:rocm --x", "here: sets TF_ROCM_AMDGPU_TARGETS 0 times"),
        (sources.parse_jax_configs, "build --x\n", "here: has no entry; expected lines of configs"),
        (sources.parse_jax_targets, "", "here: has no entry; expected targets"),
        (sources.parse_jax_pythons, "", "here: has no entry; expected files with requirements"),
        (sources.parse_amd_gpus, "AMD Radeon:\n  AMD Radeon One:\n    arch: x\n", "here: can't be read ('gfx')"),
        (sources.parse_amd_gpus, "- a\n", "here: can't be read"),
        (sources.parse_pci_ids, "<html>", "here: has no entry; expected devices of vendor 1002"),
        (sources.parse_amdgpu_ids, "73FF AMD Card", "here:1: has '73FF AMD Card'"),
        (sources.parse_libraries, "LibraryEntry(name)", "here: can't be read"),
        (sources.parse_libraries, "x = 1", "here: has no entry; expected calls of LibraryEntry"),
        (sources.parse_hip_version, "7.1", "here: has no version"),
        (sources.parse_amdsmi_header, "", "here: has no version"),
    ],
)
def test_an_unexpected_format_is_an_error(parse: Callable[[str, str], sources.Facts], text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, "here")
    assert str(caught.value).startswith(message)


def test_products_get_the_targets_of_the_longest_matching_chip_name_and_of_named_devices() -> None:
    products = {"A": "73ff", "B": "73ff 7400", "Old": "0001", "New": "0009", "Unknown": "000a"}
    chips = {"73ff": "Chip 23 WKS", "7400": "Chip 2", "0001": "Old", "000a": "Chip"}
    known = {"Chip 2": "gfx1030", "Chip 23": "gfx1032", "Old": "", "0009": "gfx1200"}
    assert sources.targets_of_products(products, chips, known) == {
        "A": "gfx1032",
        "B": "gfx1030 gfx1032",
        "New": "gfx1200",
        "Unknown": "unknown:000a:Chip",
    }


def test_a_comparison_lists_missing_and_different_values_with_their_explanations() -> None:
    table = {"same": "1", "other": "1", "gone": "", "kept": ""}
    source = {"same": "1", "other": "2", "new": "3"}
    explained = [Explanation("c", ("ke*",), "old"), Explanation("c", ("never",), "unused")]
    assert compare(table, source, explained) == [
        Difference("new", None, "3"),
        Difference("other", "1", "2"),
        Difference("gone", "", None),
        Difference("kept", "", None, "old"),
    ]


def test_the_report_has_a_line_for_each_difference_and_each_explanation() -> None:
    explained = [Difference(f"n{number}", "", None, "they are old") for number in range(5)]
    differences = [Difference("a", None, "1"), Difference("b", "1", "2"), Difference("c", "", None), *explained]
    assert list(command.report_lines(differences)) == [
        "missing in the table: a (1)",
        "different: b: the table has '1', the source '2'",
        "missing in the source: c",
        "explained: n0, n1, n2, and 2 more: they are old",
    ]
    assert list(command.report_lines([])) == ["no differences"]


def test_an_explanation_may_apply_to_names_found_only_in_the_table() -> None:
    explained = [Explanation("c", ("*",), "older", only_table=True)]
    assert compare({"old": "", "both": "1"}, {"new": "", "both": "2"}, explained) == [
        Difference("new", None, ""),
        Difference("both", "1", "2"),
        Difference("old", "", None, "older"),
    ]


def test_an_unused_explanation_is_reported() -> None:
    differences = [Difference("a", "", None, "old")]
    assert list(command.report_lines(differences, ["old", "gone"])) == [
        "explained: a: old",
        "explains nothing any more: gone",
    ]


def test_products_in_a_source_and_in_the_catalog_are_compared_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gpus.yaml").write_text(
        "AMD Radeon:\n"
        "  AMD Radeon RX 7900 XT:\n    gfx: gfx1100\n"
        "  AMD Radeon RX 7600:\n    gfx: gfx1103\n"
        "  AMD Radeon RX 77777:\n    gfx: gfx1100\n"
    )
    assert command.main(["amd-products", "--source", f"amd-gpus={tmp_path}/gpus.yaml"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == [
        "  missing in the table: AMD Radeon RX 77777 (gfx1100)",
        "  different: AMD Radeon RX 7600: the table has 'gfx1102', the source 'gfx1103'",
    ]
    assert lines[3].endswith("more: AMD's list has only GPUs that the current ROCm supports")


def test_every_source_and_every_explanation_belongs_to_a_check() -> None:
    settings = load_settings()
    checks = make_checks(settings)
    assert {name for check in checks for name in check.sources} == set(settings.sources)
    assert {one.check for one in settings.explained} <= {check.name for check in checks}
    assert [url for url in settings.sources.values() if not url.startswith("https://")] == []


def test_a_target_missing_from_the_table_fails_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = tmp_path / "sid"
    lists.write_text("gfx803\ngfx900\ngfx906\ngfx908\ngfx90a\ngfx942\ngfx1010\ngfx1030\ngfx1100\ngfx1101\ngfx1102\n")
    with lists.open("a") as file:
        file.write("gfx1151\ngfx1200\ngfx1201\ngfx1777\n")
    assert command.main(["debian-sid", "--source", f"debian-sid={lists}"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "debian-sid: targets/catalog.toml, packager, and debian-sid",
        "  missing in the table: gfx1777",
        "1 check, 1 unexplained difference, 0 unreadable sources",
    ]


def test_a_matching_table_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "VERSION").write_text("#HIP_VERSION_MAJOR\n7\n")
    assert command.main(["hip-sonames", "--source", f"hip-version={tmp_path}/VERSION"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  no differences",
        "1 check, 0 unexplained differences, 0 unreadable sources",
    ]


def test_a_name_removed_from_jax_and_a_new_python_fail_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "jax-bazelrc": "common:clang --copt=x\n",
        "jax": "build:rocm_release_wheel --config=rocm\nbuild:rocm_rbe --x\ncommon:new --config=rocm\n",
        "jax-wheels": 'jax_wheel(\n    name = "jax_rocm_pjrt_wheel",\n)\n',
        "jax-workspace": '    "3.15": "//build:requirements_lock_3_15.txt",\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    options = [word for name in files for word in ("--source", f"{name}={tmp_path / name}")]
    assert command.main(["jax-tree", *options]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "  missing in the table: python 3.15" in lines
    assert "  missing in the source: target //jaxlib/tools:jax_rocm_plugin_wheel" in lines
    assert "  missing in the source: config rocm_rbe_dynamic (build/rocm/rocm.bazelrc)" in lines
    assert (
        "  different: rocm_release_wheel: the table has 'rocm rocm_clang_hermetic rocm_release_wheel', the source "
        "'rocm rocm_release_wheel'"
    ) in lines
    assert not any("config new" in line or "config clang " in line or "rocm_pjrt_wheel)" in line for line in lines)


def test_a_soname_newer_than_the_table_is_reported_as_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "amdsmi.h").write_text("#define AMDSMI_LIB_VERSION_MAJOR 99\n")
    assert command.main(["amd-smi-sonames", "--source", f"amdsmi-header={tmp_path}/amdsmi.h"]) == 1
    assert "  missing in the table: libamd_smi.so.99" in capsys.readouterr().out.splitlines()


def test_an_unreadable_source_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = f"{tmp_path}/nowhere"
    assert command.main(["hip-sonames", "--source", f"hip-version={place}"]) == 2
    assert f"  error: {place}: can't be read (No such file or directory)" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["nothing"], ["--source", "nothing=x"], ["--source", "llvm"]])
def test_unknown_names_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code == 2


def test_only_https_addresses_are_read() -> None:
    with pytest.raises(InputError, match="isn't a secure address"):
        command.read_place("http://example.org/list")


def test_a_redirect_to_an_insecure_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    response = SimpleNamespace(url="http://example.org/list", read=lambda _: b"")
    monkeypatch.setattr(command, "urlopen", lambda *_, **__: nullcontext(response))
    with pytest.raises(InputError, match="isn't a secure address"):
        command.read_place("https://example.org/list")
