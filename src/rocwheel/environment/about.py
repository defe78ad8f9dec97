"""Collects information for bug reports: this installation of rocwheel, its machine, and the installed ROCm."""

from __future__ import annotations

import os
import platform
import sys
import zlib
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel import __version__
from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.core.compression import zstd
from rocwheel.targets.machine import System, survey_machine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_PACKAGES = ("click", "msgspec", "packaging", "rich")
_CODECS = ("deflate", "zlib-ng")
_PREFIX_VARIABLES = ("ROCM_PATH", "ROCM_HOME", "HIP_PATH")
_VARIABLES = ("CUDA_", "GPU_", "HIP_", "HSA_", "ROCM_", "ROCR_", "SOURCE_DATE_EPOCH")


class Prefix(msgspec.Struct, frozen=True):
    """A possible location of a ROCm installation."""

    named_by: str
    """The variable or the convention that defines the location."""
    path: str
    exists: bool
    version: str
    """The text of ``.info/version``. Empty if the file doesn't exist."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """Information about this installation of rocwheel and its machine: the document ``rocwheel.about/1``."""

    rocwheel: str
    folder: str
    """The folder with rocwheel's modules."""
    python: str
    executable: str
    system: str
    libc: str
    cpus: int
    """The number of cores that this process may use."""
    codecs: dict[str, str]
    packages: dict[str, str]
    """Versions of the packages that rocwheel requires."""
    prefixes: tuple[Prefix, ...]
    rocm_packages: dict[str, str]
    """Versions of the installed ``rocm`` packages, keyed by name."""
    environment: dict[str, str]
    """The environment variables that select a ROCm installation, a GPU, or the date of an archive, if they are set."""
    gpus: tuple[str, ...]
    problems: tuple[str, ...]
    """Problems that prevent rocwheel from identifying the machine's GPUs."""


def read_about(environ: Mapping[str, str], *, root: Path = Path("/")) -> About:
    """Return information about this process and about the machine whose file system is at ``root``."""
    detection = survey_machine(System(root))
    return About(
        rocwheel=__version__,
        folder=str(Path(__file__).parent.parent),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        executable=sys.executable,
        system=_platform_text(),
        libc=" ".join(platform.libc_ver()).strip() or "unknown",
        cpus=len(os.sched_getaffinity(0)),
        codecs={
            **{name: _version(name) for name in _CODECS},
            "zlib": zlib.ZLIB_RUNTIME_VERSION,
            "zstd": zstd.zstd_version,
        },
        packages={name: _version(name) for name in _PACKAGES},
        prefixes=tuple(_prefixes(environ, root)),
        rocm_packages=_rocm_packages(metadata.distributions()),
        environment={name: value for name, value in sorted(environ.items()) if name.startswith(_VARIABLES)},
        gpus=tuple(gpu.target for gpu in detection.gpus),
        problems=tuple(map(str, detection.problems)),
    )


def _platform_text() -> str:
    """Return the names of the distribution, the kernel, and the processor."""
    try:
        distribution = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        distribution = platform.system()
    return f"{distribution}, {platform.release()}, {platform.machine()}"


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _prefixes(environ: Mapping[str, str], root: Path) -> Iterator[Prefix]:
    """Yield the possible locations of ROCm: the folders in environment variables, and ``/opt/rocm``."""
    for name in _PREFIX_VARIABLES:
        if environ.get(name):
            yield _prefix(name, Path(environ[name]))
    yield _prefix("default", root / "opt/rocm")


def _prefix(named_by: str, path: Path) -> Prefix:
    exists, version = False, ""
    with suppress(OSError):
        exists = path.is_dir()
        version = (path / ".info/version").read_text(errors="backslashreplace").strip()
    return Prefix(named_by, str(path), exists, version)


def _rocm_packages(installed: Iterable[metadata.Distribution]) -> dict[str, str]:
    """Return the versions of the installed ROCm packages: ``rocm`` and ``rocm-sdk-*``."""
    found = {str(one.metadata["Name"]): one.version for one in installed if one.metadata["Name"]}
    return {name: found[name] for name in sorted(found) if _is_rocm(name)}


def _is_rocm(name: str) -> bool:
    normalized = canonicalize_name(name)
    return normalized == "rocm" or is_sdk_package(normalized) or normalized.startswith("rocm-profiler")
