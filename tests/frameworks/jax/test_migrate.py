"""Tests of `rocwheel.frameworks.jax.migrate`."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.callers import BUILD_PY, Plan
from rocwheel.frameworks.jax.checkout import Checkout, SourceFile, Structure
from rocwheel.frameworks.jax.editing import Draft, questions_in
from rocwheel.frameworks.jax.migrate import FRAGMENT, deprecate, drop_overridden, jax_patch, remove

if TYPE_CHECKING:
    from pathlib import Path


KEPT = (
    "build:rocm_base --config=clang_local\n"
    "build:rocm_base --define=using_rocm=true --define=mine=1\n"
    "build:rocm --action_env=TF_ROCM_CLANG=1\n"
    "build:other --action_env=CLANG_COMPILER_PATH=/old\n"
)
DROPPED = 'build:rocm --action_env CLANG_COMPILER_PATH="/old"\nbuild:rocm_base --define=using_rocm=true\n'
SETTINGS = (
    "build:rocm_build --config=rocm\nbuild:rocm_build --action_env=CLANG_COMPILER_PATH=/new\n"
    "build:rocm_build --repo_env=TF_ROCM_CLANG=1\nbuild:rocm_build --define=using_rocm=true\n"
)


def after(**files: str) -> str:
    texts = {".bazelrc": KEPT + DROPPED, FRAGMENT: SETTINGS, **files}
    draft = Draft(Checkout({path: SourceFile(text) for path, text in texts.items()}))
    drop_overridden(Plan(draft, Structure(".bazelrc", *[""] * 4), {}, ""))
    return draft.text(".bazelrc")


def test_what_the_fragment_sets_in_the_same_way_goes() -> None:
    assert after() == KEPT


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("test.sh", "bazel test --config=rocm //...\n"),
        ("rbe.bazelrc", "build:rocm_rbe --config=rocm_base\n"),
        ("a.py", 'run(["--config=rocm"])\n'),
    ],
)
def test_it_stays_while_something_builds_by_these_configs(path: str, text: str) -> None:
    assert after(**{path: text}) == KEPT + DROPPED


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("README.md", "bazel test --config=rocm\n"),
        ("jax_rocm_plugin/third_party/jax/0001.patch", "+bazel test --config=rocm //...\n"),
        ("test.sh", "# bazel test --config=rocm\nbazel test --config=rocm_build --config=rocm_rbe\n"),
        ("rbe.bazelrc", "# --config=rocm\nbuild:rocm_rbe --jobs=1\n"),
    ],
)
def test_other_words_are_no_use(path: str, text: str) -> None:
    assert after(**{path: text}) == KEPT


BUILD = """load("//jaxlib:jax.bzl", "nanobind_extension")

nanobind_extension(
    name = "_rnn",
    module_name = "_rnn",
)

nanobind_extension(
    name = "_other",
    module_name = "_other",
)
"""


def test_the_rules_of_the_modules_get_run_paths() -> None:
    assert jax_patch(BUILD, ["_rnn.so"], "jax_rocm7_plugin", "jax_rocm_plugin").splitlines() == [
        "--- a/jaxlib/rocm/BUILD",
        "+++ b/jaxlib/rocm/BUILD",
        "@@ -1,7 +1,10 @@",
        ' load("//jaxlib:jax.bzl", "nanobind_extension")',
        '+load("@jax_rocm_plugin//rocm_wheel:run_path.bzl", "wheel_run_path_linkopts")',
        " ",
        " nanobind_extension(",
        '     name = "_rnn",',
        '+    features = ["no_solib_rpaths"],',
        '+    linkopts = wheel_run_path_linkopts("jax_rocm7_plugin"),',
        '     module_name = "_rnn",',
        " )",
        " ",
    ]


@pytest.mark.parametrize(("level", "name"), [(0, "jaxlib/rocm/BUILD"), (2, "b/b/jaxlib/rocm/BUILD")])
def test_the_name_has_the_folders_that_the_workspace_strips(level: int, name: str) -> None:
    patch = jax_patch(BUILD, ["_rnn.so"], "jax_rocm7_plugin", "jax_rocm_plugin", level=level)
    assert patch.splitlines()[1] == f"+++ {name}"


@pytest.mark.parametrize("text", [BUILD.rstrip("\n"), f"# one page\x0c\n{BUILD}", BUILD.replace("\n", "\r\n")])
@pytest.mark.parametrize("tool", [("git", "apply", "-"), ("patch", "-p1", "--binary", "--force")])
def test_the_patch_fits_whatever_lines_end_with(text: str, tool: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "jaxlib/rocm/BUILD"
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode())
    patch = jax_patch(text, ["_other.so"], "jax_rocm7_plugin", "jax_rocm_plugin").encode()
    done = subprocess.run(tool, cwd=tmp_path, input=patch, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert b'wheel_run_path_linkopts("jax_rocm7_plugin")' in file.read_bytes()
    assert file.read_bytes().endswith(text[-2:].encode())


def test_a_module_that_nobody_links_is_told() -> None:
    with pytest.raises(InputError) as raised:
        jax_patch(BUILD, ["_rnn.so", "_linalg.so"], "jax_rocm7_plugin", "jax_rocm_plugin")
    assert str(raised.value) == (
        "@jax//jaxlib/rocm/BUILD: has no rule that links _linalg.so; expected one of nanobind_extension, "
        "pybind_extension, cc_binary for each module"
    )


TOOLS = {
    "pjrt/tools/BUILD.bazel": (
        'load("//a:a.bzl", "COMMIT", "kept")\nload("//b:b.bzl", b = "C")\n\n'
        'SOURCES = ["LICENSE.txt", "//pjrt/python:setup.py"]\n\nOTHERS = ["x"]\n\n'
        'py_binary(\n    name = "build_gpu_plugin_wheel",\n    args = [COMMIT, b],\n    data = SOURCES,\n)\n\n'
        'py_library(name = "build_utils")\n\nkept(name = "mine")\n'
    ),
    "pjrt/tools/LICENSE.txt": "MIT\n",
    "pjrt/tools/build_gpu_plugin_wheel.py": "import build_utils\n",
    "pjrt/tools/build_utils.py": "",
    "pjrt/python/BUILD": 'package()\n\nexports_files(["__init__.py", "setup.py"])\n',
    "pjrt/python/__init__.py": "",
    "pjrt/python/setup.py": "",
    "build/build.py": "",
    ".bazelrc": "build:rocm --jobs=1\n",
    "build/rocm/tools/fixwheel.py": "",
}


def after_of_remove(**changes: str) -> dict[str, str]:
    """Return the files after the phase, which does nothing the second time."""
    texts = {**TOOLS, **changes}
    draft = Draft(Checkout({f"jax_rocm_plugin/{path}": SourceFile(text) for path, text in texts.items()}))
    plan = Plan(draft, Structure("jax_rocm_plugin/.bazelrc", *[""] * 4), {}, "")
    remove(plan)
    once = draft.checkout.files
    remove(plan)
    assert draft.checkout.files == once
    return {path.removeprefix("jax_rocm_plugin/"): file.text for path, file in draft.checkout.files.items()}


def test_the_builder_goes_with_what_only_it_used() -> None:
    assert after_of_remove() == {
        "pjrt/tools/BUILD.bazel": (
            'load("//a:a.bzl", "COMMIT", "kept")\nOTHERS = ["x"]\n\nkept(name = "mine")\n\n'
            'exports_files(["LICENSE.txt"])\n'
        ),
        "pjrt/tools/LICENSE.txt": "MIT\n",
        ".bazelrc": "build:rocm --jobs=1\n",
        "pjrt/python/BUILD": 'package()\n\nexports_files(["__init__.py"])\n',
        "pjrt/python/__init__.py": "",
    }


def test_a_target_of_the_same_package_keeps_the_builder() -> None:
    build = TOOLS["pjrt/tools/BUILD.bazel"] + 'jax_wheel(name = "w", wheel_binary = ":build_gpu_plugin_wheel")\n'
    left = after_of_remove(**{"pjrt/tools/BUILD.bazel": build})
    assert {"pjrt/tools/build_gpu_plugin_wheel.py", "pjrt/tools/build_utils.py", "pjrt/python/setup.py"} <= left.keys()
    (question,) = questions_in("", left["pjrt/tools/BUILD.bazel"])
    assert question.text.startswith("who builds these targets?")
    assert 'jax_wheel(name = "w"' in left["pjrt/tools/BUILD.bazel"]


def test_a_script_that_calls_build_py_keeps_it() -> None:
    left = after_of_remove(**{"ci.sh": "python build/build.py build\n", "fix.py": "# build/rocm/tools/fixwheel.py\n"})
    assert "build/build.py" in left
    assert "build/rocm/tools/fixwheel.py" not in left


def test_a_template_that_another_package_takes_stays() -> None:
    left = after_of_remove(**{"other/BUILD": 'filegroup(name = "x", srcs = ["//pjrt/python:setup.py"])\n'})
    assert "pjrt/python/setup.py" in left
    assert left["pjrt/python/BUILD"] == TOOLS["pjrt/python/BUILD"]


def test_a_package_that_holds_nothing_else_goes_and_one_with_targets_stays() -> None:
    exports = 'package()\n\nexports_files(["plugin_setup.py"])\n'
    files = {"jax_plugins/rocm/BUILD.bazel": exports, "jax_plugins/rocm/plugin_setup.py": ""}
    assert not {path for path in after_of_remove(**files) if path.startswith("jax_plugins/")}
    files["jax_plugins/rocm/BUILD.bazel"] += '\nalias(name = "x", actual = "//y")\n'
    assert (
        after_of_remove(**files)["jax_plugins/rocm/BUILD.bazel"] == 'package()\n\nalias(name = "x", actual = "//y")\n'
    )


ASKED = "# rocwheel asks: does this image still need auditwheel or patchelf? No wheel of this repository\n#   does.\n"


def after_deprecation(path: str, text: str) -> str:
    draft = Draft(Checkout({path: SourceFile(text)}))
    plan = Plan(draft, Structure(*[""] * 5), {}, "")
    deprecate(plan)
    deprecate(plan)
    return draft.text(path)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            "RUN apt-get install -y \\\n    git \\\n    patchelf \\\n    wget\n",
            "RUN apt-get install -y \\\n    git \\\n    wget\n",
        ),
        ("RUN pip install \\\n    auditwheel>=6 \\\n    build\n", "RUN pip install \\\n    build\n"),
        (
            "RUN pip install auditwheel\nRUN apt install patchelf\n",
            f"{ASKED}RUN pip install auditwheel\nRUN apt install patchelf\n",
        ),
        ("RUN apt install \\\n  patchelf\n", f"RUN apt install \\\n{ASKED}  patchelf\n"),
        ("# patchelf\nRUN true\n", "# patchelf\nRUN true\n"),
    ],
)
def test_tools_leave_images(before: str, expected: str) -> None:
    assert after_deprecation("docker/Dockerfile.builder", before) == expected


def test_build_py_hands_its_command_line_to_the_translation() -> None:
    assert (
        'subprocess.call(["rocwheel", "jax", "translate", "--", "python", "build/build.py", *sys.argv[1:]])'
        in after_deprecation(BUILD_PY, "import argparse\n")
    )
