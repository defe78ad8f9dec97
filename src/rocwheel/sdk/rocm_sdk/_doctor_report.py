"""Collects information about an installation and its machine for a bug report, without running other programs."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError

from . import _build_info
from ._distributions import find_distribution
from ._doctor_packages import installed_packages
from ._gpu_access import Diagnosis
from ._output import in_one_line
from ._packages import SITE, installed_families
from ._select import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._system import System

SCHEMA = "rocm-sdk.report/1"

RELEVANT = re.compile(
    "(AMD_COMGR|HIP|HIPBLASLT|HSA|MIOPEN|ROCBLAS|ROCFFT|ROCM|ROCR|ROCSPARSELT)_.*"
    "|CUDA_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|LD_(LIBRARY_PATH|PRELOAD)"
)
"""Environment variables that affect how ROCm is found and how it uses GPUs."""


def make_report(system: System, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the report as a JSON object. ``~`` replaces the home folder, and ``***`` replaces secrets.

    ``facts`` contains the GPUs and the findings.
    """
    variables = sorted(system.variables().items())
    name = re.search('^PRETTY_NAME="?(.*?)"?$', system.read_text("/etc/os-release") or "", re.MULTILINE)
    report = {
        "schema": SCHEMA,
        "packages": {dist: text for dist, _, text in installed_packages()},
        "installation": {"folder": str(SITE), "layout": _build_info.LAYOUT, "installer": _installer()},
        "device_packages": {
            "installed": installed_families(),
            "chosen_when_installed": _choice_when_installed(),
            "chosen_now": _choice_now(system),
        },
        "system": {  # these values are empty if they are unknown or the program isn't installed
            "platform": f"{platform.system()} {platform.machine()}",
            "distribution": name[1] if name else "",
            "kernel": platform.release(),
            "libc": _libc(),
            "python": f"{platform.python_implementation()} {platform.python_version()}",
            "executable": sys.executable,
            **{dist: _installed_version(dist) for dist in ("pip", "uv")},
        },
        "gpus": facts["gpus"],
        "environment": {name: hide_secret(name, value) for name, value in variables if RELEVANT.fullmatch(name)},
        "findings": facts["findings"],
    }
    shortened: Any = shorten_home(system, report)
    return dict(shortened)


def _installer() -> str:
    """Return the program that installed ``rocm``, such as ``pip`` or ``uv``, or an empty string if unknown."""
    try:
        return (find_distribution(_build_info.PACKAGES["meta"]["dist"]).read_text("INSTALLER") or "").strip()
    except PackageNotFoundError:
        return ""


def _choice_when_installed() -> str:
    try:
        from . import _selection  # noqa: PLC0415 (only the sdist of rocm makes this module)
    except ImportError:
        return "nothing: rocm was installed as a wheel, which leaves the choice to its extras"
    return _selection.EXPLANATION


def _choice_now(system: System) -> str:
    if not _build_info.FAMILIES:
        return "no choice is needed: this release has no packages for individual GPUs"
    try:
        return select(system).explanation
    except ValueError as e:
        return str(e)


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):  # the C library is not glibc, or the system is not Unix
        return ""


def _installed_version(dist: str) -> str:
    try:
        return find_distribution(dist).version
    except PackageNotFoundError:
        return ""


SECRET_NAME = re.compile("TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH", re.IGNORECASE)

USER_OF_URL = re.compile(r"(?<=://)[^/@\s]+(?=@)")

HIDDEN = "***"


def hide_secret(name: str, value: str) -> str:
    """Return a variable's value without the user part of URLs, or ``***`` if the variable's name suggests a secret."""
    return HIDDEN if SECRET_NAME.search(name) else USER_OF_URL.sub(HIDDEN, value)


def shorten_home(system: System, value: object) -> object:
    """Return a JSON value in which ``~`` replaces the home folder."""
    home = system.home().rstrip("/")
    # A path ends before a character that can't continue a file name.
    return _replace(re.compile(rf"(?<![\w./-]){re.escape(home)}(?![\w.-])"), value) if home else value


def _replace(home: re.Pattern[str], value: object) -> object:
    if isinstance(value, str):
        return home.sub("~", value)
    if isinstance(value, dict):
        return {name: _replace(home, item) for name, item in value.items()}
    if isinstance(value, list):
        return [_replace(home, item) for item in value]
    return value


TITLES = {
    "distribution": "distribution",
    "python": "Python",
    "executable": "Python's path",
    "pip": "pip in this environment",
    "uv": "uv in this environment",
}


def report_text(report: dict[str, Any]) -> str:
    """Format the result of `make_report` as sections of indented lines."""
    installation, choice = report["installation"], report["device_packages"]
    sections = {
        "ROCm packages": [in_one_line(f"{dist} {text}") for dist, text in report["packages"].items()],
        "Installation": [_line(name, text) for name, text in installation.items()],
        "Device packages": [
            _line("installed", ", ".join(choice["installed"])),
            _line("chosen when installed", choice["chosen_when_installed"]),
            _line("chosen now", choice["chosen_now"]),
        ],
        "System": [_line(TITLES.get(name, name), text) for name, text in report["system"].items()],
        "GPUs": [_describe_gpu(gpu) for gpu in report["gpus"]],
        "Environment variables": [in_one_line(f"{name}={value}") for name, value in report["environment"].items()],
        "Findings": [str(Diagnosis(**finding)) for finding in report["findings"]],
    }
    indented = {title: "\n".join(lines or ["none"]).replace("\n", "\n  ") for title, lines in sections.items()}
    return "".join(f"{title}:\n  {text}\n" for title, text in indented.items())


def _line(name: str, text: str) -> str:
    return f"{name}: {in_one_line(text) or 'none'}"


def _describe_gpu(gpu: dict[str, Any]) -> str:
    facts = [f"node {gpu['node']}"]
    facts += [f"device {gpu['device_id']:#06x}"] if gpu["device_id"] else []
    facts += [f"/dev/dri/renderD{gpu['render_minor']}"] if gpu["render_minor"] else []
    facts += ["integrated"] if gpu["integrated"] else []
    return f"{gpu['target']}: {', '.join(facts)}"
