"""Installs wheels' requirements with pip or uv, so that they can be checked together with the wheels."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from rocwheel.core.errors import InputError, RocwheelError
from rocwheel.core.python import module_command
from rocwheel.core.scratch import scratch_folder
from rocwheel.environment.read_tree import real_paths
from rocwheel.wheels.file_names import is_wheel_file_name, name_and_version, split_wheel_file_name, wheel_platforms
from rocwheel.wheels.metadata import CoreMetadataError, parse_core_metadata
from rocwheel.wheels.requirements import applies, is_refusing, readable_requirements
from rocwheel.wheels.zip_directory import find_metadata, read_directory
from rocwheel.wheels.zip_reader import read_member

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_OPTION = "--with-requirements"
_PYTHON = re.compile(r"cp3(\d+)")
_MOST_LINES = 5


class IndexOptions(msgspec.Struct, frozen=True):
    """Options of pip with the same names that tell pip or uv which indexes to use.

    Their variables and settings also apply.
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

    The folder is removed at the end of the block. Raises `InputError` if neither pip nor uv is installed, or if the
    tool can't find or resolve the requirements.
    """
    wheels = [path for path in real_paths(audited).values() if _is_wheel(path)]
    wanted = requirements_to_fetch(wheels, [*wheels, *filter(_is_wheel, real_paths(context).values())])
    if not wanted:
        yield ()
        return
    with scratch_folder(Path(tempfile.gettempdir(), "requirements")) as folder:
        site = folder / "site-packages"
        tool = _tool(site, _python_of(wheels), for_windows=_are_for_windows(wheels))
        _install([*tool, *options.arguments, *wanted])
        yield (site,) if site.is_dir() else ()


def requirements_to_fetch(wheels: Iterable[Path], given: Iterable[Path]) -> list[str]:
    """Return the distinct requirements, without markers, that the ``given`` wheels don't satisfy.

    Requirements of extras are omitted because no extra is requested. Requirements with a URL are omitted because they
    might need a build. An unreadable wheel counts as having no requirements, because reading it later reports the
    problem.
    """
    known = {canonicalize_name(name_and_version(path.name)[0]) for path in given}
    found: dict[str, None] = {}
    for wheel in wheels:
        for requirement in readable_requirements(_requires(wheel)):
            is_left_out = requirement.url or is_refusing(requirement) or canonicalize_name(requirement.name) in known
            if not is_left_out and applies(requirement, ("",), wheel.name):
                requirement.marker = None
                found[str(requirement)] = None
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
    """Return whether the wheels are for Windows. Wheels for any platform don't count."""
    systems = {tag.system for wheel in wheels for tag in wheel_platforms(wheel.name)}
    return "windows" in systems and systems <= {"windows", "any"}


def _tool(site: Path, python: str, *, for_windows: bool) -> list[str]:
    """Return the pip or uv command that installs wheels into a folder, without the requirements.

    For Windows, uv takes precedence, because pip evaluates environment markers for its own system.
    """
    shared = ["--quiet", "--target", str(site), "--only-binary=:all:", "--python-version", python]
    uv = shutil.which("uv")
    if importlib.util.find_spec("pip") is not None and not (for_windows and uv):
        pip = [
            *module_command(sys.executable, "pip"),
            "install",
            "--no-input",
            "--no-compile",
            "--disable-pip-version-check",
        ]
        return [*pip, *shared, *(["--platform=win_amd64"] if for_windows else [])]
    if uv is not None:
        return [uv, "pip", "install", *shared, *(["--python-platform=x86_64-pc-windows-msvc"] if for_windows else [])]
    found = "needs pip or uv, and neither is installed"
    raise InputError(_OPTION, found, remedy="Install pip or uv, or pass the packages with --with.")


def _install(command: Sequence[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")] or lines
        found = f"can't fetch the required packages ({' '.join(errors[-_MOST_LINES:])})"
        raise InputError(_OPTION, found, remedy="Check the index and --index-url, or pass the packages with --with.")
