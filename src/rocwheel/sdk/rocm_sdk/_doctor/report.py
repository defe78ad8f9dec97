"""What a report of a bug should say about an installation and its machine. Runs no other program."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError

from .. import _build_info
from .._distributions import find_distribution
from .._packages import installed_families
from .._select import select
from .._trusted import SITE
from .checks.installed import installed_packages
from .redact import hide_secret, shorten_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._gpus.access import Diagnosis
    from .._gpus.system import System
    from .._gpus.topology import Gpu

__all__ = ["make_report"]

SCHEMA = "rocm-sdk.report/1"

RELEVANT = re.compile("(HIP|HSA|ROCM|ROCR)_.*|CUDA_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|LD_(LIBRARY_PATH|PRELOAD)")
"""Environment variables that change how ROCm is found, which GPUs it uses, and how."""


def make_report(system: System, gpus: list[Gpu], diagnoses: list[Diagnosis]) -> dict[str, Any]:
    """Return the report as a JSON object, in which ``~`` stands for the home folder and ``***`` for secrets."""
    report = {
        "schema": SCHEMA,
        "packages": {dist: text for dist, _, text in installed_packages()},
        "installation": {"folder": str(SITE), "layout": _build_info.LAYOUT, "installer": _installer()},
        "device_packages": {
            "installed": installed_families(),
            "chosen_when_installed": _choice_when_installed(),
            "chosen_now": _choice_now(system),
        },
        "system": _describe_system(system),
        "gpus": [gpu._asdict() for gpu in gpus],
        "environment": _relevant_variables(system),
        "findings": [diagnosis._asdict() for diagnosis in diagnoses],
    }
    shortened: Any = shorten_home(system, report)
    return dict(shortened)


def _installer() -> str:
    """Return the program that installed ``rocm``, such as ``pip`` or ``uv``; empty when it left no note."""
    try:
        return (find_distribution(_build_info.PACKAGES["meta"]["dist"]).read_text("INSTALLER") or "").strip()
    except PackageNotFoundError:
        return ""


def _choice_when_installed() -> str:
    try:
        from .. import _selection  # noqa: PLC0415 (only the sdist of rocm makes this module)
    except ImportError:
        return "nothing: rocm was installed as a wheel, which leaves the choice to its extras"
    return _selection.EXPLANATION


def _choice_now(system: System) -> str:
    if not _build_info.FAMILIES:
        return "no choice is needed: this release has no packages for single GPUs"
    try:
        return select(system).explanation
    except ValueError as e:
        return str(e)


def _describe_system(system: System) -> dict[str, str]:
    """Return facts by the name of what they are about; empty for what is not known or not installed."""
    return {
        "platform": f"{platform.system()} {platform.machine()}",
        "distribution": _linux_distribution(system),
        "kernel": platform.release(),
        "libc": _libc(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "executable": sys.executable,
        **{name: _installed_version(name) for name in ("pip", "uv")},
    }


def _linux_distribution(system: System) -> str:
    match = re.search('^PRETTY_NAME="?(.*?)"?$', system.read_text("/etc/os-release") or "", re.MULTILINE)
    return match[1] if match else ""


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):  # not glibc, or not Unix
        return ""


def _installed_version(dist: str) -> str:
    try:
        return find_distribution(dist).version
    except PackageNotFoundError:
        return ""


def _relevant_variables(system: System) -> dict[str, str]:
    variables = sorted(system.variables().items())
    return {name: hide_secret(name, value) for name, value in variables if RELEVANT.fullmatch(name)}
