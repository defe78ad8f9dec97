"""``rocm-sdk doctor``: whether the installed packages and this machine fit together, and how to mend what doesn't."""

from __future__ import annotations

import json
import re
import sys
from fnmatch import fnmatch
from pathlib import Path

from . import _build_info
from ._access import ERROR, MISSING, NOTE, WARNING, Finding, check_access, find_gpus
from ._detect import base_target
from ._installed import check_devel, check_versions
from ._packages import describe_package, find_module, find_root, installation_hint, installed_devices
from ._select import family_serving
from ._system import System

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._topology import Gpu

__all__ = ["diagnose", "run_doctor"]

LOADER_CONFIGURATION = "/etc/ld.so.conf.d"
SCHEMA = "rocm-sdk.doctor/1"


def run_doctor(*, require_gpu: bool, as_json: bool) -> int:
    """Print the GPUs and the findings; return 1 when one is an error, or when a required GPU is absent, else 0."""
    system = System()
    gpus, unclear = find_gpus(system)
    findings = unclear + diagnose(system, gpus, look_for_gpus=bool(gpus) or not unclear)
    if require_gpu and not gpus:
        findings.append(MISSING)
    sys.stdout.write(_as_json(gpus, findings) if as_json else _as_text(gpus, findings))
    return int(any(finding.level == ERROR for finding in findings))


def diagnose(system: System, gpus: list[Gpu], *, look_for_gpus: bool = True) -> list[Finding]:
    """Return what is wrong or worth knowing about the access to ``gpus``, the packages and what else may be loaded."""
    access = check_access(system, gpus) if look_for_gpus else []
    return [*access, *_check_packages(system, gpus), *_check_library_path(system), *_check_other_rocm(system)]


def _check_packages(system: System, gpus: list[Gpu]) -> list[Finding]:
    if find_root("core") is None:
        return [Finding(ERROR, "the ROCm core is not installed", installation_hint())]
    return [*check_versions(), *check_devel(), *_check_device_codes(system, gpus)]


def _check_device_codes(system: System, gpus: list[Gpu]) -> list[Finding]:
    """Look for the code of each kind of GPU; what an integrated one lacks hinders nobody who has another.

    Libraries that carry the code for all GPUs need no package for one.
    """
    if not _build_info.FAMILIES:
        return []
    kinds = {base_target(gpu.target): gpu.integrated for gpu in _visible_gpus(system, gpus)}
    if_integrated = WARNING if all(kinds.values()) else NOTE
    levels = {target: if_integrated if integrated else ERROR for target, integrated in kinds.items()}
    return [finding for target, level in levels.items() for finding in _check_device_code(system, gpus, target, level)]


def _check_device_code(system: System, gpus: list[Gpu], target: str, level: str) -> list[Finding]:
    gpu = target if level == ERROR else f"{target}, which is integrated"
    family = family_serving(target, system.platform)
    if family is None:
        available = ", ".join(_build_info.FAMILIES)
        text = f"ROCm {_build_info.VERSION}, which has {available}, has no packages for {gpu}"
        return [Finding(level, text, _way_around(gpus, target))]
    if _is_installed(family):
        return []
    logical = "device" if _build_info.LAYOUT == "neutral" else "libraries"
    return [Finding(level, f"no installed package carries code for {gpu}", installation_hint(f"{logical}-{family}"))]


def _visible_gpus(system: System, gpus: list[Gpu]) -> list[Gpu]:
    """Return the GPUs that ``HIP_VISIBLE_DEVICES`` leaves, all when it has other things than numbers."""
    value = system.variable("HIP_VISIBLE_DEVICES")
    if not re.fullmatch("[0-9]{1,9}(,[0-9]{1,9})*", value):
        return gpus
    chosen = set(map(int, value.split(",")))
    return [gpu for number, gpu in enumerate(gpus) if number in chosen]


def _way_around(gpus: list[Gpu], target: str) -> str:
    """Return what to do about a GPU that this release can't serve; the runtime counts GPUs as the kernel's nodes."""
    others = [str(number) for number, gpu in enumerate(gpus) if base_target(gpu.target) != target]
    return (
        f"export HIP_VISIBLE_DEVICES={','.join(others)}" if others else "pip index versions rocm lists other releases"
    )


def _is_installed(family: str) -> bool:
    if _build_info.LAYOUT == "neutral":
        return family in installed_devices()
    package = describe_package("libraries", family)
    return package is not None and find_module(package.platform_module) is not None


def _check_library_path(system: System) -> list[Finding]:
    """Find folders of LD_LIBRARY_PATH whose libraries the loader takes before those of the packages."""
    own = {
        root / entry["directory"] for entry in _build_info.LIBRARIES.values() if (root := find_root(entry["package"]))
    }
    findings = []
    value = system.variable("LD_LIBRARY_PATH")
    # To the loader, an empty entry among others is the working directory, which relative ones start from.
    folders = dict.fromkeys(map(system.absolute, value.split(":"))) if value else ()
    for folder in folders:
        names = _public_libraries(system, folder) if Path(folder) not in own else []
        if names:
            text = f"LD_LIBRARY_PATH puts {folder} first, which has {', '.join(names)}"
            findings.append(Finding(WARNING, text, "unset LD_LIBRARY_PATH"))
    return findings


def _check_other_rocm(system: System) -> list[Finding]:
    places = [f"/opt/{name}" for name in system.list_names("/opt") if name.startswith("rocm")]
    findings = [
        Finding(
            NOTE,
            f"there is a second ROCm in {place}, which these packages do not use",
            f"If it is not wanted, remove what installed it: dpkg --search {place} || rpm --query --file {place}",
        )
        for place in places
        if _public_libraries(system, f"{place}/lib")
    ]
    for name in ("ROCM_PATH", "HIP_PATH"):
        value = system.variable(name)
        if value and _public_libraries(system, f"{value}/lib"):
            text = f"{name}={value} sends compilers and frameworks to a second ROCm"
            findings.append(Finding(WARNING, text, f"unset {name}"))
    return findings + _check_loader_configuration(system)


def _check_loader_configuration(system: System) -> list[Finding]:
    findings = []
    for name in system.list_names(LOADER_CONFIGURATION):
        path = f"{LOADER_CONFIGURATION}/{name}"
        folders = [line.strip() for line in (system.read_text(path) or "").splitlines()]
        if any(_public_libraries(system, folder) for folder in folders if folder.startswith("/opt/rocm")):
            text = f"{path} lets every program find the libraries of a second ROCm"
            findings.append(Finding(NOTE, text, f"If that is not wanted: sudo rm {path} && sudo ldconfig"))
    return findings


def _public_libraries(system: System, folder: str) -> list[str]:
    patterns = [entry["pattern"] for entry in _build_info.LIBRARIES.values()]
    return [name for name in system.list_names(folder) if any(fnmatch(name, pattern) for pattern in patterns)]


def _as_text(gpus: list[Gpu], findings: list[Finding]) -> str:
    lines = [f"GPUs: {', '.join(gpu.target for gpu in gpus)}"] if gpus else []
    for finding in findings:
        lines.append(f"{finding.level}: {finding.text}")
        lines += [f"  {finding.remedy}"] if finding.remedy else []
    if all(finding.level == NOTE for finding in findings):
        lines.append("Nothing is wrong.")
    return "".join(f"{line}\n" for line in lines)


def _as_json(gpus: list[Gpu], findings: list[Finding]) -> str:
    document = {
        "schema": SCHEMA,
        "gpus": [gpu._asdict() for gpu in gpus],
        "findings": [finding._asdict() for finding in findings],
    }
    return json.dumps(document, indent=2) + "\n"
