"""Finds the public libraries, loads them into a process, and checks the ROCm version."""

from __future__ import annotations

import ctypes
import os
import re
import warnings

from . import _ALL_CDLLS, _build_info
from ._libraries import chosen_library, load_chosen, locate_libraries
from ._platform import this_platform

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def find_libraries(*shortnames: str) -> list[Path]:
    """Return the absolute paths of public libraries, such as ``amdhip64``.

    Optional libraries that are absent are left out.

    If device packages contain complete libraries, return the libraries for this machine's GPU. Only `preload_libraries`
    also chooses GPU-specific dependencies. Raises `ModuleNotFoundError` for an unknown name and for a missing package.
    The message contains the command that installs the package. Raises `FileNotFoundError` for a library that is missing
    from its package.
    """
    return [chosen_library(name, path) for name, path in locate_libraries(shortnames)]


def preload_libraries(*shortnames: str, rtld_global: bool = True) -> None:
    """Load each public library once, so that libraries loaded later find it by its SONAME.

    If device packages contain complete libraries, load the libraries for this machine's GPU after their dependencies.
    If a library was loaded earlier without this function, it remains the library for all GPUs, and a warning is
    printed. On Windows, load dependencies first, each by its absolute path, and add the packages' folders to the DLL
    search path. Raises the same errors as `find_libraries`, and `OSError` for a library that can't be loaded.
    """
    platform = this_platform()
    if platform.is_windows:
        from ._dlls import preload_dlls  # noqa: PLC0415 (needed only on one platform)

        preload_dlls(shortnames, platform)
        return
    mode = ctypes.RTLD_GLOBAL if rtld_global else ctypes.RTLD_LOCAL
    for name, path in locate_libraries(shortnames):
        if name not in _ALL_CDLLS:
            chosen = load_chosen(name, mode).get(path)
            _ALL_CDLLS[name] = chosen or ctypes.CDLL(str(path), mode=mode)


def initialize_process(
    *,
    preload_shortnames: Iterable[str] | None = None,
    rtld_global: bool = True,
    env_override: bool = True,
    check_version: str | re.Pattern[str] | None = None,
    fail_on_version_mismatch: bool = False,
    **_future: object,
) -> None:
    """Prepare a process for ROCm libraries. Frameworks call this function before they load their own libraries.

    The function preloads ``preload_shortnames`` and, with ``env_override``, the names in ``ROCM_SDK_PRELOAD_LIBRARIES``
    (separated by ``,`` or ``;``). ``check_version`` is the expected version, either as text with ``*`` as a wildcard
    or as a compiled pattern. A different version causes a warning, or a `RuntimeError` with
    ``fail_on_version_mismatch``. Unknown keyword arguments are ignored, because later versions may add them. Also
    raises the same errors as `preload_libraries`, and `RuntimeError` if the variable is invalid.
    """
    preload_libraries(*(preload_shortnames or ()), rtld_global=rtld_global)
    if env_override:
        value = os.environ.get("ROCM_SDK_PRELOAD_LIBRARIES", "")
        names = [name.strip() for name in re.split("[,;]", value) if name.strip()]
        try:
            preload_libraries(*names, rtld_global=rtld_global)
        except (ImportError, OSError, ValueError) as e:
            msg = f"Correct or unset ROCM_SDK_PRELOAD_LIBRARIES={value!r}: {e}"
            raise RuntimeError(msg) from e
    if check_version:
        _check_version(check_version, fail=fail_on_version_mismatch)


def _check_version(expected: str | re.Pattern[str], *, fail: bool) -> None:
    if isinstance(expected, str):
        text = expected
        pattern = re.compile(re.escape(expected).replace(r"\*", ".*") + "$")
    else:
        text, pattern = expected.pattern, expected
    if pattern.match(_build_info.VERSION):
        return
    msg = (
        f"The program was compiled against a ROCm version matching {text!r}, "
        f"but this Python environment has ROCm {_build_info.VERSION}."
    )
    if fail:
        raise RuntimeError(msg)
    warnings.warn(f"{msg} The program may fail.", stacklevel=3)
