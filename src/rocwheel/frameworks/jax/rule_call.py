"""How JAX's rule ``jax_wheel`` calls its ``wheel_binary`` (``//jaxlib:jax.bzl``), and what rocwheel makes of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.core.reading import read_regular
from rocwheel.frameworks.jax.given_options import require_values
from rocwheel.frameworks.jax.wheel_descriptions import rocm_major
from rocwheel.frameworks.wheel.stamps import parse_commits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["RuleCall", "parse_cpu_tags", "read_rule_call"]

_CALL = "the call of jax_wheel"
_GIT_HASH = "jaxlib_git_hash"
_PARAMETER_FILE = "@"
_REPOSITORY = "jax"


class RuleCall(msgspec.Struct, frozen=True):
    """What the rule asks for. It has declared the wheel's file name already, and expects it in ``folder``."""

    folder: Path
    cpu: str
    rocm: str
    """The major version of ROCm."""
    commits: dict[str, str]
    """The commit of JAX by its repository, unless the rule doesn't know it."""
    sources: tuple[Path, ...]


def read_rule_call(words: Sequence[str]) -> RuleCall:
    """Return what the words of a call say; ``@FILE`` stands for the lines of a file, as Bazel writes one.

    Raises `InputError` for words that the rule doesn't give, for a wheel that is not for ROCm, and for an editable one.
    """
    given = _parser().parse_args(list(_expanded(words)))
    require_values(vars(given))
    if given.editable:
        remedy = "Build the target without _editable, or give JAX's own tool as wheel_binary."
        raise InputError(_CALL, "asks for an editable wheel", expected="a wheel", remedy=remedy)
    if not _is_true(given.enable_rocm) or _is_true(given.enable_cuda):
        raise InputError(_CALL, "is not for ROCm", expected="enable_rocm = True alone", remedy="Correct the target.")
    if not given.srcs:
        raise InputError(_CALL, "names no files (--srcs)", expected="those of wheel_sources, as source_files")
    sources = tuple(map(Path, dict.fromkeys(given.srcs)))
    rocm = rocm_major(given.platform_version, "platform_version")
    commits = parse_commits([f"{_REPOSITORY}={given.jaxlib_git_hash}"] if given.jaxlib_git_hash else (), _GIT_HASH)
    return RuleCall(Path(given.output_path), given.cpu, rocm, commits, sources)


def parse_cpu_tags(texts: Sequence[str], option: str) -> dict[str, str]:
    """Parse ``CPU=TAG`` words; raise `InputError`, which names the option, for any other."""
    pairs = [text.partition("=") for text in texts]
    for text, (cpu, _, tag) in zip(texts, pairs, strict=True):
        if not cpu or not tag:
            raise InputError(option, f"is {text!r}", expected="CPU=TAG, such as x86_64=manylinux_2_27_x86_64")
    return {cpu: tag for cpu, _, tag in pairs}


class _Parser(argparse.ArgumentParser):
    """Raises its errors in place of ending the process."""

    def error(self, message: str) -> NoReturn:
        remedy = "It is made for the rule jax_wheel; to make a wheel by hand, use rocwheel jax wheel."
        raise InputError(_CALL, f"can't be read ({message})", remedy=remedy)


def _parser() -> argparse.ArgumentParser:
    """Return the command line of JAX's ``build_gpu_plugin_wheel.py`` and ``build_gpu_kernels_wheel.py``."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--output_path", required=True)
    parser.add_argument("--cpu", required=True)
    parser.add_argument("--platform_version", required=True)
    parser.add_argument("--jaxlib_git_hash", default="")
    parser.add_argument("--enable-rocm", default="")
    parser.add_argument("--enable-cuda", default="")
    parser.add_argument("--editable", action="store_true")
    parser.add_argument("--srcs", action="append")
    return parser


def _is_true(text: str) -> bool:
    return text.lower() == "true"


def _expanded(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        if word.startswith(_PARAMETER_FILE):
            yield from _lines(Path(word.removeprefix(_PARAMETER_FILE)))
        else:
            yield word


def _lines(path: Path) -> list[str]:
    try:
        return read_regular(path).decode().splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(path, f"can't be read as a parameter file ({e})", expected="one argument on each line") from e
