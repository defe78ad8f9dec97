"""Locks requirements for GPUs: uv resolves them, and the result is compared with the request (:pep:`751`).

When an installer builds the selector, the selector chooses some requirements based on the machine's GPUs, unless an
environment variable lists GPUs. The machine that locks is rarely the machine that installs. Therefore, the GPUs are
always listed, and the result is checked.
"""

from __future__ import annotations

import netrc
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.binary.code_objects import TargetId
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.messages import count, first_of, looks_like_host
from rocwheel.core.progress import SILENT, Progress, step
from rocwheel.core.scratch import temporary_folder
from rocwheel.core.workers import map_collecting, raise_all
from rocwheel.core.writing import atomic_file, check_output
from rocwheel.index.lock_file import LockFile, check_lock_name
from rocwheel.index.source import raise_for_folders
from rocwheel.stores.urls import (
    hide_users,
    is_url,
    is_web_url,
    keep_user,
    local_path,
    parse_url,
    shown_url,
    without_secrets,
)
from rocwheel.stores.web import stream_web_file
from rocwheel.targets.compatibility import GENERIC
from rocwheel.targets.errors import UnknownTargetError
from rocwheel.targets.serving import label_of_project, serves
from rocwheel.targets.target_set import parse_target_set, text_sort_key
from rocwheel.wheels.file_names import is_wheel_file_name, wheel_platforms
from rocwheel.wheels.requirements import RequirementError, read_build_requires, read_requirement

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from packaging.requirements import Requirement


_PYTHON = re.compile(r"3(\.[0-9]{1,3}){1,2}")


class ResolveOptions(msgspec.Struct, frozen=True):
    """Package locations and the Python version for resolving. The variables and settings of uv also apply."""

    index_url: str | None = None
    extra_index_url: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    python_version: str | None = None
    pre: bool = False
    universal: bool = False
    """Whether to lock for every platform, with markers, instead of only for this platform."""

    @property
    def index_urls(self) -> tuple[str, ...]:
        """The URLs of the indexes, without local paths."""
        return tuple(url for url in (self.index_url or "", *self.extra_index_url) if is_url(url))

    @property
    def arguments(self) -> list[str]:
        """The options in the form that uv accepts."""
        python = self.python_version or f"{sys.version_info.major}.{sys.version_info.minor}"
        index = [f"--index-url={self.index_url}"] if self.index_url else []
        if self.find_links and not self.index_url:
            index = ["--no-index"]
        return [
            f"--python-version={python}",
            *index,
            *(f"--extra-index-url={url}" for url in self.extra_index_url),
            *(f"--find-links={place}" for place in self.find_links),
            *(["--prerelease=allow"] if self.pre else []),
            *(["--universal"] if self.universal else []),
        ]

    def check(self) -> None:
        """Raise `InputError` for an invalid Python version, a URL without a scheme, and a URL that `parse_url` rejects.

        Also raises this error for a folder that doesn't exist, because uv would search elsewhere.
        """
        urls = [url for url in (self.index_url, *self.extra_index_url) if url]
        for url in filter(looks_like_host, urls):
            raise InputError(url, "has no scheme", expected="http://, https://, file://, or a folder")
        for url in (*urls, *self.find_links):
            if url.startswith("file:"):
                parse_url(url)
        if self.python_version is not None and not _PYTHON.fullmatch(self.python_version):
            option, expected = "--python-version", "a Python 3 version such as 3.12"
            raise InputError(option, f"is {self.python_version!r}", expected=expected)
        raise_all("indexes", [InputError(url, "is not a folder") for url in urls if not _may_be_there(url)])


def _may_be_there(url: str) -> bool:
    """Return whether an index may exist. A folder must exist, but only a request can tell whether a URL exists."""
    if url.startswith("file:"):
        return Path(local_path(urlsplit(url).path)).is_dir()
    return is_url(url) or Path(url).is_dir()


class Locked(msgspec.Struct, frozen=True):
    """The locked requirements, and information about them for users."""

    file: LockFile
    targets: tuple[str, ...]
    """The GPUs that were specified for the selector."""
    build_requires: dict[str, tuple[str, ...]]
    """The build requirements of sdists, keyed by package. A lock file can't contain them."""

    @property
    def has_gpu_packages(self) -> bool:
        """Whether there is a package for specific GPUs."""
        return any(label_of_project(project) != GENERIC for project in self.file.projects)

    @property
    def lacking_systems(self) -> dict[str, tuple[str, ...]]:
        """The systems that have GPU packages but no package for a GPU, keyed by GPU.

        Only GPUs that have packages for some systems but not for others are included.
        """
        wheels = self.file.wheels
        everywhere = _systems(wheels.values())
        found = {
            target: _systems(
                names
                for project, names in wheels.items()
                if (label := label_of_project(project)) != GENERIC
                and (label == target or serves(label, _agents(target)))
            )
            for target in self.targets
        }
        return {
            target: missing
            for target, systems in found.items()
            if systems and (missing := tuple(sorted(everywhere - systems)))
        }


def make_lock(
    requirements: Sequence[str],
    targets: str | None,
    output: Path,
    options: ResolveOptions,
    progress: Progress = SILENT,
) -> Locked:
    """Write a lock file of requirements for GPUs: the GPUs in ``targets``, or the GPUs that `targets_to_lock` finds.

    Raises `InputError` for invalid or unresolvable requirements, for packages that were locked for other GPUs, and for
    files without a hash. In these cases, nothing is written.
    """
    check_lock_name(output)
    check_output(output)
    parsed = parse_requirements(requirements)
    named = targets_to_lock(parsed, targets, os.environ)
    texts = [str(requirement) for requirement in parsed]
    with step(progress, "resolving"):
        resolved = resolve(texts, options, named)
    found = LockFile.read(resolved, "uv's output")
    check_locked(found.projects, parsed, named, str(output), is_given=targets is not None)
    remedy = "Lock from an index with hashes, such as an index from `rocwheel index`."
    raise_all(str(output), [InputError(name, "has no hash in its index", remedy=remedy) for name in found.unhashed()])
    builds = find_build_requires(found, index_urls(options, os.environ))
    made = found.without_users().relative_to(output.absolute().parent).noting(texts, named)
    with atomic_file(output) as file:
        file.write(made.render())
    return Locked(made, named, builds)


_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")
"""Variables that list indexes for uv.

Values are separated by spaces, and each may have a name as a prefix. Link locations may also be separated by commas.
"""


def index_urls(options: ResolveOptions, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the web server URLs where uv looks for packages, first from the options, then from uv's variables."""
    given = [options.index_url or "", *options.extra_index_url, *options.find_links]
    words = [word for name in _VARIABLES for word in environ.get(name, "").replace(",", " ").split()]
    return tuple(url for url in (*given, *map(_without_name, words)) if is_web_url(url))


def _without_name(word: str) -> str:
    """Return the URL in ``NAME=URL``, or the word itself if it is a URL without a name."""
    name, mark, address = word.partition("=")
    return address if mark and "://" not in name else word


def with_user(url: str, origins: Sequence[str]) -> str:
    """Return a URL with the user and password for its server from ``origins`` or from the netrc file.

    This is what pip and uv do. The variable ``NETRC`` replaces the netrc file in the user's home folder.
    """
    for origin in origins:
        if (found := _kept(url, origin)) != url:
            return found
    parts = urlsplit(url)
    if "@" in parts.netloc or not (known := _netrc_entry(parts.hostname or "")):
        return url
    user, password = known
    return urlunsplit(parts._replace(netloc=f"{quote(user, safe='')}:{quote(password, safe='')}@{parts.netloc}"))


def _kept(url: str, origin: str) -> str:
    try:
        return keep_user(url, origin)
    except ValueError:  # uv has already reported the error, or does not use the file
        return url


def _netrc_entry(host: str) -> tuple[str, str] | None:
    """Return the user and password for a host, or `None` if there is no readable netrc file.

    In that case, uv doesn't use any credentials either.
    """
    try:
        found = netrc.netrc(os.environ.get("NETRC")).authenticators(host)
    except (OSError, ValueError, netrc.NetrcParseError):
        return None
    return (found[0], found[2] or "") if found and found[0] else None


_LARGEST = 256 << 20
"""The maximum size in bytes of an sdist that is downloaded to find its build requirements."""


def find_build_requires(lock: LockFile, index_urls: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the build requirements of packages that have only an sdist, keyed by name.

    Packages without build requirements are omitted. Requests to a server use its credentials in ``index_urls``, as
    `with_user` describes. Raises the same errors as `read_build_requires`, and store errors for an sdist that can't be
    downloaded.
    """
    found = {name: _read(with_user(url, index_urls)) for name, url in lock.built.items()}
    return {name: requires for name, requires in found.items() if requires}


def _read(url: str) -> tuple[str, ...]:
    parts = urlsplit(url)
    if parts.scheme == "file":
        return _read_local(Path(local_path(parts.path)))
    with TemporaryDirectory() as folder:
        path = Path(folder) / Path(unquote(parts.path)).name
        _fetch(url, path)
        return _read_local(path)


def _fetch(url: str, path: Path) -> None:
    """Download a file from a web server to a path, in chunks."""
    size = 0
    with path.open("wb") as file:
        for block in stream_web_file(url):
            size += file.write(block)
            if size > _LARGEST:
                raise InputError(shown_url(url), f"has more than {count(_LARGEST, 'byte')}", expected="an sdist")


def _read_local(path: Path) -> tuple[str, ...]:
    try:
        return read_build_requires(path)
    except OSError as e:
        raise read_error(path, e) from e


TARGET_VARIABLE = "ROCM_SDK_TARGET_FAMILY"
"""The variable that lists the GPUs for the selector, as `rocm_sdk` reads it."""
_DEVICE = "device"
"""The extra for the GPUs that the selector detects. With a target appended, it is the extra for that GPU."""
_EVERY_DEVICE = "device-all"
"""The extra for all GPUs that have packages."""
_GPU = re.compile(r"gfx[0-9a-f]+")
"""A GPU, in the form that the selector accepts.

The selector accepts only the exact names of families, and normalized names don't preserve the original form.
"""
_SYSTEMS = {"glibc": "Linux", "musl": "Linux", "windows": "Windows"}
"""The names of systems, keyed by the system in platform tags."""
_REMEDY = "Specify the GPUs, for example with --targets gfx942."


def parse_requirements(texts: Iterable[str]) -> tuple[Requirement, ...]:
    """Return the parsed requirements. Raise `InputError` for each invalid requirement."""
    return tuple(map_collecting("requirements", _parse, texts))


def _parse(text: str) -> Requirement:
    try:
        return read_requirement(text)
    except RequirementError as e:
        expected = "a requirement such as 'rocm[libraries,device-gfx942]==7.2.*'"
        found = f"is not a requirement ({hide_users(str(e).splitlines()[0])})"
        raise InputError(hide_users(text), found, expected=expected) from e


def asked_extras(requirements: Iterable[Requirement]) -> tuple[str, ...]:
    """Return the targets and families in extras, without duplicates, such as ``gfx942`` for ``device-gfx942``."""
    extras = _all_extras(requirements)
    return tuple(dict.fromkeys(extra.removeprefix(f"{_DEVICE}-") for extra in extras if extra.startswith("device-gfx")))


def _all_extras(requirements: Iterable[Requirement]) -> list[str]:
    return [canonicalize_name(extra) for requirement in requirements for extra in sorted(requirement.extras)]


def _own_names(requirements: Iterable[Requirement]) -> tuple[str, ...]:
    """Return the GPUs of packages that are required by name, such as ``gfx942`` for ``rocm-sdk-device-gfx942``."""
    labels = (label_of_project(canonicalize_name(requirement.name)) for requirement in requirements)
    return tuple(dict.fromkeys(label for label in labels if _GPU.fullmatch(label)))


def targets_to_lock(
    requirements: Sequence[Requirement], targets: str | None, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the GPUs for the selector: the specified GPUs, or those in requirements, or those in the variable.

    Raises `InputError` if a requirement depends on the GPU but no GPU is specified.
    """
    if targets is not None:
        return parse_target_set([targets], source="--targets").processors
    named = tuple(dict.fromkeys((*asked_extras(requirements), *_own_names(requirements))))
    if not named:
        named = tuple(environ.get(TARGET_VARIABLE, "").replace(",", " ").replace(";", " ").split())
    depending = [str(one) for one in requirements if any(canonicalize_name(extra) == _DEVICE for extra in one.extras)]
    if depending and not named:
        found = "depends on the GPUs of a machine, and other machines might have different GPUs"
        raise InputError(hide_users(first_of(depending)), found, remedy=_REMEDY)
    return named


def check_locked(
    projects: Iterable[str], requirements: Iterable[Requirement], targets: Sequence[str], source: str, *, is_given: bool
) -> None:
    """Compare the locked ``projects`` with the requested GPUs. Raise `InputError` for each problem.

    A package for other GPUs was selected because of this machine's GPUs, or is required in addition to the given GPUs
    (``is_given``). Resolvers ignore an extra that a package doesn't have, and then the code for its GPU is missing.
    """
    projects, requirements = tuple(projects), tuple(requirements)
    labels = {project: label for project in projects if (label := label_of_project(project)) != GENERIC}
    wanted = [agent for target in targets for agent in _agents(target)]
    others = {
        project: label
        for project, label in labels.items()
        if not targets or not (serves(label, wanted) or label in targets)
    }
    askers = {project: asker for project in others if (asker := _asker(project, labels[project], requirements))}
    problems = [_stranger(project, label, projects) for project, label in others.items() if project not in askers]
    if is_given:
        problems += _unnamed(askers, targets)
    problems += [
        InputError(
            source, f"has no package for {target}, even though an extra requires it", remedy=_without(labels.values())
        )
        for target in asked_extras(requirements)
        if not any(label == target or serves(label, _agents(target)) for label in labels.values())
    ]
    raise_all(source, problems)


def _systems(wheels: Iterable[Iterable[str]]) -> frozenset[str]:
    names = (name for files in wheels for name in files if is_wheel_file_name(name))
    return frozenset(_SYSTEMS[tag.system] for name in names for tag in wheel_platforms(name) if tag.system in _SYSTEMS)


def _asker(project: str, label: str, requirements: Sequence[Requirement]) -> str:
    """Return what requires a package for a GPU: an extra, the package's name, `_EVERY_DEVICE`, or an empty string."""
    extra = next((one for one in asked_extras(requirements) if label == one or serves(label, _agents(one))), "")
    if extra:
        return f"{_DEVICE}-{extra}"
    if any(canonicalize_name(requirement.name) == project for requirement in requirements):
        return project
    is_device = project.removesuffix(f"-{label}").endswith(f"-{_DEVICE}")
    return _EVERY_DEVICE if is_device and _EVERY_DEVICE in _all_extras(requirements) else ""


def _unnamed(askers: Mapping[str, str], targets: Sequence[str]) -> Iterator[InputError]:
    """Yield an error for each package that is required but isn't for one of the given GPUs."""
    given = f"lists only {', '.join(targets)}, but"
    for project, asker in askers.items():
        label, is_name = label_of_project(project), asker == project
        found = f"{project} is required" if is_name else f"an extra requires {label}"
        remedy = f"Add {label} to --targets, or remove {'the package' if is_name else 'its extra'}."
        if asker != _EVERY_DEVICE:
            yield InputError("--targets", f"{given} {found}", remedy=remedy)
    every = [label_of_project(project) for project, asker in askers.items() if asker == _EVERY_DEVICE]
    if every:
        remedy = f"Omit --targets, or request device-{targets[0]} instead of {_EVERY_DEVICE}."
        others = first_of(sorted(every, key=text_sort_key))
        yield InputError("--targets", f"{given} {_EVERY_DEVICE} requires other GPUs ({others})", remedy=remedy)


def _stranger(project: str, label: str, locked: Collection[str]) -> InputError:
    """Return the error about a package for other GPUs.

    A plain wheel with variants requires the packages for all its GPUs.
    """
    plain = project.removesuffix(f"-{label}")
    if plain not in locked:
        found = f"is for {label}: it was selected because of this machine's GPUs, or another package requires it"
        return InputError(project, found, remedy=_REMEDY)
    remedy = f"Lock {plain}-gfx... for the GPU instead, or an extra such as rocm[device-gfx942]."
    return InputError(
        project, f"is required by {plain}'s plain wheel, because lock files can't contain variants", remedy=remedy
    )


def _without(labels: Iterable[str]) -> str:
    found = sorted(labels)
    return f"Check whether the release has such an extra. It has packages for {first_of(found)}." if found else (
        "Check whether the release has such an extra."
    )  # fmt: skip


def _agents(target: str) -> tuple[TargetId, ...]:
    try:
        return parse_target_set([target], source=target).ids
    except UnknownTargetError:
        return (TargetId(target),)  # the target is newer than the catalog


_MOST_LINES = 8
_LACKING = re.compile(r"The package `([^`=]+)[^`]*` does not have an extra named `([^`]+)`")
_BUILD = re.compile(r"\[stderr\]\n(.*?)\n\s*(?:\n|hint:|$)", re.DOTALL)
"""The output of an sdist build that failed."""
_NO_GPU = re.compile(rf"{TARGET_VARIABLE}=[^\s:]+: (.*?)(?: Choose one of these|$)")
"""The output of the selector if it has no packages for the specified GPUs."""
_RESOLVER_REMEDY = "Check the requirements and the package locations (--index-url, --find-links)."
_GPU_REMEDY = "Use --targets to specify GPUs that have packages."


def why_not(said: str) -> tuple[str, str]:
    """Return, as a single line, the reason that requirements can't be resolved, and a remedy."""
    build = _BUILD.search(said)
    no_gpu = _NO_GPU.search(" ".join(build[1].split())) if build else None
    if no_gpu:
        return without_secrets(no_gpu[1].rstrip(".")), _GPU_REMEDY
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("warning:")]
    return without_secrets(" ".join(lines[:_MOST_LINES])), _RESOLVER_REMEDY


def lacking_extras(said: str, requirements: Iterable[str]) -> list[InputError]:
    """Return an error for each explicitly requested extra that its package doesn't have. uv only prints a warning."""
    parsed = list(map(read_requirement, requirements))
    asked = {(canonicalize_name(one.name), canonicalize_name(extra)) for one in parsed for extra in one.extras}
    lacking = {(canonicalize_name(name), canonicalize_name(extra)) for name, extra in _LACKING.findall(said)}
    missed, remedy = sorted(asked & lacking), "Correct the name of the extra, or omit the extra."
    return [InputError(f"{name}[{extra}]", "does not exist", remedy=remedy) for name, extra in missed]


def resolve(requirements: Sequence[str], options: ResolveOptions, targets: Sequence[str]) -> str:
    """Return the text of a lock file for requirements. The selector uses ``targets`` as the GPUs of the machine.

    Raises `InputError` if uv is not installed, for requirements that uv can't resolve, and for extras that no package
    has. Raises `WorkError` if ``TMPDIR`` is not a usable folder.
    """
    # Don't use a cache, so that uv doesn't reuse the selector's decision for other GPUs. Don't use previews, because a
    # lock file has no wheel variants, and uv refuses to write one with them even if plain wheels exist.
    compiled = ["--color=never", "pip", "compile", "--no-cache", "--no-preview", "--no-header", "--format=pylock.toml"]
    temporary_folder()  # uv also builds in this folder, and its errors about the folder don't mention the variable.
    environ = {name: value for name, value in os.environ.items() if name != TARGET_VARIABLE}
    if targets:
        environ[TARGET_VARIABLE] = ",".join(targets)
    # Look for uv next to this Python first, then in the search path.
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    uv = shutil.which("uv", path=places)
    if uv is None:
        source, found = "rocwheel lock", "needs uv, which is not installed"
        raise InputError(source, found, remedy="Install it: pip install 'rocwheel[lock]'.")
    command = [uv, *compiled, *options.arguments, "-"]
    lines = "".join(f"{requirement}\n" for requirement in requirements)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, env=environ)
    asked = hide_users(", ".join(requirements))
    if done.returncode != 0:
        raise_for_folders(options.index_urls)
        why, remedy = why_not(done.stderr)
        raise InputError(asked, f"can't be locked ({why})", remedy=remedy)
    raise_all(asked, lacking_extras(done.stderr, requirements))
    return done.stdout
