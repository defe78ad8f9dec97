"""Tests of `rocwheel.frameworks.jax.run_path_patch`, on a file with the structure of JAX's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rocwheel.core.errors import InputError, ProblemsError
from rocwheel.frameworks.jax.run_path_patch import RPATH_FILE, run_path_patch, shorten_run_paths
from rocwheel.frameworks.jax.settings import BazelSettings
from tests.support.jax_checkout import CHECKOUT
from tests.support.places import FIXTURES

WORKSPACE = FIXTURES / "jax_run_paths"
TEXT = (WORKSPACE / RPATH_FILE).read_text()
STRUCTURE = "the structure that the file has in JAX at cec06d11 (2026-08-08)"


@pytest.fixture
def jax(tmp_path: Path) -> Path:
    return shutil.copytree(WORKSPACE, tmp_path / "jax")


def changed(patch: str, sign: str) -> list[str]:
    return [line[1:] for line in patch.splitlines() if line.startswith(sign) and not line.startswith(sign * 3)]


EXPECTED = '''
def _rocm_wheel_rpaths(site_packages):
    """Builds the RUNPATH entries of a .so file as linkopts.

    Args:
        site_packages: The path from the .so file to site-packages.
    """
    entries = [entry.replace("$SITE_PACKAGES", site_packages) for entry in _WHEEL_RUN_PATH]
    return ["-Wl,-rpath," + entry.replace("$", "$$") for entry in entries]

# The system's ROCm comes last.
_WHEEL_RUN_PATH = [
    "$SITE_PACKAGES/_rocm_sdk_libraries/lib",
    "$SITE_PACKAGES/_rocm_sdk_core/lib",
    "$SITE_PACKAGES/_rocm_sdk_core/lib/rocm_sysdeps/lib",
    "$SITE_PACKAGES/_rocm_sdk_core/lib/host-math/lib",
    "$SITE_PACKAGES/_rocm_sdk_core/lib/llvm/lib",
    "/opt/rocm/lib",
]

# The path from each wheel's .so files to site-packages.
_FROM_PLUGIN = "$ORIGIN/.."
_FROM_PJRT = "$ORIGIN/../.."

'''


def test_the_entries_are_in_one_list_and_each_macro_uses_the_depth_of_its_wheel() -> None:
    text = shorten_run_paths(TEXT, BazelSettings(1))
    start, end = (text.index(line) for line in ("\ndef _rocm_wheel_rpaths", "def _wheel_features"))
    assert text[start:end] == EXPECTED
    assert re.findall(r".*site_packages.*|.*_FROM.*", text[end:]) == [
        "def _wheel_linkopts(site_packages):",
        "        _ROCM_LINK_ONLY: _rocm_wheel_rpaths(site_packages),",
        "        linkopts = linkopts + if_oss(_wheel_linkopts(_FROM_PLUGIN)),",
        "        linkopts = linkopts + if_oss(_wheel_linkopts(_FROM_PJRT)),",
    ]
    assert "_THEROCK_TARGET_FAMILIES" not in text


def test_git_applies_the_patch(jax: Path) -> None:
    subprocess.run(["git", "apply", "-"], cwd=jax, input=run_path_patch(jax), text=True, check=True)
    assert (jax / RPATH_FILE).read_text() == shorten_run_paths(TEXT, BazelSettings(1))


def entries(text: str) -> list[str]:
    (found,) = re.findall(r"^_WHEEL_RUN_PATH = \[\n(.*?)^\]", text, re.DOTALL | re.MULTILINE)
    return re.findall(r'"(.*)"', found)


def test_the_entries_come_from_the_settings() -> None:
    text = shorten_run_paths(TEXT, BazelSettings(1, search=("/site/rocm/lib", "$ORIGIN/lib")))
    assert entries(text) == ["/site/rocm/lib", "$ORIGIN/lib"]
    assert "The system's ROCm comes last." not in text


def test_an_sdk_for_one_family_has_its_own_libraries_folder() -> None:
    text = shorten_run_paths(TEXT, BazelSettings(1, target_family="gfx110X-all"))
    assert entries(text)[0] == "$SITE_PACKAGES/_rocm_sdk_libraries_gfx110X_all/lib"
    assert entries(text)[-1] == "/opt/rocm/lib"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("_THEROCK_TARGET_FAMILIES", "_FAMILIES", "doesn't define _THEROCK_TARGET_FAMILIES"),
        ("def rocm_cc_binary", "def rocm_binary", "doesn't define rocm_cc_binary"),
        (
            "+ if_oss(_wheel_linkopts())",
            '+ _wheel_linkopts("x")',
            "doesn't call _wheel_linkopts without arguments in rocm_nanobind_extension",
        ),
        (
            "def _wheel_features",
            "_MORE = _WHEEL_RPATHS\n\ndef _wheel_features",
            "uses _WHEEL_RPATHS in _MORE, _wheel_linkopts instead of once in _wheel_linkopts",
        ),
        (
            "if_oss(_wheel_linkopts())",
            "[]",
            "uses _wheel_linkopts in no definition instead of once in rocm_cc_binary, rocm_nanobind_extension",
        ),
        (
            "def _rocm_wheel_rpaths():",
            "_MORE = []\n\ndef _rocm_wheel_rpaths():",
            "has other statements or comments between _THEROCK_TARGET_FAMILIES and _rocm_wheel_rpaths",
        ),
        (
            "_rocm_wheel_rpaths():",
            "_rocm_wheel_rpaths(x = 1):",
            "has no function _rocm_wheel_rpaths without parameters",
        ),
        ("_wheel_linkopts():", "_wheel_linkopts(x = 1):", "has no function _wheel_linkopts without parameters"),
        ("-rpath,/opt/rocm/lib", "-rpath,lib", "has no system folders at the end of _WHEEL_RPATHS"),
        (
            '= [\n    "gfx94X-dcgpu",\n    "gfx110X-all",\n]',
            "= read()",
            "defines _THEROCK_TARGET_FAMILIES as something other than a list of strings",
        ),
        ("\n", "\r\n", "has CR LF line endings"),
        (
            "\ndef _rocm_wheel_rpaths",
            'load("a.bzl", "a")\n\ndef _rocm_wheel_rpaths',
            "has other statements or comments between _THEROCK_TARGET_FAMILIES and _rocm_wheel_rpaths",
        ),
        (
            "\ndef _rocm_wheel_rpaths",
            "# A comment.\ndef _rocm_wheel_rpaths",
            "has other statements or comments between _THEROCK_TARGET_FAMILIES and _rocm_wheel_rpaths",
        ),
        (
            "_THEROCK_TARGET_FAMILIES = [",
            "A = 1; _THEROCK_TARGET_FAMILIES = [",
            "has another statement on the line of _THEROCK_TARGET_FAMILIES",
        ),
        ("def _wheel_features", '_WHEEL_RPATHS += ["a"]\n\ndef _wheel_features', "defines _WHEEL_RPATHS 2 times"),
        (
            "def _wheel_features",
            "[entry for entry in _WHEEL_RPATHS]\n\ndef _wheel_features",
            "uses _WHEEL_RPATHS in _wheel_linkopts, line 31 instead of once in _wheel_linkopts",
        ),
        (
            "def _wheel_features",
            "def _wheel_linkopts():\n    return []\n\ndef _wheel_features",
            "defines _wheel_linkopts 2 times",
        ),
        ("def _wheel_features", "_FROM_PJRT = 1\n\ndef _wheel_features", "already defines _FROM_PJRT"),
        ('"if_oss",', '"if_oss", "_FROM_PLUGIN",', "already defines _FROM_PLUGIN"),
        (
            "    return [\n",
            '    packages.append("mine")\n    return [\n',
            "has a different text for _rocm_wheel_rpaths, so the patch would drop its changes",
        ),
        (
            '"//conditions:default": [],\n    })\n\ndef rocm_nanobind',
            '"//conditions:default": ["-s"],\n    })\n\ndef rocm_nanobind',
            "has a different text for _wheel_linkopts, so the patch would drop its changes",
        ),
        (
            "-rpath,/opt/rocm/lib",
            "-rpath,/opt/two$$x",
            "has '/opt/two$x' in _WHEEL_RPATHS, which isn't an ASCII path without spaces, quotes, and dollar signs",
        ),
        (
            "-rpath,/opt/rocm/lib",
            '-rpath,/opt/\\"x',
            "has '/opt/\"x' in _WHEEL_RPATHS, which isn't an ASCII path without spaces, quotes, and dollar signs",
        ),
    ],
)
def test_a_file_with_another_structure_is_refused(old: str, new: str, problem: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        shorten_run_paths(TEXT.replace(old, new, 1 if "+ " in old else -1), BazelSettings(1))
    assert [str(found) for found in caught.value.problems] == [f"{RPATH_FILE}: {problem}; expected {STRUCTURE}"]


def test_a_list_after_the_function_is_refused() -> None:
    families = '_THEROCK_TARGET_FAMILIES = [\n    "gfx94X-dcgpu",\n    "gfx110X-all",\n]\n'
    with pytest.raises(ProblemsError, match="has other statements or comments between"):
        shorten_run_paths(TEXT.replace(families, "") + families, BazelSettings(1))


def test_all_differences_are_reported() -> None:
    with pytest.raises(ProblemsError) as caught:
        shorten_run_paths("X = 1\n", BazelSettings(1))
    assert [problem.found for problem in caught.value.problems if isinstance(problem, InputError)] == [
        "doesn't define _THEROCK_TARGET_FAMILIES",
        "doesn't define _rocm_wheel_rpaths",
        "doesn't define _WHEEL_RPATHS",
        "doesn't define _wheel_linkopts",
        "doesn't define rocm_nanobind_extension",
        "doesn't define rocm_cc_binary",
    ]


def test_a_patched_file_is_refused() -> None:
    text = shorten_run_paths(TEXT, BazelSettings(1))
    with pytest.raises(InputError) as caught:
        shorten_run_paths(text, BazelSettings(1))
    assert str(caught.value) == (
        f"{RPATH_FILE}: already has short run paths. To change the run paths, restore the file first: "
        f"git checkout -- {RPATH_FILE}"
    )


EXPECTED_HOMES = (
    "rocm_nanobind_extension only in the BUILD file of jaxlib/rocm and "
    "rocm_cc_binary only in the BUILD file of jax_plugins/rocm"
)


@pytest.mark.parametrize("name", ["other/BUILD", "other/macros.bzl", "jax_plugins/rocm/macros.bzl"])
@pytest.mark.parametrize("loaded", ['"rocm_cc_binary"', 'cc = "rocm_cc_binary"'])
def test_a_macro_used_by_packages_at_another_depth_is_refused(jax: Path, name: str, loaded: str) -> None:
    other = jax / name
    other.parent.mkdir(exist_ok=True)
    other.write_text(f'load("//jaxlib/rocm:rocm_rpath.bzl", {loaded})\n')
    with pytest.raises(ProblemsError) as caught:
        run_path_patch(jax)
    assert [str(problem) for problem in caught.value.problems] == [
        f"{other}: loads rocm_cc_binary; expected {EXPECTED_HOMES}"
    ]


def test_bazel_output_folders_are_not_searched(jax: Path) -> None:
    other = jax / "bazel-out/BUILD"
    other.parent.mkdir()
    other.write_text('load("//jaxlib/rocm:rocm_rpath.bzl", "rocm_cc_binary")\n')
    assert run_path_patch(jax)


def test_a_folder_without_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        run_path_patch(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / RPATH_FILE}: can't be read (No such file or directory); expected a checkout of JAX. "
        "Check whether it exists and is readable."
    )


def test_a_file_that_is_not_text_is_refused(jax: Path) -> None:
    (jax / RPATH_FILE).write_bytes(b"\xff")
    with pytest.raises(InputError, match="isn't text: invalid start byte at byte 0; expected UTF-8"):
        run_path_patch(jax)


@pytest.mark.skipif(CHECKOUT not in os.environ, reason=f"no checkout of JAX: set {CHECKOUT}")
def test_the_patch_applies_to_the_file_in_jax(tmp_path: Path) -> None:
    checkout = Path(os.environ[CHECKOUT])
    patch = run_path_patch(checkout)
    (tmp_path / RPATH_FILE).parent.mkdir(parents=True)
    shutil.copy(checkout / RPATH_FILE, tmp_path / RPATH_FILE)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch, text=True, check=True)
    assert (patch.count("\n@@ "), len(changed(patch, "+")), len(changed(patch, "-"))) == (4, 22, 80)
    assert entries((tmp_path / RPATH_FILE).read_text()) == entries(shorten_run_paths(TEXT, BazelSettings(1)))
