"""``rocm-sdk doctor``: prints what is wrong and how to repair it, or a report for others to read."""

from __future__ import annotations

import json
import sys

from .._gpus.access import ERROR, NOTE
from .._gpus.system import System
from .diagnose import diagnose
from .report import make_report
from .report_text import report_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._gpus.access import Diagnosis
    from .._gpus.topology import Gpu

__all__ = ["run_doctor"]

SCHEMA = "rocm-sdk.doctor/1"


def run_doctor(*, require_gpu: bool, deep: bool, as_json: bool, report: bool) -> int:
    """Print the GPUs and the diagnoses, or a ``report`` that also says what is installed and on what.

    ``deep`` reads every file of the packages.
    Return 1 when a diagnosis is an error, or when a required GPU is absent, else 0.
    """
    system = System()
    gpus, diagnoses = diagnose(system, require_gpu=require_gpu, deep=deep)
    document = make_report(system, gpus, diagnoses) if report else _document(gpus, diagnoses)
    if as_json:
        text = json.dumps(document, indent=2) + "\n"
    else:
        text = report_text(document) if report else _as_text(gpus, diagnoses, deep)
    # A path may hold bytes that are not text.
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    return int(any(diagnosis.level == ERROR for diagnosis in diagnoses))


def _as_text(gpus: list[Gpu], diagnoses: list[Diagnosis], deep: bool) -> str:
    lines = [f"GPUs: {', '.join(gpu.target for gpu in gpus)}"] if gpus else []
    lines += map(str, diagnoses)
    if all(diagnosis.level == NOTE for diagnosis in diagnoses):
        unread = "" if deep else " The contents of files were not read; --deep reads them."
        lines.append(f"Nothing is wrong.{unread}")
    return "".join(f"{line}\n" for line in lines)


def _document(gpus: list[Gpu], diagnoses: list[Diagnosis]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "gpus": [gpu._asdict() for gpu in gpus],
        "findings": [diagnosis._asdict() for diagnosis in diagnoses],
    }
