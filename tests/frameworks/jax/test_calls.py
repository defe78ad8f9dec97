"""Tests of `rocwheel.frameworks.jax.calls`: readers of files answer any text or refuse it, in time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocwheel.core.errors import RocwheelError
from rocwheel.frameworks.jax.calls import FoldedStep, folded_step
from rocwheel.frameworks.jax.translate import read_old_calls, spell_call, translate_calls
from rocwheel.frameworks.jax.words import spell_line
from tests.support.example_counts import examples
from trials.fuzz.attempt import attempt
from trials.fuzz.harness import Harness

NAMES = ("Makefile", "a.sh", "a.yml", "a.py")
PIECES = st.sampled_from(
    [
        *("python ", "build/build.py ", "build ", "--wheels=", "jax-rocm-pjrt", "--rocm_path=", "--bazel_options="),
        *("$(A)", "${A}", "$A", "$$", "$", "${{ x }}", "%(x)s", "%", "\\\n", "\n", "\t", " ", "'", '"', "`", "#"),
        *(
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "A=",
            "A = ",
            "A+=",
            "<<E\n",
            "E\n",
            "&&",
            "|",
            ";",
            ">",
            "run: |\n",
            "- run: ",
        ),
        *(
            "cmd = [",
            '"python", ',
            '"build/build.py", ',
            '"build", ',
            '"--wheels=%s" % w',
            'f"{w}"',
            "cmd.append(",
            "\x03",
        ),
    ]
)
TEXTS = st.lists(PIECES, max_size=60).map("".join) | st.text(max_size=80)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(200), deadline=None)
@given(text=TEXTS)
def test_any_text_is_read_or_refused(name: str, text: str) -> None:
    try:
        found = read_old_calls(text, name)
    except RocwheelError:
        return
    last = text.count("\n") + 1
    assert all(1 <= call.first_line <= call.last_line <= last for call in found.calls)
    made = translate_calls(found)
    assert len(made.calls) + len(made.undecided) == len(found.calls) + len(found.undecided)
    for item in made.calls:
        assert all("\0" not in line for line in spell_call(item.call, item.translation.commands))


HOSTILE = {
    "a long line": "x" * 1_000_000,
    "quotes": "'\"" * 50_000,
    "open substitutions": "$(" * 50_000,
    "open braces": "${" * 50_000,
    "backslashes": "\\" * 100_000,
    "here-documents": "<<E\n" * 10_000,
    "assignments": "A=$(A)\n" * 10_000,
    "runs": "- run: |\n" * 10_000,
    "backticks": "`" * 50_000,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_are_read_or_refused(text: str, name: str) -> None:
    call = "\npython build/build.py build --wheels=jax-rocm-pjrt\n"
    try:
        found = read_old_calls(text + call, name)
    except RocwheelError:
        return
    assert len(found.calls) + len(found.undecided) <= 1


def test_a_word_without_parts_is_spelled_empty() -> None:
    assert spell_line(["a", ""], "shell") == "a ''"


def test_a_workflow_with_a_line_of_a_long_path_is_read_at_once() -> None:
    # A pattern looked through all of the rest anew for each part of it.
    text = "../" * 40_000 + "build/build.pyc\n"
    harness = Harness("test.workflow", lambda data: read_old_calls(data.decode(), "call.yml"), lambda: [text.encode()])
    assert attempt(harness, text.encode()) is None
    (undecided,) = read_old_calls(text, "call.yml").undecided
    assert undecided.first_line == 1


@pytest.mark.parametrize(
    ("text", "first", "last", "expected"),
    [
        ("  - run: >-\n      one\n      two\n", 1, 3, FoldedStep(0, "  - ", is_whole=True)),
        ("  - run: >-\n      one\n      two\n", 2, 3, FoldedStep(0, "  - ", is_whole=False)),
        ("  - name: x\n    run:\n      one\n    env: {}\n", 2, 3, FoldedStep(1, "    ", is_whole=True)),
        ("  - run: one\n      two\n", 1, 2, FoldedStep(0, "  - ", is_whole=False)),
        ('  - "run": > # why\n\n      one\n\n  - run: |\n      other\n', 2, 3, FoldedStep(0, "  - ", is_whole=True)),
        ("  - run: |\n      one\n      two\n", 1, 3, None),
        ("  - run: one\n  - run: two\n", 1, 2, None),
        ("  - with:\n      command: one\n", 1, 2, None),
        ("one\n", 0, 1, None),
    ],
)
def test_a_folded_step_is_found_by_its_lines(text: str, first: int, last: int, expected: FoldedStep | None) -> None:
    assert folded_step(text.splitlines(), first, last) == expected
