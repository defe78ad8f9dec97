"""``rocm-sdk doctor``: whether the installed packages and this machine fit together, and how to mend what doesn't."""

from __future__ import annotations

import json
import re
import sys
from fnmatch import fnmatch
from pathlib import Path

from . import _build_info
from ._access import ERROR, NOTE, WARNING, Finding, survey_access
from ._choice import check_choice
from ._device_code import check_device_code
from ._installed import check_devel, check_versions
from ._packages import describe_package, find_module, find_root, installation_hint
from ._system import System

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._topology import Gpu

__all__ = ["diagnose", "run_doctor"]

LOADER_CONFIGURATION = "/etc/ld.so.conf.d"
SCHEMA = "rocm-sdk.doctor/1"


def run_doctor(*, require_gpu: bool, as_json: bool) -> int:
    """Print the GPUs and the findings; return 1 when one is an error, or when a required GPU is absent, else 0."""
    gpus, findings = diagnose(System(), require_gpu=require_gpu)
    sys.stdout.write(_as_json(gpus, findings) if as_json else _as_text(gpus, findings))
    return int(any(finding.level == ERROR for finding in findings))


def diagnose(system: System, *, require_gpu: bool = False) -> tuple[list[Gpu], list[Finding]]:
    """Return the GPUs, and what is wrong or worth knowing about them, the packages and what else may be loaded."""
    gpus, access = survey_access(system, require_gpu=require_gpu)
    others = [*_check_library_path(system), *_check_other_rocm(system)]
    return gpus, [*access, *_check_packages(system, gpus), *others]


def _check_packages(system: System, gpus: list[Gpu]) -> list[Finding]:
    if find_root("core") is None:
        return [Finding(ERROR, "the ROCm core is not installed", installation_hint())]
    return [*check_versions(), *check_devel(), *check_choice(system), *check_device_code(system, gpus)]


def _check_library_path(system: System) -> list[Finding]:
    """Find folders of LD_LIBRARY_PATH whose libraries the loader takes before those of the packages."""
    findings = []
    value = system.variable("LD_LIBRARY_PATH")
    # To the loader, an empty entry among others is the working directory, which relative ones start from.
    folders = dict.fromkeys(map(system.absolute, re.split("[:;]", value))) if value else ()
    for folder in folders:
        names = _foreign_libraries(system, folder)
        if names:
            text = f"LD_LIBRARY_PATH puts {folder} first, which has {', '.join(names)}"
            findings.append(Finding(WARNING, text, "unset LD_LIBRARY_PATH"))
    return findings


def _check_other_rocm(system: System) -> list[Finding]:
    places = [f"/opt/{name}" for name in system.list_names("/opt") if name.startswith("rocm")]
    # Of several names of one folder the last: /opt/rocm is a link to one with the version.
    by_folder = {system.real_path(place): place for place in places}
    findings = [
        Finding(
            NOTE,
            f"there is a second ROCm in {place}, which these packages do not use",
            f"If it is not wanted, remove what installed it: dpkg --search {place} || rpm --query --file {place}",
        )
        for place in by_folder.values()
        if _foreign_libraries(system, f"{place}/lib")
    ]
    for name in ("ROCM_PATH", "HIP_PATH"):
        value = system.variable(name)
        if value and _foreign_libraries(system, f"{value}/lib"):
            text = f"{name}={value} sends compilers and frameworks to a second ROCm"
            findings.append(Finding(WARNING, text, f"unset {name}"))
    return findings + _check_loader_configuration(system)


def _check_loader_configuration(system: System) -> list[Finding]:
    findings = []
    for name in system.list_names(LOADER_CONFIGURATION):
        path = f"{LOADER_CONFIGURATION}/{name}"
        folders = [line.strip() for line in (system.read_text(path) or "").splitlines()]
        if any(_foreign_libraries(system, folder) for folder in folders if folder.startswith("/opt/rocm")):
            text = f"{path} lets every program find the libraries of a second ROCm"
            findings.append(Finding(NOTE, text, f"If that is not wanted: sudo rm {path} && sudo ldconfig"))
    return findings


def _foreign_libraries(system: System, folder: str) -> list[str]:
    """Return the public libraries of ROCm in a folder that does not belong to these packages."""
    real = Path(system.real_path(folder))  # Path.resolve raises for a loop of symlinks
    if any(real.is_relative_to(root.resolve()) for root in _own_roots()):
        return []
    patterns = [entry["pattern"] for entry in _build_info.LIBRARIES.values()]
    return [name for name in system.list_names(folder) if any(fnmatch(name, pattern) for pattern in patterns)]


def _own_roots() -> list[Path]:
    """Return the folders of the installed packages, the development tree among them."""
    roots = [find_root(logical) for logical in ("core", "libraries", "profiler")]
    devel = describe_package("devel")
    module = find_module(devel.module) if devel else None
    tree = module.with_name(devel.platform_module) if devel and module else None
    return [root for root in (*roots, tree) if root]


def _as_text(gpus: list[Gpu], findings: list[Finding]) -> str:
    lines = [f"GPUs: {', '.join(gpu.target for gpu in gpus)}"] if gpus else []
    lines += map(str, findings)
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
