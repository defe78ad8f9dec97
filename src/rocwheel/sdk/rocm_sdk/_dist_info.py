"""Information about this release, under the names that frameworks use."""

from __future__ import annotations

from typing import NamedTuple

from . import _build_info
from ._gpus import detect_gpus
from ._packages import describe_package, find_module, find_trusted, installed_devices, installed_families
from ._select import available_families, family_serving, select
from ._system import System

try:
    from ._selection import FAMILIES as INSTALLED_FAMILIES
except ImportError:  # the selector wheel has no such module, because it doesn't choose packages
    INSTALLED_FAMILIES = []

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

__all__ = [
    "ALL_LIBRARIES",
    "ALL_PACKAGES",
    "AVAILABLE_TARGET_FAMILIES",
    "CACHED_TARGET_FAMILY",
    "DEFAULT_TARGET_FAMILY",
    "LINUX_TARGET_FAMILIES",
    "PY_PACKAGE_SUFFIX_NONCE",
    "WINDOWS_TARGET_FAMILIES",
    "LibraryEntry",
    "PackageEntry",
    "__version__",
    "build_install_requires",
    "build_per_target_extras",
    "determine_target_family",
    "discover_current_target_family",
    "get_target_family_platform_marker",
]

__version__ = _build_info.VERSION
PY_PACKAGE_SUFFIX_NONCE = _build_info.MODULE_SUFFIX
"""The suffix of the folder names, which lets several builds share an environment. It is usually empty."""

CACHED_TARGET_FAMILY: str | None = None
"""The cached result of `determine_target_family`. Scripts may set a family, or `None` to clear the cache."""

DEFAULT_TARGET_FAMILY = _build_info.DEFAULT_FAMILY
AVAILABLE_TARGET_FAMILIES = list(_build_info.FAMILIES)
LINUX_TARGET_FAMILIES = available_families("linux")
WINDOWS_TARGET_FAMILIES = available_families("win32")


class PackageEntry(NamedTuple):
    """A package in the set."""

    logical_name: str
    dist_package_template: str
    """The name of the distribution, with ``{target_family}`` if each family has its own distribution."""
    pure_py_package_name: str
    """The import name of the Python code, possibly with ``{target_family}``. Empty for device packages."""

    @property
    def is_target_specific(self) -> bool:
        """Whether each target family has its own package."""
        return "{target_family}" in self.dist_package_template

    @property
    def required(self) -> bool:
        """Whether ``rocm`` always requires the package."""
        return self.logical_name in {"meta", "core"}

    def get_dist_package_name(self, target_family: str | None = None) -> str:
        """Return the name of the distribution. Raises `ValueError` if the name depends on a missing family."""
        return self._describe(target_family)[0]

    def get_dist_package_require(self, target_family: str | None = None) -> str:
        """Return a requirement for exactly this release of the distribution."""
        return f"{self.get_dist_package_name(target_family)}=={__version__}"

    def get_py_package_name(self, target_family: str | None = None) -> str:
        """Return the import name of the folder that contains the package's files."""
        return self._describe(target_family)[1]

    def get_py_package(self, target_family: str | None = None) -> ModuleSpec | None:
        """Return the import spec of that folder, or `None` if the package isn't installed."""
        return find_trusted(self.get_py_package_name(target_family)) if self.has_py_package(target_family) else None

    def has_py_package(self, target_family: str | None = None) -> bool:
        """Return whether the package is installed.

        Device packages install their files into the folder of the libraries.
        """
        name = self.get_py_package_name(target_family)
        if self.logical_name == "device":
            return target_family in installed_devices()
        return find_module(name) is not None

    def _describe(self, target_family: str | None) -> tuple[str, str]:
        if self.is_target_specific and not target_family:
            msg = f"package {self.logical_name!r} depends on the target family, but no family was specified"
            raise ValueError(msg)
        package = describe_package(self.logical_name, target_family or "")
        return (package.dist, package.platform_module or package.module) if package else ("", "")


class LibraryEntry(NamedTuple):
    """A public library."""

    shortname: str
    package: PackageEntry
    so_pattern: str
    dll_pattern: str
    """The pattern for the name of the DLL. Empty in packages for Linux."""
    posix_relpath: str
    optional: bool

    @property
    def windows_relpath(self) -> str:
        """The folder in which scripts for Windows look for the DLL."""
        return "bin"


def _template(name: str) -> str:
    return name.replace("{family}", "{target_family}")


def _patterns(info: _build_info.LibraryInfo) -> tuple[str, str]:
    """Return the patterns of a library for Linux and for Windows. One of them is empty."""
    is_dll = info["pattern"].endswith(".dll")
    return ("", info["pattern"]) if is_dll else (info["pattern"], "")


ALL_PACKAGES = {
    name: PackageEntry(name, _template(names["dist"]), _template(names["module"]))
    for name, names in _build_info.PACKAGES.items()
}
ALL_LIBRARIES = {
    name: LibraryEntry(name, ALL_PACKAGES[info["package"]], *_patterns(info), info["directory"], info["optional"])
    for name, info in _build_info.LIBRARIES.items()
    if info["package"] in ALL_PACKAGES
}


def determine_target_family() -> str:
    """Return the family to use.

    The first source that specifies a family decides: ``ROCM_SDK_TARGET_FAMILY``, the GPU, the installed packages, the
    release. If several families are installed, use the family that was chosen when ``rocm`` was installed. If only the
    release has families, use its default or its first family. Raises `ValueError` if the choice isn't available, or if
    the release has no families.
    """
    global CACHED_TARGET_FAMILY  # noqa: PLW0603 (scripts read and set it)
    if CACHED_TARGET_FAMILY is None:
        CACHED_TARGET_FAMILY = _find_family()
    return CACHED_TARGET_FAMILY


def _find_family() -> str:
    selection = select(System())
    decided = () if selection.reason == "default" else selection.families
    installed = sorted(installed_families(), key=lambda family: family not in INSTALLED_FAMILIES)
    of_release = (*INSTALLED_FAMILIES, *selection.families, *AVAILABLE_TARGET_FAMILIES)
    family = next(iter((*decided, *installed, *of_release)), None)
    if family is None:
        msg = f"ROCm {__version__} has no packages that depend on the GPU, so there is no target family to determine"
        raise ValueError(msg)
    return family


def discover_current_target_family() -> str | None:
    """Return the family of the first GPU that has a family, or `None` if no GPU has one."""
    system = System()
    families = (family_serving(gpu.target, system.platform) for gpu in detect_gpus(system))
    return next((family for family in families if family), None)


def get_target_family_platform_marker(target_family: str) -> str:
    """Return the environment marker for a family that only some platforms have; otherwise, return an empty string."""
    everywhere = {platform for family in _build_info.FAMILIES.values() for platform in family["platforms"]}
    platforms = _build_info.FAMILIES[target_family]["platforms"]
    if set(platforms) == everywhere:
        return ""
    return " or ".join(f'sys_platform == "{platform}"' for platform in platforms)


def build_per_target_extras() -> dict[str, list[str]]:
    """Return the extras for each family and for all families, with their requirements."""
    return {
        extra: [f"{requirement}; {marker}" if marker else requirement for requirement, marker in pairs]
        for extra, pairs in _build_info.EXTRAS.items()
        if extra.startswith(("device-", "libraries-"))
    }


def build_install_requires(target_family: str | None = None) -> list[str]:
    """Return the requirements of ``rocm`` itself, including requirements for ``target_family``, if specified."""
    chosen: list[str] = getattr(_build_info, "REQUIRES_SELECTED", [])
    selected = [text.format(family=target_family) for text in chosen if target_family]
    return [*_build_info.REQUIRES, *selected]
