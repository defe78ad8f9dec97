# Shape of the module that is generated when the package is built.

from typing import TypedDict

class ScriptInfo(TypedDict, total=False):
    path: str
    expands: bool
    check: list[str]
    gpu: bool
    prepend: dict[str, list[str]]

VERSION: str
PLATFORM_MODULE: str
DEVEL_MODULE: str
DEVEL_PACKAGE: str
SDK_MODULE: str
SCRIPTS: dict[str, ScriptInfo]
