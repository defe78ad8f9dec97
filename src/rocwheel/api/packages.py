"""The public functions that make packages: plan, build, promote, index."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rocwheel.build.job import BuildJob, PlanJob
from rocwheel.build.planning.options import PlanOptions
from rocwheel.build.promoting.promote import PromoteJob, PromotionResult
from rocwheel.core.cache import packed_cache
from rocwheel.index.extra_files import no_extras
from rocwheel.index.families import write_indexes
from rocwheel.index.front_content import front_page as make_extras
from rocwheel.index.pages import choose_upload_time
from rocwheel.index.placing import FilePlacement
from rocwheel.index.write_index import IndexOptions, choose_output
from rocwheel.index.yanked import Yanking
from rocwheel.targets.machine import native_targets
from rocwheel.targets.spelling.target_set import parse_target_set
from rocwheel.wheels.writing import DEFAULT_LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rocwheel.build.building import BuildResult
    from rocwheel.build.plan import Plan
    from rocwheel.core.names import GivenPath
    from rocwheel.index.write_index import IndexReport

__all__ = ["build", "index", "plan", "promote"]

_PLAN_OPTIONS = PlanOptions()


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
    cache: bool = False,
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
        cache: Whether to keep packed files in the user's cache, and to take from there what was packed before.

    Example:
        ```python
        from rocwheel import api

        result = api.build("artifacts", "packages", options=api.PlanOptions(version="7.1.0"))
        print([built.path for built in result.distributions])
        ```
    """
    place = packed_cache(os.environ) if cache else None
    job = BuildJob(_plan_job(artifact_dir, recipe, options), Path(dest_dir), level, jobs, place)
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


def _plan_job(artifact_dir: GivenPath, recipe: GivenPath | None, options: PlanOptions) -> PlanJob:
    return PlanJob(Path(artifact_dir), None if recipe is None else Path(recipe), options)
