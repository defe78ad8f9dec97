"""A ``.bazelrc`` fragment with the configs of a ROCm build, and generated files that show hand edits."""

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
    """A file was edited by hand, or made by something else, and so is not overwritten."""


class GeneratedFile(msgspec.Struct, frozen=True):
    """A text file in a language whose comments begin with ``#``; ``note`` says what makes it, in one line."""

    note: str
    body: str

    @property
    def text(self) -> str:
        """The file's text: a first line that seals the rest by its SHA-256."""
        return f"# {self.note} sha256 of what follows: {_digest(self.body)}\n{self.body}"

    def write(self, path: Path, *, force: bool = False) -> str:
        """Write the file and return the unified diff from the old text; write nothing if the diff is empty.

        Raises `HandEditedError` when the file there was edited, or made by something else, unless ``force``; and
        `WorkError` when it can't be written.
        """
        if not force:
            refuse_edited(path)
        diff = self.diff(path)
        if diff or not path.exists():
            with atomic_file(path.resolve() if path.is_symlink() else path) as target:
                target.write(self.text.encode())
        return diff

    def diff(self, path: Path) -> str:
        """Return the unified diff from the text at ``path``; raise `WorkError` when it can't be read."""
        lines = difflib.unified_diff(
            (_read(path) or "").splitlines(), self.text.splitlines(), f"{path} (before)", str(path), lineterm=""
        )
        return "".join(f"{line}\n" for line in lines)


def refuse_edited(path: Path) -> None:
    """Raise `HandEditedError` when the file there was edited, or made by something else."""
    old = _read(path)
    if old is None:
        return
    seal = _SEAL.match(old)
    if seal is None or seal["digest"] != _digest(old[seal.end() :]):
        found = "was edited by hand, or made by something else"
        remedy = "Put the changes elsewhere, or give --force to lose them."
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


_SAFE = re.compile(r"[\w@%+=:,./$~^*{}\[\]();|&<>!?-]+")
_CLANG_WITH_AVX_VNNI_INT8 = 19
_GCC_WITH_AVX_VNNI_INT8 = 13


def spell_rc_word(word: str) -> str:
    """Spell one argument for an rc file: blanks separate words, ``#`` begins a comment, and nothing expands ``$``."""
    if _SAFE.fullmatch(word):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def python_config(version: str) -> str:
    """Return the name of a Python version's config: ``python312``, ``python313ft``."""
    return "python" + version.replace(".", "").replace("-", "")


def render_bazelrc(settings: BazelSettings, targets: TargetSet) -> str:
    """Return the fragment's lines; they depend on the settings alone."""
    hook = f"try-import {spell_rc_word('%workspace%/' + settings.remote_execution)}"
    remote = [hook, *_lines("rocm_build_remote", ["--config=rocm_build", "--config=rocm_rbe"])]
    cpu_features = [
        *_lines("avx_posix", ["--copt=-mavx", "--host_copt=-mavx"]),
        *_lines("native_arch_posix", ["--copt=-march=native", "--host_copt=-march=native"]),
    ]
    sections = [
        (
            "The compiler, ROCm, the GPU targets and the run paths.",
            _lines("rocm_build", _rocm_build(settings, targets)),
        ),
        ("Remote execution.", remote if settings.remote_execution else []),
        ("One Python each.", [line for version in settings.python_versions for line in _python(version)]),
        ("CPU features.", cpu_features),
        ("What only this machine or user wants; last, so that it wins.", ["try-import %workspace%/.bazelrc.user"]),
    ]
    return "\n".join(f"# {title}\n" + "".join(f"{line}\n" for line in lines) for title, lines in sections if lines)


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
    if settings.cpu_features != "default":
        yield "--config=" + {"release": "avx_posix", "native": "native_arch_posix"}[settings.cpu_features]
    yield from settings.options


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
