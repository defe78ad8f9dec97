"""A workspace of the structure of JAX's own wheel rules, whose wheels Bazel has rocwheel make."""

from __future__ import annotations

import hashlib
import shutil
import sys
import zipfile
from email.parser import BytesParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.frameworks.bazel_workspace import NEEDS_BAZEL, ROOT, Workspace
from tests.support.command_line import rocwheel

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURE = ROOT / "tests/fixtures/jax_rules"
EXAMPLE = ROOT / "examples/bazel"
HASH = "0123456789abcdef0123456789abcdef01234567"
RELEASE = "--repo_env=ML_WHEEL_TYPE=release"
TARGETS = ("//jaxlib/tools:jax_rocm7_pjrt_wheel", "//jaxlib/tools:jax_rocm7_plugin_wheel")
PJRT = "jax_rocm7_pjrt-0.12.0-py3-none-manylinux_2_27_x86_64.whl"
PLUGIN = "jax_rocm7_plugin-0.12.0-cp311-cp311-manylinux_2_27_x86_64.whl"

pytestmark = [pytest.mark.slow, *NEEDS_BAZEL]


@pytest.fixture(scope="module")
def workspace(sample_dist: Path, rocm_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    made = make_workspace(tmp_path_factory.mktemp("jax_rules"), sample_dist, rocm_path)
    yield made
    made.bazel("shutdown")


def make_workspace(folder: Path, sample_dist: Path, rocm_path: Path) -> Workspace:
    """Copy the workspace and add what rocwheel writes: the fragment, the rules, and the targets."""
    source = shutil.copytree(FIXTURE, folder / "source")
    for part in ("python", "rocm", "third_party/rules_cc", "third_party/rules_java"):
        shutil.copytree(EXAMPLE / part, source / part)
    repository = source / "rocm/rocm_repository.bzl"
    repository.write_text(repository.read_text().replace("rocwheel_example", "jax"))
    made = Workspace(source, folder / "bazel", sample_dist)
    print_with(source, "bazelrc", "--output", "rocm.bazelrc")
    append(source / "WORKSPACE", print_with(source, "starlark", "--jax-rules", "rocm_wheel"))
    targets = print_with(source, "wheel-targets", "--library", "@python//:rocwheel")
    append(source / "jaxlib/tools/BUILD.bazel", targets)
    lines = [f"build --repo_env=ROCM_PATH={rocm_path}", f"build --repo_env=ROCWHEEL_PYTHON={sys.executable}"]
    (source / ".bazelrc.user").write_text("\n".join([*lines, ""]))
    return made


def print_with(folder: Path, *words: str) -> str:
    written = rocwheel("jax", *words, cwd=folder)
    assert written.returncode == 0, written.stderr
    return written.stdout


def append(path: Path, text: str) -> None:
    path.write_text(f"{path.read_text()}\n{text}")


def build(workspace: Workspace, *options: str) -> list[Path]:
    workspace.build("--config=rocm_build", "--config=python311", *options, *TARGETS)
    return sorted((workspace.folder / "bazel-bin/jaxlib/tools/dist").glob("*.whl"))


@pytest.fixture(scope="module")
def wheels(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("dist")
    made = build(workspace, RELEASE, f"--//jaxlib/tools:jaxlib_git_hash={HASH}")
    return [Path(shutil.copy(path, folder)) for path in made]


def test_the_wheels_have_the_names_that_the_rule_declared(wheels: list[Path]) -> None:
    assert [path.name for path in wheels] == [PJRT, PLUGIN]


def test_the_wheels_contain_the_files_in_the_descriptions(wheels: list[Path]) -> None:
    modules = ["_hybrid", "_linalg", "_prng", "_rnn", "_solver", "_sparse", "_triton", "rocm_plugin_extension"]
    assert [members(path) for path in wheels] == [
        {
            f"jax_plugins/xla_rocm7/{name}"
            for name in ("__init__.py", "commit_info.py", "version.py", "xla_rocm_plugin.so")
        },
        {
            *(f"jax_rocm7_plugin/{module}.so" for module in modules),
            *(f"jax_rocm7_plugin/{name}.py" for name in ("__init__", "commit_info", "version")),
        },
    ]


def members(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheels_have_the_version_and_commit_of_the_build(wheels: list[Path]) -> None:
    with zipfile.ZipFile(wheels[1]) as archive:
        metadata = BytesParser().parsebytes(archive.read("jax_rocm7_plugin-0.12.0.dist-info/METADATA"))
        assert metadata["Version"] == "0.12.0"
        assert metadata.get_all("Requires-Dist") == ["jax-rocm7-pjrt==0.12.0.*"]
        assert f'"jax": "{HASH}"' in archive.read("jax_rocm7_plugin/commit_info.py").decode()


def test_the_audit_reports_no_errors_in_the_wheels(workspace: Workspace, wheels: list[Path]) -> None:
    audited = rocwheel("audit", *wheels, "--with", workspace.sample_dist)
    assert (audited.returncode, " 0 errors" in audited.stdout) == (0, True), audited.stdout


def test_arguments_in_a_parameter_file_produce_the_same_wheels(workspace: Workspace, wheels: list[Path]) -> None:
    options = (RELEASE, f"--//jaxlib/tools:jaxlib_git_hash={HASH}", "--//jaxlib/tools:use_param_file")
    again = build(workspace, *options)
    assert list(map(digest, again)) == list(map(digest, wheels))


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_wheel_name_has_the_version_suffix_and_python_of_the_build(workspace: Workspace) -> None:
    options = (RELEASE, "--repo_env=ML_WHEEL_VERSION_SUFFIX=-rc1", "--config=python312")
    workspace.build("--config=rocm_build", *options, *TARGETS)
    folder = workspace.folder / "bazel-bin/jaxlib/tools/dist"
    assert (folder / "jax_rocm7_pjrt-0.12.0rc1-py3-none-manylinux_2_27_x86_64.whl").exists()
    assert (folder / "jax_rocm7_plugin-0.12.0rc1-cp312-cp312-manylinux_2_27_x86_64.whl").exists()


def test_the_name_of_a_free_threaded_wheel_matches_the_rule(workspace: Workspace) -> None:
    flag = "--@rules_python//python/config_settings:py_freethreaded=yes"
    options = (RELEASE, "--repo_env=HERMETIC_PYTHON_VERSION=3.13", flag)
    workspace.build("--config=rocm_build", *options, TARGETS[1])
    folder = workspace.folder / "bazel-bin/jaxlib/tools/dist"
    assert (folder / "jax_rocm7_plugin-0.12.0-cp313-cp313t-manylinux_2_27_x86_64.whl").exists()


def test_a_wrong_run_path_fails_the_build(workspace: Workspace) -> None:
    wrong = "--repo_env=ROCM_WHEEL_RPATH=$ORIGIN/nowhere"
    finished = workspace.bazel("build", "--config=rocm_build", "--config=python311", RELEASE, wrong, TARGETS[0])
    assert finished.returncode == 1
    text = " ".join(finished.stderr.split())
    assert "jax_plugins/xla_rocm7/xla_rocm_plugin.so: needs libamdhip64.so.7, which is in _rocm_sdk_core/lib" in text


@pytest.fixture(scope="module")
def own_package(workspace: Workspace) -> Path:
    """Return a Bazel package of the workspace whose targets have words of their own."""
    package = workspace.folder / "own"
    package.mkdir()
    shutil.copy(next(workspace.sample_dist.glob("rocm_sdk_core-*.whl")), package)
    (package / "own.toml").write_text(OWN_SPEC)
    (package / "BUILD.bazel").write_text(OWN_TARGETS)
    return package


def test_wheel_binary_attributes_reach_rocwheel(workspace: Workspace, own_package: Path, tmp_path: Path) -> None:
    wrong = "--repo_env=ROCM_WHEEL_RPATH=$ORIGIN/nowhere"
    workspace.build("--config=rocm_build", "--config=python311", RELEASE, wrong, f"//{own_package.name}:wheel")
    wheel = workspace.folder / "bazel-bin/own/dist/own-0.12.0-py3-none-manylinux_2_27_x86_64.whl"
    with zipfile.ZipFile(wheel) as archive:
        metadata = BytesParser().parsebytes(archive.read("own-0.12.0.dist-info/METADATA"))
        assert metadata["Summary"] == "Own words"
        library = Path(archive.extract("own/plugin.so", tmp_path))
    shown = rocwheel("runpath", "show", library).stdout
    assert "$ORIGIN/../_rocm_sdk_core/lib" in shown


OWN_SPEC = """
schema = 1
name = "own"
version = "1"
summary = "{words}"

[[files]]
from = "pjrt_c_api_gpu_plugin.so"
to = "own/plugin.so"
"""
OWN_TARGETS = """
load("//jaxlib:jax.bzl", "jax_wheel")
load("//rocm_wheel:jax_wheel_binary.bzl", "jax_wheel_binary")

jax_wheel_binary(
    name = "binary",
    beside = glob(["*.whl"]),
    kind = "pjrt",
    repair = True,
    spec = "own.toml",
    values = {"words": "Own words"},
    deps = ["@python//:rocwheel"],
)

jax_wheel(
    name = "wheel",
    enable_rocm = True,
    no_abi = True,
    platform_version = "7",
    source_files = ["//jax_plugins/rocm:pjrt_c_api_gpu_plugin.so"],
    wheel_binary = ":binary",
    wheel_name = "own",
)

jax_wheel(
    name = "editable",
    editable = True,
    enable_rocm = True,
    platform_version = "7",
    source_files = ["//jax_plugins/rocm:pjrt_c_api_gpu_plugin.so"],
    wheel_binary = ":binary",
    wheel_name = "own",
)
"""


def test_an_editable_wheel_is_refused_with_a_reason(workspace: Workspace, own_package: Path) -> None:
    target = f"//{own_package.name}:editable"
    finished = workspace.bazel("build", "--config=rocm_build", "--config=python311", RELEASE, target)
    assert finished.returncode == 1
    text = " ".join(finished.stderr.split())
    assert (
        "the call to jax_wheel: requests an editable wheel; expected a regular wheel. Build the target "
        "without _editable" in text
    )
