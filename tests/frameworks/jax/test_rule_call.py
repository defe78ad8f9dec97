"""The command line by which JAX's rule calls its wheel_binary."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError
from rocwheel.frameworks.jax.rule_call import RuleCall, parse_cpu_tags, read_rule_call

WORDS = [
    *("--output_path", "bazel-out/bin/jaxlib/tools/dist"),
    *("--cpu", "x86_64"),
    *("--jaxlib_git_hash", "0123456789abcdef"),
    *("--enable-rocm", "True"),
    *("--platform_version", "7"),
    "--srcs=jax_plugins/rocm/__init__.py",
    "--srcs=bazel-out/bin/jaxlib/rocm/_solver.so",
    "--srcs=jax_plugins/rocm/__init__.py",
]
CALL = RuleCall(
    Path("bazel-out/bin/jaxlib/tools/dist"),
    "x86_64",
    "7",
    {"jax": "0123456789abcdef"},
    (Path("jax_plugins/rocm/__init__.py"), Path("bazel-out/bin/jaxlib/rocm/_solver.so")),
)


def test_words_are_read_as_the_rule_gives_them() -> None:
    assert read_rule_call(WORDS) == CALL


def test_a_file_holds_a_word_or_an_option_with_its_value_on_each_line(tmp_path: Path) -> None:
    words = tmp_path / "words.params"
    words.write_text("\n".join([*WORDS, ""]))
    flags = tmp_path / "flags.params"
    pairs = ["=".join(WORDS[index : index + 2]) for index in range(0, 10, 2)]
    flags.write_text("\n".join([*pairs, *WORDS[10:], ""]))
    assert [read_rule_call([f"@{path}"]) for path in (words, flags)] == [CALL, CALL]


def test_a_build_outside_of_git_has_no_commit() -> None:
    words = [word.replace("0123456789abcdef", "") for word in WORDS]
    assert read_rule_call(words).commits == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            [],
            (
                "the call of jax_wheel: can't be read (the following arguments are required: --output_path, --cpu, "
                "--platform_version). It is made for the rule jax_wheel; to make a wheel by hand, use "
                "rocwheel jax wheel."
            ),
        ),
        ([*WORDS, "--skip_gpu_kernels"], "can't be read (unrecognized arguments: --skip_gpu_kernels)"),
        ([*WORDS, "--editable"], "asks for an editable wheel; expected a wheel"),
        ([*WORDS, "--enable-rocm", "False"], "is not for ROCm; expected enable_rocm = True alone"),
        ([*WORDS, "--enable-cuda", "True"], "is not for ROCm; expected enable_rocm = True alone"),
        (WORDS[:10], "names no files (--srcs); expected those of wheel_sources, as source_files"),
        ([*WORDS, "--platform_version", "seven"], "platform_version: is 'seven'; expected a version"),
        ([*WORDS, "--jaxlib_git_hash", "main"], "jaxlib_git_hash: is 'jax=main'; expected REPOSITORY=COMMIT"),
        ([*WORDS, "--srcs=--"], "--srcs: is '--', which ends the options; expected a value"),
        ([*WORDS, "--enable-rocm=--"], "--enable_rocm: is '--', which ends the options; expected a value"),
        (["@absent.params"], "absent.params: can't be read as a parameter file"),
        (["@."], "can't be read as a parameter file"),
    ],
)
def test_other_calls_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_rule_call(words)
    assert message in str(caught.value)


@given(st.lists(st.text(max_size=20), max_size=12))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    try:
        read_rule_call([word for word in words if not word.startswith("@")])
    except InputError:
        return


@given(st.binary(max_size=300))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("call") / "file.params"
    path.write_bytes(data)
    try:
        read_rule_call([f"@{path}"])
    except InputError:
        return


def test_tags_are_given_by_cpu() -> None:
    texts = ["x86_64=manylinux_2_27_x86_64", "aarch64=manylinux_2_27_aarch64"]
    assert parse_cpu_tags(texts, "--cpu-tag") == {
        "x86_64": "manylinux_2_27_x86_64",
        "aarch64": "manylinux_2_27_aarch64",
    }


@pytest.mark.parametrize("text", ["x86_64", "=manylinux_2_27_x86_64", "x86_64=", ""])
def test_a_tag_without_a_cpu_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--cpu-tag: is .*; expected CPU=TAG, such as x86_64=manylinux_2_27_x86_64"):
        parse_cpu_tags([text], "--cpu-tag")
