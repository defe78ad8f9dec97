"""Reads the list of indexes that an index of links combines, and chooses the files from each of them.

A TOML file lists the indexes in order of precedence. A project belongs to the first index whose patterns match its
name, even if that index doesn't contain the project. Otherwise, anyone who can write to a later index could add a newer
version (dependency confusion, :pep:`708`). Only projects in ``pool`` come from all indexes whose patterns match.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit, urlunsplit

import msgspec

from rocwheel.core.decoding import decode_toml
from rocwheel.core.errors import InputError, RocwheelError, each_problem, read_error
from rocwheel.core.messages import quoted
from rocwheel.core.names import is_file_name
from rocwheel.core.reading import read_regular
from rocwheel.core.workers import attempt_all, map_collecting, raise_all
from rocwheel.index.families import taken_by
from rocwheel.index.mirror import find_unserved, plan_mirror
from rocwheel.index.mirror_choice import Choice, Machines, is_pattern, normalized_pattern
from rocwheel.index.mirror_requirements import unite
from rocwheel.index.source import IndexSource
from rocwheel.stores.urls import is_web_url, shown_url
from rocwheel.targets.serving import label_of_project, serves
from rocwheel.targets.target_set import parse_target_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from rocwheel.binary.code_objects import TargetId
    from rocwheel.index.source import ProjectListing
    from rocwheel.index.trust import ListedFile


_STREAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_IN_PATH = "/%:@!$&'()*+,;=~"
"""The characters in a URL's path that are not quoted, including characters that quote other characters."""
_REMEDY = "See docs/mirror.md for the keys."
_KEYS = {"--version": "version", "--platform": "platform-tags", "--python-version": "python-versions"}
"""The keys, keyed by the option with the same meaning, because errors mention the option."""


class Upstream(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """An ``[[index]]`` table. The keys have the same names as the options of ``rocwheel index mirror``."""

    url: str
    projects: tuple[str, ...]
    """The names and patterns of the projects that belong to the index."""
    streams: tuple[str, ...] = ()
    """The streams that list the files of the index. Empty means all streams."""
    targets: tuple[str, ...] = ()
    version: str = ""
    platform_tags: tuple[str, ...] = ()
    python_versions: tuple[str, ...] = ()

    @property
    def patterns(self) -> tuple[str, ...]:
        """The normalized names and patterns of projects."""
        return tuple(map(normalized_pattern, self.projects))

    @property
    def choice(self) -> Choice:
        """The projects and files to choose, as for a mirror."""
        machines = Machines(self.platform_tags, self.python_versions)
        return Choice(projects=self.projects, version=self.version, devel=True, machines=machines)

    @property
    def agents(self) -> tuple[TargetId, ...] | None:
        """The GPUs whose packages are wanted, or `None` for all packages."""
        return tuple(parse_target_set(self.targets, source="targets").ids) if self.targets else None

    def is_in(self, stream: str) -> bool:
        """Return whether a stream lists the files of the index.

        The united index has an empty name and lists all files.
        """
        return not (stream and self.streams) or stream in self.streams

    def matches(self, project: str) -> bool:
        """Return whether the patterns of the index match a project's normalized name.

        The project may nevertheless belong to an earlier index.
        """
        return any(fnmatchcase(project, pattern) for pattern in self.patterns)


class Upstreams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of the TOML file."""

    index: tuple[Upstream, ...]
    """The indexes in order of precedence."""
    pool: tuple[str, ...] = ()
    """The names and patterns of projects whose versions come from all indexes that match."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams in order of appearance."""
        return tuple(dict.fromkeys(stream for one in self.index for stream in one.streams))

    def is_pooled(self, project: str) -> bool:
        """Return whether the versions of a project come from several indexes. ``project`` is its normalized name."""
        return any(fnmatchcase(project, normalized_pattern(pattern)) for pattern in self.pool)

    def owner(self, project: str, stream: str) -> int | None:
        """Return the position of the index that a project belongs to in a stream, or `None` if no index owns it."""
        matching = (n for n, one in enumerate(self.index) if one.is_in(stream) and one.matches(project))
        return next(matching, None)


def read_upstreams(path: Path) -> Upstreams:
    """Read a TOML file. Raise `InputError` for invalid contents, or `ProblemsError` for several problems."""
    try:
        found = decode_toml(read_regular(path), Upstreams)
    except OSError as e:
        raise read_error(path, e) from e
    except msgspec.DecodeError as e:
        raise InputError(path, f"is not a list of indexes: {e}", remedy=_REMEDY) from e
    raise_all(str(path), list(_problems(path, found)))
    return found


def _problems(path: Path, found: Upstreams) -> Iterator[RocwheelError]:
    if not found.index:
        yield InputError(path, "doesn't list any indexes", expected="an [[index]] table for each index", remedy=_REMEDY)
    for name in found.pool:
        if not is_pattern(name) and not any(one.matches(normalized_pattern(name)) for one in found.index):
            text = f"pool lists {quoted(name)}, which no index has"
            yield InputError(path, text, expected="a project that two indexes list")
    for number, one in enumerate(found.index, start=1):
        where = f"index {number}"
        yield from _value_problems(path, where, one)
        for stream in one.streams:
            if not _STREAM.fullmatch(stream) or not is_file_name(stream) or taken_by(stream, ()):
                expected = "a valid folder name, such as nightly"
                yield InputError(path, f"{where} has the stream {quoted(stream)}", expected=expected)
        for name in one.patterns:
            owner = _other_owner(found, number - 1, name)
            if owner is not None:
                text = f"{where} lists {name}, which belongs to index {owner + 1}"
                yield InputError(path, text, remedy="Remove the name, change the order, or add the name to pool.")


def _value_problems(path: Path, where: str, one: Upstream) -> Iterator[RocwheelError]:
    if not is_web_url(one.url):
        found = f"{where} has a URL that isn't a web address"
        yield InputError(path, found, expected="an http:// or https:// URL, which installers can read")
    if not one.projects:
        yield InputError(path, f"{where} has no projects", expected="names or patterns such as 'rocm*'")
    problems: list[RocwheelError] = []
    attempt_all(_check, [one], problems)
    for problem in each_problem(problems):
        if isinstance(problem, InputError):
            found = f"{where}: {_KEYS.get(str(problem.source), problem.source)} {problem.found}"
            yield InputError(path, found, expected=problem.expected, remedy=problem.remedy)
        else:
            yield problem


def _check(one: Upstream) -> None:
    if is_web_url(one.url):
        IndexSource(one.url)
    one.choice.check()
    _ = one.agents


def _other_owner(found: Upstreams, position: int, name: str) -> int | None:
    """Return the earlier index that a listed project belongs to in every stream of this index, or `None`."""
    if is_pattern(name) or found.is_pooled(name):
        return None
    streams = found.index[position].streams or ("", *found.streams)
    owners = {found.owner(name, stream) for stream in streams}
    return owners.pop() if len(owners) == 1 and position not in owners else None


class _CachedSource(IndexSource):
    """An index whose pages are read once, so that all streams agree."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._names: tuple[str, ...] | None = None
        self._listings: dict[str, ProjectListing | None] = {}

    def projects(self) -> tuple[str, ...]:
        if self._names is None:
            self._names = super().projects()
        return self._names

    def read_project(self, project: str) -> ProjectListing | None:
        if project not in self._listings:
            self._listings[project] = super().read_project(project)
        return self._listings[project]


def choose_links(upstreams: Upstreams) -> dict[str, dict[str, list[ListedFile]]]:
    """Read the indexes, and return the files of each project in each stream, in the order of the indexes.

    The united index has an empty name and comes first. Raises all problems together: indexes that don't respond,
    untrusted files, and different files with the same name in a pooled project. Raises `InputError` if a GPU has no
    package.
    """
    problems: list[RocwheelError] = []
    sources = attempt_all(_CachedSource, [one.url for one in upstreams.index], problems)
    raise_all("indexes", problems)
    chosen = {}
    for stream in ("", *upstreams.streams):
        found = attempt_all(partial(_plan, upstreams, sources, stream), range(len(sources)), problems)
        chosen[stream] = _by_project((file for files in found for file in files), problems)
    raise_all("indexes", list({str(one): one for one in each_problem(problems)}.values()))
    for stream in upstreams.streams:
        if taken := taken_by(stream, chosen[""]):
            found_stream = f"is {taken}, so it can't be the name of a stream"
            raise InputError(stream, found_stream, remedy="Rename the stream.")
    return chosen


def _plan(upstreams: Upstreams, sources: Sequence[IndexSource], stream: str, position: int) -> tuple[ListedFile, ...]:
    """Return the files of an index in a stream, without files of projects that belong to other indexes."""
    one = upstreams.index[position]
    if not one.is_in(stream):
        return ()

    source, agents = sources[position], one.agents

    def is_own(project: str) -> bool:
        return upstreams.is_pooled(project) or upstreams.owner(project, stream) == position

    def is_wanted(project: str) -> bool:
        return is_own(project) and (agents is None or serves(label_of_project(project), agents))

    matching: list[str] = []
    projects = tuple(name for name in one.projects if is_pattern(name) or is_own(normalized_pattern(name)))
    if any(map(is_pattern, projects)):
        matching = [project for project in source.projects() if one.matches(project)]
        if matching and not any(map(is_own, matching)):
            return ()
    elif not projects:
        return ()
    choice = msgspec.structs.replace(one.choice, projects=projects)
    plan = plan_mirror([source], choice, is_wanted)
    absent = [project for project in filter(is_wanted, matching) if source.read_project(project) is None]
    remedy = "Contact the publisher. If the project was permanently removed, list the other projects by name."
    found = "is listed, but has no page"
    problems = [InputError(f"{source.url}{project}/", found, remedy=remedy) for project in absent]
    raise_all(source.url, [*problems, *find_unserved(plan, agents or (), "targets")])
    return tuple(map_collecting(source.url, _quoted, plan.files))


def _by_project(files: Iterable[ListedFile], problems: list[RocwheelError]) -> dict[str, list[ListedFile]]:
    """Return each file once, from the first index that lists it."""
    grouped: dict[str, list[ListedFile]] = {}
    for file in unite(files, problems, remedy="Remove the project from pool."):
        grouped.setdefault(file.project, []).append(file)
    return dict(sorted(grouped.items()))


def _quoted(file: ListedFile) -> ListedFile:
    """Return a file whose URL has only ASCII characters.

    Raise `InputError` if the URL must not be published on a page.
    """
    parts = urlsplit(file.url)
    if parts.query:
        found = "has a query in its URL, which may contain a password"
        raise InputError(shown_url(file.url), found, expected="a URL without a query", remedy="Mirror the index.")
    return msgspec.structs.replace(file, url=urlunsplit(parts._replace(path=quote(parts.path, safe=_IN_PATH))))
