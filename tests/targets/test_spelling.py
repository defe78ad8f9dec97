"""Tests of `rocwheel.targets.spelling`."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import ProblemsError, RocwheelError
from rocwheel.targets.catalog import is_specific, load_catalog, release_for
from rocwheel.targets.errors import NoFlagError
from rocwheel.targets.spelling import ebuild_fragment, gentoo_variables, parse_desc, spack_variant, spell_desc
from rocwheel.targets.target_set import TargetSet, parse_target_set

LOOP = r"""
official=($1); unofficial=($2)
for gpu_target in "${official[@]}"; do iuse_flags+=("+amdgpu_targets_${gpu_target}"); done
for gpu_target in "${unofficial[@]}"; do iuse_flags+=("amdgpu_targets_${gpu_target}"); done
all=("${official[@]}" "${unofficial[@]}")
allflags=("${all[@]/#/amdgpu_targets_}")
printf 'IUSE=%s\n' "${iuse_flags[*]}"
printf 'ROCM_REQUIRED_USE=|| ( %s )\n' "${allflags[*]}"
IFS=,
flags=("${allflags[@]/%/(-)?}")
printf 'ROCM_USEDEP=%s\n' "${flags[*]}"
"""


def _variables(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in shlex.split(text))


@pytest.mark.parametrize("version", ["5.1", "6.3.2", "6.4.3", "7.1"])
def test_gentoo_variables_equal_those_of_a_bash_loop_over_the_lists(version: str) -> None:
    release = release_for(version)
    arguments = [" ".join(release.official), " ".join(release.unofficial)]
    result = subprocess.run(["bash", "-c", LOOP, "loop", *arguments], capture_output=True, text=True, check=True)
    expected = dict(line.split("=", 1) for line in result.stdout.splitlines())
    ours = _variables(gentoo_variables(parse_target_set(f"official@{version}"), release.unofficial))
    for name in ("IUSE", "ROCM_REQUIRED_USE", "ROCM_USEDEP"):
        assert set(re.split("[ ,]", ours[name])) == set(re.split("[ ,]", expected[name]))


def test_gentoo_variables_are_printed_as_assignments() -> None:
    assert gentoo_variables(parse_target_set("gfx90a:xnack+ gfx1100"), ["gfx1031", "gfx1100"]) == (
        'AMDGPU_TARGETS="gfx90a gfx1100"\n'
        'IUSE="+amdgpu_targets_gfx90a +amdgpu_targets_gfx1100 amdgpu_targets_gfx1031"\n'
        'ROCM_REQUIRED_USE="|| ( amdgpu_targets_gfx90a amdgpu_targets_gfx1100 amdgpu_targets_gfx1031 )"\n'
        'ROCM_USEDEP="amdgpu_targets_gfx90a(-)?,amdgpu_targets_gfx1100(-)?,amdgpu_targets_gfx1031(-)?"\n'
    )


@pytest.mark.parametrize(
    ("targets", "optional", "named"),
    [
        pytest.param("gfx11-generic", [], "gfx11-generic", id="on by default"),
        pytest.param("gfx1100", ["gfx11-generic"], "gfx11-generic", id="optional"),
        pytest.param("amdgcnspirv gfx1100", ["gfx11-generic"], "amdgcnspirv, gfx11-generic", id="SPIR-V"),
    ],
)
def test_gentoo_has_flags_only_for_specific_processors(targets: str, optional: list[str], named: str) -> None:
    message = f"GPU targets: there is no USE flag for {named}; expected specific processors, such as gfx1100"
    with pytest.raises(NoFlagError, match=f"^{re.escape(message)}$"):
        gentoo_variables(parse_target_set(targets), optional)


@pytest.mark.parametrize("target", ["gfx9-4-generic", "gfx90a:sramecc+", "gfx600", "amdgcnspirv"])
def test_spack_has_values_only_for_some_targets(target: str) -> None:
    message = (
        f"GPU targets: there is no value of amdgpu_target for {target}; expected the targets in list@spack, "
        "or gfx900:xnack-, gfx906:xnack-, gfx908:xnack-, gfx90a:xnack-, gfx90a:xnack+"
    )
    with pytest.raises(NoFlagError, match=f"^{re.escape(message)}$"):
        spack_variant(parse_target_set(["gfx1100", target]))


def test_spack_has_values_for_its_list_and_for_some_features() -> None:
    assert spack_variant(parse_target_set("list@spack")).count(",") == 38
    assert (
        spack_variant(parse_target_set("gfx90a:xnack+ gfx906:xnack-")) == "amdgpu_target=gfx906:xnack-,gfx90a:xnack+\n"
    )


def test_two_settings_of_a_processor_become_one_flag() -> None:
    variables = _variables(gentoo_variables(parse_target_set("gfx90a:xnack+ gfx90a:xnack-")))
    assert variables["AMDGPU_TARGETS"] == "gfx90a"


def test_no_targets_give_no_flags() -> None:
    assert _variables(gentoo_variables(TargetSet()))["IUSE"] == ""


ECLASS = r"""
set -e
PV=6.4.3
inherit() {
    echo "inherit $*, ROCM_VERSION=${ROCM_VERSION-}, ROCM_SKIP_GLOBALS=${ROCM_SKIP_GLOBALS-}"
    if [[ -z ${ROCM_SKIP_GLOBALS-} ]]; then IUSE=eclass ROCM_REQUIRED_USE=eclass ROCM_USEDEP=eclass; fi
}
rocm_use_hipcc() { echo "hipcc"; }
get_amdgpu_flags() { echo $(printf "%s;" ${AMDGPU_TARGETS}); }
cmake_src_configure() { printf '%s\n' "${mycmakeargs[@]}"; }
source /dev/stdin
printf '%s\n' "$IUSE" "$REQUIRED_USE" "$ROCM_USEDEP"
AMDGPU_TARGETS="gfx906 gfx1100" src_configure
"""
"""What an ebuild meets, in the place of Portage and rocm.eclass."""


def _run(ebuild: str) -> list[str]:
    command = ["bash", "-c", ECLASS]
    return subprocess.run(command, input=ebuild, capture_output=True, text=True, check=True).stdout.splitlines()


def test_an_ebuild_with_its_own_lists_keeps_the_eclass_from_setting_lists() -> None:
    assert _run(ebuild_fragment(parse_target_set("gfx90a:xnack+ gfx1100"), ["gfx1031"])) == [
        "inherit cmake rocm, ROCM_VERSION=6.4.3, ROCM_SKIP_GLOBALS=1",
        "+amdgpu_targets_gfx90a +amdgpu_targets_gfx1100 amdgpu_targets_gfx1031",
        "|| ( amdgpu_targets_gfx90a amdgpu_targets_gfx1100 amdgpu_targets_gfx1031 )",
        "amdgpu_targets_gfx90a(-)?,amdgpu_targets_gfx1100(-)?,amdgpu_targets_gfx1031(-)?",
        "hipcc",
        "-DGPU_TARGETS=gfx906;gfx1100;",
        "-DAMDGPU_TARGETS=gfx906;gfx1100;",
    ]


@pytest.mark.parametrize(
    ("version", "span"),
    [
        ("6.4", "from version 6.4.0 up to, but not including, 6.4.3"),
        ("6.4.1", "from version 6.4.0 up to, but not including, 6.4.3"),
        ("6.4.3", "from version 6.4.3 up to, but not including, 7.0.0"),
        ("7.1", "from version 7.0.0 up to, but not including, 8.0.0"),
    ],
)
def test_an_ebuild_with_the_eclass_lists_sets_its_version_and_says_which_versions_match(
    version: str, span: str
) -> None:
    ebuild = ebuild_fragment(parse_target_set(f"official@{version}"), release_for(version).unofficial)
    assert _run(ebuild)[:4] == [
        "inherit cmake rocm, ROCM_VERSION=6.4.3, ROCM_SKIP_GLOBALS=",
        "eclass",
        "eclass",
        "eclass",
    ]
    assert f"\n# rocm.eclass has these GPU lists {span}.\n" in ebuild


@pytest.mark.parametrize("write", [ebuild_fragment, spell_desc])
def test_targets_without_a_gentoo_flag_are_refused(write: object) -> None:
    with pytest.raises(NoFlagError):
        write(parse_target_set("gfx9-4-generic"))  # type: ignore[operator]


def test_the_flag_file_names_products() -> None:
    assert spell_desc(parse_target_set("gfx1011 gfx906:xnack- gfx1013")).splitlines() == [
        "gfx906 - GPU, including Radeon Instinct MI50, Radeon Instinct MI60, Radeon VII, Radeon Pro VII",
        "gfx1011 - GPU, including Radeon Pro V520, Radeon Pro 5600M, Radeon Pro V540",
        "gfx1013 - integrated GPU, no known products",
    ]


def test_the_flag_file_round_trips() -> None:
    names = [row.name for row in load_catalog().targets]
    assert list(parse_desc(spell_desc(parse_target_set("all")), "desc")) == [
        str(target) for target in parse_target_set(names) if is_specific(target)
    ]


def test_the_flag_file_may_have_comments_and_empty_lines() -> None:
    text = "# Copyright\n\ngfx906 - Vega GPU, codename vega20 - the second\n  gfx90a\t-  CDNA2  \n"
    assert parse_desc(text, "desc") == {"gfx906": "Vega GPU, codename vega20 - the second", "gfx90a": "CDNA2"}


def test_every_bad_line_of_a_flag_file_is_reported_with_its_number() -> None:
    with pytest.raises(RocwheelError) as error:
        parse_desc("gfx906 - a\ngfx906 - b\ngfx90a\ngfx908 -\n", "amdgpu_targets.desc")
    assert str(error.value) == (
        "amdgpu_targets.desc: 3 problems\n"
        "  amdgpu_targets.desc:2: repeats the flag 'gfx906'; expected each flag only once\n"
        "  amdgpu_targets.desc:3: has 'gfx90a'; expected FLAG - DESCRIPTION\n"
        "  amdgpu_targets.desc:4: has 'gfx908 -'; expected FLAG - DESCRIPTION"
    )


@given(st.text())
def test_any_text_is_read_or_refused_as_a_flag_file(text: str) -> None:
    try:
        found = parse_desc(text, "desc")
    except RocwheelError:
        return
    assert all(re.fullmatch(r"\S+", name) for name in found)


NAMES = st.sampled_from([row.name for row in load_catalog().targets if is_specific(TargetId(row.name))])


@given(st.lists(NAMES, min_size=1, unique=True))
def test_any_targets_round_trip_through_the_flag_file(names: list[str]) -> None:
    targets = parse_target_set(names)
    assert list(parse_desc(spell_desc(targets), "desc")) == list(targets.processors)


@given(st.lists(NAMES, min_size=1, unique=True), st.lists(NAMES, unique=True))
def test_any_targets_give_assignments_that_a_shell_can_read(names: list[str], optional: list[str]) -> None:
    targets = parse_target_set(names)
    off = [name for name in optional if name not in targets.processors]
    words = dict(word.split("=", 1) for word in shlex.split(gentoo_variables(targets, optional)))
    assert words["AMDGPU_TARGETS"].split() == list(targets.processors)
    flags = [f"+amdgpu_targets_{name}" for name in targets.processors] + [f"amdgpu_targets_{name}" for name in off]
    assert words["IUSE"].split() == flags
    assert ebuild_fragment(targets, optional).count("\ninherit cmake rocm\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        "gfx906 - " + "x" * 1_000_000,
        "x" * 1_000_000,
        " " * 1_000_000 + "-",
        "a - b\n" * 100_000,
        "\0 - \x1b[31m\n",
        "- - -\n-",
    ],
    ids=["a long description", "a long line", "blanks", "one flag again and again", "control characters", "dashes"],
)
def test_hostile_flag_files_are_read_or_refused_with_a_short_message(text: str) -> None:
    try:
        found = parse_desc(text, "desc")
    except RocwheelError as e:
        assert all(len(line) < 1000 for line in str(e).splitlines())  # noqa: PT017 (either way is right)
        return
    assert found


def test_no_targets_give_no_lines() -> None:
    assert spell_desc(TargetSet()) == ""


def test_a_file_of_another_type_is_reported_with_only_its_first_ten_lines() -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_desc("\x7fELF\n" * 1000, "libz.so.1")
    assert [str(problem) for problem in caught.value.problems][0::9] == [
        "libz.so.1:1: has '\\x7fELF'; expected FLAG - DESCRIPTION",
        "libz.so.1:10: has '\\x7fELF'; expected FLAG - DESCRIPTION",
    ]
