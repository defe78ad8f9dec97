"""Finds libraries that programs load instead of the packages' libraries, and DLLs that can't be loaded."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

from . import _build_info
from ._dlls import LONGEST_PATH, describe_missing, missing_of, remedy_of, search_folders
from ._gpu_access import ERROR, NOTE, WARNING, Diagnosis
from ._gpus import system_program
from ._packages import describe_package, find_module, find_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._platform import Windows
    from ._system import System

LOADER_CONFIGURATION = "/etc/ld.so.conf.d"

KERNEL_VARIABLES = {
    "ROCBLAS_TENSILE_LIBPATH": ("rocBLAS", WARNING),
    "HIPBLASLT_TENSILE_LIBPATH": ("hipBLASLt", WARNING),
    "ROCSPARSELT_TENSILE_LIBPATH": ("hipSPARSELt", WARNING),
    "ROCSPARSELT_SPMM_LIBPATH": ("hipSPARSELt", WARNING),
    "MIOPEN_SYSTEM_DB_PATH": ("MIOpen", NOTE),
    "ROCFFT_RTC_SYS_CACHE_PATH": ("rocFFT", NOTE),
}
"""The libraries and severities for variables that set another folder for kernels.

Libraries with the severity ``warning`` fail without kernels, and treat an empty value as a folder. Other libraries
recompile their kernels.
"""


def check_library_path(system: System) -> Iterator[Diagnosis]:
    """Yield a warning for each folder in LD_LIBRARY_PATH whose libraries shadow the packages' libraries."""
    value = system.variable("LD_LIBRARY_PATH")
    # The loader treats an empty entry as the working directory, and relative entries as folders in it.
    entries = re.split("[:;]", value) if value else []
    for folder in dict.fromkeys(map(system.absolute, entries)):
        names = _foreign_libraries(system, folder)
        if names:
            text = f"LD_LIBRARY_PATH makes programs search {folder} first, which has {', '.join(names)}"
            yield Diagnosis(WARNING, text, "unset LD_LIBRARY_PATH")
    relative = [entry for entry in entries if not entry.startswith(("/", "$"))]
    if relative:
        entry = f"the relative entry {relative[0]}" if relative[0] else "an empty entry"
        text = f"LD_LIBRARY_PATH={value} has {entry}, so programs load libraries from the working directory"
        yield Diagnosis(WARNING, text, "unset LD_LIBRARY_PATH")


def check_other_rocm(system: System) -> list[Diagnosis]:
    """Return notes and warnings about a second ROCm installation, variables for it, and the loader's configuration."""
    return [
        *_check_installations(system),
        *_check_variables(system),
        *_check_kernel_variables(system),
        *_check_loader_configuration(system),
    ]


def _check_installations(system: System) -> Iterator[Diagnosis]:
    places = [f"/opt/{name}" for name in system.list_names("/opt") if name.startswith("rocm")]
    # If a folder has several names, use the last one: /opt/rocm is a link to a folder with a version in its name.
    by_folder = {system.real_path(place): place for place in places}
    for place in by_folder.values():
        if _foreign_libraries(system, f"{place}/lib"):
            remedy = f"If you don't need it, remove its package: dpkg --search {place} || rpm --query --file {place}"
            yield Diagnosis(
                NOTE, f"there is a second ROCm installation in {place}, which these packages do not use", remedy
            )


def _check_variables(system: System) -> Iterator[Diagnosis]:
    for name in ("ROCM_PATH", "HIP_PATH"):
        value = system.variable(name)
        folder = "bin" if system.platform == "win32" else "lib"
        if value and _foreign_libraries(system, f"{value}/{folder}"):
            text = f"{name}={value} points compilers and frameworks to a second ROCm installation"
            yield Diagnosis(WARNING, text, _remedy_of_variable(system, name))


def _check_kernel_variables(system: System) -> Iterator[Diagnosis]:
    variables = system.variables()
    for name, (library, level) in KERNEL_VARIABLES.items():
        value = variables.get(name, "")
        if name in variables and (value or level == WARNING) and not _is_own(system, system.absolute(value)):
            text = f"{name}={value} makes {library} look for kernels there instead of in these packages"
            yield Diagnosis(level, text, _remedy_of_variable(system, name))


def _remedy_of_variable(system: System, name: str) -> str:
    return f"Remove the variable {name}" if system.platform == "win32" else f"unset {name}"


def _check_loader_configuration(system: System) -> Iterator[Diagnosis]:
    for name in system.list_names(LOADER_CONFIGURATION):
        path = f"{LOADER_CONFIGURATION}/{name}"
        folders = [line.strip() for line in (system.read_text(path) or "").splitlines()]
        if any(_foreign_libraries(system, folder) for folder in folders if folder.startswith("/opt/rocm")):
            text = f"{path} lets every program find the libraries of a second ROCm installation"
            yield Diagnosis(NOTE, text, f"If you don't want this: sudo rm {path} && sudo ldconfig")


def _foreign_libraries(system: System, folder: str) -> list[str]:
    """Return the public ROCm libraries in a folder outside these packages."""
    if _is_own(system, folder):
        return []
    patterns = [entry["pattern"] for entry in _build_info.LIBRARIES.values()]
    return [name for name in system.list_names(folder) if any(fnmatch(name, pattern) for pattern in patterns)]


def _is_own(system: System, path: str) -> bool:
    """Return whether a path is in one of these packages' folders."""
    real = Path(system.real_path(path))  # `Path.resolve` can raise an error for a symlink loop
    return any(real.is_relative_to(root.resolve()) for root in _own_roots())


def _own_roots() -> list[Path]:
    """Return the folders of the installed packages, including the development tree."""
    roots = [find_root(logical) for logical in ("core", "libraries", "profiler")]
    devel = describe_package("devel")
    module = find_module(devel.module) if devel else None
    tree = module.with_name(devel.platform_module) if devel and module else None
    return [root for root in (*roots, tree) if root]


KERNELS = "bin/rocblas/library"

LONGEST_KERNELS = 174
"""The maximum length of the path to rocBLAS's kernels.

With longer paths, Tensile has been known to crash the process.
"""


def check_dlls(system: System, platform: Windows) -> list[Diagnosis]:
    """Return errors for DLLs that can't be loaded, and notes about the driver's DLLs with the same names."""
    paths = _installed_dlls(platform)
    return [*_check_imports(paths, platform), *_check_lengths(paths), *_check_driver(system)]


def _check_imports(paths: list[Path], platform: Windows) -> Iterator[Diagnosis]:
    folders = search_folders()
    reported = set()
    for path in paths:
        searched, missing = missing_of(path, folders, platform.calls)
        for one in missing:
            if one.name.lower() not in reported:
                reported.add(one.name.lower())
                yield Diagnosis(ERROR, describe_missing(one, searched), remedy_of(one))


def _installed_dlls(platform: Windows) -> list[Path]:
    """Return the existing DLLs. `check_files` reports missing DLLs."""
    places = ((find_root(info["package"]), info) for info in _build_info.LIBRARIES.values())
    paths = (root / info["directory"] / info["pattern"] for root, info in places if root)
    return [path for path in paths if platform.extended(path).is_file()]


def _check_lengths(paths: list[Path]) -> Iterator[Diagnosis]:
    remedy = "Install into an environment in a folder with a shorter path"
    long = [path for path in paths if len(str(path)) > LONGEST_PATH]
    if long:
        text = f"{long[0]} has {len(str(long[0]))} characters, but Windows accepts at most {LONGEST_PATH} for a DLL"
        yield Diagnosis(ERROR, text, remedy)
    root = find_root("libraries")
    folder = root / KERNELS if root else None
    if folder and folder.is_dir() and len(str(folder)) > LONGEST_KERNELS:
        text = (
            f"{folder} has {len(str(folder))} characters, but rocBLAS is known to fail with more than {LONGEST_KERNELS}"
        )
        yield Diagnosis(WARNING, text, remedy)


def _check_driver(system: System) -> Iterator[Diagnosis]:
    folder = system_program(system, "").rstrip("\\")
    own = {info["pattern"].lower() for info in _build_info.LIBRARIES.values()}
    shared = [name for name in system.list_names(folder) if name.lower() in own]
    if shared:
        names = ", ".join(shared)
        text = f"{folder} has {names} from the graphics driver: programs use them unless rocm_sdk loads its DLLs first"
        yield Diagnosis(NOTE, text, "In Python, call rocm_sdk.initialize_process before any other code loads ROCm")
