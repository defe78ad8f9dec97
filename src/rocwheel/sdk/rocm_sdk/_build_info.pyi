# Shape of the module that is generated when the packages are built.

from typing import TypedDict

class FamilyInfo(TypedDict):
    targets: list[str]
    platforms: list[str]

class PackageInfo(TypedDict):
    dist: str
    module: str
    platform_module: str

class _DllInfo(TypedDict, total=False):
    needs: list[str]

class LibraryInfo(_DllInfo):
    package: str
    directory: str
    pattern: str
    optional: bool

VERSION: str
LAYOUT: str
MODULE_SUFFIX: str
FAMILIES: dict[str, FamilyInfo]
DEFAULT_FAMILY: str
PACKAGES: dict[str, PackageInfo]
LIBRARIES: dict[str, LibraryInfo]
OVERLAID: dict[str, list[str]]
COMMON_GPUS: list[str]
UNLOADABLE: list[str]
REQUIRES: list[str]
REQUIRES_SELECTED: list[str]
EXTRAS: dict[str, list[list[str]]]
SELECTED: dict[str, str]
PLATFORM_FACTS: str
