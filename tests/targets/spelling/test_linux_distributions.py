"""What distributions declare; Gentoo's is held against a loop that sets what rocm.eclass documents."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from rocwheel.targets.catalog import release_for
from rocwheel.targets.errors import NoFlagError
from rocwheel.targets.spelling import gentoo_variables, spack_variant
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
def test_gentoo_variables_mean_what_a_loop_in_bash_makes_of_the_lists(version: str) -> None:
    release = release_for(version)
    arguments = [" ".join(release.official), " ".join(release.unofficial)]
    result = subprocess.run(["bash", "-c", LOOP, "loop", *arguments], capture_output=True, text=True, check=True)
    expected = dict(line.split("=", 1) for line in result.stdout.splitlines())
    ours = _variables(gentoo_variables(parse_target_set(f"official@{version}"), release.unofficial))
    for name in ("IUSE", "ROCM_REQUIRED_USE", "ROCM_USEDEP"):
        assert set(re.split("[ ,]", ours[name])) == set(re.split("[ ,]", expected[name]))


def test_gentoo_variables_are_assignments_to_paste() -> None:
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
def test_gentoo_has_flags_for_specific_processors_alone(targets: str, optional: list[str], named: str) -> None:
    message = f"GPU targets: there is no USE flag for {named}; expected specific processors, such as gfx1100"
    with pytest.raises(NoFlagError, match=f"^{re.escape(message)}$"):
        gentoo_variables(parse_target_set(targets), optional)


@pytest.mark.parametrize("target", ["gfx9-4-generic", "gfx90a:sramecc+", "gfx600", "amdgcnspirv"])
def test_spack_has_values_for_some_targets_alone(target: str) -> None:
    message = (
        f"GPU targets: there is no value of amdgpu_target for {target}; expected those of list@spack, "
        "or gfx900:xnack-, gfx906:xnack-, gfx908:xnack-, gfx90a:xnack-, gfx90a:xnack+"
    )
    with pytest.raises(NoFlagError, match=f"^{re.escape(message)}$"):
        spack_variant(parse_target_set(["gfx1100", target]))


def test_spack_has_values_for_its_list_and_for_some_features() -> None:
    assert spack_variant(parse_target_set("list@spack")).count(",") == 38
    assert (
        spack_variant(parse_target_set("gfx90a:xnack+ gfx906:xnack-")) == "amdgpu_target=gfx906:xnack-,gfx90a:xnack+\n"
    )


def test_two_settings_of_a_processor_are_one_flag() -> None:
    variables = _variables(gentoo_variables(parse_target_set("gfx90a:xnack+ gfx90a:xnack-")))
    assert variables["AMDGPU_TARGETS"] == "gfx90a"


def test_no_target_makes_no_flag() -> None:
    assert _variables(gentoo_variables(TargetSet()))["IUSE"] == ""
