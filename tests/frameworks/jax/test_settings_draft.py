"""``rocm.toml`` of what a checkout says."""

from __future__ import annotations

import pytest

from rocwheel.frameworks.jax.checkout import Checkout, SourceFile, Structure
from rocwheel.frameworks.jax.editing import questions_in
from rocwheel.frameworks.jax.settings_draft import settings_text

STRUCTURE = Structure("rc", "WORKSPACE", "name", "plugin.so", "jax")
BUILDER = "jax_rocm_plugin/pjrt/tools/build_gpu_plugin_wheel.py"
FULL = {
    "rc": (
        "build:rocm --config=rocm_base\nbuild:rocm --action_env=CLANG_COMPILER_PATH=/usr/lib/llvm-18/bin/clang\n"
        "build:rocm_base --action_env TF_ROCM_AMDGPU_TARGETS=gfx90a,gfx942\nbuild:rocm --repo_env=ROCM_PATH=/rocm\n"
        "build:clang --copt=-g\nbuild:other --copt=-g\n"
    ),
    "WORKSPACE": 'python_init_repositories(requirements = {"3.11": "a", "3.13-ft": "b", "system": "c"})\n',
    BUILDER: 'subprocess.run(["patchelf", "--set-rpath", "$ORIGIN/../rocm/lib:/x", "/opt/rocm/lib", "/usr/bin/env"])\n',
    "jax_rocm_plugin/third_party/xla/workspace.bzl": 'XLA_COMMIT = "00"\n',
    "jax_rocm_plugin/third_party/jax/workspace.bzl": 'COMMIT = "00"\n',
    "jax_rocm_plugin/jaxlib_ext/tools/LICENSE.txt": "",
    "jax_rocm_plugin/pjrt/python/__init__.py": "",
}


def drafted(**changes: str) -> str:
    texts = {**FULL, **changes}
    return settings_text(Checkout({path: SourceFile(text) for path, text in texts.items()}), STRUCTURE)


def test_a_checkout_that_says_everything_is_asked_nothing() -> None:
    lines = drafted().splitlines()
    assert [line for line in lines if not line.startswith(("    ", "]", "plugin-targets", "#"))] == [
        "schema = 1",
        'compiler = "/usr/lib/llvm-18/bin/clang"',
        'rocm-path = "/rocm"',
        'targets = ["gfx90a", "gfx942"]',
        'python-versions = ["3.11", "3.13-ft"]',
        'search = ["$SDK", "/opt/rocm/lib"]',
        'configs = ["rocm", "clang"]',
        'pjrt-targets = ["//pjrt:plugin.so"]',
        'wheel-sources = ["jaxlib_ext/tools/LICENSE.txt", "pjrt/python/__init__.py"]',
        (
            'commits = { "ROCm/xla" = "third_party/xla/workspace.bzl:XLA_COMMIT", "jax" = '
            '"third_party/jax/workspace.bzl:COMMIT" }'
        ),
    ]
    assert list(questions_in("", drafted())) == []


@pytest.mark.parametrize(
    ("changes", "asked", "line"),
    [
        ({"rc": "build:rocm_base --jobs=1\n"}, "which compiler?", 'compiler = "/usr/lib/llvm-18/bin/clang"'),
        ({"rc": "build:rocm_base --jobs=1\n"}, "which GPU targets?", 'targets = ["list@rocm-jax"]'),
        ({"rc": "build:rocm_base --jobs=1\n"}, "No file in this checkout names it.", 'rocm-path = "/opt/rocm"'),
        (
            {"rc": "build:rocm_base --jobs=1\n", "a.sh": "--rocm_path=/a\n--rocm_path=/b\n"},
            "The callers of build.py name /a, /b.",
            'rocm-path = "/opt/rocm"',
        ),
        ({"WORKSPACE": ""}, "which Python versions?", 'python-versions = ["3.12"]'),
        (
            {BUILDER: '"patchelf"; "_rocm_sdk_libraries_" + x; "/opt/rocm/lib"\n'},
            "does each family have its own SDK?",
            "sea",
        ),
    ],
)
def test_what_it_does_not_say_is_asked_above_a_default(changes: dict[str, str], asked: str, line: str) -> None:
    lines = drafted(**changes).splitlines()
    above = next(index for index, text in enumerate(lines) if text.startswith(line))
    questions = [question for question in questions_in("", drafted(**changes)) if asked in question.text]
    assert len(questions) == 1
    assert lines[above - 1].startswith("#")


def test_one_rocm_that_all_callers_name_is_taken() -> None:
    text = drafted(rc="build:rocm --jobs=1\n", **{"a.sh": "--rocm_path=/a\n", "b.sh": "--rocm_path=/a x\n"})
    assert 'rocm-path = "/a"\n' in text
