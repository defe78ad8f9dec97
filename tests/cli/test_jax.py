"""``rocwheel jax bazelrc``, ``starlark`` and ``commands``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.command_line import rocwheel, run_json
from tests.support.places import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path


SETTINGS = 'schema = 1\ncompiler = "/usr/bin/gcc"\ntargets = ["gfx90a"]\npython-versions = ["3.12"]\n'

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with settings of a build of JAX."""
    (tmp_path / "rocm.toml").write_text(SETTINGS)
    return tmp_path


@pytest.mark.slow
def test_check_fails_on_a_change_and_writes_nothing(project: Path) -> None:
    for command in (["bazelrc", "-o", "rocm.bazelrc"], ["starlark", "rules"]):
        assert rocwheel("jax", *command, cwd=project).returncode == 0
        assert rocwheel("jax", *command, "--check", cwd=project).returncode == 0
    for file in ("rocm.bazelrc", "rules/run_path.bzl"):
        (project / file).write_text("mine\n")
    bazelrc = rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", "--check", cwd=project)
    assert (bazelrc.returncode, "-mine\n" in bazelrc.stdout) == (1, True)
    starlark = rocwheel("jax", "starlark", "rules", "--check", cwd=project)
    assert (starlark.returncode, "-mine\n" in starlark.stderr) == (1, True)
    assert {(project / file).read_text() for file in ("rocm.bazelrc", "rules/run_path.bzl")} == {"mine\n"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "schema", "keys"),
    [
        (["jax", "bazelrc"], "rocwheel.jax.bazelrc/1", {"text", "diff"}),
        (["jax", "commands", "--version", "1.0"], "rocwheel.jax.commands/1", {"form", "text"}),
        (["jax", "wheel-targets"], "rocwheel.jax.wheel_targets/1", {"text"}),
        (["jax", "starlark", "x", "-q"], "rocwheel.jax.starlark/1", {"files", "declaration", "diff"}),
        (
            ["jax", "translate", "--", "build.py", "build", "--wheels=jax-rocm-pjrt"],
            "rocwheel.jax.translate/1",
            {"settings", "commands", "kept", "assumed", "dropped", "wrong"},
        ),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_every_command_can_print_json(project: Path, arguments: list[str], schema: str, keys: set[str]) -> None:
    value = run_json(*arguments, cwd=project)
    assert value.pop("schema") == schema
    assert set(value) == keys


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--rules", "--library"])
def test_rocwheel_labels_are_refused_with_the_jax_tools(project: Path, option: str) -> None:
    made = rocwheel("jax", "wheel-targets", "--tool", "jax", option, "//x:y", cwd=project)
    assert (made.returncode, made.stdout) == (2, "")
    said = f"{option}: is '//x:y', but --tool jax doesn't use rocwheel. Remove the option, or add --tool rocwheel."
    assert said in " ".join(made.stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize("command", ["bazelrc", "starlark", "commands", "translate", "wheel-targets", "wheel-binary"])
def test_the_help_of_each_command_has_an_example(command: str, tmp_path: Path) -> None:
    assert "Example:" in rocwheel("jax", command, "--help", cwd=tmp_path).stdout


@pytest.mark.slow
def test_bazelrc_prints_a_reproducible_fragment(project: Path) -> None:
    first, second = (rocwheel("jax", "bazelrc", cwd=project, environ={"PYTHONHASHSEED": seed}) for seed in "12")
    assert first.returncode == 0
    assert first.stdout.startswith("# Made by rocwheel jax bazelrc from rocm.toml; sha256 of what follows: ")
    assert "build:rocm_build --repo_env=CC=/usr/bin/gcc\n" in first.stdout
    assert first.stdout == second.stdout


@pytest.mark.slow
def test_bazelrc_prints_a_diff_of_its_output_file(project: Path) -> None:
    assert rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project).returncode == 0
    assert rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project).stdout == ""
    settings = project / "rocm.toml"
    settings.write_text(settings.read_text().replace("3.12", "3.13"))
    changed = rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project).stdout.splitlines()
    assert "-build:python312 --repo_env=HERMETIC_PYTHON_VERSION=3.12" in changed
    assert "+build:python313 --repo_env=HERMETIC_PYTHON_VERSION=3.13" in changed


@pytest.mark.slow
def test_bazelrc_does_not_replace_an_edited_file_without_force(project: Path) -> None:
    (project / "rocm.bazelrc").write_text("build --jobs=1\n")
    refused = rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", cwd=project)
    assert refused.returncode == 1
    assert refused.stderr == (
        "error: rocm.bazelrc: was edited by hand, or rocwheel didn't write it. Move the changes to another file, "
        "or add --force to discard them.\n"
    )
    assert (project / "rocm.bazelrc").read_text() == "build --jobs=1\n"
    forced = rocwheel("jax", "bazelrc", "-o", "rocm.bazelrc", "--force", cwd=project)
    assert (forced.returncode, "-build --jobs=1" in forced.stdout) == (0, True)


@pytest.mark.slow
def test_check_requires_an_output_file(project: Path) -> None:
    failed = rocwheel("jax", "bazelrc", "--check", cwd=project)
    assert failed.returncode == 2
    assert "--check requires the file to compare: add --output" in failed.stderr


@pytest.mark.slow
def test_unknown_targets_in_the_settings_are_reported(project: Path) -> None:
    settings = project / "rocm.toml"
    settings.write_text(settings.read_text().replace("gfx90a", "gfx90b"))
    failed = rocwheel("jax", "bazelrc", cwd=project)
    assert failed.returncode == 2
    assert "rocm.toml: targets" in failed.stderr
    assert "gfx90b" in failed.stderr


@pytest.mark.slow
@pytest.mark.parametrize("option", [(), ("--force",), ("--check",)], ids=["plain", "force", "check"])
def test_bazelrc_does_not_overwrite_its_settings_file(project: Path, option: tuple[str, ...]) -> None:
    before = (project / "rocm.toml").read_text()
    (project / "link").symlink_to("rocm.toml")
    for output in ("rocm.toml", "link"):
        done = rocwheel("jax", "bazelrc", "--output", output, *option, cwd=project)
        expected = f"error: {output}: is the settings file; expected a different output file\n"
        assert (done.returncode, done.stderr) == (2, expected)
    assert (project / "rocm.toml").read_text() == before


@pytest.mark.slow
def test_starlark_writes_a_bazel_package_and_prints_its_declaration(project: Path) -> None:
    made = rocwheel("jax", "starlark", "rocm_wheel", "--quiet", cwd=project)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith('load("//rocm_wheel:rocm_wheel_repository.bzl"')
    assert (project / "rocm_wheel/BUILD.bazel").is_file()


@pytest.mark.slow
def test_missing_settings_are_a_usage_error(tmp_path: Path) -> None:
    failed = rocwheel("jax", "commands", "--version", "1.0", cwd=tmp_path)
    assert (failed.returncode, failed.stderr) == (
        2,
        "error: rocm.toml: can't be read (No such file or directory). Check --settings.\n",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "start"), [("shell", "#!/bin/sh\n"), ("makefile", '# "make" or "make wheels" builds'), ("ci", "- name: ")]
)
def test_commands_can_be_printed_in_three_formats(project: Path, form: str, start: str) -> None:
    made = rocwheel("jax", "commands", "--version", "0.12.0", "--format", form, cwd=project)
    assert made.returncode == 0
    assert made.stdout.startswith(start)


@pytest.mark.slow
def test_remote_commands_require_remote_execution_settings(project: Path) -> None:
    refused = rocwheel("jax", "commands", "--version", "1.0", "--remote", cwd=project)
    assert (refused.returncode, refused.stderr) == (
        2,
        "error: rocm.toml: has no remote-execution; expected a file that defines the config rocm_rbe\n",
    )
    with (project / "rocm.toml").open("a") as settings:
        settings.write('remote-execution = "rbe.bazelrc"\n')
    made = rocwheel("jax", "commands", "--version", "1.0", "--remote", cwd=project)
    assert made.stdout.count("\nbazel build --config=rocm_build_remote --config=python312 //") == 2


IN_JAX = 'schema = 1\ntree = "jax"\ntargets = ["gfx90a"]\npython-versions = ["3.12"]\n'


@pytest.mark.slow
def test_the_commands_for_jax_build_the_jax_targets(tmp_path: Path) -> None:
    (tmp_path / "rocm.toml").write_text(IN_JAX)
    printed = rocwheel("jax", "commands", "--remote", cwd=tmp_path).stdout
    (pjrt, plugin) = [line for line in printed.splitlines() if line.startswith("bazel ")]
    assert pjrt.startswith("bazel build --config=rocm_build_remote --config=python312 ")
    assert pjrt.endswith(" //jaxlib/tools:jax_rocm_pjrt_wheel")
    assert plugin.endswith(" //jaxlib/tools:jax_rocm_plugin_wheel")


@pytest.mark.slow
def test_an_old_command_line_is_translated_to_jax_targets(tmp_path: Path) -> None:
    old = ("python", "build/build.py", "build", "--wheels=jax-rocm-pjrt", "--rocm_path=$ROCM")
    told = rocwheel("jax", "translate", "--tree", "jax", "--", *old, cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert ' --repo_env=ROCM_PATH="$ROCM" //jaxlib/tools:jax_rocm_pjrt_wheel' in told.stdout


@pytest.mark.slow
def test_a_version_is_required_for_rocm_jax_and_refused_for_jax(project: Path) -> None:
    missing = rocwheel("jax", "commands", cwd=project)
    assert (missing.returncode, missing.stderr) == (
        2,
        "error: rocwheel jax commands: the option --version is missing. See rocwheel jax commands --help.\n",
    )
    (project / "rocm.toml").write_text(IN_JAX)
    makefile = rocwheel("jax", "commands", "--format", "makefile", cwd=project).stdout
    assert "make BAZEL_OPTIONS=--jobs=8 wheels\n" in makefile
    assert "VERSION =" not in makefile
    for words in (["commands"], ["translate", "--tree", "jax", "--file", "x"]):
        refused = rocwheel("jax", *words, "--version", "0.12.0", cwd=project)
        assert refused.returncode == 2
        assert " ".join(refused.stderr.split()) == (
            "error: --version: has no effect in JAX's own tree, because the wheels have JAX's version. Remove the "
            "option. To add a suffix, use --repo_env=ML_WHEEL_VERSION_SUFFIX=SUFFIX in the settings' options."
        )


@pytest.mark.slow
def test_patch_accepts_only_settings_for_jax(project: Path) -> None:
    checkout = FIXTURES / "jax_run_paths"
    refused = rocwheel("jax", "patch", checkout, "--settings", "rocm.toml", cwd=project)
    assert (refused.returncode, refused.stderr) == (
        2,
        'error: rocm.toml: has tree = "rocm-jax"; expected tree = "jax"\n',
    )
    (project / "rocm.toml").write_text(IN_JAX + 'search = ["/site/rocm/lib"]\n')
    patch = run_json("jax", "patch", checkout, "--settings", "rocm.toml", cwd=project)["patch"]
    assert '+    "/site/rocm/lib",\n' in patch
