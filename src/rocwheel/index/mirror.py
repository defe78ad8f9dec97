"""Copies part of a package index for certain machines: downloads, verifies, and indexes the files."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from rocwheel.core.errors import InputError, RocwheelError, WorkError
from rocwheel.core.messages import first_of, quoted
from rocwheel.core.names import is_utf8
from rocwheel.core.progress import SILENT, Progress
from rocwheel.core.workers import attempt_all, map_in_threads, open_workers, raise_all, serialized, worker_count
from rocwheel.index.folder_notes import read_known
from rocwheel.index.mirror_choice import choose_files, choose_projects, is_pattern, normalized_pattern, unmatched
from rocwheel.index.mirror_requirements import Followed, PackageFinder, follow
from rocwheel.index.pages import METADATA_SUFFIX
from rocwheel.index.source import fetch_file, raise_for_folders
from rocwheel.index.trust import ListedFile
from rocwheel.index.write_index import IndexOptions, write_index
from rocwheel.index.yanked import Yanking
from rocwheel.stores.store import MissingFileError, PassingError, StoreError
from rocwheel.stores.urls import local_path, shown_url
from rocwheel.targets.compatibility import GENERIC
from rocwheel.targets.serving import label_of_project, serves
from rocwheel.targets.target_set import text_sort_key
from rocwheel.wheels.build_manifest import MANIFEST_NAME
from rocwheel.wheels.file_names import is_distribution_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from rocwheel.binary.code_objects import TargetId
    from rocwheel.index.folder_notes import KnownIndex
    from rocwheel.index.mirror_choice import Choice
    from rocwheel.index.mirror_requirements import DependencyReader
    from rocwheel.index.source import IndexSource
    from rocwheel.index.write_index import IndexReport


def check_mirror(plan: MirrorPlan, folder: Path, *, exact: bool) -> None:
    """Raise `InputError` for a folder in which a mirror must not store or remove distributions.

    This includes the folder with the files of the mirrored index itself. With ``exact``, which removes other files,
    it also includes the folder of a build.
    """
    if any(_folder_of(file.url) == folder.resolve() for file in plan.files):
        raise InputError(
            folder, "contains the files of the mirrored index itself", expected="another folder for the mirror"
        )
    manifest = folder.parent / MANIFEST_NAME
    if exact and manifest.exists():
        remedy = "Choose another folder, or omit --exact."
        raise InputError(
            folder.parent, f"is the folder of a build ({MANIFEST_NAME})", expected="a mirror", remedy=remedy
        )


def _folder_of(url: str) -> Path | None:
    """Return the folder of a file at a ``file://`` URL, or `None` for any other URL."""
    parts = urlsplit(url)
    return Path(local_path(parts.path)).parent.resolve() if parts.scheme == "file" else None


def find_extraneous(plan: MirrorPlan, folder: Path) -> frozenset[str]:
    """Return the names of the distributions in a folder that are not in the plan; empty if the folder doesn't exist."""
    wanted = {file.filename for file in plan.files}
    paths = folder.iterdir() if folder.is_dir() else ()
    names = (path.name for path in paths if path.is_file() and not path.name.startswith("."))
    return frozenset(name for name in names if name not in wanted and is_distribution_name(name))


def remove_extraneous(folder: Path, names: Iterable[str]) -> None:
    """Remove distributions that no page lists anymore, with their core metadata."""
    try:
        for name in sorted(names):
            (folder / name).unlink(missing_ok=True)
            (folder / f"{name}{METADATA_SUFFIX}").unlink(missing_ok=True)
    except OSError as e:
        raise WorkError(folder, f"can't be cleaned up ({e.strerror})", remedy="Check its permissions.") from e


class MirrorPlan(msgspec.Struct, frozen=True):
    """The files of a mirror."""

    files: tuple[ListedFile, ...]
    ignored: tuple[str, ...]
    """Names on the pages that belong to neither wheels nor sdists, and unwanted wheel variants."""
    matched: tuple[str, ...]
    """The projects that match the names and patterns, including projects for other GPUs, and their requirements."""
    absent: tuple[str, ...] = ()
    """Requirements that no file in the indexes satisfies."""
    unusable: dict[str, tuple[str, ...]] = {}
    """The names of packages for other GPUs that a file requires, keyed by that file."""
    fetched: frozenset[str] = frozenset()
    """The names of the files that were already downloaded to read their requirements."""

    @property
    def size(self) -> int:
        """The total size of the files in bytes. Files whose size is not listed on a page don't count."""
        return sum(file.size or 0 for file in self.files)


def plan_mirror(
    sources: Sequence[IndexSource],
    choice: Choice,
    serves: Callable[[str], bool],
    dependencies: DependencyReader | None = None,
) -> MirrorPlan:
    """Read the pages of indexes, and return the files for a mirror of these indexes.

    For ``serves``, see `choose_projects`. ``dependencies`` reads the requirements of files, if they are wanted. Raises
    all problems together: names that no index contains, names that can't be pooled, unreadable pages, untrusted files,
    and pooled files with different bytes.
    """
    choice.check()
    try:
        return _plan(sources, choice, serves, dependencies)
    except PassingError:
        raise
    except RocwheelError:
        raise_for_folders(source.address for source in sources)
        raise


def _plan(
    sources: Sequence[IndexSource], choice: Choice, serves: Callable[[str], bool], dependencies: DependencyReader | None
) -> MirrorPlan:
    where = " and ".join(source.url for source in sources)
    finder = PackageFinder(sources, choice, serves)
    # Read the page of all projects only if there are patterns, because the page may be huge or missing.
    if any(map(is_pattern, choice.projects)):
        present = tuple(dict.fromkeys(name for source in sources for name in source.projects()))
    else:
        names = dict.fromkeys(normalized_pattern(text) for text in choice.projects)
        present = tuple(name for name in names if is_utf8(name) and finder.has(name))
    either = " or ".join(source.url for source in sources)
    if not present:
        raise_all(where, [error for source in sources if (error := _page_error(source))])
    raise_all(where, [*unmatched(choice, present, either), *_unknown_pooled(choice, finder, either)])
    offered = map_in_threads(finder.offered, choose_projects(choice, present, serves), where)
    finder.check(where)
    files = tuple(file for group in offered for file in choose_files(choice, group))
    if not files:
        found = f"has no files for {choice.version or 'these projects'}{choice.machines.shown}"
        raise InputError(where, found, remedy="Choose other projects, versions, or targets.")
    everything = msgspec.structs.replace(choice, devel=True)
    plan = MirrorPlan(files, finder.ignored, choose_projects(everything, present, lambda _: True))
    if dependencies is None:
        return plan
    followed = follow(files, choice, serves, finder.offered, dependencies.read)
    finder.check(where)
    return _with_required(plan, followed, finder.ignored, frozenset(dependencies.fetched))


def _page_error(source: IndexSource) -> MissingFileError | None:
    """Return an error for an index without any page.

    In that case, the URL of the index is wrong, rather than a project name.
    """
    try:
        source.require_page()
    except MissingFileError as e:
        return e
    except StoreError:  # the index may still have projects
        return None
    return None


def _unknown_pooled(choice: Choice, finder: PackageFinder, where: str) -> Iterator[InputError]:
    """Yield an error for each name whose versions can't be pooled from all indexes."""
    for name in sorted(choice.pooled):
        if is_pattern(name):
            found = f"{quoted(name)} is a pattern"
            yield InputError(
                "--pool", found, expected="the name of a project", remedy="Repeat the option for each project."
            )
        elif not (is_utf8(name) and finder.has(name)):
            yield InputError("--pool", f"{quoted(name)} is not a project in {where}", remedy="Correct the name.")


def _with_required(
    plan: MirrorPlan, followed: Followed, ignored: tuple[str, ...], fetched: frozenset[str]
) -> MirrorPlan:
    """Return a plan that includes the requirements of its files."""
    every = {file.filename: file for file in (*plan.files, *followed.files)}
    return MirrorPlan(
        tuple(every.values()),
        ignored,
        tuple(dict.fromkeys((*plan.matched, *followed.required))),
        followed.absent,
        followed.unusable,
        fetched,
    )


def find_unserved(plan: MirrorPlan, agents: Iterable[TargetId], source: str = "--targets") -> Iterator[InputError]:
    """Yield an error about ``source`` for each GPU that no package serves, if there are packages for specific GPUs."""
    labels = sorted({label_of_project(project) for project in plan.matched} - {GENERIC}, key=text_sort_key)
    for agent in agents if labels else ():
        if not any(serves(label, (agent,)) for label in labels):
            found = f"no package in the index supports {agent}"
            yield InputError(source, found, remedy=f"There are packages for {first_of(labels, len(labels))}.")


FILES_FOLDER, INDEX_FOLDER = "dist", "simple"


class MirroredFile(msgspec.Struct, frozen=True):
    """A file of a mirror."""

    filename: str
    project: str
    bytes: int
    sha256: str
    url: str
    """The URL that the file was downloaded from."""
    is_new: bool
    """Whether the file was absent before."""


class MirrorReport(msgspec.Struct, frozen=True):
    """The contents of a mirror, and the parts of the request that could not be satisfied."""

    output: str
    """The folder of the index."""
    files: tuple[MirroredFile, ...]
    ignored: tuple[str, ...]
    """Names on the pages that belong to neither wheels nor sdists, and unwanted wheel variants."""
    absent: tuple[str, ...] = ()
    """Requirements that no file in the indexes satisfies."""
    unusable: dict[str, tuple[str, ...]] = {}
    """The names of packages for other GPUs that a file requires, keyed by that file."""
    removed: tuple[str, ...] = ()
    """The names of files from earlier mirrors that were removed."""


class MirrorOptions(msgspec.Struct, frozen=True):
    """Rarely used options of a mirror."""

    jobs: int = 4
    """The number of files that are downloaded at the same time."""
    exact: bool = False
    """Whether to remove other distributions in the folder, such as distributions from earlier mirrors."""
    machine: tuple[str, ...] | None = None
    """The GPU targets for which the mirror's index lists wheel variants (a draft), as in `IndexOptions`.

    `None` means the same targets as in the last run.
    """


def make_mirror(
    plan: MirrorPlan, dest_dir: Path, options: MirrorOptions | None = None, progress: Progress = SILENT
) -> MirrorReport:
    """Download the files of a plan into ``dest_dir/dist``, and index that folder in ``dest_dir/simple``.

    A file appears only after its size and hash have been verified against its page. An interrupted download resumes.
    Files with the correct hash are retained, and so are files from earlier mirrors unless the options remove them. If
    some files can't be downloaded, the other files are downloaded, the index is written, and then the errors are
    raised. Nothing is removed in this case. The same is true for wheels whose core metadata differs from the metadata
    that the page lists. Raises `InputError` first if the folder is not a mirror (`check_mirror`).
    """
    options = options or MirrorOptions()
    folder, output = dest_dir / FILES_FOLDER, dest_dir / INDEX_FOLDER
    check_mirror(plan, folder, exact=options.exact)
    known = read_known(output)
    problems: list[RocwheelError] = []
    files = _fetch_all(plan, folder, known, options.jobs, progress, problems)
    if not files:
        raise_all(str(dest_dir), problems)
    extraneous = find_extraneous(plan, folder) if options.exact and not problems else frozenset()
    machine = known.machine if options.machine is None else options.machine
    index: IndexReport = write_index(
        folder,
        output,
        unread=problems,
        options=IndexOptions(
            progress=progress,
            yanking=_yanking(plan, {file.filename for file in files}),
            machine=machine,
            left_out=extraneous,
        ),
    )
    remove_extraneous(folder, extraneous)
    problems += _broken_promises(plan, folder, output)
    raise_all(str(dest_dir), problems)
    return MirrorReport(index.output, files, plan.ignored, plan.absent, plan.unusable, tuple(sorted(extraneous)))


def _yanking(plan: MirrorPlan, names: Collection[str]) -> Yanking:
    """Return the yank marks of the existing files, as listed on their pages."""
    there = [file for file in plan.files if file.filename in names]
    return Yanking(
        {file.filename: file.yanked for file in there if file.yanked is not None},
        tuple(file.filename for file in there if file.yanked is None),
    )


def _fetch_all(
    plan: MirrorPlan,
    folder: Path,
    known: KnownIndex,
    jobs: int,
    progress: Progress,
    problems: list[RocwheelError],
) -> tuple[MirroredFile, ...]:
    entries = {one.entry.filename: one for one in known.files.values()}
    advance = serialized(progress.advance)

    def fetch(file: ListedFile) -> MirroredFile:
        is_new = fetch_file(folder, file, known=entries.get(file.filename), advance=advance)
        size = (folder / file.filename).stat().st_size
        is_new = is_new or file.filename in plan.fetched
        return MirroredFile(file.filename, file.project, size, file.sha256, shown_url(file.url), is_new)

    progress.begin("fetching distributions", plan.size)
    try:
        with open_workers(worker_count(jobs)) as executor:
            futures = [executor.submit(fetch, file) for file in plan.files]
            return tuple(attempt_all(Future.result, futures, problems))
    finally:
        progress.end()


def _broken_promises(plan: MirrorPlan, folder: Path, output: Path) -> list[RocwheelError]:
    """Return an error for each wheel whose core metadata differs from the metadata on its page (:pep:`658`)."""
    entries = {known.entry.filename: known.entry for known in read_known(output).files.values()}
    return [
        InputError(
            shown_url(file.url),
            "has different core metadata than its page lists",
            expected=f"the SHA-256 {file.metadata_sha256}",
            remedy=f"Contact the publisher, and remove {folder / file.filename} unless the change is intended.",
        )
        for file in plan.files
        if file.filename.endswith(".whl")
        and file.metadata_sha256
        and (entry := entries.get(file.filename))
        and entry.sha256 == file.sha256  # otherwise, it is a different file, which is reported separately
        and entry.metadata_sha256 != file.metadata_sha256
    ]
