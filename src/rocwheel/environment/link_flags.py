"""Formats a run path for each build tool so that ``$ORIGIN`` reaches the linker unchanged."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING

from rocwheel.binary.elf.dynamic import RunpathTag
from rocwheel.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TAG_OPTION = {RunpathTag.RUNPATH: "--enable-new-dtags", RunpathTag.RPATH: "--disable-new-dtags"}
_LINKER_FILE = "/etc/run-path.ld"
# Characters that end an entry, an argument, or a string in one of the tools.
_UNSAFE = re.compile(r"[\s,:;'\"\\`#]")


def _options(entries: Sequence[str], tag: RunpathTag) -> list[str]:
    """Return the compiler arguments for linking, as the linker must receive them."""
    return [f"-Wl,{_TAG_OPTION[tag]}", f"-Wl,-rpath,{':'.join(entries)}"]


def _plain(entries: Sequence[str], tag: RunpathTag) -> str:  # noqa: ARG001 (all tools share one form)
    return ":".join(entries)


def _ld(entries: Sequence[str], tag: RunpathTag) -> str:
    return f"{_TAG_OPTION[tag]} -rpath={':'.join(entries)}"


def _cmake(entries: Sequence[str], tag: RunpathTag) -> str:
    value = ";".join(entries).replace("$", "\\$")
    return "\n".join(
        [
            f'set(CMAKE_INSTALL_RPATH "{value}")',
            "set(CMAKE_INSTALL_RPATH_USE_LINK_PATH FALSE)",
            f'add_link_options("LINKER:{_TAG_OPTION[tag]}")',
        ]
    )


def _bazelrc(entries: Sequence[str], tag: RunpathTag) -> str:
    return "\n".join(f"build --linkopt={option}" for option in _options(entries, tag))


def _build(entries: Sequence[str], tag: RunpathTag) -> str:
    options = json.dumps([option.replace("$", "$$") for option in _options(entries, tag)])
    return f"linkopts = {options},"


def _starlark(entries: Sequence[str], tag: RunpathTag) -> str:
    return "\n".join(
        [
            f"RUN_PATH = {json.dumps(list(entries))}",
            "",
            "# For linkopts, in which $$ means $. In cc_common's user_link_flags, use the entries unchanged.",
            "RUN_PATH_LINKOPTS = [",
            f'    "-Wl,{_TAG_OPTION[tag]}",',
            '    "-Wl,-rpath," + ":".join(RUN_PATH).replace("$", "$$"),',
            "]",
        ]
    )


def _meson(entries: Sequence[str], tag: RunpathTag) -> str:
    return f"install_rpath: '{':'.join(entries)}',\nlink_args: ['-Wl,{_TAG_OPTION[tag]}'],"


def _make(entries: Sequence[str], tag: RunpathTag) -> str:
    return "LDFLAGS += " + _shell(entries, tag).replace("$", "$$")


def _shell(entries: Sequence[str], tag: RunpathTag) -> str:
    return shlex.join(_options(entries, tag))


def _dockerfile(entries: Sequence[str], tag: RunpathTag) -> str:
    # make and the shell that ninja runs expand a "$" in LDFLAGS, but a plain shell doesn't. No quoting works for all
    # three.
    return f'RUN echo {shlex.quote(_ld(entries, tag))} > {_LINKER_FILE}\nENV LDFLAGS="-Wl,@{_LINKER_FILE}"'


def _python(entries: Sequence[str], tag: RunpathTag) -> str:
    return f"extra_link_args={_options(entries, tag)!r},"


TOOLS: dict[str, Callable[[Sequence[str], RunpathTag], str]] = {
    "plain": _plain,
    "ld": _ld,
    "shell": _shell,
    "make": _make,
    "cmake": _cmake,
    "meson": _meson,
    "bazelrc": _bazelrc,
    "build": _build,
    "starlark": _starlark,
    "python": _python,
    "dockerfile": _dockerfile,
}
"""The functions that format entries, keyed by tool.

``ld`` is for a response file, ``build`` for a rule in a BUILD file, and ``python`` for a setuptools ``Extension``.
``shell`` is for the command line of a compiler that links.
"""


def spell_run_path(entries: Sequence[str], tool: str, tag: RunpathTag = RunpathTag.RUNPATH) -> str:
    """Return the text for one of `TOOLS`, or an empty string if there are no entries.

    Raises `InputError` for an unknown tool, and for entries with characters such as spaces, commas, colons, and quotes.
    A tool between the build file and the linker would interpret such a character as the end of the entry.
    """
    if tool not in TOOLS:
        found = f"{tool!r} isn't a supported build tool"
        msg = f"--tool {tool}"
        raise InputError(msg, found, expected=f"one of {', '.join(TOOLS)}")
    for entry in entries:
        if match := _UNSAFE.search(entry):
            found = f"contains {match[0]!r}, which some build tools don't pass to the linker"
            msg = f"run path entry {entry!r}"
            raise InputError(
                msg, found, remedy="Install the packages in folders whose names have no special characters."
            )
    return TOOLS[tool](entries, tag) if entries else ""


def cmake_arguments(entries: Sequence[str]) -> str:
    """Return a run path as a line of CMake arguments, quoted for a shell.

    The build uses the run path of the installed file. No file is linked twice, and no path from the build machine gets
    into a wheel.
    """
    settings = {
        "CMAKE_INSTALL_RPATH": ";".join(entries),
        "CMAKE_INSTALL_RPATH_USE_LINK_PATH": "OFF",
        "CMAKE_BUILD_WITH_INSTALL_RPATH": "ON",
    }
    return shlex.join(f"-D{name}={value}" for name, value in settings.items()) + "\n"


def ldflags_setting(entries: Sequence[str]) -> str:
    """Return a run path as a shell line that sets ``LDFLAGS``, for builds that set their own run path.

    PyTorch's CMake files set the run path to ``$ORIGIN`` and ignore the command line. The linker adds the options from
    ``LDFLAGS`` to that run path. The backslash is for the shell that ninja starts. The make generator and setuptools
    drop the backslash.
    """
    tag = _TAG_OPTION[RunpathTag.RUNPATH]
    options = [f"-Wl,{tag}", *(f"-Wl,-rpath,{entry}".replace("$", "\\$") for entry in entries)]
    return f"LDFLAGS={shlex.quote(' '.join(options))}\n"
