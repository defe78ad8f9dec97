"""A report as plain text, to be pasted where a bug is reported."""

from __future__ import annotations

from .._printing import in_one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["report_text"]

TITLES = {
    "distribution": "distribution",
    "python": "Python",
    "executable": "Python's path",
    "pip": "pip in this environment",
    "uv": "uv in this environment",
}


def report_text(report: dict[str, Any]) -> str:
    """Return what `make_report` returned as sections of indented lines."""
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
        "Findings": [_describe_finding(finding) for finding in report["findings"]],
    }
    return "".join(f"{title}:\n{_indent(lines or ['none'])}" for title, lines in sections.items())


def _line(name: str, text: str) -> str:
    return f"{name}: {in_one_line(text) or 'none'}"


def _describe_gpu(gpu: dict[str, Any]) -> str:
    facts = [f"node {gpu['node']}"]
    facts += [f"device {gpu['device_id']:#06x}"] if gpu["device_id"] else []
    facts += [f"/dev/dri/renderD{gpu['render_minor']}"] if gpu["render_minor"] else []
    facts += ["integrated"] if gpu["integrated"] else []
    return f"{gpu['target']}: {', '.join(facts)}"


def _describe_finding(finding: dict[str, str]) -> str:
    remedy = f"\n  {in_one_line(finding['remedy'])}" if finding["remedy"] else ""
    return f"{finding['level']}: {in_one_line(finding['text'])}{remedy}"


def _indent(lines: list[str]) -> str:
    return "".join(f"  {line}\n" for entry in lines for line in entry.split("\n"))
