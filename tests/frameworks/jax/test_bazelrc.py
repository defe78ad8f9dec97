"""Tests of `rocwheel.frameworks.jax.bazelrc`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from rocwheel.core.errors import ProblemsError
from rocwheel.frameworks.jax.bazelrc import GeneratedFile, HandEditedError, python_config, render_bazelrc, spell_rc_word
from rocwheel.frameworks.jax.settings import BazelSettings, SettingsError, read_settings
from rocwheel.targets.target_set import parse_target_set

if TYPE_CHECKING:
    from pathlib import Path


FIRST = GeneratedFile("Made by a test;", "a\nb\n")
SECOND = GeneratedFile("Made by a test;", "a\nc\n")


def test_a_generated_file_contains_the_hash_of_its_text() -> None:
    digest = "911169ddaaf146aff539f58c26c489af3b892dff0fe283c1c264c65ae5aa59a2"
    assert FIRST.text == f"# Made by a test; sha256 of what follows: {digest}\na\nb\n"


def test_writing_a_generated_file_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert FIRST.write(path).startswith(f"--- {path} (before)\n+++ {path}\n")
    before = path.stat()
    assert FIRST.write(path) == ""
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_a_change_is_shown_as_a_diff(tmp_path: Path) -> None:
    path = tmp_path / "x"
    FIRST.write(path)
    diff = SECOND.write(path).splitlines()
    assert diff[-3:] == [" a", "-b", "+c"]
    assert path.read_text() == SECOND.text


@pytest.mark.parametrize("old", [FIRST.text + "more\n", "other\n", "", FIRST.text.replace("b\n", "B\n")])
def test_an_edited_file_is_refused_and_unchanged(tmp_path: Path, old: str) -> None:
    path = tmp_path / "x"
    path.write_text(old)
    with pytest.raises(HandEditedError) as caught:
        SECOND.write(path)
    assert str(caught.value) == (
        f"{path}: was edited by hand, or rocwheel didn't write it. "
        "Move the changes to another file, or add --force to discard them."
    )
    assert path.read_text() == old


def test_showing_a_diff_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x"
    assert FIRST.diff(path).splitlines()[-2:] == ["+a", "+b"]
    assert not path.exists()
    FIRST.write(path)
    assert FIRST.diff(path) == ""


def test_force_overwrites_an_edited_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("mine\n")
    assert "-mine\n" in SECOND.write(path, force=True)
    assert path.read_text() == SECOND.text


def test_a_generated_file_is_written_through_a_symlink(tmp_path: Path) -> None:
    target, link = tmp_path / "real", tmp_path / "link"
    GeneratedFile("Made;", "old\n").write(target)
    link.symlink_to(target)
    GeneratedFile("Made;", "new\n").write(link)
    assert link.is_symlink()
    assert target.read_text().endswith("new\n")


SETTINGS = BazelSettings(1, "/usr/bin/clang-18", ("3.12",), ("gfx90a",), rocm_path="/opt/rocm", cpu_features="native")

SEARCH = (
    "search contains '{}'; expected $SDK, $SITE_PACKAGES/FOLDER, $ORIGIN/FOLDER, or an absolute folder, in ASCII "
    "without spaces or quotes"
)


def render(**changes: Any) -> list[str]:
    settings = msgspec.structs.replace(SETTINGS, **changes)
    return render_bazelrc(settings, parse_target_set(settings.targets)).splitlines()


def test_the_bazelrc_has_all_options_that_bazel_needs() -> None:
    folders = ("libraries/lib", "core/lib", "core/lib/rocm_sysdeps/lib", "core/lib/host-math/lib", "core/lib/llvm/lib")
    run_path = ":".join(f"$SITE_PACKAGES/_rocm_sdk_{folder}" for folder in folders)
    assert render() == [
        "# Compiler, ROCm, GPU targets, and run paths.",
        "build:rocm_build --repo_env=CC=/usr/bin/clang-18",
        "build:rocm_build --repo_env=BAZEL_COMPILER=/usr/bin/clang-18",
        "build:rocm_build --action_env=CLANG_COMPILER_PATH=/usr/bin/clang-18",
        "build:rocm_build --repo_env=TF_ROCM_CLANG=1",
        "build:rocm_build --action_env=TF_HIPCC_CLANG=1",
        "build:rocm_build --action_env=HIPCC_COMPILE_FLAGS_APPEND=--offload-compress",
        "build:rocm_build --define=xnn_enable_avxvnniint8=false",
        "build:rocm_build --define=using_rocm=true",
        "build:rocm_build --define=using_rocm_hipcc=true",
        "build:rocm_build --repo_env=TF_NEED_ROCM=1",
        "build:rocm_build --repo_env=ROCM_PATH=/opt/rocm",
        "build:rocm_build --repo_env=TF_ROCM_AMDGPU_TARGETS=gfx90a",
        "build:rocm_build --action_env=ROCM_PATH=/opt/rocm",
        "build:rocm_build --action_env=TF_ROCM_AMDGPU_TARGETS=gfx90a",
        f"build:rocm_build --repo_env=ROCM_WHEEL_RPATH={run_path}",
        "build:rocm_build --repo_env=ROCM_WHEEL_RPATH_TAG=runpath",
        "build:rocm_build --config=native_arch_posix",
        "",
        "# One config for each Python version.",
        "build:python312 --repo_env=HERMETIC_PYTHON_VERSION=3.12",
        "",
        "# CPU features.",
        "build:avx_posix --copt=-mavx",
        "build:avx_posix --host_copt=-mavx",
        "build:native_arch_posix --copt=-march=native",
        "build:native_arch_posix --host_copt=-march=native",
        "",
        "# Options for this machine or user. They come last, so that they take precedence.",
        "try-import %workspace%/.bazelrc.user",
    ]


IN_JAX = BazelSettings(
    1, "", ("3.12", "3.14-ft"), ("gfx90a", "gfx942"), "jax", rocm_path="/opt/rocm", configs=("mkl_open_source_only",)
)


def test_the_bazelrc_for_jax_imports_its_configs_and_selects_release_wheels() -> None:
    assert render_bazelrc(IN_JAX, parse_target_set(IN_JAX.targets)).splitlines() == [
        "# JAX's configs for ROCm, which JAX's .bazelrc doesn't import.",
        "import %workspace%/build/rocm/rocm.bazelrc",
        "",
        "# ROCm, GPU targets, and CPU features.",
        "build:rocm_build --config=mkl_open_source_only",
        "build:rocm_build --config=rocm_release_wheel",
        "build:rocm_build --repo_env=ROCM_PATH=/opt/rocm",
        "build:rocm_build --repo_env=TF_ROCM_AMDGPU_TARGETS=gfx90a,gfx942",
        "build:rocm_build --define=xnn_enable_avxvnniint8=false",
        "build:rocm_build --config=avx_posix",
        "",
        "# Remote execution.",
        "build:rocm_build_remote --config=rocm_build",
        "build:rocm_build_remote --config=rocm_rbe",
        "",
        "# One config for each Python version.",
        "build:python312 --repo_env=HERMETIC_PYTHON_VERSION=3.12",
        "build:python314ft --repo_env=HERMETIC_PYTHON_VERSION=3.14-ft",
        "build:python314ft --@rules_python//python/config_settings:py_freethreaded=yes",
    ]


def test_the_bazelrc_for_jax_reflects_the_settings() -> None:
    changes = {"cpu_features": "native", "compress_device_code": False, "rocm_path": "", "options": ("--jobs=4",)}
    settings = msgspec.structs.replace(IN_JAX, configs=(), **changes)
    lines = render_bazelrc(settings, parse_target_set(settings.targets)).splitlines()
    assert [line for line in lines if line.startswith("build:rocm_build ")] == [
        "build:rocm_build --config=rocm_release_wheel",
        "build:rocm_build --repo_env=TF_ROCM_AMDGPU_TARGETS=gfx90a,gfx942",
        "build:rocm_build --action_env=HIPCC_COMPILE_FLAGS_APPEND=",
        "build:rocm_build --define=xnn_enable_avxvnniint8=false",
        "build:rocm_build --config=native_arch_posix",
        "build:rocm_build --jobs=4",
    ]


def test_settings_without_effect_in_the_jax_tree_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rocm.toml"
    path.write_text(
        'schema = 1\ntree = "jax"\ncompiler = "gcc"\ntargets = ["gfx90a"]\npython-versions = ["3.12"]\n'
        'run-path-tag = "rpath"\nremote-execution = "rbe.bazelrc"\n'
    )
    with pytest.raises(ProblemsError) as caught:
        read_settings(path)
    assert [str(problem) for problem in caught.value.problems] == [
        f"{path}: {found}; expected no such setting"
        for found in (
            'compiler has no effect with tree = "jax", because JAX\'s config rocm_release_wheel has its own compiler',
            'run-path-tag has no effect with tree = "jax", because JAX\'s wheels have DT_RUNPATH',
            'remote-execution has no effect with tree = "jax", because JAX\'s build/rocm/rocm.bazelrc defines rocm_rbe',
        )
    ]


def test_a_free_threaded_python_is_passed_to_the_python_rules() -> None:
    assert [line for line in render(python_versions=("3.13-ft",)) if "python313ft" in line] == [
        "build:python313ft --repo_env=HERMETIC_PYTHON_VERSION=3.13-ft",
        "build:python313ft --@rules_python//python/config_settings:py_freethreaded=yes",
    ]


def test_remote_execution_imports_the_file_in_the_settings() -> None:
    lines = render(remote_execution="rbe.bazelrc")
    start = lines.index("# Remote execution.")
    assert lines[start + 1 : start + 4] == [
        "try-import %workspace%/rbe.bazelrc",
        "build:rocm_build_remote --config=rocm_build",
        "build:rocm_build_remote --config=rocm_rbe",
    ]


@pytest.mark.parametrize(
    ("compiler", "version", "expected"),
    [
        ("/usr/lib/llvm-18/bin/clang", 0, True),
        ("/usr/lib/llvm-19/bin/clang", 0, False),
        ("/usr/bin/gcc-12", 0, True),
        ("/usr/bin/gcc-13", 0, False),
        ("/usr/bin/clang", 0, False),
        ("/usr/bin/clang", 17, True),
        ("/usr/bin/clang-16", 20, False),
    ],
)
def test_instructions_that_an_old_compiler_lacks_are_disabled(compiler: str, version: int, expected: bool) -> None:
    lines = render(compiler=compiler, compiler_version=version)
    assert ("build:rocm_build --define=xnn_enable_avxvnniint8=false" in lines) is expected


def test_a_target_family_has_its_own_libraries_folder() -> None:
    settings = msgspec.structs.replace(SETTINGS, target_family="gfx94X-dcgpu")
    assert settings.run_path.startswith("$SITE_PACKAGES/_rocm_sdk_libraries_gfx94X_dcgpu/lib:")


@pytest.mark.parametrize(
    ("word", "spelled"),
    [
        ("--copt=-O2", "--copt=-O2"),
        ("--repo_env=V=$ORIGIN/../lib:/opt", "--repo_env=V=$ORIGIN/../lib:/opt"),
        ("a b", '"a b"'),
        ("#x", '"#x"'),
        ('a"b', '"a\\"b"'),
        ("a\\b", '"a\\\\b"'),
        ("", '""'),
    ],
)
def test_words_are_quoted_where_bazel_would_split_them(word: str, spelled: str) -> None:
    assert spell_rc_word(word) == spelled


def test_config_names_contain_the_python_version() -> None:
    assert [python_config(version) for version in ("3.9", "3.12", "3.13-ft")] == [
        "python39",
        "python312",
        "python313ft",
    ]


def test_every_wrong_setting_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "rocm.toml"
    path.write_text(
        'schema = 1\ncompiler = ""\ntargets = []\npython-versions = ["312", "3.12-ft"]\n'
        'search = ["lib", "/../x", "$ORIGIN/a b", "$ORIGIN/ok", "$SDK"]\n'
        'pjrt-targets = ["plugin"]\noptions = ["--copt=a\\nb"]\ncommits = { jax = "main" }\n'
    )
    with pytest.raises(ProblemsError) as caught:
        read_settings(path)
    assert [str(problem) for problem in caught.value.problems] == [
        f"{path}: compiler is empty; expected the path of Clang or GCC",
        f"{path}: python-versions contains '312'; expected versions such as '3.12' or '3.13-ft'",
        f"{path}: python-versions contains '3.12-ft'; expected versions such as '3.12' or '3.13-ft'",
        *(
            f"{path}: search contains {entry!r}; expected $SDK, $SITE_PACKAGES/FOLDER, $ORIGIN/FOLDER, or an absolute "
            "folder, in ASCII without spaces or quotes"
            for entry in ("lib", "/../x", "$ORIGIN/a b")
        ),
        f"{path}: 'plugin' is not a Bazel label; expected a label such as //pjrt:plugin.so",
        (
            f"{path}: commits contains 'jax' = 'main'; expected a repository, and either 7 to 64 hexadecimal digits or "
            "FILE:CONSTANT"
        ),
        f"{path}: options has a line break or control character; expected one line of text",
    ]


def test_the_sdk_folders_can_be_placed_among_other_search_folders() -> None:
    settings = BazelSettings(1, "gcc", (), (), search=("/site/rocm/lib", "$SDK", "/opt/rocm/lib"))
    assert settings.run_path == (
        "/site/rocm/lib:$SITE_PACKAGES/_rocm_sdk_libraries/lib:$SITE_PACKAGES/_rocm_sdk_core/lib:"
        "$SITE_PACKAGES/_rocm_sdk_core/lib/rocm_sysdeps/lib:$SITE_PACKAGES/_rocm_sdk_core/lib/host-math/lib:"
        "$SITE_PACKAGES/_rocm_sdk_core/lib/llvm/lib:/opt/rocm/lib"
    )


def test_a_misspelled_setting_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rocm.toml"
    path.write_text('schema = 1\ncompiler = "gcc"\ntarget = []\npython-versions = ["3.12"]\n')
    found = (
        "doesn't contain valid settings: Object contains unknown field `target`; expected these keys: schema, "
        "compiler, "
    )
    with pytest.raises(SettingsError, match=found) as caught:
        read_settings(path)
    assert str(caught.value).endswith("pjrt-targets, plugin-targets. See docs/jax.md for the fields.")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('search = ["$SDK", "$SDK"]', "search lists a folder twice; expected different entries"),
        ('target-family = "gfx 94"', "target-family is 'gfx 94'; expected one word"),
        ('target-family = "gfxé"', "target-family is 'gfxé'; expected one word"),
        (
            'target-family = "gfx99999"',
            "target-family: 'gfx99999' isn't a known GPU target or family. Similar names: gfx909.",
        ),
        ('search = ["/opt/rocm/lib", "/opt/rocm/lib/"]', "search lists a folder twice; expected different entries"),
        *((f"search = ['{entry}']", SEARCH.format(entry)) for entry in ("$ORIGIN/`id`", "/_rocm_sdk_core/lib", "/ä")),
        ('options = ["has blank"]', "options contains 'has blank'; expected an option, such as --name=VALUE"),
        *(
            (f'options = ["{word}"]', f"options contains '{word}'; expected an option, such as --name=VALUE")
            for word in ("-", "--", "-O2", "--copt", "-c", "--=x", "a")
        ),
        (
            'configs = ["rocm_build"]',
            "configs contains 'rocm_build', which includes these configs; expected another config",
        ),
        (
            'configs = ["rocm_build_remote"]',
            "configs contains 'rocm_build_remote', which includes these configs; expected another config",
        ),
        ('configs = [""]', "configs contains ''; expected a config's name"),
        ('configs = ["a b"]', "configs contains 'a b'; expected a config's name"),
        ("compiler-version = -3", "compiler-version is -3; expected a major version"),
        ('rocm-path = "opt/rocm"', "rocm-path is 'opt/rocm'; expected an absolute path"),
        ('rocm-version = "7.2.0"', "rocm-version is '7.2.0'; expected a major version, such as '7'"),
        ('rocm-version = ""', "rocm-version is ''; expected a major version, such as '7'"),
        ("pjrt-targets = []", "pjrt-targets is empty; expected at least one"),
        ("plugin-targets = []", "plugin-targets is empty; expected at least one"),
        ('remote-execution = "/abs"', "remote-execution is '/abs'; expected the path of a file in the workspace"),
        ('remote-execution = "."', "remote-execution is '.'; expected the path of a file in the workspace"),
        ('remote-execution = "a/"', "remote-execution is 'a/'; expected the path of a file in the workspace"),
        ('wheel-sources = ["a\\nb"]', "wheel-sources has a line break or control character; expected one line of text"),
        ('pjrt-spec = "a\\nb"', "pjrt-spec has a line break or control character; expected one line of text"),
        ('plugin-spec = "a\\nb"', "plugin-spec has a line break or control character; expected one line of text"),
    ],
)
def test_settings_that_bazel_or_the_fetch_would_reject_are_refused(line: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "rocm.toml"
    path.write_text(f'schema = 1\ncompiler = "gcc"\ntargets = []\npython-versions = ["3.12"]\n{line}\n')
    with pytest.raises(ProblemsError) as caught:
        read_settings(path)
    assert [str(found) for found in caught.value.problems] == [f"{path}: {problem}"]


def test_a_duplicate_python_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rocm.toml"
    path.write_text('schema = 1\ncompiler = "gcc"\ntargets = []\npython-versions = ["3.12", "3.12"]\n')
    with pytest.raises(ProblemsError, match="python-versions lists a version twice; expected different entries"):
        read_settings(path)


def test_bazel_options_are_accepted(tmp_path: Path) -> None:
    options = ["-k", "--copt=-O2", "--keep_going", "--nostamp", "--@rules_python//python:x=yes", "--define=a=b c"]
    path = tmp_path / "rocm.toml"
    settings = 'schema = 1\ncompiler = "gcc"\ntargets = []\npython-versions = ["3.12"]\n'
    path.write_text(f"{settings}options = {options}\n")
    assert read_settings(path).options == tuple(options)
