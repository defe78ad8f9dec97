"""Build, index, inspect, audit and repair packages by functions: rocwheel's public API as a program uses it.

Usage: python package_sdk.py ARTIFACT_DIR DEST_DIR
"""

from __future__ import annotations

import sys
from pathlib import Path

from rocwheel import api


def main(artifact_dir: Path, dest_dir: Path) -> int:
    """Make packages of the artifacts and return 1 if the audit finds errors in them."""
    planned = api.plan(artifact_dir)
    print(f"ROCm {planned.version} for {', '.join(planned.targets)}: {len(planned.wheels)} wheels")
    built = api.build(artifact_dir, dest_dir, options=api.PlanOptions(targets=("gfx906",)))
    for warning in built.warnings:
        print(f"warning: {warning.subject}: {warning.found}")
    report = api.index(dest_dir / "dist", dest_dir / "simple")
    print(f"{len(report.projects)} projects in {report.output}")
    libraries = [facts for facts in api.inspect([dest_dir / "dist"]) if facts.elf and facts.elf.soname]
    print(f"{len(libraries)} libraries")
    wheels = sorted((dest_dir / "dist").glob("rocm_sdk_*.whl"))
    repaired = api.repair(wheels, None)
    print(f"{sum(len(wheel.changes) for wheel in repaired.wheels)} changes by a repair")
    return 1 if has_errors(api.audit([dest_dir / "dist"])) else 0


def has_errors(report: api.AuditReport) -> bool:
    """Print the findings and return whether one of them is an error."""
    for finding in report.findings:
        print(f"{finding.severity.value}: {finding.rule}: {finding.file}: {finding.found}")
    return any(finding.severity is api.Severity.ERROR for finding in report.findings)


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
    except api.RocwheelError as e:
        sys.exit(f"error: {e}")
