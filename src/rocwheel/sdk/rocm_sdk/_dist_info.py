"""Facts about this release, by the names that frameworks already use."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import NamedTuple

from . import _build_info
from ._gpus.detect import detect_gpus
from ._gpus.system import System
from ._packages import describe_package, find_module, installed_devices
from ._select import available_families, family_serving, select

try:
    from ._selection import FAMILIES as INSTALLED_FAMILIES
except ImportError:  # the selector wheel chooses nothing
    INSTALLED_FAMILIES = []

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

__all__ = [
    "ALL_LIBRARIES",
    "ALL_PACKAGES",
    "AVAILABLE_TARGET_FAMILIES",
    "DEFAULT_TARGET_FAMILY",
    "LINUX_TARGET_FAMILIES",
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
DEFAULT_TARGET_FAMILY = _build_info.DEFAULT_FAMILY
AVAILABLE_TARGET_FAMILIES = list(_build_info.FAMILIES)
LINUX_TARGET_FAMILIES = available_families("linux")
WINDOWS_TARGET_FAMILIES = available_families("win32")


class PackageEntry(NamedTuple):
    """One package of the set."""

    logical_name: str
    dist_package_template: str

    @property
    def is_target_specific(self) -> bool:
        """Whether each target family has a package of its own."""
        return "{family}" in self.dist_package_template

    @property
    def required(self) -> bool:
        """Whether ``rocm`` always installs it."""
        return self.logical_name in {"meta", "core"}

    def get_dist_package_name(self, target_family: str | None = None) -> str:
        """Return the name of the distribution. Raises `ValueError` when it depends on a family and none is given."""
        return self._describe(target_family)[0]

    def get_dist_package_require(self, target_family: str | None = None) -> str:
        """Return the requirement on exactly this release's distribution."""
        return f"{self.get_dist_package_name(target_family)}=={__version__}"

    def get_py_package_name(self, target_family: str | None = None) -> str:
        """Return the import name of the folder that holds the package's files."""
        return self._describe(target_family)[1]

    def get_py_package(self, target_family: str | None = None) -> ModuleSpec | None:
        """Return the import spec of that folder, None when the package isn't installed."""
        return find_spec(self.get_py_package_name(target_family)) if self.has_py_package(target_family) else None

    def has_py_package(self, target_family: str | None = None) -> bool:
        """Return whether the package is installed; device packages have their files in the folder of the libraries."""
        name = self.get_py_package_name(target_family)
        if self.logical_name == "device":
            return target_family in installed_devices()
        return find_module(name) is not None

    def _describe(self, target_family: str | None) -> tuple[str, str]:
        if self.is_target_specific and not target_family:
            msg = f"package {self.logical_name!r} depends on the target family, and none was given"
            raise ValueError(msg)
        package = describe_package(self.logical_name, target_family or "")
        return (package.dist, package.platform_module or package.module) if package else ("", "")


class LibraryEntry(NamedTuple):
    """One public library."""

    shortname: str
    package: PackageEntry
    so_pattern: str
    posix_relpath: str
    optional: bool


ALL_PACKAGES = {name: PackageEntry(name, names["dist"]) for name, names in _build_info.PACKAGES.items()}
ALL_LIBRARIES = {
    name: LibraryEntry(name, ALL_PACKAGES[info["package"]], info["pattern"], info["directory"], info["optional"])
    for name, info in _build_info.LIBRARIES.items()
    if info["package"] in ALL_PACKAGES
}


@lru_cache(maxsize=None)
def determine_target_family() -> str:
    """Return the family to use: ``ROCM_SDK_TARGET_FAMILY``, else the GPU's, else what was installed, else the default.

    Raises `ValueError` when the choice isn't available, and when there is none of these.
    """
    selection = select(System())
    families = selection.families or INSTALLED_FAMILIES
    if not families:
        available = ", ".join(AVAILABLE_TARGET_FAMILIES) or "none"
        msg = f"{selection.explanation}. Set ROCM_SDK_TARGET_FAMILY to one of the families available: {available}"
        raise ValueError(msg)
    return families[0]


def discover_current_target_family() -> str | None:
    """Return the family of the first GPU that has one, None when no GPU has."""
    system = System()
    families = (family_serving(gpu.target, system.platform) for gpu in detect_gpus(system))
    return next((family for family in families if family), None)


def get_target_family_platform_marker(target_family: str) -> str:
    """Return the environment marker of a family that only some platforms have, empty for any other."""
    everywhere = {platform for family in _build_info.FAMILIES.values() for platform in family["platforms"]}
    platforms = _build_info.FAMILIES[target_family]["platforms"]
    if set(platforms) == everywhere:
        return ""
    return " or ".join(f'sys_platform == "{platform}"' for platform in platforms)


def build_per_target_extras() -> dict[str, list[str]]:
    """Return the extras that name a family or all of them, with their requirements."""
    return {
        extra: [f"{requirement}; {marker}" if marker else requirement for requirement, marker in pairs]
        for extra, pairs in _build_info.EXTRAS.items()
        if extra.startswith(("device-", "libraries-"))
    }


def build_install_requires(target_family: str | None = None) -> list[str]:  # noqa: ARG001 (callers pass it)
    """Return the requirements of ``rocm`` itself."""
    return list(_build_info.REQUIRES)
