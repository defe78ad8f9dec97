"""Calls of the old tool in files of the structures that rocm-jax has."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.words import shown
from rocwheel.frameworks.jax_migration.reading.read_calls import caller_kind, read_old_calls

FILES = Path(__file__).parent.parent / "files"
CALL = "python build/build.py build --wheels=jax-rocm-pjrt"


def read(text: str, name: str) -> tuple[list[str], list[str]]:
    """Return the calls as ``LINES: WORDS``, and the undecided ones as ``LINE: REASON``."""
    found = read_old_calls(text, name)
    calls = [f"{call.first_line}-{call.last_line}: {' '.join(map(shown, call.words))}" for call in found.calls]
    return calls, [f"{item.first_line}: {item.reason}" for item in found.undecided]


def read_file(name: str) -> tuple[list[str], list[str]]:
    return read((FILES / name).read_text(), name)


def test_calls_in_a_template_of_a_makefile_are_found_with_the_lines_of_the_python_file() -> None:
    calls, undecided = read_file("develop.py")
    assert calls == [
        (
            "18-28: python3 ./build/build.py build --use_clang=true --wheels=jax-rocm-plugin "
            "--target_cpu_features=native --rocm_path=%(rocm)s --rocm_version=%(major)s "
            "--rocm_amdgpu_targets=${GPUS} --bazel_options=${ALL_OPTIONS} --bazel_options=${JAX_OPTION} --verbose "
            "--clang_path=%(clang)s"
        ),
        "31-31: python3 ./build/build.py build --wheels=jax-rocm-pjrt --rocm_amdgpu_targets=${GPUS}",
        "34-37: python3 ./build/build.py build --wheels=jaxlib --bazel_options=${ALL_OPTIONS}",
    ]
    assert undecided == []
    assert all(call.template for call in read_old_calls((FILES / "develop.py").read_text(), "develop.py").calls)


def test_a_list_of_arguments_is_read_with_what_is_added_and_with_what_its_callers_decide() -> None:
    found = read_old_calls((FILES / "wheels.py").read_text(), "wheels.py")
    first, second, jaxlib = found.calls
    options = (
        "--rocm_path={rocm_path} --rocm_version={version[0]} --use_clang={use_clang} --verbose "
        "--output_path={output} --bazel_options=--define=xla_rocm_profiler=v1"
    )
    assert " ".join(map(shown, first.words)) == f"{CALL} {options}"
    assert " ".join(map(shown, second.words)) == f"{CALL} {options}".replace("pjrt", "plugin")
    assert (jaxlib.first_line, jaxlib.words[-1]) == (37, "--wheels=jaxlib")
    assert [(item.line, item.condition, shown(item.words[0])) for item in first.optional] == [
        (28, "if use_clang, if clang_path", "--clang_path={clang_path}"),
        (30, "if xla_path", "--bazel_options=--override_repository=xla={xla_path}"),
        (32, "if rbe", "--rbe"),
    ]
    assert [(item.first_line, item.reason) for item in found.undecided] == [
        (41, "build/rocm/ci_build calls build.py in its turn: give that file, too")
    ]


def test_a_shell_script_is_read_with_its_variables_and_arrays() -> None:
    calls, undecided = read_file("test_change.sh")
    assert calls == [
        "15-15: python3 build/build.py requirements_update --python=${PYTHON}",
        "16-16: python3 build/build.py build --wheels=jax-rocm-plugin --configure_only --python_version=${PYTHON}",
        (
            "20-20: JAX_RELEASE=1 python build/build.py build --rocm_path=/opt/rocm --verbose --wheels=jax-rocm-pjrt "
            "--output_path=/wheel house"
        ),
    ]
    assert undecided == [
        "22: '$@' brings options, and this file doesn't set it: translate the whole command line by itself",
        (
            "24: '$FLAGS' brings options that depend on what runs before (line 23): translate the whole command line "
            "by itself"
        ),
        "25: stands in the text of a command for another shell: translate it by itself",
    ]


def test_the_steps_of_a_workflow_are_read() -> None:
    calls, undecided = read_file("nightly.yml")
    assert calls == [
        (
            "15-19: python build/build.py build --wheels=jax-rocm-plugin --python_version=${{ matrix.python }} "
            "--rocm_path=$ROCM --bazel_options=--jobs=${{ inputs.jobs }}"
        ),
        "21-21: python3 build/build.py build --wheels=jax-rocm-pjrt",
    ]
    assert undecided == []


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("ARGS := --wheels=jax-rocm-pjrt\na:\n\tpython build/build.py build $(ARGS)\n", f"3-3: {CALL}"),
        ("W ?= jax-rocm-pjrt\na:\n\tpython build/build.py build --wheels=$(W)\n", f"3-3: {CALL}"),
        ("A = --wheels=$(B)\nB = jax-rocm-pjrt\na:\n\t@python build/build.py build $A\n", f"4-4: {CALL}"),
        (f"a:\n\t-cd x; if true; then {CALL} --bazel_path=$$HOME/b; fi\n", f"2-2: {CALL} --bazel_path=$HOME/b"),
        (f"a:\n\t{CALL} '--rocm_path=$(R)/$$x'\n", f"2-2: {CALL} --rocm_path=$(R)/$x"),
    ],
)
def test_variables_of_make_are_expanded_where_they_bring_options(text: str, call: str) -> None:
    assert read(text, "Makefile") == ([call], [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("A = $(B)\nB = $(A)\n", "'$(A)' is set by means of itself"),
        ("A = $(A)\n", "'$(A)' is set by means of itself"),
        ("ifdef R\nA = --rbe\nendif\n", "depend on what runs before (line 2)"),
        ("A = --rbe\nA += --verbose\n", "depend on what runs before (line 1, 2)"),
        ("", "and this file doesn't set it"),
        ("".join(f"A{n} = $(A{n + 1}) $(A{n + 1})\n" for n in range(40)) + "A = $(A0)\nA40 = --x\n", "more than 10000"),
    ],
)
def test_variables_that_decide_nothing_are_told(text: str, reason: str) -> None:
    calls, (undecided,) = read(f"{text}x:\n\tpython build/build.py build $(A)\n", "GNUmakefile")
    assert calls == []
    assert reason in undecided


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (f"cat <<END\n{CALL}\nEND\n{CALL}\n", [f"4-4: {CALL}"]),
        (f"# {CALL}\n", []),
        ("grep build build/build.py\nsed -i s/x/y/ build/build.py\n", []),
        (f'{CALL} "--rocm_path=$(dirname "$(pwd)")" # c\n', [f'1-1: {CALL} --rocm_path=$(dirname "$(pwd)")']),
        (f"a=b; (cd x && {CALL}) | tee log\n", [f"1-1: {CALL}"]),
        ('"${PY}" -u build/build.py build --wheels \\\n  $W\n', []),
    ],
)
def test_only_what_a_shell_would_run_is_a_call(text: str, calls: list[str]) -> None:
    assert read(text, "x.sh")[0] == calls


@pytest.mark.parametrize(
    ("word", "field"),
    [
        ("--wheel_output={}", "{}"),
        ("--wheel_output={0}", "{0}"),
        ("--wheel_output={out!r:>8}", "{out!r:>8}"),
        ("--wheel_output={a.b[c]}", "{a.b[c]}"),
        ("--wheel_output={{x}}", "{x}"),
        ("--wheel_output=%s", "%s"),
        ("--wheel_output=%(out)s", "%(out)s"),
    ],
)
def test_a_text_that_a_program_fills_in_is_not_taken_at_its_word(word: str, field: str) -> None:
    reason = f"holds {field}, which the program fills in: translate the command line that it makes by itself"
    assert read(f"run('{CALL} \"{word}\"')\n", "x.py") == ([], [f"1: {reason}"])


def test_a_makefile_that_a_program_fills_in_is_not_taken_at_its_word() -> None:
    makefile = f"x:\n\t{CALL} --wheel_output={{out}}\n"
    calls, undecided = read(f"T = '''\n{makefile}'''.format(out=1)\n", "x.py")
    reason = "holds {out}, which the program fills in: translate the command line that it makes by itself"
    assert (calls, undecided) == ([], [f"3: {reason}"])


@pytest.mark.parametrize("word", ["--wheel_output=${X}", "--wheel_output={a,b}", "--wheel_output=100%"])
def test_a_text_without_such_places_is_a_call(word: str) -> None:
    assert read(f"run('{CALL} \"{word}\"')\n", "x.py") == ([f"1-1: {CALL} {word}"], [])


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("docker/Makefile", "", "makefile"),
        ("rules.mk", "", "makefile"),
        ("build/ci_build", "#!/usr/bin/env python3\n", "python"),
        ("run", "#!/bin/bash -e\n", "shell"),
        (".github/workflows/ci.yaml", "", "workflow"),
    ],
)
def test_the_kind_of_a_file_is_in_its_name_or_its_first_line(name: str, text: str, kind: str) -> None:
    assert caller_kind(text, name) == kind


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.txt", CALL, "x.txt: is neither named as one that is read, nor begins with #! and a program; expected a "),
        ("x.sh", "a\0b", "x.sh: is no text: it has the character '\\x00'"),
        ("x.py", "def (", "x.py: can't be read as Python: invalid syntax"),
        ("x.py", "(" * 100_000, "x.py: "),
        ("x.py", "x = " + "-" * 100_000 + "1", "x.py: is nested too deeply to be read as Python"),
    ],
)
def test_other_files_are_refused(name: str, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_old_calls(text, name)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("step", "lines"),
    [
        ("- run: {0}\n      {1}\n    name: x\n", "3-4"),
        ('- run: "{0}\n      {1}"\n', "3-4"),
        ("- run:\n      {0}\n      {1}\n", "4-5"),
        ("- run: >-\n      {0}\n      {1}\n", "4-5"),
    ],
)
def test_lines_that_yaml_joins_are_one_call(step: str, lines: str) -> None:
    text = "x:\n  steps:\n  " + step.format(CALL, "--verbose")
    assert read(text, "a.yml") == ([f"{lines}: {CALL} --verbose"], [])


@pytest.mark.parametrize(
    "text",
    [
        f'jobs: {{x: {{steps: [{{run: "{CALL}"}}]}}}}\n',
        f"- with:\n    command: {CALL}\n",
        "- script: ./build/build.py build\n",
    ],
)
def test_a_call_outside_of_the_steps_that_are_read_is_undecided(text: str) -> None:
    calls, undecided = read(text, "a.yml")
    assert calls == []
    assert [reason.partition(": ")[2] for reason in undecided] == [
        "stands in no run step of its own lines: translate the command line by itself"
    ]


def test_a_path_in_a_workflow_is_no_call() -> None:
    text = f"on:\n  push:\n    paths: [build/build.py]\n# {CALL}\n"
    assert read(text, "a.yml") == ([], [])
