"""Writes the ``.bazelrc`` fragment for a ROCm build, and other generated files in which manual edits are detected."""

from __future__ import annotations

import difflib
import hashlib
import re
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import WorkError, read_error
from rocwheel.core.reading import read_regular
from rocwheel.core.writing import atomic_file
from rocwheel.targets.spelling import spell_commas

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rocwheel.frameworks.jax.settings import BazelSettings
    from rocwheel.targets.target_set import TargetSet


_SEAL = re.compile(r"\A# (?P<note>.*) sha256 of what follows: (?P<digest>[0-9a-f]{64})\n")


class HandEditedError(WorkError):
    """A file isn't overwritten because it was edited manually, or because another tool wrote it."""


class GeneratedFile(msgspec.Struct, frozen=True):
    """A text file in a language with ``#`` comments.

    ``note`` is a single line with the command that writes the file.
    """

    note: str
    body: str

    @property
    def text(self) -> str:
        """The file's text. The first line has the SHA-256 digest of the other lines."""
        return f"# {self.note} sha256 of what follows: {_digest(self.body)}\n{self.body}"

    def write(self, path: Path, *, force: bool = False) -> str:
        """Write the file and return the unified diff from the old contents. If the diff is empty, write nothing.

        Raises `HandEditedError` for an existing file that was edited or that another tool wrote, unless ``force`` is
        true. Raises `WorkError` if the file can't be written.
        """
        if not force:
            refuse_edited(path)
        diff = self.diff(path)
        if diff or not path.exists():
            with atomic_file(path.resolve() if path.is_symlink() else path) as target:
                target.write(self.text.encode())
        return diff

    def diff(self, path: Path) -> str:
        """Return the unified diff from the existing file at ``path``. Raises `WorkError` if the file can't be read."""
        lines = difflib.unified_diff(
            (_read(path) or "").splitlines(), self.text.splitlines(), f"{path} (before)", str(path), lineterm=""
        )
        return "".join(f"{line}\n" for line in lines)


def refuse_edited(path: Path) -> None:
    """Raise `HandEditedError` if the existing file was edited, or if another tool wrote it."""
    old = _read(path)
    if old is None:
        return
    seal = _SEAL.match(old)
    if seal is None or seal["digest"] != _digest(old[seal.end() :]):
        found = "was edited by hand, or rocwheel didn't write it"
        remedy = "Move the changes to another file, or add --force to discard them."
        raise HandEditedError(path, found, remedy=remedy)


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _read(path: Path) -> str | None:
    try:
        return read_regular(path).decode(errors="replace")
    except FileNotFoundError:
        return None
    except OSError as e:
        raise read_error(path, e, remedy="Choose another file.", kind=WorkError) from e


JAX_ROCM_BAZELRC = "build/rocm/rocm.bazelrc"
"""The file in JAX's source tree that defines the configs for ROCm."""

_SAFE = re.compile(r"[\w@%+=:,./$~^*{}\[\]();|&<>!?-]+")
_CLANG_WITH_AVX_VNNI_INT8 = 19
_GCC_WITH_AVX_VNNI_INT8 = 13


def spell_rc_word(word: str) -> str:
    """Quote an argument for an rc file.

    In an rc file, spaces separate words, ``#`` begins a comment, and ``$`` isn't expanded.
    """
    if _SAFE.fullmatch(word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def python_config(version: str) -> str:
    """Return the name of the config for a Python version, such as ``python312`` or ``python313ft``."""
    return "python" + version.replace(".", "").replace("-", "")


def render_bazelrc(settings: BazelSettings, targets: TargetSet) -> str:
    """Return the text of the fragment. The text depends only on the settings."""
    sections = _jax_sections(settings, targets) if settings.tree == "jax" else _sections(settings, targets)
    return "\n".join(f"# {title}\n" + "".join(f"{line}\n" for line in lines) for title, lines in sections if lines)


def _jax_sections(settings: BazelSettings, targets: TargetSet) -> list[tuple[str, list[str]]]:
    """Return the sections of a fragment for JAX's own tree. ``jax_tree.toml`` has the source of each name."""
    # rocm_release_wheel comes after the settings' configs: some of them include rocm, which sets another type of path.
    options = [*(f"--config={config}" for config in settings.configs), "--config=rocm_release_wheel"]
    if settings.rocm_path:
        options.append(f"--repo_env=ROCM_PATH={settings.rocm_path}")
    options.append(f"--repo_env=TF_ROCM_AMDGPU_TARGETS={spell_commas(targets)}")
    if not settings.compress_device_code:
        options.append("--action_env=HIPCC_COMPILE_FLAGS_APPEND=")
    # JAX's own compiler is Clang 18, which lacks these instructions.
    options += ["--define=xnn_enable_avxvnniint8=false", *_cpu_config(settings), *settings.options]
    return [
        ("JAX's configs for ROCm, which JAX's .bazelrc doesn't import.", [f"import %workspace%/{JAX_ROCM_BAZELRC}"]),
        ("ROCm, GPU targets, and CPU features.", _lines("rocm_build", options)),
        ("Remote execution.", _lines("rocm_build_remote", ["--config=rocm_build", "--config=rocm_rbe"])),
        _python_section(settings),
    ]


def _sections(settings: BazelSettings, targets: TargetSet) -> list[tuple[str, list[str]]]:
    hook = f"try-import {spell_rc_word('%workspace%/' + settings.remote_execution)}"
    remote = [hook, *_lines("rocm_build_remote", ["--config=rocm_build", "--config=rocm_rbe"])]
    cpu_features = [
        *_lines("avx_posix", ["--copt=-mavx", "--host_copt=-mavx"]),
        *_lines("native_arch_posix", ["--copt=-march=native", "--host_copt=-march=native"]),
    ]
    return [
        (
            "Compiler, ROCm, GPU targets, and run paths.",
            _lines("rocm_build", _rocm_build(settings, targets)),
        ),
        ("Remote execution.", remote if settings.remote_execution else []),
        _python_section(settings),
        ("CPU features.", cpu_features),
        (
            "Options for this machine or user. They come last, so that they take precedence.",
            ["try-import %workspace%/.bazelrc.user"],
        ),
    ]


def _python_section(settings: BazelSettings) -> tuple[str, list[str]]:
    lines = [line for version in settings.python_versions for line in _python(version)]
    return ("One config for each Python version.", lines)


def _lines(config: str, options: Iterator[str] | list[str]) -> list[str]:
    return [f"build:{config} {spell_rc_word(option)}" for option in options]


def _rocm_build(settings: BazelSettings, targets: TargetSet) -> Iterator[str]:
    yield from (f"--config={config}" for config in settings.configs)
    yield from _compiler(settings)
    if settings.crosstool:
        yield f"--crosstool_top={settings.crosstool}"
    yield from ("--define=using_rocm=true", "--define=using_rocm_hipcc=true", "--repo_env=TF_NEED_ROCM=1")
    for kind in ("repo_env", "action_env"):
        if settings.rocm_path:
            yield f"--{kind}=ROCM_PATH={settings.rocm_path}"
        yield f"--{kind}=TF_ROCM_AMDGPU_TARGETS={spell_commas(targets)}"
    yield f"--repo_env=ROCM_WHEEL_RPATH={settings.run_path}"
    yield f"--repo_env=ROCM_WHEEL_RPATH_TAG={settings.run_path_tag}"
    yield from _cpu_config(settings)
    yield from settings.options


def _cpu_config(settings: BazelSettings) -> list[str]:
    configs = {"release": ["--config=avx_posix"], "native": ["--config=native_arch_posix"], "default": []}
    return configs[settings.cpu_features]


def _compiler(settings: BazelSettings) -> Iterator[str]:
    yield f"--repo_env=CC={settings.compiler}"
    yield f"--repo_env=BAZEL_COMPILER={settings.compiler}"
    if settings.is_clang:
        yield f"--action_env=CLANG_COMPILER_PATH={settings.compiler}"
        yield "--repo_env=TF_ROCM_CLANG=1"
        yield "--action_env=TF_HIPCC_CLANG=1"
    if settings.compress_device_code:
        yield "--action_env=HIPCC_COMPILE_FLAGS_APPEND=--offload-compress"
    first = _CLANG_WITH_AVX_VNNI_INT8 if settings.is_clang else _GCC_WITH_AVX_VNNI_INT8
    if settings.compiler_major is not None and settings.compiler_major < first:
        yield "--define=xnn_enable_avxvnniint8=false"


def _python(version: str) -> list[str]:
    options = [f"--repo_env=HERMETIC_PYTHON_VERSION={version}"]
    if version.endswith("-ft"):
        options.append("--@rules_python//python/config_settings:py_freethreaded=yes")
    return _lines(python_config(version), options)
