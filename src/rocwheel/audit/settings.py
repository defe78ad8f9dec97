"""A project's audit settings: ``[tool.rocwheel.audit]`` in ``pyproject.toml``, or ``[audit]`` in a recipe."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from rocwheel.core.decoding import decode_toml
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.reading import read_regular
from rocwheel.environment.run_path_entries import CpuLevel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_PYPROJECT = Path("pyproject.toml")


class AuditSettings(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """The settings of an audit. An unknown setting is an error, because it is probably misspelled."""

    select: tuple[str, ...] = ()
    """Patterns for the rules to check, such as ``run-path-*``. If empty, all rules are checked."""
    ignore: tuple[str, ...] = ()
    """Patterns for the rules to skip."""
    per_file_ignore: dict[str, tuple[str, ...]] = {}
    """The rules that aren't checked for certain files, keyed by patterns for paths in site-packages."""
    system_libraries: tuple[str, ...] = ()
    """Patterns for SONAMEs or DLL names of additional libraries that every target system has."""
    dll_folders: tuple[str, ...] = ()
    """Patterns for folders in site-packages that Windows packages pass to ``os.add_dll_directory``."""
    site_packages_length: int = 80
    """The maximum length of the path of site-packages on Windows machines."""
    dlopen: dict[str, tuple[str, ...]] = {}
    """The libraries that files open by name at run time, keyed by patterns for the files' paths in site-packages."""
    loaded_by: dict[str, tuple[str, ...]] = {}
    """The files that are loaded before other files and share their symbols.

    The keys are patterns for paths in site-packages. The values are patterns for paths in site-packages or for SONAMEs.
    """
    expect_runpath: str | None = None
    """The exact run path that every shared library must have. Programs may have different run paths.

    A library may have no run path if it needs only the system's libraries and opens no library by name.
    """
    expect_tag: Literal["rpath", "runpath"] | None = None
    """The kind of run path that every file must have."""
    cpu_level: CpuLevel = "x86-64"
    """The level of the target CPU. The loader searches subfolders of ``glibc-hwcaps`` up to this level."""
    closed: bool | None = None
    """Whether the given packages form a complete set. If so, the audit assumes no other packages and no SDK.

    By default, the audit assumes an SDK, except in an installed environment.
    """
    baseline: str | None = None
    """The path of a file with known findings, relative to the folder of the settings file."""

    def opened_by(self, path: str) -> tuple[str, ...]:
        """Return the names of the libraries that a file in site-packages opens at run time."""
        return _named(self.dlopen, path)

    def loaders_of(self, path: str) -> tuple[str, ...]:
        """Return the files that are loaded before a file in site-packages and provide symbols for it."""
        return _named(self.loaded_by, path)

    def idle_patterns(self, paths: Collection[str]) -> tuple[str, ...]:
        """Return the patterns that don't match any of ``paths``, each with the name of its setting."""
        tables = {"dlopen": self.dlopen, "loaded-by": self.loaded_by, "per-file-ignore": self.per_file_ignore}
        return tuple(
            f"{setting} {pattern!r}"
            for setting, table in tables.items()
            for pattern in table
            if not any(fnmatchcase(path, pattern) for path in paths)
        )

    def is_checked(self, rule: str) -> bool:
        """Return whether a rule is selected and not ignored."""
        selected = not self.select or _matches(rule, self.select)
        return selected and not _matches(rule, self.ignore)

    def is_ignored_at(self, rule: str, path: str) -> bool:
        """Return whether a rule is ignored for the file at a path in site-packages."""
        found = (rules for pattern, rules in self.per_file_ignore.items() if fnmatchcase(path, pattern))
        return any(_matches(rule, rules) for rules in found)


def _named(table: Mapping[str, tuple[str, ...]], path: str) -> tuple[str, ...]:
    found = (names for pattern, names in table.items() if fnmatchcase(path, pattern))
    return tuple(dict.fromkeys(name for names in found for name in names))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


class _Tool(msgspec.Struct, frozen=True):
    audit: AuditSettings | None = None


class _Tools(msgspec.Struct, frozen=True):
    rocwheel: _Tool = _Tool()


class _Project(msgspec.Struct, frozen=True):
    tool: _Tools = _Tools()
    audit: AuditSettings | None = None


def find_settings(path: Path | None) -> tuple[AuditSettings, Path | None]:
    """Return the settings and the path of their file. The default file is ``pyproject.toml`` in the working folder.

    Paths in the settings are relative to the folder of that file. Without a file, all settings have their default
    values. Raises `InputError` if a named file has no settings, if a file can't be read, or if settings are unknown or
    have the wrong type.
    """
    found = path or _of_working_folder()
    settings = _load(found) if found else None
    if path is not None and settings is None:
        expected = "[tool.rocwheel.audit], or [audit] in a recipe"
        raise InputError(path, "has no audit settings", expected=expected, remedy="Check --config.")
    return settings or AuditSettings(), found


def _of_working_folder() -> Path | None:
    try:
        return _PYPROJECT if _PYPROJECT.is_file() else None
    except OSError as e:
        raise read_error(_PYPROJECT.absolute(), e) from e


def _load(path: Path) -> AuditSettings | None:
    """Return ``[audit]`` from a recipe or ``[tool.rocwheel.audit]`` from a file, or `None` if the file has neither."""
    try:
        project = decode_toml(read_regular(path), _Project)
    except OSError as e:
        raise read_error(path, e, remedy="Check --config.") from e
    except msgspec.DecodeError as e:
        raise InputError(
            path, str(e), expected="settings in [tool.rocwheel.audit] as described in docs/audit.md"
        ) from e
    return project.audit if project.audit is not None else project.tool.rocwheel.audit
