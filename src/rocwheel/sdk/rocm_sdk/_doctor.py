"""Implements ``rocm-sdk doctor``, which prints problems and remedies, or a report to share."""

from __future__ import annotations

import json
import sys

from ._doctor_device_code import check_choice, check_device_code, check_host_wheels, check_libraries
from ._doctor_files import check_files, check_scripts
from ._doctor_loading import check_dlls, check_library_path, check_other_rocm
from ._doctor_packages import check_devel, check_system, check_versions, installed_packages
from ._doctor_report import make_report, report_text
from ._gpu_access import ERROR, NOTE, Diagnosis, survey_access
from ._installing import installation_hint
from ._packages import find_root
from ._platform import this_platform
from ._system import System

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._gpus import Gpu

SCHEMA = "rocm-sdk.doctor/1"


def run_doctor(*, require_gpu: bool, deep: bool, as_json: bool, report: bool) -> int:
    """Print the GPUs and the diagnoses, or a ``report`` that also describes the installation and the system.

    With ``deep``, every file of the packages is read. Return 1 if a diagnosis is an error or a required GPU is absent,
    and 0 otherwise.
    """
    system = System()
    gpus, diagnoses = diagnose(system, require_gpu=require_gpu, deep=deep)
    facts = {"gpus": [gpu._asdict() for gpu in gpus], "findings": [diagnosis._asdict() for diagnosis in diagnoses]}
    document = make_report(system, facts) if report else {"schema": SCHEMA, **facts}
    if as_json:
        text = json.dumps(document, indent=2) + "\n"
    else:
        text = report_text(document) if report else _as_text(gpus, diagnoses, deep)
    # A path may contain bytes that are not valid text.
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    return int(any(diagnosis.level == ERROR for diagnosis in diagnoses))


def _as_text(gpus: list[Gpu], diagnoses: list[Diagnosis], deep: bool) -> str:
    lines = [f"GPUs: {', '.join(gpu.target for gpu in gpus)}"] if gpus else []
    lines += map(str, diagnoses)
    if all(diagnosis.level == NOTE for diagnosis in diagnoses):
        unread = "" if deep else " To also check the contents of files, use --deep."
        lines.append(f"No problems found.{unread}")
    return "".join(f"{line}\n" for line in lines)


def diagnose(system: System, *, require_gpu: bool = False, deep: bool = False) -> tuple[list[Gpu], list[Diagnosis]]:
    """Return the GPUs, and diagnoses about the GPUs, the packages, and other ROCm installations.

    With ``deep``, every file of the packages is read.
    """
    gpus, access = survey_access(system, require_gpu=require_gpu)
    if foreign := check_system(system):  # other checks don't matter on this system
        return gpus, [*foreign, *check_files(deep=deep)]
    others = [*check_library_path(system), *check_other_rocm(system)]
    own = [*access, *check_files(deep=deep), *_check_packages(system, gpus, deep=deep)]
    return gpus, [*own, *others, *check_host_wheels(system, gpus)]


def _check_packages(system: System, gpus: list[Gpu], *, deep: bool) -> list[Diagnosis]:
    if find_root("core") is None:
        if any(extra == "core" for _, extra, _ in installed_packages()):
            return []  # another check reports that the package has no files
        return [Diagnosis(ERROR, "the ROCm core is not installed", installation_hint())]
    platform = this_platform()
    dlls = check_dlls(system, platform) if platform.is_windows else []
    code = [*check_device_code(system, gpus), *check_libraries(system), *dlls]
    return [*check_versions(), *check_scripts(deep=deep), *check_devel(), *check_choice(system), *code]
