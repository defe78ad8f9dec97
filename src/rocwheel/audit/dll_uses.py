"""Finds the DLLs that Windows files import in the same way as the Windows loader finds them.

Python uses ``LOAD_LIBRARY_SEARCH_DEFAULT_DIRS`` and ``LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR`` to load extension modules, and
DLLs by their full path. Windows then searches the folder of the DLL, folders from ``os.add_dll_directory`` (for
example, from ``rocm_sdk``), and System32, but not ``PATH``. A program first searches its own folder and System32. A
loaded DLL satisfies every request for its base name (Microsoft Learn, "Dynamic-link library search order").
"""

from __future__ import annotations

import enum
from collections import defaultdict
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from rocwheel.artifacts.sdk_names import is_sdk_package
from rocwheel.environment.known_libraries import DllKind, SdkDlls, find_sdk_dll, kind_of_dll
from rocwheel.environment.requirements import required_distributions
from rocwheel.environment.tree import InstalledFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.audit.settings import AuditSettings
    from rocwheel.environment.file_reports import PeReport
    from rocwheel.environment.tree import Tree
    from rocwheel.environment.windows_files import WindowsFiles

_SDK_FOLDER = "_rocm_sdk_*/bin"
_PREFIX_FOLDER = "bin"
_ADDS_FOLDERS = frozenset({"add_dll_directory", "rocm_sdk"})
"""Names that occur in Python sources that add folders to the loader's search path, directly or with ``rocm_sdk``."""


class DllPlace(enum.Enum):
    """Where the loader finds a DLL."""

    OWN = enum.auto()
    """In the folder of the file that imports it."""
    ADDED = enum.auto()
    """In a folder that a package adds to the search, or in memory because a package's Python code refers to the DLL."""
    SYSTEM = enum.auto()
    """Part of Windows, Visual C++, or Python. `DllUse.kind` specifies which."""
    DRIVER = enum.auto()
    """In System32 if AMD's driver is installed. If a package has such a DLL, `DllUse.provider` is that DLL."""
    ASSUMED = enum.auto()
    """In a ROCm package that isn't given. The audit assumes that this package is installed."""
    OUT_OF_REACH = enum.auto()
    """In a package, but in a folder that the loader doesn't search."""
    DAMAGED = enum.auto()
    """In a package, but the DLL can't be read, which is a separate finding."""
    NOWHERE = enum.auto()


class LoadTime(enum.Enum):
    """When a DLL is loaded."""

    AT_ONCE = enum.auto()
    """Together with the file that imports it."""
    DELAYED = enum.auto()
    """When one of its functions is first called."""
    OPENED = enum.auto()
    """By name, according to the ``dlopen`` setting."""


class DllUse(msgspec.Struct, frozen=True):
    """A DLL that a file imports, with its name in the import table and the location where Windows finds it."""

    user: InstalledFile
    name: str
    when: LoadTime
    where: DllPlace
    provider: InstalledFile | None = None
    """The matching DLL in the tree. If all matching DLLs are for other machines, this field contains one of them."""
    kind: DllKind | None = None


def find_dll_uses(windows: WindowsFiles, tree: Tree, settings: AuditSettings) -> tuple[DllUse, ...]:
    """Return every import of every audited file, in the order of the import tables.

    Return an empty tuple if the tree isn't for Windows.
    """
    finder = _Finder(windows, tree, settings)
    return tuple(use for file, report in windows.audited for use in finder.uses_of(file, report))


class _Finder:
    def __init__(self, windows: WindowsFiles, tree: Tree, settings: AuditSettings) -> None:
        self._windows = windows
        self._tree = tree
        self._settings = settings
        self._loaders: dict[str, frozenset[str]] = {}

    def uses_of(self, file: InstalledFile, report: PeReport) -> Iterator[DllUse]:
        opened = self._settings.opened_by(file.path)
        for when, names in (
            (LoadTime.AT_ONCE, report.imports),
            (LoadTime.DELAYED, report.delay_imports),
            (LoadTime.OPENED, opened),
        ):
            for name in names:
                where, provider = self._find(file, report, name)
                yield DllUse(file, name, when, where, provider, kind_of_dll(name))

    def _find(self, user: InstalledFile, report: PeReport, name: str) -> tuple[DllPlace, InstalledFile | None]:
        named = self._windows.named(name)
        fitting = [one for one in named if one.windows and one.windows.machine == report.machine]
        kind = kind_of_dll(name)
        if own := next((one for one in fitting if one.folder == user.folder), None):
            return DllPlace.OWN, own
        if kind in {DllKind.SYSTEM, DllKind.PYTHON} or self._is_allowed(name):
            return DllPlace.SYSTEM, None
        if report.is_dll and (added := next((one for one in fitting if self._is_added(one, user)), None)):
            return DllPlace.ADDED, added
        if kind in {DllKind.VISUAL_CPP, DllKind.DEBUG}:
            return DllPlace.SYSTEM, None
        if not fitting and (excused := self._excuse(name)):
            return excused, None
        # The loader searches System32 last.
        missing = DllPlace.OUT_OF_REACH if fitting else DllPlace.NOWHERE
        return DllPlace.DRIVER if kind is DllKind.DRIVER else missing, next(iter(fitting or named), None)

    def _excuse(self, name: str) -> DllPlace | None:
        """Return why a DLL without a readable file isn't considered missing, or `None` if the DLL is missing."""
        if self._windows.is_damaged(name):
            return DllPlace.DAMAGED
        return DllPlace.ASSUMED if self._assumed(name) else None

    def _is_allowed(self, name: str) -> bool:
        """Return whether the settings list a DLL as part of every target system."""
        return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in self._settings.system_libraries)

    def _assumed(self, name: str) -> SdkDlls | None:
        """Return the assumed ROCm package that contains a DLL, or `None` if there is no such package."""
        found = find_sdk_dll(name)
        closed = self._settings.closed
        is_closed = self._tree.is_installed if closed is None else closed
        given = {owner.name for owner in self._tree.distributions}
        return None if is_closed or found is None or found.distribution in given else found

    def _is_added(self, dll: InstalledFile, user: InstalledFile) -> bool:
        """Return whether a package adds a DLL's folder to the search path, or refers to it, before loading ``user``.

        Python code that refers to a DLL opens the DLL by its path: ``WinDLL(os.path.join(libs, "demo.dll"))``.
        """
        if self._tree.is_prefix:
            return dll.folder == _PREFIX_FOLDER
        if any(fnmatchcase(dll.folder, pattern) for pattern in self._settings.dll_folders):
            return True
        if fnmatchcase(dll.folder, _SDK_FOLDER) and self._is_of_sdk(user):
            return True
        before = {dll.distribution, *self._loaders_of(user)}
        return bool(before & (self._adding | self._naming.get(dll.name.lower(), frozenset())))

    def _is_of_sdk(self, user: InstalledFile) -> bool:
        owner = self._tree.owners.get(user.distribution)
        return owner is not None and is_sdk_package(owner.name)

    def _loaders_of(self, user: InstalledFile) -> frozenset[str]:
        """Return the sources of a file's distribution and its requirements.

        Python imports these distributions before it loads the file.
        """
        if user.distribution not in self._loaders:
            owner = self._tree.owners.get(user.distribution)
            names = required_distributions(self._tree, owner) if owner else frozenset()
            required = {one.source for name in names for one in self._tree.by_name.get(name, ())}
            self._loaders[user.distribution] = frozenset({user.distribution, *required})
        return self._loaders[user.distribution]

    @cached_property
    def _adding(self) -> frozenset[str]:
        """The sources of distributions whose Python code adds folders to the search.

        The audit doesn't know which folders they add.
        """
        return frozenset(file.distribution for file in self._tree.files if file.mentions & _ADDS_FOLDERS)

    @cached_property
    def _naming(self) -> dict[str, frozenset[str]]:
        """The sources of distributions whose Python code refers to a DLL, keyed by the DLL's name in lowercase."""
        found: dict[str, set[str]] = defaultdict(set)
        for file in self._tree.files:
            for name in file.mentions:
                if name.lower().endswith(".dll"):
                    found[name.lower()].add(file.distribution)
        return {name: frozenset(sources) for name, sources in found.items()}
