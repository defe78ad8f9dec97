"""Installs wheels' requirements with pip or uv, so that the requirements can be checked together with the wheels."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.python import module_command
from rocwheel.core.scratch import scratch_folder
from rocwheel.environment.package_targets import read_selector_facts
from rocwheel.environment.read_tree import real_paths, sdk_selectors
from rocwheel.environment.sdk_layout import sdk_selector
from rocwheel.wheels.file_names import is_wheel_file_name, name_and_version, split_wheel_file_name, wheel_platforms
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata
from rocwheel.wheels.requirements import applies, asked_for, is_refusing, readable_requirements
from rocwheel.wheels.zip_directory import find_metadata, read_directory
from rocwheel.wheels.zip_reader import read_member

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_OPTION = "--with-requirements"
_PYTHON = re.compile(r"cp3(\d+)")
_MOST_LINES = 5


class IndexOptions(msgspec.Struct, frozen=True):
    """Options that tell pip or uv which indexes to use, with the same names as in pip.

    The variables and settings of pip and uv also apply.
    """

    index_url: str = ""
    find_links: tuple[str, ...] = ()

    @property
    def arguments(self) -> list[str]:
        """The options as arguments for pip and uv."""
        index = [f"--index-url={self.index_url}"] if self.index_url else []
        return [*index, *(f"--find-links={place}" for place in self.find_links)]


@contextmanager
def fetched_requirements(
    audited: Sequence[Path], context: Sequence[Path], options: IndexOptions
) -> Iterator[tuple[Path, ...]]:
    """Yield the folder with the requirements of the audited wheels, or an empty tuple if there are no requirements.

    The tool installs wheels. The only sdist that it builds is the SDK's selector.

    The folder is removed at the end of the block. Raises `InputError` if neither pip nor uv is installed, or if the
    tool can't find or resolve the requirements.
    """
    wheels = [path for path in real_paths(audited).values() if _is_wheel(path)]
    given = [*wheels, *filter(_is_wheel, real_paths(context).values())]
    wanted = requirements_to_fetch(wheels, given, sdk_selectors(audited, context))
    if not wanted:
        yield ()
        return
    with scratch_folder(Path(tempfile.gettempdir(), "requirements")) as folder:
        site = folder / "site-packages"
        python, for_windows = _python_of(wheels), _are_for_windows(wheels)
        arguments = [*options.arguments, *wanted]
        error = _install([*_tool(site, python, for_windows=for_windows), *arguments])
        if names_selector(error):
            builder = _tool(site, python, for_windows=for_windows, builds_selector=True)
            error = _install([*builder, *arguments]) if builder else error
        if error:
            found = f"can't fetch the required packages ({error})"
            raise InputError(
                _OPTION, found, remedy="Check the index and --index-url, or pass the packages with --with."
            )
        yield (site,) if site.is_dir() else ()


def names_selector(error: str) -> bool:
    """Return whether an error from pip or uv is about the selector. Its name can also be part of a path or URL."""
    return re.search(rf"(?<![\w./:-]){sdk_selector().distribution}(?![\w/-]|\.\w)", error) is not None


def requirements_to_fetch(wheels: Iterable[Path], given: Iterable[Path], selectors: Iterable[Path] = ()) -> list[str]:
    """Return the distinct requirements, without markers, that the ``given`` wheels and selectors don't satisfy.

    A requirement for a selector represents the selector's own requirements with the same extras.

    Requirements of extras are omitted because no extra is requested. Requirements with a URL are omitted because they
    might need a build. An unreadable wheel counts as having no requirements, because reading it later reports the
    problem.
    """
    known = {canonicalize_name(name_and_version(path.name)[0]) for path in given}
    own = {facts.name: facts.requirements for facts in map(read_selector_facts, selectors)}
    found: dict[str, None] = {}
    followed: set[tuple[str, str]] = set()

    def add(texts: Iterable[str], extras: Sequence[str], file_name: str) -> None:
        for requirement in readable_requirements(texts):
            name = canonicalize_name(requirement.name)
            if requirement.url or is_refusing(requirement) or not applies(requirement, extras, file_name):
                continue
            if name in own:
                asked = [extra for _, extra in asked_for(requirement) if (name, extra) not in followed]
                followed.update((name, extra) for extra in asked)
                add(own[name] if asked else (), asked, file_name)
            elif name not in known:
                plain = copy(requirement)
                plain.marker = None
                found[str(plain)] = None

    for wheel in wheels:
        add(_requires(wheel), ("",), wheel.name)
    return list(found)


def _is_wheel(path: Path) -> bool:
    return path.suffix == ".whl" and is_wheel_file_name(path.name) and path.is_file()


def _requires(wheel: Path) -> list[str]:
    with suppress(RocwheelError, CoreMetadataError):
        members = {member.name: member for member in read_directory(wheel)}
        fields, _ = parse_core_metadata(read_member(members[find_metadata(wheel, members)]))
        return fields.get("requires_dist", [])
    return []


def _python_of(wheels: Iterable[Path]) -> str:
    """Return the Python version for the wheels, such as ``3.12``, or the running version if several versions match."""
    tags = {tag for wheel in wheels for tag in split_wheel_file_name(wheel.name).python.split(".")}
    minors = {match[1] for tag in tags if (match := _PYTHON.fullmatch(tag))}
    abi3 = any(split_wheel_file_name(wheel.name).abi == "abi3" for wheel in wheels)
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"3.{minors.pop()}" if len(minors) == 1 and not abi3 else running


def _are_for_windows(wheels: Iterable[Path]) -> bool:
    """Return whether the wheels are for Windows. Wheels for any platform are ignored."""
    systems = {tag.system for wheel in wheels for tag in wheel_platforms(wheel.name)}
    return "windows" in systems and systems <= {"windows", "any"}


def _tool(site: Path, python: str, *, for_windows: bool, builds_selector: bool = False) -> list[str]:
    """Return the pip or uv command that installs wheels into a folder, without the requirements.

    For Windows, uv takes precedence, because pip evaluates environment markers for the system that it runs on. With
    ``builds_selector``, the command builds the SDK's selector from its sdist. pip can do that only for the running
    Python. Returns an empty list if no installed tool can do that.
    """
    uv = shutil.which("uv")
    built = [f"--no-binary={sdk_selector().distribution}"] if builds_selector else []
    is_running = python == f"{sys.version_info.major}.{sys.version_info.minor}" and not for_windows
    version = [] if builds_selector and is_running else ["--python-version", python]
    shared = ["--quiet", "--target", str(site), "--only-binary=:all:", *built]
    has_pip = importlib.util.find_spec("pip") is not None
    if has_pip and not (for_windows and uv) and not (builds_selector and not is_running):
        pip = [
            *module_command(sys.executable, "pip"),
            "install",
            "--no-input",
            "--no-compile",
            "--disable-pip-version-check",
        ]
        return [*pip, *shared, *version, *(["--platform=win_amd64"] if for_windows else [])]
    if uv is not None:
        windows = ["--python-platform=x86_64-pc-windows-msvc"] if for_windows else []
        return [uv, "pip", "install", *shared, "--python-version", python, *windows]
    if builds_selector:
        return []
    found = "needs pip or uv, but neither is installed"
    raise InputError(_OPTION, found, remedy="Install pip or uv, or pass the packages with --with.")


def _install(command: Sequence[str]) -> str:
    """Run a pip or uv command. Return its last errors, or an empty string if it succeeds."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")] or lines
    return " ".join(errors[-_MOST_LINES:]) if done.returncode != 0 else ""
