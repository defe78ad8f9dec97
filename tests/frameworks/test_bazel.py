"""The example workspace built by real Bazel, with the files that rocwheel writes for it, up to JAX itself."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

from rocwheel.frameworks.jax.bazelrc import spell_rc_word
from tests.frameworks.bazel_workspace import NEEDS_BAZEL, ROOT, Workspace, build_wheels, make_workspace
from tests.support.interpreters import require_python

if TYPE_CHECKING:
    from collections.abc import Iterator

JAX_WHEELS = ROOT / ".cache/jax-cpu"
SDK_FOLDERS = [
    "_rocm_sdk_libraries/lib",
    "_rocm_sdk_core/lib",
    "_rocm_sdk_core/lib/rocm_sysdeps/lib",
    "_rocm_sdk_core/lib/host-math/lib",
    "_rocm_sdk_core/lib/llvm/lib",
]

# What declares the repository in WORKSPACE, and what does as MODULE.bazel would.
EMULATED = [
    (
        '"//rocm_wheel:rocm_wheel_repository.bzl", "rocm_wheel_repository"',
        '"//rocm_wheel:extensions.bzl", "rocm_wheel"',
    ),
    ('rocm_wheel_repository(name = "rocm_wheel")', "rocm_wheel.implementation(None)"),
]

pytestmark = [pytest.mark.slow, *NEEDS_BAZEL]


@pytest.fixture(scope="module")
def workspace(sample_dist: Path, rocm_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    made = make_workspace(tmp_path_factory.mktemp("workspace"), sample_dist, rocm_path)
    yield made
    made.bazel("shutdown")


@pytest.fixture(scope="module")
def wheels(workspace: Workspace, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return build_wheels(workspace, tmp_path_factory.mktemp("dist"))


def read_run_path(path: Path) -> tuple[str, list[str]]:
    with path.open("rb") as file:
        (section,) = (part for part in ELFFile(file).iter_sections() if isinstance(part, DynamicSection))
        tags: list[Any] = [tag for tag in section.iter_tags() if tag.entry.d_tag in {"DT_RUNPATH", "DT_RPATH"}]
    (tag,) = tags
    value = tag.runpath if tag.entry.d_tag == "DT_RUNPATH" else tag.rpath
    return tag.entry.d_tag, value.split(":")


def test_the_wheel_names_match_the_contents(wheels: list[Path]) -> None:
    assert [path.name for path in wheels] == [
        "jax_rocm7_pjrt-0.12.0-py3-none-manylinux_2_5_x86_64.whl",
        "jax_rocm7_plugin-0.12.0-cp311-cp311-manylinux_2_5_x86_64.whl",
        "jax_rocm7_plugin-0.12.0-cp312-cp312-manylinux_2_5_x86_64.whl",
        "jax_rocm7_plugin-0.12.0-cp313-cp313-manylinux_2_5_x86_64.whl",
    ]


@pytest.mark.parametrize(
    ("index", "member", "up"),
    [
        (0, "jax_plugins/xla_rocm7/xla_rocm_plugin.so", "$ORIGIN/../../"),
        (1, "jax_rocm7_plugin/_example.so", "$ORIGIN/../"),
        (2, "jax_rocm7_plugin/_example.so", "$ORIGIN/../"),
        (3, "jax_rocm7_plugin/_example.so", "$ORIGIN/../"),
    ],
    ids=["pjrt", "python311", "python312", "python313"],
)
def test_bazel_links_a_run_path_that_fits_the_location_of_the_library(
    wheels: list[Path], tmp_path: Path, index: int, member: str, up: str
) -> None:
    with zipfile.ZipFile(wheels[index]) as archive:
        library = Path(archive.extract(member, tmp_path))
    assert read_run_path(library) == ("DT_RUNPATH", [up + folder for folder in SDK_FOLDERS])


@pytest.mark.parametrize(("index", "python"), [(1, b"3.11"), (2, b"3.12"), (3, b"3.13")])
def test_each_python_config_builds_its_own_extension_module(wheels: list[Path], index: int, python: bytes) -> None:
    with zipfile.ZipFile(wheels[index]) as archive:
        assert python in archive.read("jax_rocm7_plugin/_example.so")


@pytest.mark.parametrize(("index", "version"), [(1, "3.11"), (2, "3.12"), (3, "3.13")])
def test_the_wheels_load_on_their_python_version(
    wheels: list[Path], sample_dist: Path, tmp_path: Path, index: int, version: str
) -> None:
    uv = [str(Path(sys.executable).parent / "uv")]
    subprocess.run([*uv, "venv", "-q", "--python", require_python(version), tmp_path / "env"], check=True)
    install = [
        *uv,
        "pip",
        "install",
        "-q",
        "--python",
        str(tmp_path / "env"),
        "--no-index",
        "--find-links",
        str(sample_dist),
    ]
    subprocess.run([*install, "rocm-sdk-core", wheels[0], wheels[index]], check=True, env={"UV_NO_CONFIG": "1"})
    program = (
        "from jax_rocm7_plugin import _example, commit_info, version\n"
        "print(_example.BUILT_FOR, _example.hip_status(), version.__version__, commit_info.commits)\n"
    )
    finished = run_python(tmp_path / "env", program)
    told = f"{version} no ROCm-capable device is detected 0.12.0 {{'ROCm/rocm-jax': '0123456789abcdef'}}\n"
    assert (finished.stdout, finished.stderr) == (told, "")


def test_the_bzlmod_files_build_the_same_library(
    workspace: Workspace, wheels: list[Path], sample_dist: Path, rocm_path: Path, tmp_path: Path
) -> None:
    made = make_workspace(tmp_path, sample_dist, rocm_path, "--bzlmod")
    emulate_bzlmod(made.folder)
    try:
        made.build("--config=rocm_build", "--config=python311", "//pjrt:pjrt_c_api_gpu_plugin.so", "//:pjrt_wheel")
    finally:
        made.bazel("shutdown")
    with zipfile.ZipFile(wheels[0]) as archive:
        expected = archive.read("jax_plugins/xla_rocm7/xla_rocm_plugin.so")
    assert (made.folder / "bazel-bin/pjrt/pjrt_c_api_gpu_plugin.so").read_bytes() == expected


def emulate_bzlmod(folder: Path) -> None:
    """Give a workspace what a Bazel without bzlmod lacks for its files: rules_cc's names, and module extensions."""
    common = folder / "third_party/rules_cc/cc/common"
    common.mkdir()
    (common / "BUILD").touch()
    (common / "native.bzl").write_text("NATIVE = struct(common = cc_common, info = CcInfo)\n")
    for name, field in {"cc_common": "common", "CcInfo": "info"}.items():
        file = {"CcInfo": "cc_info"}.get(name, name)
        (common / f"{file}.bzl").write_text(f'load(":native.bzl", "NATIVE")\n\n{name} = NATIVE.{field}\n')
    rules = folder / "rocm_wheel"
    (rules / "emulation.bzl").write_text(
        "def module_extension(implementation):\n    return struct(implementation = implementation)\n"
    )
    extensions = rules / "extensions.bzl"
    extensions.write_text(f'load(":emulation.bzl", "module_extension")\n{extensions.read_text()}')
    workspace = folder / "WORKSPACE"
    text = workspace.read_text()
    for declared, used in EMULATED:
        assert declared in text
        text = text.replace(declared, used)
    workspace.write_text(text)


def test_two_output_roots_produce_the_same_wheels(
    workspace: Workspace, wheels: list[Path], sample_dist: Path, rocm_path: Path, tmp_path: Path
) -> None:
    elsewhere = make_workspace(tmp_path / "some-other-place", sample_dist, rocm_path)
    try:
        again = build_wheels(elsewhere, tmp_path / "dist")
        made = [build_by_action(root) for root in (workspace, elsewhere)]
        digests = [[hashlib.sha256(path.read_bytes()).hexdigest() for path in paths] for paths in (wheels, again, made)]
    finally:
        elsewhere.bazel("shutdown")
    assert digests[0] == digests[1]
    assert digests[2][0] == digests[2][1]


def build_by_action(workspace: Workspace) -> Path:
    """Have Bazel make the PJRT wheel, and return its path."""
    workspace.build("--config=rocm_build", "--config=python311", "//:pjrt_wheel")
    (made,) = (workspace.folder / "bazel-bin").glob("*.whl")
    return made


def test_a_wheel_from_a_build_action_has_the_same_plugin_and_the_commits_of_the_build(
    workspace: Workspace, wheels: list[Path]
) -> None:
    made = build_by_action(workspace)
    with zipfile.ZipFile(made) as action, zipfile.ZipFile(wheels[0]) as command:
        plugin = "jax_plugins/xla_rocm7/xla_rocm_plugin.so"
        assert action.read(plugin) == command.read(plugin)
    commits = f"--repo_env=ROCM_WHEEL_COMMITS=ROCm/rocm-jax={'ab' * 20}"
    workspace.build("--config=rocm_build", "--config=python311", commits, "//:pjrt_wheel")
    with zipfile.ZipFile(made) as action:
        assert f'"ROCm/rocm-jax": "{"ab" * 20}"' in action.read("jax_plugins/xla_rocm7/commit_info.py").decode()


def test_the_rocwheel_sources_are_inputs_of_the_build_action(workspace: Workspace) -> None:
    asked = workspace.bazel("cquery", "--config=rocm_build", "deps(//tools:rocwheel)")
    inputs = {line.partition(" ")[0] for line in asked.stdout.splitlines()}
    assert {"@python//:site/rocwheel/cli/wheel.py", "@python//:site/rocwheel/build/rocm.toml"} <= inputs


def test_a_build_action_fails_on_a_wrong_run_path(workspace: Workspace) -> None:
    wrong = "--repo_env=ROCM_WHEEL_RPATH=$ORIGIN/nowhere"
    finished = workspace.bazel("build", "--config=rocm_build", "--config=python311", wrong, "//:pjrt_wheel")
    assert finished.returncode == 1
    text = " ".join(finished.stderr.split())
    assert "jax_plugins/xla_rocm7/xla_rocm_plugin.so: needs libamdhip64.so.7, which is in _rocm_sdk_core/lib" in text


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (
            "ROCM_WHEEL_RPATH=/../rocm/lib",
            (
                'ROCM_WHEEL_RPATH=/../rocm/lib: the entry "/../rocm/lib" looks like $ORIGIN or $SITE_PACKAGES expanded '
                "by a shell; put it into single quotes, or into .bazelrc."
            ),
        ),
        ("ROCM_WHEEL_RPATH=/_rocm_sdk_core/lib", "looks like $ORIGIN or $SITE_PACKAGES expanded by a shell"),
        ("ROCM_WHEEL_RPATH=$$ORIGIN/x", 'the entry "$$ORIGIN/x" has its $ doubled, which --repo_env does not undo.'),
        ("ROCM_WHEEL_RPATH=$HOME/x", 'the entry "$HOME/x" begins with $HOME; expected $SITE_PACKAGES or $ORIGIN.'),
        ("ROCM_WHEEL_RPATH=$ORIGIN/a$b", 'the entry "$ORIGIN/a$b" has a $ elsewhere than at its beginning.'),
        ("ROCM_WHEEL_RPATH=/a,/b", 'the entry "/a,/b" has a comma, at which the compiler would part it.'),
        ("ROCM_WHEEL_RPATH=/a b", 'the entry "/a b" has a blank, a quote or a backslash, at which Bazel would part or'),
        ('ROCM_WHEEL_RPATH=/a"b', "has a blank, a quote or a backslash, at which Bazel would part or change"),
        ("ROCM_WHEEL_RPATH=lib", 'the entry "lib" is relative; expected $SITE_PACKAGES/FOLDER'),
        ("ROCM_WHEEL_RPATH=/a::/b", 'the entry "" is empty, which the loader takes for the folder'),
        ("ROCM_WHEEL_RPATH=/a:/a", "ROCM_WHEEL_RPATH=/a:/a: an entry occurs twice."),
        ("ROCM_WHEEL_RPATH_TAG=both", "ROCM_WHEEL_RPATH_TAG=both: expected rpath or runpath."),
        ("ROCM_WHEEL_RPATH=/opt/rocm-é/lib", "has a character that is no printable ASCII, which Bazel would write as"),
        ("ROCM_WHEEL_COMMITS=a b=1234567", '"a b=1234567" isn\'t REPOSITORY=COMMIT with 7 to 64 hexadecimal digits.'),
        ("ROCM_WHEEL_COMMITS=a=abcdef0,a=abcdef1", "has two commits for a."),
        ("ROCM_WHEEL_COMMITS=jax=main", '"jax=main" isn\'t REPOSITORY=COMMIT with 7 to 64 hexadecimal digits.'),
    ],
)
def test_a_malformed_value_fails_the_fetch_with_a_clear_message(workspace: Workspace, setting: str, text: str) -> None:
    finished = workspace.bazel("build", "--nobuild", "--config=rocm_build", f"--repo_env={setting}", "//pjrt:all")
    assert finished.returncode == 1
    assert text in finished.stderr


@pytest.mark.parametrize("folder", ["/jax_rocm7_plugin", "../jax_rocm7_plugin", "./jax_rocm7_plugin"])
def test_a_folder_outside_site_packages_fails_the_analysis(workspace: Workspace, folder: str) -> None:
    package = workspace.folder / "misplaced"
    package.mkdir(exist_ok=True)
    rule = 'load("//rocm_wheel:rocm_shared_library.bzl", "rocm_shared_library")\n\n'
    (package / "BUILD.bazel").write_text(f'{rule}rocm_shared_library(name = "x.so", folder = "{folder}")\n')
    finished = workspace.bazel("build", "--nobuild", "--config=rocm_build", "//misplaced:all")
    assert finished.returncode == 1
    assert f'"{folder}" isn\'t a folder in site-packages, such as jax_plugins/xla_rocm7' in finished.stderr


RUNTIME_TEST = """
load("//rocm_wheel:runtime_library.bzl", "runtime_library")

genrule(name = "header", outs = ["include/made.h"], cmd = "echo '#define MADE 0' > $@")

runtime_library(
    name = "hip",
    data = ["@rocm//:hip"],
    hdrs = ["include/made.h", "own/own.h"],
    includes = ["include", "./own/"],
    library = "@rocm//:lib/libamdhip64.so.7",
)

cc_test(
    name = "loads",
    srcs = ["loads.c"],
    env = {"LD_LIBRARY_PATH": "../rocm/lib"},
    deps = [":hip"],
)
"""
COVERAGE = """
package(default_visibility = ["//visibility:public"])
sh_binary(name = "coverage_report_generator", srcs = ["BUILD"])
"""
PROGRAM = """
#include <made.h>
#include <own.h>

int hipGetDeviceCount(int *);

int main(void) { int n; return hipGetDeviceCount(&n) == NO_DEVICE ? MADE : 1; }
"""


def test_a_bazel_test_loads_a_runtime_library_and_includes_generated_headers(workspace: Workspace) -> None:
    package = workspace.folder / "loading"
    (package / "own").mkdir(parents=True)
    (package / "BUILD.bazel").write_text(RUNTIME_TEST)
    (package / "loads.c").write_text(PROGRAM)
    (package / "own/own.h").write_text("#define NO_DEVICE 100\n")
    # Bazel 4 asks for this repository before it runs any test, and would download it.
    coverage = workspace.folder.parent / "coverage"
    coverage.mkdir()
    (coverage / "WORKSPACE").touch()
    (coverage / "BUILD").write_text(COVERAGE)
    options = ("--test_output=errors", f"--override_repository=remote_coverage_tools={coverage}")
    finished = workspace.bazel("test", "--config=rocm_build", *options, "//loading:loads")
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_the_build_action_passes_the_inputs_of_a_wheel_in_a_file(workspace: Workspace) -> None:
    anew = f"--repo_env=ROCM_WHEEL_COMMITS=ROCm/rocm-jax={'cd' * 20}"
    told = workspace.bazel("build", "--subcommands", "--config=rocm_build", anew, "//:pjrt_wheel").stderr
    (command,) = [line for line in told.splitlines() if "/rocwheel wheel --quiet --spec pjrt.toml" in line]
    assert "--src-list=bazel-out/" in command
    assert "pjrt_c_api_gpu_plugin.so" not in command


def test_the_build_action_has_no_network_access_and_no_environment_variables(workspace: Workspace) -> None:
    told = workspace.bazel("aquery", "--config=rocm_build", "mnemonic(RocmWheel, //:pjrt_wheel)")
    assert "ExecutionInfo: {block-network: 1}" in told.stdout
    assert "Environment: []" in told.stdout or "Environment:" not in told.stdout


def test_the_run_path_tag_can_be_rpath(workspace: Workspace) -> None:
    options = ("--repo_env=ROCM_WHEEL_RPATH=$ORIGIN/a:/opt/rocm/lib", "--repo_env=ROCM_WHEEL_RPATH_TAG=rpath")
    workspace.build("--config=rocm_build", "--config=python311", *options, "//example:_example.so")
    library = workspace.folder / "bazel-bin/example/_example.so"
    assert read_run_path(library) == ("DT_RPATH", ["$ORIGIN/a", "/opt/rocm/lib"])


def test_words_in_the_bazelrc_reach_bazel_unchanged(workspace: Workspace, tmp_path: Path) -> None:
    values = ["plain", "with blank", 'quote"s', "back\\slash", "#hash", "it's", "$ORIGIN", "a\ttab"]
    (tmp_path / "WORKSPACE").write_text('load("//:show.bzl", "show")\nshow(name = "show")\n')
    (tmp_path / "BUILD.bazel").write_text('load("@show//:values.bzl", "VALUES")\n[print(VALUES)]\n')
    names = [f"SHOWN_{index}" for index in range(len(values))]
    (tmp_path / "show.bzl").write_text(
        "def _impl(ctx):\n"
        f"    values = [ctx.os.environ[name] for name in {names!r}]\n"
        "    ctx.file('BUILD.bazel', '')\n"
        "    ctx.file('values.bzl', 'VALUES = ' + repr(values))\n"
        f"show = repository_rule(implementation = _impl, environ = {names!r})\n"
    )
    words = [spell_rc_word(f"--repo_env={name}={value}") for name, value in zip(names, values, strict=True)]
    (tmp_path / ".bazelrc").write_text("".join(f"build {word}\n" for word in words))
    shown = Workspace(tmp_path, workspace.output_root, tmp_path)
    try:
        finished = shown.bazel("build", "--nobuild", "//:all")
        root = shown.bazel("info", "output_base").stdout.strip()
    finally:
        shown.bazel("shutdown")
    assert finished.returncode == 0, finished.stderr
    text = Path(root, "external/show/values.bzl").read_text().removeprefix("VALUES = ")
    assert json.loads(text) == values


@pytest.fixture(scope="module")
def jax_environment(wheels: list[Path], sample_dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with CPU JAX, the wheels of this Python, and the SDK's packages."""
    environment = tmp_path_factory.mktemp("jax")
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    if not JAX_WHEELS.is_dir():
        fetch = [sys.executable, "-m", "pip", "download", "-q", "-d", str(JAX_WHEELS), "jax"]
        if subprocess.run(fetch, check=False).returncode != 0:
            shutil.rmtree(JAX_WHEELS, ignore_errors=True)
            pytest.skip("JAX can't be downloaded")
    own = [wheel for wheel in wheels if "-py3-" in wheel.name or f"-cp3{sys.version_info.minor}-" in wheel.name]
    links = [word for folder in (JAX_WHEELS, sample_dist) for word in ("--find-links", str(folder))]
    pip = [str(environment / "bin/pip"), "install", "-q", "--no-index", *links, "jax", "rocm-sdk-core"]
    subprocess.run([*pip, *map(str, own)], check=True, env={"PIP_CONFIG_FILE": os.devnull})
    return environment


def run_python(environment: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program with an empty environment."""
    command = [str(environment / "bin/python"), "-c", program]
    return subprocess.run(command, env={}, capture_output=True, text=True, check=False, cwd="/")


@pytest.mark.corpus
def test_jax_discovers_the_plugin_and_the_plugin_loads_hip_from_the_other_wheel(jax_environment: Path) -> None:
    finished = run_python(jax_environment, "import jax; jax.devices()")
    assert "UNAVAILABLE: example plugin: HIP says: no ROCm-capable device is detected" in finished.stderr


@pytest.mark.corpus
@pytest.mark.skipif(sys.version_info[:2] not in {(3, 11), (3, 12)}, reason="the wheels are for Python 3.11 and 3.12")
def test_the_extension_module_loads_hip_from_the_other_wheel(jax_environment: Path) -> None:
    program = "from jax_rocm7_plugin import _example; print(_example.BUILT_FOR, _example.hip_status())"
    finished = run_python(jax_environment, program)
    expected = f"3.{sys.version_info.minor} no ROCm-capable device is detected\n"
    assert (finished.stdout, finished.stderr) == (expected, "")


@pytest.fixture(scope="module")
def bare_environment(jax_environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the same environment without the SDK's packages."""
    bare = tmp_path_factory.mktemp("without-sdk") / "jax"
    shutil.copytree(jax_environment, bare, symlinks=True)
    subprocess.run([bare / "bin/python", "-m", "pip", "uninstall", "-q", "-y", "rocm-sdk-core"], check=True)
    return bare


@pytest.mark.corpus
def test_the_audit_reports_a_missing_sdk_that_jax_only_logs(bare_environment: Path, workspace: Workspace) -> None:
    (site,) = bare_environment.glob("lib/python3*/site-packages")
    audited = workspace.rocwheel("audit", site, "--select", "un*-library", "--json")
    assert audited.returncode == 1
    findings = {finding["file"]: finding["found"] for finding in json.loads(audited.stdout)["findings"]}
    plugin = str(site / "jax_plugins/xla_rocm7/xla_rocm_plugin.so")
    assert findings[plugin] == "needs libamdhip64.so.7, but its package rocm-sdk-core is absent"
    finished = run_python(bare_environment, "import jax; print(jax.devices())")
    assert "[CpuDevice(id=0)]" in finished.stdout
    assert "libamdhip64.so.7: cannot open shared object file" in finished.stderr


@pytest.mark.corpus
def test_the_audits_in_the_guide_pass_with_the_sdk_and_fail_without_it(
    jax_environment: Path, bare_environment: Path, wheels: list[Path], workspace: Workspace
) -> None:
    dist = wheels[0].parent
    for environment, status in ((jax_environment, 0), (bare_environment, 1)):
        before_publishing = workspace.rocwheel("audit", dist, "--with", environment, "--closed")
        assert before_publishing.returncode == status, before_publishing.stdout
        installed = workspace.rocwheel("audit", environment, "--select", "un*-library")
        assert installed.returncode == status, installed.stdout
