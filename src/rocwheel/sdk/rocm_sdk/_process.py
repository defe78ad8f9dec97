"""Finds the public libraries, loads them into a process, and checks their version."""

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
    """Return the absolute paths of public libraries, such as ``amdhip64``; optional ones that are absent are left out.

    Where device packages bring whole libraries, these are the ones for this machine's GPU. Libraries that they need
    are chosen for it by `preload_libraries` alone.
    Raises `ModuleNotFoundError` for an unknown name and, with the command that installs it, for a package that isn't
    installed; `FileNotFoundError` for a library that its package lacks.
    """
    return [chosen_library(name, path) for name, path in locate_libraries(shortnames)]


def preload_libraries(*shortnames: str, rtld_global: bool = True) -> None:
    """Load public libraries, so that libraries loaded later find them by their SONAMEs; each is loaded once.

    Where device packages bring whole libraries, those for this machine's GPU are loaded, and before them those that
    they need: what was loaded earlier without this function has the code for all GPUs, and a warning says so.
    On Windows, what they need is loaded before them, each by its absolute path, and the packages' folders join those in
    which DLLs are looked for.
    Raises what `find_libraries` raises, and `OSError` for a library that can't be loaded.
    """
    platform = this_platform()
    if platform.is_windows:
        from ._dlls import preload_dlls  # noqa: PLC0415 (of one platform)

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
    """Prepare a process that is going to use ROCm libraries; for frameworks to call before they load their own.

    ``preload_shortnames`` and, with ``env_override``, those in ``ROCM_SDK_PRELOAD_LIBRARIES`` (separated by ``,`` or
    ``;``) are preloaded. ``check_version`` is the version wanted, a text in which ``*`` is anything, or a pattern;
    another version gives a warning, or with ``fail_on_version_mismatch`` a `RuntimeError`. Arguments of later versions
    are ignored. Raises also what `preload_libraries` raises, and `RuntimeError` when the variable is at fault.
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
    warnings.warn(f"{msg} Expect misbehavior.", stacklevel=3)
