"""Runs a complete job: from a folder of artifacts to a plan, or to distributions in ``DEST/dist``."""

from __future__ import annotations

import os
import tarfile
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.artifacts.summary import digest_artifacts
from rocwheel.build.building import BuildResult, build, find_leftovers, older_versions, remove_unfinished
from rocwheel.build.estimate import Estimate, estimate
from rocwheel.build.file_facts import check_one_platform, read_facts, with_plain_bin
from rocwheel.build.manifest import BuildInputs, Rebuild, make_manifest
from rocwheel.build.planning.licensed_components import add_sboms
from rocwheel.build.planning.make_plan import make_plan
from rocwheel.build.planning.options import PlanOptions, check_options
from rocwheel.build.prepare import prepared_catalog
from rocwheel.build.recipe import load_hashed_recipe
from rocwheel.core.cache import CachePlace, EntryStore
from rocwheel.core.compression import WHEEL_LEVEL
from rocwheel.core.errors import InputError
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.scratch import locked_folder, scratch_folder
from rocwheel.core.workers import map_collecting, open_workers, worker_count
from rocwheel.core.writing import check_destination, new_folder, require_free
from rocwheel.device.split.splitting import Workers
from rocwheel.wheels.build_manifest import check_manifest_place, remove_manifest, write_manifest
from rocwheel.wheels.sdist import SourceDate
from rocwheel.wheels.writing import HIGHEST_LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Executor

    from rocwheel.artifacts.summary import ArtifactDigest
    from rocwheel.build.plan import Plan


class PlanJob(msgspec.Struct, frozen=True):
    """The inputs of a plan."""

    artifact_dir: Path
    recipe: Path | None = None
    options: PlanOptions = PlanOptions()
    more_dirs: tuple[Path, ...] = ()
    """Additional folders of artifacts."""
    repeats: Rebuild | None = None
    """The build to repeat, which must have the same inputs."""

    def source_date(self) -> SourceDate:
        """Return the date of the build to repeat, or the date from the environment.

        Raises the same errors as `SourceDate.from_environment`.
        """
        if self.repeats:
            return SourceDate(self.repeats.manifest.source_date_epoch)
        return SourceDate.from_environment(os.environ)

    @contextmanager
    def opened(
        self,
        executor: Executor,
        progress: Progress,
        jobs: int = 0,
        source_date: SourceDate | None = None,
        kept: EntryStore | None = None,
    ) -> Iterator[tuple[Plan, BuildInputs]]:
        """Yield the plan and its inputs. The files of the plan are readable only inside the block.

        With a ``source_date``, the inputs include all artifacts, which are therefore read completely, and the wheels
        contain SBOMs. With the ``kept`` store, unchanged artifacts don't need to be read again.

        ``jobs`` is the number of workers for editing device code if the ``executor`` doesn't do that; 0 means one per
        core. Raises the same errors as `open_catalog`, `load_hashed_recipe`, `prepared_catalog`, `read_facts`, and
        `make_plan`.
        """
        check_options(self.options)
        recipe, recipe_sha256 = load_hashed_recipe(self.recipe)
        folders = (self.artifact_dir, *self.more_dirs)
        with open_catalog(*folders, progress=progress, check=check_one_platform) as catalog:
            progress.end()
            digests: dict[str, ArtifactDigest] = {}
            if self.repeats and source_date is not None:
                digests = digest_artifacts(catalog.entries, executor, kept)
                self.repeats.check_inputs(digests, recipe_sha256)
            spelled = with_plain_bin(catalog, self.options.platform)
            with prepared_catalog(spelled, recipe, self.options, Workers(executor, progress, jobs)) as prepared:
                facts = read_facts(prepared.catalog, executor, self.options.platform)
                made = make_plan(prepared.catalog, recipe, facts, self.options)
                made = msgspec.structs.replace(made, warnings=made.warnings + prepared.warnings)
                if source_date is not None:
                    digests = digests or digest_artifacts(catalog.entries, executor, kept)
                    made = add_sboms(made, digests, source_date)
                used = tuple((one, catalog.locations[name]) for name, one in digests.items())
                yield made, BuildInputs(used, self.recipe, recipe_sha256, self.options)

    def run(self, *, progress: Progress = SILENT) -> Plan:
        """Return the plan. Its files may no longer exist."""
        with open_workers() as executor, self.opened(executor, progress) as (plan, _):
            return plan

    def run_estimated(self, *, progress: Progress = SILENT) -> tuple[Plan, Estimate]:
        """Return the plan and its estimated sizes. The files of the plan may no longer exist."""
        with open_workers() as executor, self.opened(executor, progress) as (plan, _):
            return plan, estimate(plan, executor)


class BuildJob(msgspec.Struct, frozen=True):
    """The inputs of a plan, and how to build it."""

    inputs: PlanJob
    dest_dir: Path
    level: int = WHEEL_LEVEL
    jobs: int = 0
    """The number of workers, or 0 for one per core."""
    cache: CachePlace | None = None
    """The cache that keeps packed members for other builds; `None` disables caching."""

    def run(
        self, *, progress: Progress = SILENT, notice: Callable[[str], object] = lambda _: None
    ) -> tuple[Plan, BuildResult]:
        """Write the distributions to ``dist`` below the destination, and remove leftovers from killed builds there.

        The manifest and its checksums are written last. The manifest and checksums of an earlier build are removed
        before anything is written.

        Raises `InputError` for an invalid level or number of workers, `WorkError` if another build is writing to the
        destination, and whatever planning raises. All these errors occur before anything is written. Also raises
        `WorkError` if writing fails.
        """
        check_destination(self.dest_dir / "dist")
        check_manifest_place(self.dest_dir)
        _check_outside(self.dest_dir, (self.inputs.artifact_dir, *self.inputs.more_dirs))
        check_level(self.level)
        workers = worker_count(self.jobs)
        source_date = self.inputs.source_date()
        kept = EntryStore(self.cache.folder) if self.cache else None
        opened = self.inputs.opened
        dist_dir = self.dest_dir / "dist"
        with (
            open_workers(workers) as executor,
            opened(executor, progress, workers, source_date, kept) as (plan, parts),
            locked_folder(dist_dir, timeout=0),
        ):
            if others := older_versions(dist_dir, plan.version):
                versions = ", ".join(others)
                notice(
                    f"{dist_dir}: contains packages of version {versions}, "
                    f"which remain next to the packages of version {plan.version}"
                )
            remove_manifest(self.dest_dir)
            removed = tuple(str(path) for path in remove_unfinished(dist_dir))
            result = build(
                plan, dist_dir, executor, level=self.level, source_date=source_date, progress=progress, kept=kept
            )
            built, epoch = result.distributions, source_date.seconds
            manifest = make_manifest(parts, plan, built, self.dest_dir, self.level, epoch)
            written = str(write_manifest(self.dest_dir, manifest))
        if self.inputs.repeats:
            self.inputs.repeats.check_outputs(manifest.outputs)
        if self.cache and kept and result.members.packed:
            kept.prune(self.cache.limit)
        warnings = result.warnings + find_leftovers(dist_dir, [built.path for built in result.distributions])
        return plan, msgspec.structs.replace(result, warnings=warnings, removed=removed, manifest=written)


class PackageTree(msgspec.Struct, frozen=True):
    """The unpacked tree of a package."""

    path: str
    files: int


def build_trees(
    job: BuildJob, *, progress: Progress = SILENT, notice: Callable[[str], object] = lambda _: None
) -> tuple[Plan, tuple[PackageTree, ...]]:
    """Write the tree of each package instead of the package itself, and return the trees.

    The tree of a wheel has the files that installers put into site-packages. This tree is in ``DEST/DISTRIBUTION``, and
    ``wheel pack`` can create the wheel from it. Packages for families are in ``DEST/FAMILY/DISTRIBUTION``. Raises
    whatever `BuildJob.run` raises. Before anything is written, raises `ProblemsError` if trees already exist.
    """
    _check_outside(job.dest_dir, (job.inputs.artifact_dir, *job.inputs.more_dirs))
    job.dest_dir.mkdir(parents=True, exist_ok=True)
    with scratch_folder(job.dest_dir.resolve() / "packages") as folder:
        plan, result = msgspec.structs.replace(job, dest_dir=folder, level=0).run(progress=progress, notice=notice)
        names = [wheel.metadata.name for wheel in plan.wheels] + [sdist.distribution for sdist in plan.sdists]
        packed = [Path(one.path) for one in result.distributions]
        places = [path.parent.relative_to(folder / "dist") / name for path, name in zip(packed, names, strict=True)]
        trees = [job.dest_dir / place for place in places]
        map_collecting("package folders", require_free, trees)
        return plan, tuple(
            PackageTree(str(tree), _unpack(path, tree)) for path, tree in zip(packed, trees, strict=True)
        )


def _unpack(package: Path, tree: Path) -> int:
    """Unpack a package that this process built, and return the number of files in it."""
    with new_folder(tree) as root:
        if package.suffix == ".whl":
            with zipfile.ZipFile(package) as archive:
                for member in archive.infolist():
                    Path(archive.extract(member, root)).chmod(member.external_attr >> 16 & 0o777)
        else:
            with tarfile.open(package) as sdist:
                sdist.extractall(root, filter="data")
            [inside] = root.iterdir()
            for path in list(inside.iterdir()):
                path.rename(root / path.name)
            inside.rmdir()
        return sum(path.is_file() for path in root.rglob("*"))


def _check_outside(dest_dir: Path, folders: Iterable[Path]) -> None:
    """Raise `InputError` if the destination is an artifact folder.

    Otherwise, the next build would find packages there.
    """
    for folder in folders:
        if folder.is_dir() and dest_dir.is_dir() and dest_dir.samefile(folder):
            option, found = "--dest-dir", f"{dest_dir} is the artifact folder"
            raise InputError(option, found, expected="a different folder")


def check_level(level: int) -> None:
    """Raise `InputError` for an invalid compression level."""
    if not 0 <= level <= HIGHEST_LEVEL:
        parameter, found = "level", f"is {level}"
        raise InputError(parameter, found, expected=f"a level from 0 to {HIGHEST_LEVEL}")
