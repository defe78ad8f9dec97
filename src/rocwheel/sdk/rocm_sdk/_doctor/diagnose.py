"""Finds out whether the installed packages, this machine and what else may be loaded fit together."""

from __future__ import annotations

from .._gpus.access import ERROR, Diagnosis, survey_access
from .._installing import installation_hint
from .._packages import find_root
from .._platform import this_platform
from .checks.choice import check_choice
from .checks.device_code import check_device_code
from .checks.files import check_files
from .checks.host_wheels import check_host_wheels
from .checks.installed import check_devel, check_system, check_versions, installed_packages
from .checks.libraries import check_libraries
from .checks.other_rocm import check_library_path, check_other_rocm
from .checks.scripts import check_scripts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._gpus.system import System
    from .._gpus.topology import Gpu

__all__ = ["diagnose"]


def diagnose(system: System, *, require_gpu: bool = False, deep: bool = False) -> tuple[list[Gpu], list[Diagnosis]]:
    """Return the GPUs, and what is wrong or worth knowing about them, the packages and what else may be loaded.

    ``deep`` reads every file of the packages.
    """
    gpus, access = survey_access(system, require_gpu=require_gpu)
    if foreign := check_system(system):  # nothing else matters on this system
        return gpus, [*foreign, *check_files(deep=deep)]
    others = [*check_library_path(system), *check_other_rocm(system)]
    own = [*access, *check_files(deep=deep), *_check_packages(system, gpus, deep=deep)]
    return gpus, [*own, *others, *check_host_wheels(system, gpus)]


def _check_dlls(system: System) -> list[Diagnosis]:
    platform = this_platform()
    if not platform.is_windows:
        return []
    from .checks.dlls import check_dlls  # noqa: PLC0415 (of one platform)

    return check_dlls(system, platform)


def _check_packages(system: System, gpus: list[Gpu], *, deep: bool) -> list[Diagnosis]:
    if find_root("core") is None:
        if any(extra == "core" for _, extra, _ in installed_packages()):
            return []  # but without its files, which has been said
        return [Diagnosis(ERROR, "the ROCm core is not installed", installation_hint())]
    code = [*check_device_code(system, gpus), *check_libraries(system), *_check_dlls(system)]
    return [*check_versions(), *check_scripts(deep=deep), *check_devel(), *check_choice(system), *code]
