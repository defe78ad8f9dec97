"""DLLs and a program of Windows, made by LLVM's tools without any file of Windows or MinGW."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.tools import RunTool

__all__ = ["dlls"]

_TARGET = ("--target=x86_64-pc-windows-msvc", "-ffreestanding", "-O1", "-c")
_LINK = ("lld-link-16", "/nodefaultlib", "/brepro")
_DEP = """
__declspec(dllexport) int dep_one(int x) { return x + 1; }
__declspec(dllexport) int dep_two(int x) { return x + 2; }
int dep_secret(int x) { return x + 3; }
"""
_API = """
__declspec(dllimport) int dep_one(int);
__declspec(dllexport) int api_one(int x) { return dep_one(x); }
void *__delayLoadHelper2(void *a, void *b) { return a; }
"""
_RESOURCES = """
1 VERSIONINFO
FILEVERSION 7,2,26015,3
PRODUCTVERSION 7,2,0,65535
BEGIN
END
"""
_PROGRAM = """
__declspec(dllimport) int api_one(int);
__declspec(dllimport) int api_far(int);
__declspec(dllimport) int dep_two(int);
__declspec(dllimport) int dep_secret(int);
int mainCRTStartup(void) { return api_one(1) + api_far(2) + dep_two(3) + dep_secret(4); }
"""


@pytest.fixture(scope="session")
def dlls(run_tool: RunTool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with ``dep6.dll``, ``api7.dll`` and ``program.exe``.

    ``api7.dll`` was linked as ``api.dll``, loads ``dep6.dll`` when it first calls it, forwards ``api_far`` there and
    has a version. ``program.exe`` imports from both, from ``dep6.dll`` also by ordinal.
    """
    folder = tmp_path_factory.mktemp("dlls")
    for name, source in (("dep", _DEP), ("api", _API), ("program", _PROGRAM)):
        (folder / f"{name}.c").write_text(source)
        run_tool(["clang-16", *_TARGET, folder / f"{name}.c", "-o", folder / f"{name}.obj"])
    (folder / "api.rc").write_text(_RESOURCES)
    run_tool(["llvm-rc-16", "-no-preprocess", "/fo", folder / "api.res", folder / "api.rc"])

    def link(output: str, *inputs: str) -> None:
        run_tool([*_LINK, f"/out:{folder / output}", *(one if one[0] == "/" else str(folder / one) for one in inputs)])

    link("dep6.dll", "/dll", "/noentry", "dep.obj", "/export:dep_secret,@7,NONAME", f"/implib:{folder}/dep.lib")
    delayed = ("/delayload:dep6.dll", "/export:api_far=dep6.dep_one", f"/implib:{folder}/api.lib")
    link("api.dll", "/dll", "/noentry", "api.obj", "api.res", "dep.lib", *delayed)
    link("program.exe", "/subsystem:console", "program.obj", "api.lib", "dep.lib")
    (folder / "api.dll").rename(folder / "api7.dll")
    return folder
