"""The public Python API: what the commands of the same names do, as functions that return values.

Everything that is stable is in ``__all__`` of this module. All other modules of rocwheel are private: they change
without notice.

The functions print nothing and log their warnings. They raise `InputError` for input that can't be used, `WorkError`
for work that failed, such as on a full disk, and `ProblemsError` for several problems together: all of them are
`RocwheelError`. The values that they return have the fields of the JSON documents of the commands, by the same names.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rocwheel.audit.audit import AuditReport
from rocwheel.audit.audit import audit as audit_environments
from rocwheel.audit.baseline import read_baseline
from rocwheel.audit.finding import Finding, Severity
from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.device.reading.device_facts import DeviceFacts
from rocwheel.device.reading.inspection import ElfFacts, FileFacts, inspect_paths
from rocwheel.distributions.formats.write_wheel import DEFAULT_LEVEL
from rocwheel.distributions.index.write_index import FilePlacement, IndexReport, default_output, write_index
from rocwheel.distributions.index.yanked import Yanking
from rocwheel.foundation.errors import InputError, ProblemsError, RocwheelError, WorkError
from rocwheel.foundation.files.given_paths import GivenPath, GivenPaths, paths_given, some_paths_given
from rocwheel.installed.reading.read_tree import read_environments
from rocwheel.packages.building.build import BuildResult
from rocwheel.packages.job import BuildJob, PlanJob
from rocwheel.packages.plan import Plan
from rocwheel.packages.planning.options import PlanOptions
from rocwheel.packages.promoting.promote import PromoteJob, PromotionResult
from rocwheel.repair.job import RepairJob, RepairResult
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.plan import RepairPlan
from rocwheel.targets.machine import native_targets
from rocwheel.targets.spelling.target_set import parse_target_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "AuditReport",
    "AuditSettings",
    "BuildResult",
    "DeviceFacts",
    "ElfFacts",
    "FileFacts",
    "Finding",
    "IndexReport",
    "InputError",
    "Plan",
    "PlanOptions",
    "ProblemsError",
    "PromotionResult",
    "RepairOptions",
    "RepairPlan",
    "RepairResult",
    "RocwheelError",
    "RunpathTag",
    "Severity",
    "WorkError",
    "audit",
    "build",
    "index",
    "inspect",
    "plan",
    "promote",
    "repair",
]

_PLAN_OPTIONS = PlanOptions()
_AUDIT_SETTINGS = AuditSettings()
_REPAIR_OPTIONS = RepairOptions()
_GIB = 1 << 30


def plan(artifact_dir: GivenPath, *, recipe: GivenPath | None = None, options: PlanOptions = _PLAN_OPTIONS) -> Plan:
    """Return what `build` would make of a folder of artifacts, without making it.

    The files that the plan names inside artifact archives are temporary and gone when this returns.

    Args:
        artifact_dir: The folder of artifacts: folders, or ``.tar.xz`` and ``.tar.zst`` archives of such folders.
        recipe: A recipe in TOML; without it, the one for ROCm.
        options: The version, the GPU targets that must be there, and the form of the packages.

    Example:
        ```python
        from rocwheel import api

        made = api.plan("artifacts")
        for wheel in made.wheels:
            print(wheel.name.distribution, wheel.targets)
        ```
    """
    return _plan_job(artifact_dir, recipe, options).run()


def build(
    artifact_dir: GivenPath,
    dest_dir: GivenPath,
    *,
    recipe: GivenPath | None = None,
    options: PlanOptions = _PLAN_OPTIONS,
    level: int = DEFAULT_LEVEL,
    jobs: int = 0,
) -> BuildResult:
    """Build the packages of a folder of artifacts into the folder ``dist`` of ``dest_dir``.

    The same input and options give the same bytes. Existing files of the same names are replaced.

    Args:
        artifact_dir: The folder of artifacts: folders, or ``.tar.xz`` and ``.tar.zst`` archives of such folders.
        dest_dir: The folder that gets ``dist``; it is made when it does not exist.
        recipe: A recipe in TOML; without it, the one for ROCm.
        options: The version, the GPU targets that must be there, and the form of the packages.
        level: The Deflate level of the wheels, 0 (stored) to 12.
        jobs: The number of workers; 0 for one per core.

    Example:
        ```python
        from rocwheel import api

        result = api.build("artifacts", "packages", options=api.PlanOptions(version="7.1.0"))
        print([built.path for built in result.distributions])
        ```
    """
    job = BuildJob(_plan_job(artifact_dir, recipe, options), Path(dest_dir), level, jobs)
    _, result = job.run()
    return result


def promote(
    dist_dir: GivenPath, version: str, dest_dir: GivenPath, *, targets: Iterable[str] | str = (), jobs: int = 0
) -> PromotionResult:
    """Write the packages of a folder with another version, without packing them again; the given files stay.

    Either all are written, or none.

    Args:
        dist_dir: The folder of the candidates: wheels and sdists that all have one version.
        version: The version that all of them get, higher than the one they have.
        dest_dir: The folder for the packages with the new version; it is made when it does not exist.
        targets: The GPU targets whose packages stay, in any spelling; without any, those for all GPUs.
        jobs: The number of workers; 0 for one per core.

    Example:
        ```python
        from rocwheel import api

        result = api.promote("candidates/dist", "7.1.0", "release/dist", targets=["gfx942", "gfx1100"])
        for made in result.distributions:
            print(made.source, "->", made.path)
        ```
    """
    words = [targets] if isinstance(targets, str) else list(targets)
    kept = parse_target_set(words, source="targets", native=native_targets).processors if words else ()
    return PromoteJob(Path(dist_dir), version, Path(dest_dir), kept, jobs).run()


def index(
    dist_dir: GivenPath,
    output: GivenPath | None = None,
    *,
    files: Literal["relative", "hardlink", "copy"] = "relative",
    yank: Mapping[str, str] | None = None,
    unyank: Iterable[str] = (),
) -> IndexReport:
    """Write a static package index over the wheels and sdists of a folder.

    Args:
        dist_dir: The folder of wheels and sdists. Each gets its core metadata as ``FILE.metadata``.
        output: The folder of the index. Without it, ``simple`` next to ``dist_dir``, or ``simple-NAME`` for a
            ``dist_dir`` not named ``dist``.
        files: Whether the pages link to the files where they are, or to hard links or copies inside of the index.
        yank: Files to mark as yanked from now on (PEP 592), with the reason, which may be empty.
        unyank: Files to mark so no longer.

    Example:
        ```python
        from rocwheel import api

        report = api.index("packages/dist")
        print(report.output, sorted(report.projects))
        ```
    """
    target = default_output(Path(dist_dir)) if output is None else Path(output)
    yanking = Yanking(dict(yank or {}), tuple(unyank))
    return write_index(Path(dist_dir), target, placement=FilePlacement(files), yanking=yanking)


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


def _plan_job(artifact_dir: GivenPath, recipe: GivenPath | None, options: PlanOptions) -> PlanJob:
    return PlanJob(Path(artifact_dir), None if recipe is None else Path(recipe), options)
