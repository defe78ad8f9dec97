"""What nothing uses any more goes; what something uses stays."""

from __future__ import annotations

from rocwheel.frameworks.jax_checkout.checkout import Checkout, SourceFile
from rocwheel.frameworks.jax_checkout.editing.draft import Draft
from rocwheel.frameworks.jax_checkout.editing.questions import questions_in
from rocwheel.frameworks.jax_checkout.phases.plan import Plan
from rocwheel.frameworks.jax_checkout.phases.remove import remove
from rocwheel.frameworks.jax_checkout.reading.structure import Structure

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


def after(**changes: str) -> dict[str, str]:
    """Return the files after the phase, which does nothing the second time."""
    texts = {**TOOLS, **changes}
    draft = Draft(Checkout({f"jax_rocm_plugin/{path}": SourceFile(text) for path, text in texts.items()}))
    plan = Plan(draft, Structure("jax_rocm_plugin/.bazelrc", *[""] * 6), {}, "")
    remove(plan)
    once = draft.checkout.files
    remove(plan)
    assert draft.checkout.files == once
    return {path.removeprefix("jax_rocm_plugin/"): file.text for path, file in draft.checkout.files.items()}


def test_the_builder_goes_with_what_only_it_used() -> None:
    assert after() == {
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
    left = after(**{"pjrt/tools/BUILD.bazel": build})
    assert {"pjrt/tools/build_gpu_plugin_wheel.py", "pjrt/tools/build_utils.py", "pjrt/python/setup.py"} <= left.keys()
    (question,) = questions_in("", left["pjrt/tools/BUILD.bazel"])
    assert question.text.startswith("who builds these targets?")
    assert 'jax_wheel(name = "w"' in left["pjrt/tools/BUILD.bazel"]


def test_a_script_that_calls_build_py_keeps_it() -> None:
    left = after(**{"ci.sh": "python build/build.py build\n", "fix.py": "# build/rocm/tools/fixwheel.py\n"})
    assert "build/build.py" in left
    assert "build/rocm/tools/fixwheel.py" not in left


def test_a_template_that_another_package_takes_stays() -> None:
    left = after(**{"other/BUILD": 'filegroup(name = "x", srcs = ["//pjrt/python:setup.py"])\n'})
    assert "pjrt/python/setup.py" in left
    assert left["pjrt/python/BUILD"] == TOOLS["pjrt/python/BUILD"]


def test_a_package_that_holds_nothing_else_goes_and_one_with_targets_stays() -> None:
    exports = 'package()\n\nexports_files(["plugin_setup.py"])\n'
    files = {"jax_plugins/rocm/BUILD.bazel": exports, "jax_plugins/rocm/plugin_setup.py": ""}
    assert not {path for path in after(**files) if path.startswith("jax_plugins/")}
    files["jax_plugins/rocm/BUILD.bazel"] += '\nalias(name = "x", actual = "//y")\n'
    assert after(**files)["jax_plugins/rocm/BUILD.bazel"] == 'package()\n\nalias(name = "x", actual = "//y")\n'
