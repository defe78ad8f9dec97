"""The selectors that a plan will make, as ``rocwheel plan --json`` prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError, read_error
from rocwheel.core.messages import shortened
from rocwheel.core.reading import read_regular
from rocwheel.packages.merging.selectors import Selector
from rocwheel.packages.promoting.version_change import BUILD_INFO, read_build_info

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_plan"]

_SCHEMA = "rocwheel.plan/1"
_EXPECTED = "what `rocwheel plan --json` prints"


class _Sdist(msgspec.Struct, frozen=True):
    distribution: str
    version: str
    files: dict[str, str]
    folder: str = ""


class _Document(msgspec.Struct, frozen=True):
    """What of a plan is read."""

    schema: str
    sdists: tuple[_Sdist, ...]


def read_plan(path: Path) -> list[Selector]:
    """Return the selectors of a plan: one, or one for each family.

    Raises `InputError` for a file that can't be read, is no plan, or has no selector that is an sdist.
    """
    try:
        document = decode_json(read_regular(path), _Document)
    except OSError as e:
        raise read_error(path, e) from e
    except msgspec.DecodeError as e:
        raise InputError(path, shortened(f"is no plan ({e})"), expected=_EXPECTED) from e
    if document.schema != _SCHEMA:
        raise InputError(path, shortened(f"has the schema {document.schema!r}"), expected=_SCHEMA)
    found = [_read(path, sdist) for sdist in document.sdists]
    if not found:
        remedy = "Plan with --selector sdist: a wheel can't choose for a machine."
        raise InputError(path, "plans no selector that is an sdist", remedy=remedy)
    return found


def _read(path: Path, sdist: _Sdist) -> Selector:
    try:
        name, version = canonicalize_name(sdist.distribution, validate=True), str(Version(sdist.version))
    except ValueError as e:
        raise InputError(path, shortened(f"plans an sdist without a name or version ({e})"), expected=_EXPECTED) from e
    strange = [file for file in sdist.files if not _is_below(file)]
    if strange:
        raise InputError(path, shortened(f"plans {strange[0]!r}, which has no place in an sdist"), expected=_EXPECTED)
    files = {name: text.encode("utf-8", "surrogatepass") for name, text in sdist.files.items()}
    places = [name for name in files if name.rpartition("/")[2] == BUILD_INFO]
    info = read_build_info(files[places[0]], f"{path}!{places[0]}") if len(places) == 1 else {}
    if "FAMILIES" not in info:
        raise InputError(path, f"plans {name}, which is not a selector", expected="the plan of a build of ROCm")
    return Selector(path, name, version, files, places[0], info)


def _is_below(name: str) -> bool:
    """Return whether a path leads to a file below the folder that it is relative to."""
    return name.isprintable() and "\\" not in name and not {"", ".", ".."} & {*name.split("/")}
