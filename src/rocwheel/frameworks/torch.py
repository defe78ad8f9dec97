"""Returns the initializer, the requirements, and the run path that let PyTorch use the SDK's packages."""

from __future__ import annotations

import functools
import posixpath
import shlex
from typing import TYPE_CHECKING, Literal

import msgspec
from packaging.version import Version

from rocwheel.artifacts.sdk_names import device_extra, is_family
from rocwheel.core.decoding import read_table
from rocwheel.core.errors import InputError
from rocwheel.environment.run_path_choice import origin_relative
from rocwheel.environment.sdk_layout import sdk_search_folders
from rocwheel.repair.initializer import VersionCheck, preload_names, render_initializer
from rocwheel.targets.catalog import check_family, load_catalog
from rocwheel.wheels.requirements import exact_pattern, release_match

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocwheel.environment.tree import InstalledFile
    from rocwheel.repair.options import Mismatch
    from rocwheel.targets.target_set import TargetSet

VersionLock = Literal["exact", "minor"]
"""``exact``: only the same version of the SDK. ``minor``: any version with the same major and minor numbers."""

_MINOR = 2
_OPTION = "--rocm"
_FOLDER_OPTION = "--at"
_FAMILY_OPTION = "--family"
_VARIABLE = "PYTORCH_EXTRA_INSTALL_REQUIREMENTS"


class _Torch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    preload: tuple[str, ...]
    folder: str


@functools.cache
def _torch() -> _Torch:
    return read_table(__package__, "torch.toml", _Torch)


def torch_folder() -> str:
    """Return the folder with PyTorch's libraries, relative to site-packages."""
    return _torch().folder


def initializer(sdk_version: str, lock: VersionLock, mismatch: Mismatch = "fail") -> str:
    """Return ``torch/_rocm_init.py``, which loads every library that PyTorch may need."""
    return render_initializer(_torch().preload, _checked(sdk_version, lock, mismatch))


def initializer_for(
    files: Sequence[InstalledFile], sdk_version: str, lock: VersionLock, mismatch: Mismatch = "fail"
) -> str:
    """Return the initializer that loads only the libraries that ``files`` need.

    Raises `InputError` if the files need no library.
    """
    names, others = preload_names(files)
    if not names:
        found = "doesn't need any of the SDK's public libraries"
        source = files[0].source if files else "the given files"
        raise InputError(source, found, remedy="Specify the libraries that use ROCm.")
    return render_initializer(names, _checked(sdk_version, lock, mismatch), others)


def requirements_variable(sdk_version: str, lock: VersionLock, targets: TargetSet | None = None) -> str:
    """Return the assignment to the variable from which PyTorch's ``setup.py`` reads requirements.

    Without ``targets``, the selector chooses device packages for the machine's GPUs during installation. For all
    targets, the requirement has the extra that contains all targets of the release, which may lack some GPUs.
    """
    devices = [device_extra(processor) for processor in targets.processors] if targets else ["device"]
    if targets and {target.name for target in load_catalog().targets} <= {*targets.processors}:
        devices = ["device-all"]
    requirement = f"rocm[{','.join(['libraries', *devices])}]=={_locked(sdk_version, lock)}"
    return f"{_VARIABLE}={shlex.quote(requirement)}\n"


def search_folders(family: str = "") -> tuple[str, ...]:
    """Return the folders of the SDK's packages, or of a target family's packages.

    Raises `InputError` for an invalid family name, and for an unknown name that begins with ``gfx``.
    """
    if not is_family(family):
        raise InputError(_FAMILY_OPTION, f"is {family!r}", expected="a target family such as gfx94X-dcgpu")
    check_family(family, source=_FAMILY_OPTION)
    return sdk_search_folders(family)


def run_path_entries(search: Sequence[str], folder: str | None = None) -> tuple[str, ...]:
    """Return the run path entries for a library in ``folder``: its own folder, then the SDK's folders.

    ``folder`` is relative to site-packages: empty for site-packages itself, or `None` for PyTorch's own folder. Raises
    `InputError` for an invalid folder.
    """
    own = torch_folder() if folder is None else posixpath.normpath(folder)
    if own.startswith("/") or ".." in own.split("/"):
        raise InputError(_FOLDER_OPTION, f"is {own!r}", expected="a folder in site-packages, such as torch/lib")
    return tuple(origin_relative(place, own) for place in (own, *search))


def _locked(sdk_version: str, lock: VersionLock) -> str:
    try:
        version = Version(sdk_version)
    except ValueError as e:
        raise InputError(_OPTION, f"is {sdk_version!r}", expected="a version such as 7.14.0 (PEP 440)") from e
    return str(version) if lock == "exact" else release_match(version, _MINOR)


def _checked(sdk_version: str, lock: VersionLock, mismatch: Mismatch) -> VersionCheck:
    """Return the version pattern that accepts the same versions as the requirement."""
    locked, fails = _locked(sdk_version, lock), mismatch == "fail"
    if locked.endswith(".*"):
        return VersionCheck(locked, fails=fails)
    return VersionCheck(locked, exact_pattern(Version(locked)), fails)
