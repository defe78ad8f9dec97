"""What a project says about its audit: ``[tool.rocwheel.audit]`` in ``pyproject.toml``, or ``[audit]`` in a recipe."""

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
    """The settings of an audit; an unknown one is an error, since it is a misspelling."""

    select: tuple[str, ...] = ()
    """Rules to check, as patterns such as ``run-path-*``; empty for all."""
    ignore: tuple[str, ...] = ()
    """Rules to leave out, as patterns."""
    per_file_ignore: dict[str, tuple[str, ...]] = {}
    """Pattern of paths in site-packages to the rules that are not checked there."""
    system_libraries: tuple[str, ...] = ()
    """More SONAMEs or names of DLLs, as patterns, that every target system has."""
    dll_folders: tuple[str, ...] = ()
    """Patterns of folders in site-packages that packages for Windows add with ``os.add_dll_directory``."""
    site_packages_length: int = 80
    """Characters that the path of site-packages may have on machines with Windows."""
    dlopen: dict[str, tuple[str, ...]] = {}
    """Pattern of paths in site-packages to the libraries that those files open by name at run time."""
    loaded_by: dict[str, tuple[str, ...]] = {}
    """Pattern of paths in site-packages to what is loaded before those files and shares its symbols with all.

    The values are patterns of paths there or of SONAMEs.
    """
    expect_runpath: str | None = None
    """The run path that every shared library has to have, to the letter; programs may have others.

    Libraries that need nothing but the system's, and open none, may do without any.
    """
    expect_tag: Literal["rpath", "runpath"] | None = None
    """The kind of run path that every file has to have."""
    cpu_level: CpuLevel = "x86-64"
    """The processor that it runs on: which subfolders of ``glibc-hwcaps`` the loader takes libraries from."""
    closed: bool | None = None
    """Whether the given packages are all there is: neither another required package nor an SDK is assumed.

    By default an SDK is assumed, except in an installed environment.
    """
    baseline: str | None = None
    """A file of known findings, relative to that of the settings."""

    def opened_by(self, path: str) -> tuple[str, ...]:
        """Return the names that the file at a path in site-packages opens at run time."""
        return _named(self.dlopen, path)

    def loaders_of(self, path: str) -> tuple[str, ...]:
        """Return what is loaded before the file at a path in site-packages, and has symbols for it."""
        return _named(self.loaded_by, path)

    def idle_patterns(self, paths: Collection[str]) -> tuple[str, ...]:
        """Return the patterns of paths that fit none of ``paths``, each with the setting that it is in."""
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
        """Return whether a rule is left out for the file at a path in site-packages."""
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
    """Return the settings in a file, by default in ``pyproject.toml`` of the working folder, and the file.

    Paths in the settings are relative to its folder. Without any file all settings have their defaults. Raises
    `InputError` for a named file without settings, a file that can't be read, unknown settings and wrong types.
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
    """Return ``[audit]`` of a recipe, else ``[tool.rocwheel.audit]`` of a file; None if it has neither."""
    try:
        project = decode_toml(read_regular(path), _Project)
    except OSError as e:
        raise read_error(path, e, remedy="Check --config.") from e
    except msgspec.DecodeError as e:
        raise InputError(
            path, str(e), expected="settings under [tool.rocwheel.audit] as docs/audit.md describes them"
        ) from e
    return project.audit if project.audit is not None else project.tool.rocwheel.audit
