"""The public Python API: functions that return values and have the same names as the commands.

Only the names in ``__all__`` of this module are stable. All other modules of rocwheel are private and can change
without notice.

The functions print nothing and log their warnings. They raise `InputError` for input that can't be used, and
`WorkError` for work that failed, for example, because of a full disk. If there are several problems, they raise
`ProblemsError`. All these errors are subclasses of `RocwheelError`. Returned values have the same field names as the
commands' JSON documents.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from rocwheel.audit.audit import AuditReport
from rocwheel.audit.audit import audit as audit_environments
from rocwheel.audit.finding import Finding, Severity
from rocwheel.audit.report_files import read_baseline
from rocwheel.audit.settings import AuditSettings
from rocwheel.binary.bundles.compressed import HIGHEST_LEVEL
from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.binary.kpack.archive import Scheme
from rocwheel.binary.kpack.write import LEVELS
from rocwheel.binary.platform import Platform
from rocwheel.build.building import BuildResult
from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.plan import Plan
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.promoting.promote import PromoteJob, PromotionResult
from rocwheel.core.cache import packed_cache
from rocwheel.core.compression import DEVICE_CODE_LEVEL, WHEEL_LEVEL
from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, WorkError
from rocwheel.core.names import GivenPath, GivenPaths, paths_given, some_paths_given
from rocwheel.core.workers import open_workers, raise_all, worker_count
from rocwheel.device.device_facts import DeviceFacts
from rocwheel.device.inspection import ElfFacts, FileFacts, inspect_paths
from rocwheel.device.split.join_tree import JoinReport, join_tree
from rocwheel.device.split.join_wheels import WheelJoin
from rocwheel.device.split.join_wheels import join_wheels as join_these
from rocwheel.device.split.joining import JoinStorage
from rocwheel.device.split.split_tree import SplitOrder, SplitReport, split_tree
from rocwheel.device.split.split_wheel import WheelSplit
from rocwheel.device.split.split_wheel import split_wheel as split_this
from rocwheel.device.split.splitting import SplitChoice
from rocwheel.device.split.wheel_metadata import WheelSplitOrder
from rocwheel.diff.breaking import Finding as BreakingChange
from rocwheel.diff.breaking import find_breaks
from rocwheel.diff.changes import Comparison
from rocwheel.diff.compare import compare_sides
from rocwheel.diff.sides import open_side
from rocwheel.environment.read_tree import read_environments
from rocwheel.index.extra_files import no_extras
from rocwheel.index.families import write_indexes
from rocwheel.index.front_content import front_page as make_extras
from rocwheel.index.front_content import next_front_page
from rocwheel.index.lock import ResolveOptions, make_lock
from rocwheel.index.placing import FilePlacement
from rocwheel.index.publish import PublishOptions, PublishReport
from rocwheel.index.publish import publish as publish_folder
from rocwheel.index.upload_times import choose_upload_time
from rocwheel.index.uploads import Layout
from rocwheel.index.write_index import IndexOptions, IndexReport, choose_output
from rocwheel.index.yanked import Yanking
from rocwheel.repair.options import RepairOptions
from rocwheel.repair.repair_plan import RepairPlan
from rocwheel.repair.write import RepairJob, RepairResult
from rocwheel.stores.open import open_store
from rocwheel.targets.listing import TargetRow, filter_rows, list_targets
from rocwheel.targets.machine import native_targets
from rocwheel.targets.target_set import parse_target_set
from rocwheel.verify.files import Verified
from rocwheel.verify.verify import verify as verify_path
from rocwheel.wheels.sdist import SourceDate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "AuditReport",
    "AuditSettings",
    "BreakingChange",
    "BuildResult",
    "Comparison",
    "DeviceFacts",
    "DiffReport",
    "ElfFacts",
    "FileFacts",
    "Finding",
    "IndexReport",
    "InputError",
    "JoinReport",
    "LockReport",
    "Plan",
    "PlanOptions",
    "Platform",
    "ProblemsError",
    "PromotionResult",
    "PublishReport",
    "RepairOptions",
    "RepairPlan",
    "RepairResult",
    "RocwheelError",
    "RunpathTag",
    "Severity",
    "SplitReport",
    "TargetRow",
    "Verified",
    "WheelJoin",
    "WheelSplit",
    "WorkError",
    "audit",
    "build",
    "diff",
    "index",
    "inspect",
    "join",
    "join_wheels",
    "lock",
    "plan",
    "promote",
    "publish",
    "repair",
    "split",
    "split_wheel",
    "targets",
    "verify",
]

_GIB = 1 << 30
_PLAN_OPTIONS = PlanOptions()
_AUDIT_SETTINGS = AuditSettings()
_REPAIR_OPTIONS = RepairOptions()


def plan(
    artifacts: GivenPaths,
    *,
    version: str | None = None,
    targets: Iterable[str] | str = (),
    recipe: GivenPath | None = None,
    options: PlanOptions = _PLAN_OPTIONS,
) -> Plan:
    """Return the packages that `build` would create, without creating them, like ``rocwheel build --dry-run``.

    In the plan, files from artifact archives are temporary. They no longer exist when this function returns.

    Args:
        artifacts: One or more folders that contain artifacts: folders, ``.tar.xz`` archives, or ``.tar.zst`` archives.
        version: The version of all packages. The default is the version in the SDK's manifest.
        targets: The GPU targets or families to build packages for, in any spelling. The default is all targets.
        recipe: A recipe in TOML. The default is the recipe for ROCm.
        options: Options for the packages. ``version`` and ``targets`` override the fields with the same names.

    Example:
        ```python
        from rocwheel import api

        made = api.plan("artifacts", targets="gfx906")
        for wheel in made.wheels:
            print(wheel.name.distribution, wheel.targets)
        ```
    """
    return _plan_job(artifacts, recipe, _with(options, version, targets)).run()


def build(  # noqa: PLR0913  # the options of the command
    artifacts: GivenPaths,
    dest_dir: GivenPath,
    *,
    version: str | None = None,
    targets: Iterable[str] | str = (),
    recipe: GivenPath | None = None,
    options: PlanOptions = _PLAN_OPTIONS,
    level: int = WHEEL_LEVEL,
    jobs: int = 0,
    cache: bool = False,
) -> BuildResult:
    """Build packages from artifacts into the folder ``dist`` in ``dest_dir``.

    The same input and options produce the same bytes. Existing files with the same names are replaced.

    Args:
        artifacts: One or more folders that contain artifacts: folders, ``.tar.xz`` archives, or ``.tar.zst`` archives.
        dest_dir: The folder for ``dist``. It is created if it doesn't exist.
        version: The version of all packages. The default is the version in the SDK's manifest.
        targets: The GPU targets or families to build packages for, in any spelling. The default is all targets.
        recipe: A recipe in TOML. The default is the recipe for ROCm.
        options: Options for the packages. ``version`` and ``targets`` override the fields with the same names.
        level: The Deflate level of the wheels, 0 (stored) to 12.
        jobs: The number of workers, or 0 for one worker per core.
        cache: Whether to keep packed files in the user's cache, and to reuse cached files.

    Example:
        ```python
        from rocwheel import api

        result = api.build("artifacts", "packages", version="7.1.0")
        print([built.path for built in result.distributions])
        ```
    """
    place = packed_cache(os.environ) if cache else None
    job = BuildJob(_plan_job(artifacts, recipe, _with(options, version, targets)), Path(dest_dir), level, jobs, place)
    _, result = job.run()
    return result


def _with(options: PlanOptions, version: str | None, targets: Iterable[str] | str) -> PlanOptions:
    words = (targets,) if isinstance(targets, str) else tuple(targets)
    if version is not None:
        options = replace(options, version=version)
    return replace(options, targets=words) if words else options


def _plan_job(artifacts: GivenPaths, recipe: GivenPath | None, options: PlanOptions) -> PlanJob:
    first, *others = some_paths_given("artifacts", artifacts)
    return PlanJob(first, None if recipe is None else Path(recipe), options, tuple(others))


def promote(
    dist_dir: GivenPath, version: str | None, output: GivenPath, *, targets: Iterable[str] | str = (), jobs: int = 0
) -> PromotionResult:
    """Write a folder's packages with a new version, without repacking them. The original files don't change.

    If a package can't be written, no packages are written.

    Args:
        dist_dir: The folder with the candidates: wheels and sdists for the same version of ROCm, including framework
            wheels.
        version: The new version of ROCm, which must be later than the old version. `None` keeps the version.
        output: The folder for the packages with the new version. It is created if it doesn't exist.
        targets: The GPU targets whose packages are included, in any supported notation. The default is all targets.
        jobs: The number of workers, or 0 for one worker per core.

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
    return PromoteJob(Path(dist_dir), version or "", Path(output), kept, jobs).run()


def index(
    dist_dir: GivenPath | Sequence[GivenPath],
    output: GivenPath | None = None,
    *,
    files: Literal["relative", "hardlink", "copy"] = "relative",
    yank: Mapping[str, str] | None = None,
    unyank: Iterable[str] = (),
    upload_time: str | None = None,
    front_page: bool | str = True,
) -> IndexReport:
    """Write a static package index for the wheels and sdists in one or more folders.

    Args:
        dist_dir: One or more folders with wheels and sdists. Each file gets its core metadata as ``FILE.metadata``.
            Subfolders are also indexed, each with its own index.
        output: The folder of the index. The default is ``simple`` next to ``dist_dir``, or ``simple-NAME`` for a
            ``dist_dir`` not named ``dist``.
        files: Whether the pages link to the files in their folder, or to hard links or copies in the index.
        yank: Files to mark as yanked (PEP 592), each with a reason, which can be empty.
        unyank: Files that are no longer yanked.
        upload_time: The upload time of all new files (ISO 8601). The default is SOURCE_DATE_EPOCH, or each file's
            modification time.
        front_page: Whether to write ``packages.html``, a page that shows users the packages and how to install them
            for each GPU. Alternatively, the URL of the index to show on that page.

    Example:
        ```python
        from rocwheel import api

        report = api.index("packages/dist")
        print(report.output, sorted(report.projects))
        ```
    """
    folders = [Path(dist_dir)] if isinstance(dist_dir, str | os.PathLike) else [Path(folder) for folder in dist_dir]
    target = choose_output(folders, None if output is None else Path(output))
    extras = make_extras(front_page if isinstance(front_page, str) else "") if front_page else no_extras
    options = IndexOptions(
        placement=FilePlacement(files),
        yanking=Yanking(dict(yank or {}), tuple(unyank)),
        upload_time=choose_upload_time(upload_time, os.environ, time.time_ns() // 1000),
        extras=extras,
    )
    return write_indexes(folders, target, options=options)


def inspect(paths: GivenPaths, *, deep: bool = False, limit: int = 4 * _GIB) -> tuple[FileFacts, ...]:
    """Return the ELF data and device code of each binary in files, folders, and wheels.

    An unreadable or damaged file doesn't raise an error. Instead, its result has an ``error``.

    Args:
        paths: One or more paths of files, wheels, and folders, including subfolders.
        deep: Whether to decompress bundles in order to check their hashes and count kernels.
        limit: The maximum unpacked size of a wheel member or bundle, in bytes.

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
    """Return problems in finished packages that are installed together.

    The audit doesn't use this machine's ``LD_LIBRARY_PATH``, ``/opt/rocm``, or other libraries.

    Args:
        paths: One or more paths of wheels, folders with wheels, environments, or artifacts.
        with_packages: One or more paths of other packages that are installed together with ``paths`` but aren't
            audited.
        settings: The rules to check, and their settings. ``pyproject.toml`` isn't read.
        baseline: A file with known findings, which aren't reported.

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
    output: GivenPath | None,
    *,
    with_packages: GivenPaths = (),
    options: RepairOptions = _REPAIR_OPTIONS,
) -> RepairResult:
    """Write wheels with corrected run paths, requirements, and tags. The original wheels stay unchanged.

    Files that are already correct stay byte-identical.

    Args:
        wheels: One or more paths of wheels to repair.
        output: The folder for the repaired wheels, which is created if it doesn't exist, or `None` to write nothing.
        with_packages: One or more paths of packages whose libraries the wheels load, such as the SDK's wheels. Without
            them, the repair assumes the layout of ROCm 7's packages.
        options: The kind of run path, the form of added requirements, and the audit's settings.

    Example:
        ```python
        from pathlib import Path

        from rocwheel import api

        result = api.repair(Path("dist").glob("*.whl"), "repaired", options=api.RepairOptions(pin="none"))
        for wheel in result.wheels:
            print(wheel.file_name, len(wheel.changes), wheel.unmended)
        ```
    """
    target = None if output is None else Path(output)
    return RepairJob(some_paths_given("wheels", wheels), paths_given(with_packages), target, options).run()


def verify(paths: GivenPaths, *, jobs: int = 0) -> tuple[Verified, ...]:
    """Compare files with a build's manifest, a RECORD, or an index, and return the results.

    Args:
        paths: One or more paths of manifests, builds, wheels, sdists, ``SHA256SUMS``, indexes, or environments.
        jobs: The number of workers, or 0 for one worker per core.

    Example:
        ```python
        from rocwheel import api

        for one in api.verify("packages/rocwheel-build.json"):
            print(one.path, one.files, one.faults)
        ```
    """
    with open_workers(worker_count(jobs)) as executor:
        return tuple(one for path in some_paths_given("paths", paths) for one in verify_path(path, executor))


class DiffReport(Struct, frozen=True):
    """The differences between two versions of packages, including the breaking changes."""

    comparison: Comparison
    findings: tuple[BreakingChange, ...]


def diff(old: GivenPath, new: GivenPath, *, ignore: Iterable[str] | str = ()) -> DiffReport:
    """Return the differences between two wheels, builds, environments, or folders.

    Args:
        old: The old version.
        new: The new version, which must be of the same kind.
        ignore: Names or patterns of rules to ignore.

    Example:
        ```python
        from rocwheel import api

        report = api.diff("old/dist", "new/dist")
        for finding in report.findings:
            print(finding.severity.value, finding.rule, finding.package, finding.found)
        ```
    """
    patterns = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    unread: list[RocwheelError] = []
    with open_side(Path(old)) as before, open_side(Path(new)) as after:
        comparison = compare_sides(before, after, unread=unread)
    raise_all("files that can't be read", unread)
    return DiffReport(comparison, find_breaks(comparison, patterns))


class LockReport(Struct, frozen=True):
    """The contents of a lock file."""

    output: str
    targets: tuple[str, ...]
    packages: dict[str, str]
    build_requires: dict[str, tuple[str, ...]]


def lock(
    requirements: Iterable[str] | str,
    *,
    output: GivenPath = "pylock.toml",
    targets: Iterable[str] | str = (),
    index_url: str | None = None,
    find_links: GivenPaths = (),
    python_version: str | None = None,
    universal: bool = False,
) -> LockReport:
    """Write a lock file (PEP 751) for GPUs. It works with pip and uv on any machine. uv resolves the requirements.

    Args:
        requirements: One or more requirements, such as ``rocm[libraries,device-gfx942]``.
        output: The lock file.
        targets: The GPU targets of the lock file. The default is the targets in the names of extras.
        index_url: The only index to search.
        find_links: Additional folders with packages.
        python_version: The oldest supported Python version, such as ``3.12``. The default is the running version.
        universal: Whether the lock file covers all platforms, using markers.

    Example:
        ```python
        from rocwheel import api

        locked = api.lock("rocm[libraries]", targets="gfx942", index_url="https://example.org/simple")
        print(locked.output, locked.packages)
        ```
    """
    wanted = [requirements] if isinstance(requirements, str) else list(requirements)
    words = [targets] if isinstance(targets, str) else list(targets)
    places = tuple(map(str, paths_given(find_links)))
    options = ResolveOptions(index_url, (), places, python_version, universal=universal)
    options.check()
    locked = make_lock(wanted, ";".join(words) if words else None, Path(output), options)
    return LockReport(str(output), locked.targets, dict(locked.file.projects), locked.build_requires)


def publish(
    dist_dir: GivenPath,
    store: str,
    *,
    output: str = "simple",
    dist: str = "dist",
    front_page: bool | str = True,
    dry_run: bool = False,
) -> PublishReport:
    """Upload a folder's wheels and sdists, and their index, to a store.

    Args:
        dist_dir: The folder with wheels and sdists.
        store: The store: ``s3://BUCKET/PREFIX``, ``file:///PATH``, or a folder.
        output: The index's folder in the store.
        dist: The packages' folder in the store.
        front_page: Whether to write ``packages.html`` for users, or the URL of the index to show on that page.
        dry_run: Whether to only check everything, without changing the store.

    Example:
        ```python
        from rocwheel import api

        report = api.publish("packages/dist", "s3://my-bucket/rocm", dry_run=True)
        print(report.uploaded)
        ```
    """
    page = make_extras(front_page) if isinstance(front_page, str) else None
    make_front = (lambda before: page or next_front_page(before)) if front_page else None
    options = PublishOptions(Layout(output, dist), None, dry_run, make_front)
    return publish_folder(Path(dist_dir), open_store(store), options)


def targets(targets: Iterable[str] | str = "all") -> tuple[TargetRow, ...]:
    """Return the known data about GPU targets, like ``rocwheel targets list``.

    Args:
        targets: GPU targets, families, products, or other names for targets, in any supported notation.

    Example:
        ```python
        from rocwheel import api

        for target in api.targets("gfx94X-dcgpu"):
            print(target.name, target.products)
        ```
    """
    words = [targets] if isinstance(targets, str) else list(targets)
    chosen = parse_target_set(words, source="targets", native=native_targets)
    return tuple(filter_rows(list_targets(), chosen=chosen))


def split(
    path: GivenPath,
    output: GivenPath,
    *,
    targets: Iterable[str] | str = (),
    scheme: Literal["zstd-per-kernel", "none"] = "zstd-per-kernel",
    level: int = DEVICE_CODE_LEVEL,
    mend: bool = False,
    jobs: int = 0,
) -> SplitReport:
    """Split a folder or a library into a folder without device code, and an overlay folder for each GPU target.

    The libraries then load their code from ROCm's kpack archives in ``.kpack``. The same input produces the same bytes.

    Args:
        path: The folder, or a library.
        output: The folder that will contain ``host`` and a folder for each target. It must not exist.
        targets: The GPU targets whose code is kept, in any supported notation. The default is all targets.
        scheme: How archives store code objects: each in its own zstd frame, or uncompressed.
        level: The zstd level for code objects, 1 to 19.
        mend: Whether to split libraries again if another tool split them with incorrect indices.
        jobs: The number of workers, or 0 for one worker per core.

    Example:
        ```python
        from rocwheel import api

        report = api.split("prefix", "parts", targets="gfx90a,gfx1030")
        for share in report.targets:
            print(share.target, share.archives, share.size)
        ```
    """
    order = SplitOrder(choice=_choice(targets, scheme, level), jobs=worker_count(jobs), mend=mend)
    return split_tree(Path(path), Path(output), order)


def split_wheel(
    wheel: GivenPath,
    output: GivenPath,
    *,
    targets: Iterable[str] | str = (),
    overlay_root: str = "",
    device_name: str = "",
    level: int = DEVICE_CODE_LEVEL,
    jobs: int = 0,
) -> WheelSplit:
    """Split a finished wheel into a host wheel with the old name, and a device wheel for each GPU target.

    The host wheel has an extra ``device-TARGET`` for each device wheel, and the extra ``device-all``.

    Args:
        wheel: The wheel.
        output: The folder for the new wheels, which must not be the old wheel's folder. It is created if it doesn't
            exist.
        targets: The GPU targets whose code is kept, in any supported notation. The default is all targets.
        overlay_root: The folder in the wheel that device wheels extend. The default is the folder with device code.
        device_name: The prefix of device wheels' names. The default is the wheel's name and ``-device``.
        level: The zstd level for code objects, 1 to 19.
        jobs: The number of workers, or 0 for one worker per core.

    Example:
        ```python
        from rocwheel import api

        report = api.split_wheel("torch-2.9.0-cp312-cp312-linux_x86_64.whl", "dist", overlay_root="torch")
        print(report.host, [device.path for device in report.devices])
        ```
    """
    order = WheelSplitOrder(
        choice=_choice(targets, Scheme.ZSTD, level),
        overlay_root=overlay_root,
        device_prefix=device_name,
        jobs=worker_count(jobs),
    )
    return split_this(Path(wheel), Path(output), order, SourceDate.from_environment(os.environ))


def _choice(targets: Iterable[str] | str, scheme: str, level: int) -> SplitChoice:
    if scheme not in list(Scheme):
        parameter, found = "scheme", f"is {scheme!r}"
        raise InputError(parameter, found, expected=f"one of {', '.join(one.value for one in Scheme)}")
    if level not in LEVELS:
        parameter, found = "level", f"is {level}"
        raise InputError(parameter, found, expected=f"a level from {LEVELS[0]} to {LEVELS[-1]}")
    words = [targets] if isinstance(targets, str) else list(targets)
    keep = parse_target_set(words, source="targets", native=native_targets).ids if words else ()
    return SplitChoice(keep=keep, scheme=Scheme(scheme), level=level)


def join(
    host: GivenPath, devices: GivenPaths, output: GivenPath, *, compress: bool = False, level: int = DEVICE_CODE_LEVEL
) -> JoinReport:
    """Join a host folder with the folders of one or more targets. Libraries get their code back, byte for byte.

    Args:
        host: The host folder, or one split library.
        devices: One or more folders of targets.
        output: The folder for the joined tree. It must not exist.
        compress: Whether to compress all bundles, including bundles that were uncompressed before the split.
        level: The zstd level of compressed bundles. If a bundle doesn't fit, higher levels are tried.

    Example:
        ```python
        from rocwheel import api

        report = api.join("parts/host", ["parts/gfx90a", "parts/gfx1030"], "fat")
        print([(library.path, library.missing) for library in report.libraries])
        ```
    """
    storage = _join_storage(level, compress=compress)
    return join_tree(Path(host), paths_given(devices), Path(output), storage)


def join_wheels(
    host: GivenPath,
    devices: GivenPaths,
    output: GivenPath,
    *,
    compress: bool = False,
    level: int = DEVICE_CODE_LEVEL,
    jobs: int = 0,
) -> WheelJoin:
    """Join a host wheel with one or more of its device wheels into a wheel that has the host's name but not the extras.

    Args:
        host: The host wheel.
        devices: One or more device wheels.
        output: The folder for the joined wheel, which must not be the host wheel's folder. It is created if it doesn't
            exist.
        compress: Whether to compress all bundles, including bundles that were uncompressed before the split.
        level: The zstd level of compressed bundles. If a bundle doesn't fit, higher levels are tried.
        jobs: The number of workers, or 0 for one worker per core.

    Example:
        ```python
        from pathlib import Path

        from rocwheel import api

        host = "dist/torch-2.9.0-cp312-cp312-linux_x86_64.whl"
        report = api.join_wheels(host, Path("dist").glob("torch_device_*.whl"), "fat")
        print(report.path, report.targets)
        ```
    """
    moment = SourceDate.from_environment(os.environ)
    storage = _join_storage(level, compress=compress)
    return join_these(Path(host), paths_given(devices), Path(output), moment, storage, jobs=worker_count(jobs))


def _join_storage(level: int, *, compress: bool) -> JoinStorage:
    if not 1 <= level <= HIGHEST_LEVEL:
        parameter, found = "level", f"is {level}"
        raise InputError(parameter, found, expected=f"a level from 1 to {HIGHEST_LEVEL}")
    return JoinStorage(compress=compress, level=level)
