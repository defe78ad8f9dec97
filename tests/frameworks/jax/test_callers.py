"""Tests of `rocwheel.frameworks.jax.callers`."""

from __future__ import annotations

import pytest

from rocwheel.frameworks.jax.callers import SETTINGS, VERSION_FILE, Plan, replace_callers
from rocwheel.frameworks.jax.checkout import Checkout, SourceFile, Structure
from rocwheel.frameworks.jax.editing import Draft, questions_in

SETTINGS_TEXT = """
schema = 1
compiler = "/usr/bin/clang-18"
rocm-path = "/opt/rocm"
targets = ["gfx90a"]
python-versions = ["3.11", "3.12"]
plugin-targets = ["@jax//jaxlib/rocm:_rnn.so"]
wheel-sources = ["LICENSE.txt"]
"""
VERSION = r"""$(sed -n 's/^_version *= *"\([^"]*\)".*/\1/p' pjrt/python/version.py)"""
CALL = "python3 build/build.py build --wheels=jax-rocm-pjrt"


def after_of_callers(path: str, text: str, *, times: int = 1, version: str | None = '_version = "1.0"\n') -> str:
    """Return a file after its calls were replaced."""
    files = {path: text, SETTINGS: SETTINGS_TEXT, **({VERSION_FILE: version} if version is not None else {})}
    draft = Draft(Checkout({name: SourceFile(value) for name, value in files.items()}))
    plan = Plan(draft, Structure(*[""] * 5), {}, "")
    for _ in range(times):
        replace_callers(plan)
    return draft.text(path)


def wheel(kind: str) -> str:
    sources = '--src bazel-bin --src LICENSE.txt --commit ROCm/rocm-jax="$(git rev-parse HEAD)"'
    return f'rocwheel jax wheel {kind} --version "{VERSION}" --rocm 7 {sources} --output dist'


def question(path: str, text: str) -> str:
    """Return the one question that a file asks after its calls were read, twice."""
    once, twice = after_of_callers(path, text), after_of_callers(path, text, times=2)
    assert once == twice
    (asked,) = questions_in(path, once)
    assert all(line in once.splitlines() for line in text.splitlines())
    return asked.text


def test_a_recipe_of_the_workspace_has_the_new_commands() -> None:
    text = f"wheel:\n\t{CALL} \\\n\t    --python_version=3.12 \\\n\t    --output_path=$(DIST)\n\ttouch done\n"
    bazel = "bazel build --config=rocm_build --config=python312 //pjrt:pjrt_c_api_gpu_plugin.so"
    assembly = wheel("pjrt").replace("$", "$$").replace("--output dist", "--output $(DIST)")
    assert after_of_callers("jax_rocm_plugin/Makefile", text) == f"wheel:\n\t{bazel}\n\t{assembly}\n\ttouch done\n"


def test_a_script_has_the_new_commands_in_the_workspace() -> None:
    text = f'set -e\ncd "$ROOT/jax_rocm_plugin"\n  {CALL} --python_version=3.11\n'
    bazel = "bazel build --config=rocm_build --config=python311 //pjrt:pjrt_c_api_gpu_plugin.so"
    assert after_of_callers("ci/build.sh", text).splitlines()[2:] == [f"  {bazel}", f"  {wheel('pjrt')}"]


def test_a_call_without_a_python_is_for_those_of_the_settings() -> None:
    text = "cd jax_rocm_plugin\npython3 build/build.py build --wheels=jax-rocm-plugin\n"
    assert [line.split()[3] for line in after_of_callers("b.sh", text).splitlines()[1:]] == [
        "--config=python311",
        "plugin",
        "--config=python312",
        "plugin",
    ]


@pytest.mark.parametrize(
    ("step", "head"),
    [
        (
            "      - run: |\n          cd jax_rocm_plugin\n          {}\n",
            ["      - run: |", " " * 10 + "cd jax_rocm_plugin"],
        ),
        (
            "      - working-directory: jax_rocm_plugin\n        run: {}\n",
            ["      - working-directory: jax_rocm_plugin", "        run: |"],
        ),
        (
            "      - working-directory: jax_rocm_plugin\n        run: >-\n          {}\n",
            ["      - working-directory: jax_rocm_plugin", "        run: |"],
        ),
        (
            "      - working-directory: jax_rocm_plugin\n        run:\n          {}\n          --verbose\n",
            ["      - working-directory: jax_rocm_plugin", "        run: |"],
        ),
    ],
)
def test_a_step_of_a_workflow_checks_the_fragment_and_builds(step: str, head: list[str]) -> None:
    text = "jobs:\n  wheels:\n    steps:\n" + step.format(f"{CALL} --python_version=3.11")
    lines = after_of_callers(".github/workflows/wheels.yml", text).splitlines()[3:]
    assert lines[:2] == head
    assert [line.strip() for line in lines[2:]] == [
        "# rocwheel asks: is rocwheel installed on the machine that runs this?",
        "rocwheel jax bazelrc --check --settings rocm.toml --output rocm.bazelrc",
        "bazel build --config=rocm_build --config=python311 //pjrt:pjrt_c_api_gpu_plugin.so",
        wheel("pjrt"),
    ]
    assert {len(line) - len(line.lstrip()) for line in lines[2:]} == {10}


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("a.sh", f"cd jax_rocm_plugin\n{CALL} && echo done\n", "its lines contain other text"),
        ("a.sh", f"cd jax_rocm_plugin\nif {CALL}; then :; fi\n", "its lines contain other text"),
        (
            "a.sh",
            f"{CALL}\n",
            "they must run in the folder jax_rocm_plugin, and this file doesn't say where this call runs",
        ),
        (
            "a.sh",
            f"pushd jax_rocm_plugin\npopd\n{CALL}\n",
            "they must run in the folder jax_rocm_plugin, and this file doesn't say where this call runs",
        ),
        (
            "Makefile",
            f"a:\n\t{CALL}\n",
            "they must run in the folder jax_rocm_plugin, and this file doesn't say where this call runs",
        ),
        (
            "jax_rocm_plugin/Makefile",
            f"a:\n\t{CALL} --rocm_amdgpu_targets=gfx942\n",
            "the call builds for gfx942, but rocm.toml has gfx90a",
        ),
        (
            "jax_rocm_plugin/Makefile",
            f"a:\n\t{CALL} --rocm_path=/opt/rocm-6\n",
            "the call uses the ROCm in /opt/rocm-6, but rocm.toml has /opt/rocm",
        ),
        (
            "jax_rocm_plugin/Makefile",
            f"a:\n\t{CALL} --clang_path=/usr/bin/clang-19\n",
            "the call uses the compiler /usr/bin/clang-19, but rocm.toml has /usr/bin/clang-18",
        ),
        (
            "jax_rocm_plugin/Makefile",
            f"a:\n\t{CALL} --target_cpu_features=native\n",
            "the call uses the CPU features 'native', but rocm.toml has 'release'",
        ),
        (
            "jax_rocm_plugin/Makefile",
            f"a:\n\t{CALL} --python_version=3.13\n",
            "the call is for Python 3.13, which rocm.toml doesn't list",
        ),
    ],
)
def test_what_a_file_does_not_decide_is_asked_once_beside_the_commands(path: str, text: str, reason: str) -> None:
    asked = question(path, text)
    assert asked.startswith(
        f"what should replace this call of build.py? It is equivalent to these commands, but {reason}: bazel "
    )
    assert " rocwheel jax wheel pjrt " in asked


def test_a_question_about_lines_that_yaml_joins_stands_above_their_step() -> None:
    step = f"      - run: >\n          cd jax_rocm_plugin &&\n          {CALL}\n"
    lines = after_of_callers("a.yml", f"jobs:\n  x:\n    steps:\n{step}").splitlines()
    assert lines[3].startswith("      # rocwheel asks: what should replace this call of build.py?")
    assert "joins its lines with other lines" in " ".join(line.strip(" #") for line in lines)
    assert "\n".join([*lines[-3:], ""]) == step


def test_a_list_of_arguments_is_asked_about() -> None:
    asked = question(
        "a.py", 'import subprocess\n\nsubprocess.run(["python", "build/build.py", "build", "--wheels=jax-rocm-pjrt"])\n'
    )
    assert "a list of arguments is a single command, and there are several new commands" in asked


TEMPLATE = (
    "MAKE = PREFIX"
    '''"""
all:
\tpython3 ./build/build.py build --wheels=jax-rocm-pjrt --python_version=3.11 \\
            --rocm_path=%(rocm_path)s
"""
open("jax_rocm_plugin/Makefile", "w").write(MAKE)
'''
)


def test_a_text_that_becomes_the_makefile_of_the_workspace_has_the_new_commands() -> None:
    values: dict[str, str] = {}
    made = after_of_callers("stack.py", TEMPLATE.replace("PREFIX", "r"))
    exec(made.partition("open(")[0], values)
    recipe = (values["MAKE"] % {"rocm_path": "/rocm"}).splitlines()
    assert recipe[:2] == ["", "all:"]
    assert recipe[2].startswith("\tbazel build --config=rocm_build --config=python311 ")
    assert "ROCM_PATH=/rocm" in recipe[2].replace('"', "")
    assert recipe[3].startswith("\t" + wheel("pjrt").partition(" --rocm")[0].replace("$", "$$"))


def test_backslashes_do_not_go_into_a_string_that_would_read_them() -> None:
    asked = question("stack.py", TEMPLATE.replace("PREFIX", ""))
    assert "they contain backslashes, and the string around them isn't a raw string" in asked


def test_a_call_that_cannot_be_translated_is_asked_about() -> None:
    asked = question("a.sh", 'cd jax_rocm_plugin\npython3 build/build.py build "$@"\n')
    assert asked.startswith("what should replace this call of build.py? ")


def test_without_the_file_of_the_version_its_place_is_left_open() -> None:
    text = f"cd jax_rocm_plugin\n{CALL}\n"
    assert " --version VERSION " in after_of_callers("a.sh", text, version=None)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("README.md", f"Run {CALL}.\n"),
        ("broken.py", "build.py = ("),
        ("a.sh", "./wrapper.sh  # which calls build.py\n"),
        ("run.sh", "python3 build/ci_build\n"),
    ],
)
def test_other_files_stay_as_they_are(path: str, text: str) -> None:
    assert after_of_callers(path, text) == text
