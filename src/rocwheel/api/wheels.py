"""The public functions about finished packages: inspect, audit, repair."""

from __future__ import annotations

from pathlib import Path

from rocwheel.audit.audit import AuditReport
from rocwheel.audit.audit import audit as audit_environments
from rocwheel.audit.baseline import read_baseline
from rocwheel.audit.settings import AuditSettings
from rocwheel.core.names import GivenPath, GivenPaths, paths_given, some_paths_given
from rocwheel.device.inspection import FileFacts, inspect_paths
from rocwheel.installed.reading.read_tree import read_environments
from rocwheel.repair.job import RepairJob, RepairResult
from rocwheel.repair.options import RepairOptions

__all__ = ["audit", "inspect", "repair"]

_AUDIT_SETTINGS = AuditSettings()
_REPAIR_OPTIONS = RepairOptions()
_GIB = 1 << 30


def inspect(paths: GivenPaths, *, deep: bool = False, limit: int = 4 * _GIB) -> tuple[FileFacts, ...]:
    """Return what is known of each binary among files, folders and wheels: ELF facts and device code.

    A file that can't be read or is damaged is returned with its ``error``, which is not raised.

    Args:
        paths: One path or several: files, folders with all that is below them, and wheels.
        deep: Whether bundles are decompressed, to check their hashes and to count kernels.
        limit: The largest size in bytes to which a member of a wheel or a bundle may unpack.

    Example:
        ```python
        from rocwheel import api

        for facts in api.inspect("dist"):
            if facts.elf:
                print(facts.path, facts.elf.runpath)
        ```
    """
    return tuple(inspect_paths(some_paths_given("paths", paths), deep=deep, limit=limit))


def audit(
    paths: GivenPaths,
    *,
    with_packages: GivenPaths = (),
    settings: AuditSettings = _AUDIT_SETTINGS,
    baseline: GivenPath | None = None,
) -> AuditReport:
    """Return what is wrong with finished packages that are installed together.

    Nothing of this machine helps them: neither ``LD_LIBRARY_PATH`` nor ``/opt/rocm`` nor its own libraries.

    Args:
        paths: One path or several: wheels, folders of wheels, environments or artifacts.
        with_packages: The path or paths of packages that are installed with them but not audited themselves.
        settings: The rules to check and what they take for granted. ``pyproject.toml`` is not read.
        baseline: A file of known findings, which are not reported.

    Example:
        ```python
        from rocwheel import api

        report = api.audit("dist", settings=api.AuditSettings(ignore=("tag-*",)))
        for finding in report.findings:
            print(finding.severity.value, finding.rule, finding.file, finding.found)
        if report.errors:
            raise SystemExit(1)
        ```
    """
    audited, context = some_paths_given("paths", paths), paths_given(with_packages)
    known = read_baseline(Path(baseline)) if baseline is not None else frozenset()
    return audit_environments(read_environments(audited, context), settings, known)


def repair(
    wheels: GivenPaths,
    dest_dir: GivenPath | None,
    *,
    with_packages: GivenPaths = (),
    options: RepairOptions = _REPAIR_OPTIONS,
) -> RepairResult:
    """Write wheels with right run paths, requirements and tags; the given wheels stay as they are.

    Correct files are not changed, not even by one byte.

    Args:
        wheels: The path or paths of the wheels to repair.
        dest_dir: The folder for the repaired wheels, made when it does not exist. None writes nothing.
        with_packages: The path or paths of the packages whose libraries they load, such as the SDK's wheels. Without
            them, ROCm's packages are taken to be laid out as they are since ROCm 7.
        options: The kind of run path, the form of added requirements, and the settings of the audit.

    Example:
        ```python
        from pathlib import Path

        from rocwheel import api

        result = api.repair(Path("dist").glob("*.whl"), "repaired", options=api.RepairOptions(pin="none"))
        for wheel in result.wheels:
            print(wheel.file_name, len(wheel.changes), wheel.unmended)
        ```
    """
    target = None if dest_dir is None else Path(dest_dir)
    return RepairJob(some_paths_given("wheels", wheels), paths_given(with_packages), target, options).run()
