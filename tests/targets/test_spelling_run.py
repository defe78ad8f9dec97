"""Tests of `rocwheel.targets.spelling`."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import RocwheelError
from rocwheel.targets.catalog import load_catalog
from rocwheel.targets.errors import ConflictError, NoFlagError
from rocwheel.targets.kernel_files import targets_in_path
from rocwheel.targets.spelling import WITH_OPTIONAL, Tool, file_name_spelling, flags_for, spell_lines
from rocwheel.targets.target_set import TargetSet, parse_target_set
from tests.support.bazel import STARTUP
from tests.support.example_counts import examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.tools import RunClang

    Require = Callable[[str, str], None]


pytestmark = pytest.mark.slow

TARGETS = parse_target_set("gfx1100 gfx90a:xnack+ gfx9-4-generic gfx90a:xnack-")
CLANG_16 = [row.name for row in load_catalog().processors.values() if row.llvm == (16, 23)]


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        pytest.param(
            Tool.CMAKE,
            "'-DCMAKE_HIP_ARCHITECTURES=gfx90a:xnack+;gfx1100' '-DGPU_TARGETS=gfx90a:xnack+;gfx1100' "
            "'-DAMDGPU_TARGETS=gfx90a:xnack+;gfx1100'\n",
            id="CMake",
        ),
        pytest.param(Tool.HIP, "--offload-arch=gfx90a:xnack+ --offload-arch=gfx1100\n", id="hipcc and clang"),
        pytest.param(
            Tool.BAZEL,
            "build --repo_env=TF_ROCM_AMDGPU_TARGETS=gfx90a:xnack+,gfx1100\n"
            "build --action_env=TF_ROCM_AMDGPU_TARGETS=gfx90a:xnack+,gfx1100\n",
            id="Bazel",
        ),
        pytest.param(Tool.TORCH, "PYTORCH_ROCM_ARCH='gfx90a:xnack+;gfx1100'\n", id="PyTorch"),
        pytest.param(Tool.JAX, "--rocm_amdgpu_targets=gfx90a:xnack+,gfx1100\n", id="JAX"),
        pytest.param(Tool.SPACK, "amdgpu_target=gfx90a:xnack+,gfx1100\n", id="Spack"),
        pytest.param(
            Tool.NIX,
            'rocmPackages.clr.override { localGpuTargets = [ "gfx90a:xnack+" "gfx1100" ]; }\n',
            id="Nix",
        ),
        pytest.param(Tool.DEBIAN, "X-ROCm-GPU-Architecture: gfx90a:xnack+ gfx1100\n", id="Debian"),
        pytest.param(Tool.RPM, '%rocm_gpu_list_default "gfx90a:xnack+;gfx1100"\n', id="RPM"),
        pytest.param(Tool.TARGET_LST, "gfx90a\ngfx1100\n", id="ROCM_TARGET_LST"),
        pytest.param(Tool.FILE_NAME, "gfx90a-xnack+\ngfx1100\n", id="file names"),
    ],
)
def test_each_tool_gets_its_own_settings(tool: Tool, expected: str) -> None:
    assert flags_for(tool, parse_target_set("gfx1100;gfx90a:xnack+")) == expected


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        *((tool, "gfx1100;gfx90a:xnack+;gfx9-4-generic") for tool in (Tool.CMAKE, Tool.HIP, Tool.TORCH, Tool.JAX)),
        (Tool.SPACK, "gfx1100;gfx90a:xnack+"),
    ],
)
def test_the_settings_of_a_tool_round_trip(tool: Tool, words: str) -> None:
    targets = parse_target_set(words)
    assert parse_target_set(shlex.split(flags_for(tool, targets))) == targets


def test_an_empty_target_list_names_the_cpu_to_prevent_gpu_detection() -> None:
    assert spell_lines(TargetSet()) == "gfx000\n"


@pytest.mark.parametrize("tool", [tool for tool in Tool if tool not in (*WITH_OPTIONAL, Tool.GENTOO_DESC)])
def test_text_printed_for_a_tool_is_read_back(tool: Tool) -> None:
    targets = parse_target_set("gfx90a:xnack+ gfx90a:xnack- gfx1100")
    expected = "gfx90a;gfx1100" if tool is Tool.TARGET_LST else str(targets)
    text = flags_for(tool, targets)
    assert str(parse_target_set(text)) == expected
    assert str(parse_target_set(shlex.split(text))) == expected


@given(st.sampled_from([row.name for row in load_catalog().processors.values() if row.features]), st.booleans())
def test_a_target_is_read_back_from_a_kernel_file_name(name: str, setting: bool) -> None:
    target = TargetId(name, **dict.fromkeys(load_catalog().processor(name).features, setting))
    assert parse_target_set(file_name_spelling(target)).ids == (target,)


def test_spirv_is_not_allowed_in_a_target_list() -> None:
    message = "GPU targets: there is no line of ROCM_TARGET_LST for amdgcnspirv; expected processors, such as gfx1100"
    with pytest.raises(NoFlagError, match=f"^{re.escape(message)}$"):
        flags_for(Tool.TARGET_LST, parse_target_set("amdgcnspirv gfx1100"))


def test_cmake_reads_each_target_without_empty_items(require_tool: Require, tmp_path: Path) -> None:
    require_tool("cmake", "cmake")
    script = tmp_path / "print.cmake"
    script.write_text('foreach(target IN LISTS GPU_TARGETS)\n  message(NOTICE "<${target}>")\nendforeach()\n')
    command = ["cmake", *shlex.split(flags_for(Tool.CMAKE, TARGETS)), "-P", str(script)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert re.findall("<(.*)>", printed) == ["gfx90a:xnack+", "gfx90a:xnack-", "gfx9-4-generic", "gfx1100"]


def test_the_shell_passes_pytorch_one_variable_with_every_target(require_tool: Require) -> None:
    require_tool("sh", "dash")
    line = flags_for(Tool.TORCH, TARGETS).strip()
    command = ["sh", "-c", f'{line}; printf %s "$PYTORCH_ROCM_ARCH"']
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.split(";") == list(TARGETS.words)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("printf %%s -D=%{rocm_gpu_list_default} >{out}", id="argument"),
        pytest.param("X=%rocm_gpu_list_default; printf %%s -D=$X >{out}", id="variable"),
    ],
)
def test_rpmbuild_passes_an_unquoted_macro_to_the_shell_as_one_word(
    require_tool: Require, tmp_path: Path, line: str
) -> None:
    require_tool("rpmbuild", "rpm")
    macros, spec, out = tmp_path / "macros.rocm", tmp_path / "x.spec", tmp_path / "out"
    macros.write_text(flags_for(Tool.RPM, TARGETS))
    head = "Name: x\nVersion: 1\nRelease: 1\nSummary: x\nLicense: MIT\nBuildArch: noarch\n%description\nx\n"
    spec.write_text(f"{head}%prep\n%build\n{line.replace('{out}', str(out))}\n")
    command = ["rpmbuild", "--load", str(macros), "--define", f"_topdir {tmp_path}", "-bc", str(spec)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert out.read_text() == f"-D={TARGETS}"


def test_nix_evaluates_the_override_to_the_targets(require_tool: Require) -> None:
    require_tool("nix-instantiate", "nix-bin")
    override = flags_for(Tool.NIX, TARGETS).strip()
    expression = f"let rocmPackages.clr.override = arguments: arguments.localGpuTargets; in {override}"
    command = ["nix-instantiate", "--store", "dummy://", "--eval", "--strict", "--json", "-E", expression]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert json.loads(printed) == list(TARGETS.words)


def test_dpkg_reads_the_field_from_a_package(require_tool: Require, tmp_path: Path) -> None:
    require_tool("dpkg-deb", "dpkg")
    control = tmp_path / "package" / "DEBIAN" / "control"
    control.parent.mkdir(parents=True)
    control.parent.chmod(0o755)
    head = "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: test\n"
    control.write_text(head + flags_for(Tool.DEBIAN, TARGETS))
    package = tmp_path / "x.deb"
    subprocess.run(["dpkg-deb", "--build", control.parent.parent, package], check=True, capture_output=True)
    command = ["dpkg-deb", "--field", str(package), "X-ROCm-GPU-Architecture"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.split() == list(TARGETS.words)


def test_bazel_accepts_the_lines_in_a_bazelrc(
    require_tool: Require, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    require_tool("bazel", "bazel-bootstrap")
    (tmp_path / "WORKSPACE").touch()
    (tmp_path / "BUILD").write_text(
        'genrule(name = "x", outs = ["x.txt"], cmd = "echo $$TF_ROCM_AMDGPU_TARGETS > $@")\n'
    )
    (tmp_path / ".bazelrc").write_text(flags_for(Tool.BAZEL, TARGETS))
    startup = ["--batch", f"--output_user_root={tmp_path_factory.mktemp('bazel')}", *STARTUP]
    subprocess.run(["bazel", *startup, "build", "//:x"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "bazel-bin" / "x.txt").read_text().strip().split(",") == list(TARGETS.words)


def test_clang_compiles_for_each_target_in_the_arguments(run_clang: RunClang) -> None:
    result = run_clang(["-fsyntax-only", "-###", *shlex.split(flags_for(Tool.HIP, TARGETS))])
    assert result.returncode == 0, result.stderr
    processors = re.findall(r'"-target-cpu" "(gfx[^"]*)"', result.stderr)
    assert sorted(set(processors)) == ["gfx1100", "gfx9-4-generic", "gfx90a"]


def _gfx90a_or_gfx906() -> st.SearchStrategy[TargetId]:
    setting = st.sampled_from([None, True, False])
    return st.builds(TargetId, st.sampled_from(["gfx90a", "gfx906"]), setting, setting)


def _clang_ids() -> st.SearchStrategy[TargetId]:
    setting = st.sampled_from([None, True, False])
    return st.builds(TargetId, st.sampled_from(CLANG_16), setting, setting)


@given(_clang_ids())
@settings(max_examples=examples(60), deadline=None)
def test_clang_accepts_the_same_features_and_prints_the_same_canonical_id(
    run_clang: RunClang, target: TargetId
) -> None:
    result = run_clang(["-E", "-dM", f"--offload-arch={target}"])
    macro = re.search('define __amdgcn_target_id__ "(.*)"', result.stdout)
    try:
        canonical = str(parse_target_set(str(target)))
    except RocwheelError:
        canonical = ""
    assert (macro[1] if macro else "") == canonical


@given(st.lists(_gfx90a_or_gfx906(), max_size=4))
@settings(max_examples=examples(60), deadline=None)
def test_clang_accepts_every_combination_that_rocwheel_accepts(run_clang: RunClang, ids: list[TargetId]) -> None:
    arguments = [f"--offload-arch={target}" for target in ids]
    with suppress(ConflictError):
        parse_target_set(arguments, required=False)
        assert run_clang(["-fsyntax-only", *arguments]).returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("gfx90a gfx90a:xnack+", id="any and specific"),
        pytest.param("gfx90a:sramecc+ gfx90a:xnack+", id="different features"),
        pytest.param("gfx906:xnack- gfx906", id="specific and any"),
    ],
)
def test_combinations_refused_by_clang_are_refused(run_clang: RunClang, text: str) -> None:
    result = run_clang(["-fsyntax-only", *(f"--offload-arch={word}" for word in text.split())])
    assert "invalid offload arch combinations" in result.stderr
    with pytest.raises(ConflictError):
        parse_target_set(text)


@given(st.builds(TargetId, st.sampled_from(["gfx90a", "gfx9-4-generic"]), *[st.sampled_from([None, True, False])] * 2))
def test_the_file_name_spelling_round_trips(target: TargetId) -> None:
    assert targets_in_path(f"kernels-{file_name_spelling(target)}.co") == (target,)


def test_the_file_name_spelling_has_no_colon() -> None:
    assert file_name_spelling(TargetId("gfx90a", xnack=False)) == "gfx90a-xnack-"
