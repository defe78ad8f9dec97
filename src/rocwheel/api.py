"""The public Python API: what the commands of the same names do, as functions that return values.

Everything that is stable is in ``__all__`` of this module. All other modules of rocwheel are private: they change
without notice.

The functions print nothing and log their warnings. They raise `InputError` for input that can't be used, `WorkError`
for work that failed, such as on a full disk, and `ProblemsError` for several problems together: all of them are
`RocwheelError`. The values that they return have the fields of the JSON documents of the commands, by the same names.
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
    """Return what `build` would make, without making it, as ``rocwheel build --dry-run`` does.

    The files that the plan names inside artifact archives are temporary and gone when this returns.

    Args:
        artifacts: One folder of artifacts or several: folders, or ``.tar.xz`` and ``.tar.zst`` archives of folders.
        version: The version of all packages; by default that of the SDK's manifest.
        targets: The GPU targets or families whose packages are built, in any spelling; by default all.
        recipe: A recipe in TOML; without it, the one for ROCm.
        options: The form of the packages. ``version`` and ``targets`` override its fields.

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
    """Build the packages of artifacts into the folder ``dist`` of ``dest_dir``.

    The same input and options give the same bytes. Existing files of the same names are replaced.

    Args:
        artifacts: One folder of artifacts or several: folders, or ``.tar.xz`` and ``.tar.zst`` archives of folders.
        dest_dir: The folder that gets ``dist``; it is made when it does not exist.
        version: The version of all packages; by default that of the SDK's manifest.
        targets: The GPU targets or families whose packages are built, in any spelling; by default all.
        recipe: A recipe in TOML; without it, the one for ROCm.
        options: The form of the packages. ``version`` and ``targets`` override its fields.
        level: The Deflate level of the wheels, 0 (stored) to 12.
        jobs: The number of workers; 0 for one per core.
        cache: Whether to keep packed files in the user's cache, and to reuse what was packed before.

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
    dist_dir: GivenPath, version: str, output: GivenPath, *, targets: Iterable[str] | str = (), jobs: int = 0
) -> PromotionResult:
    """Write the packages of a folder with another version, without packing them again; the given files stay.

    Either all are written, or none.

    Args:
        dist_dir: The folder of the candidates: wheels and sdists that all have one version.
        version: The version that all of them get, higher than the one they have.
        output: The folder for the packages with the new version; it is made when it does not exist.
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
    return PromoteJob(Path(dist_dir), version, Path(output), kept, jobs).run()


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
    """Write a static package index over the wheels and sdists of a folder, or of several.

    Args:
        dist_dir: The folder of wheels and sdists, or several. Each file gets its core metadata as ``FILE.metadata``.
            What is in folders below it is indexed together with it, each folder in an index of its own.
        output: The folder of the index. Without it, ``simple`` next to ``dist_dir``, or ``simple-NAME`` for a
            ``dist_dir`` not named ``dist``.
        files: Whether the pages link to the files where they are, or to hard links or copies inside of the index.
        yank: Files to mark as yanked from now on (PEP 592), with the reason, which may be empty.
        unyank: Files to mark so no longer.
        upload_time: When all new files were uploaded (ISO 8601), else SOURCE_DATE_EPOCH, else each file's last change.
        front_page: Whether to write ``packages.html`` for people: what there is, and what to install for which GPU. Or
            the address of the index, which the lines on that page name then.

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
    output: GivenPath | None,
    *,
    with_packages: GivenPaths = (),
    options: RepairOptions = _REPAIR_OPTIONS,
) -> RepairResult:
    """Write wheels with right run paths, requirements and tags; the given wheels stay as they are.

    Correct files are not changed, not even by one byte.

    Args:
        wheels: The path or paths of the wheels to repair.
        output: The folder for the repaired wheels, made when it does not exist. None writes nothing.
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
    target = None if output is None else Path(output)
    return RepairJob(some_paths_given("wheels", wheels), paths_given(with_packages), target, options).run()


def verify(paths: GivenPaths, *, jobs: int = 0) -> tuple[Verified, ...]:
    """Return how files compare with a build's manifest, a RECORD, or an index.

    Args:
        paths: One path or several: manifests, builds, wheels, sdists, ``SHA256SUMS``, indexes, or environments.
        jobs: The number of workers; 0 for one per core.

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
    """What differs between two versions of packages, and what of it breaks their users."""

    comparison: Comparison
    findings: tuple[BreakingChange, ...]


def diff(old: GivenPath, new: GivenPath, *, ignore: Iterable[str] | str = ()) -> DiffReport:
    """Return what differs between two wheels, builds, environments, or folders.

    Args:
        old: The old version.
        new: The new version, of the same kind.
        ignore: The rules that are ignored: names or patterns.

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
    """What a lock file locks."""

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
    """Write a lock file (PEP 751) for GPUs, which pip and uv install on any machine. uv resolves the requirements.

    Args:
        requirements: One requirement or several, such as ``rocm[libraries,device-gfx942]``.
        output: The lock file.
        targets: The GPU targets to lock for; by default those that extras name.
        index_url: The only index that is searched.
        find_links: Further folders of packages.
        python_version: The oldest Python to lock for, such as ``3.12``; by default this one.
        universal: Whether to lock for all platforms, with markers.

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
    """Upload the wheels and sdists of a folder, and their index, to a store.

    Args:
        dist_dir: The folder of wheels and sdists.
        store: The store: ``s3://BUCKET/PREFIX``, ``file:///PATH``, or a folder.
        output: The folder of the index in the store.
        dist: The folder of the packages in the store.
        front_page: Whether to write ``packages.html`` for people, or the address of the index that it names.
        dry_run: Whether to check everything and change nothing.

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
    """Return what is known of GPU targets, as ``rocwheel targets list`` does.

    Args:
        targets: GPU targets, families, products, or other words for targets, in any spelling.

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
    """Split a folder or a library: a folder without device code, and one for each GPU target to be laid over it.

    Libraries find their code in ROCm's kpack archives, below ``.kpack``. The same input gives the same bytes.

    Args:
        path: The folder, or a library.
        output: The folder that gets ``host`` and a folder for each target; it must not exist.
        targets: The GPU targets whose code is kept, in any spelling; without any, all.
        scheme: How archives store code objects: each in a zstd frame of its own, or as they are.
        level: The zstd level of code objects, 1 to 19.
        mend: Whether libraries that another tool has split with wrong indices are split again.
        jobs: The number of workers; 0 for one per core.

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
    """Split a finished wheel: a host wheel under its old name, and a device wheel for each GPU target.

    The host wheel has an extra ``device-TARGET`` for each of them, and ``device-all``.

    Args:
        wheel: The wheel.
        output: The folder for the new wheels, not that of the old one; it is made when it does not exist.
        targets: The GPU targets whose code is kept, in any spelling; without any, all.
        overlay_root: The folder of the wheel that device wheels are laid over; by default the one with device code.
        device_name: What the names of device wheels begin with; by default that of the wheel and ``-device``.
        level: The zstd level of code objects, 1 to 19.
        jobs: The number of workers; 0 for one per core.

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
    """Join a host folder and any folders of targets: libraries get their code back, byte for byte.

    Args:
        host: The host folder, or one split library.
        devices: The folder or folders of targets.
        output: The folder for the joined tree; it must not exist.
        compress: Whether all bundles are compressed, also those that were plain before the split.
        level: The zstd level of compressed bundles; higher ones are tried where these have no room.

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
    """Join a host wheel and any of its device wheels: one wheel under the host's name, without the extras.

    Args:
        host: The host wheel.
        devices: The device wheel or wheels.
        output: The folder for the joined wheel, not that of the host; it is made when it does not exist.
        compress: Whether all bundles are compressed, also those that were plain before the split.
        level: The zstd level of compressed bundles; higher ones are tried where these have no room.
        jobs: The number of workers; 0 for one per core.

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
