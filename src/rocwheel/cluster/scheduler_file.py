"""The file that a Dask scheduler writes its address to (``dask scheduler --scheduler-file``), a JSON object."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rocwheel.core.decoding import decode_json
from rocwheel.core.errors import InputError, read_error

__all__ = ["EXPECTED", "read_address"]

EXPECTED = "the address of a Dask scheduler, such as tcp://HOST:8786, or the file it wrote"


class _SchedulerFile(msgspec.Struct):
    address: str


def read_address(scheduler: str) -> str:
    """Return the address in a scheduler's file; whatever is no file, and has no file's name, is an address itself.

    Raises `InputError` for a file that is missing, can't be read or was written by something else. Dask's client
    would wait for a missing file for ever, and look for an address in any other.
    """
    if not scheduler:
        option, found = "--scheduler", "is empty"
        raise InputError(option, found, expected=EXPECTED)
    if "://" in scheduler:
        return scheduler
    try:
        data = Path(scheduler).read_bytes()
    except FileNotFoundError as e:
        if _is_named_like_a_file(scheduler):
            raise InputError(scheduler, "does not exist", expected=EXPECTED) from e
        return scheduler
    except OSError as e:
        raise read_error(scheduler, e) from e
    return _parse(scheduler, data)


def _is_named_like_a_file(scheduler: str) -> bool:
    return "/" in scheduler or scheduler.endswith(".json")


def _parse(path: str, data: bytes) -> str:
    try:
        return decode_json(data, _SchedulerFile).address
    except msgspec.DecodeError as e:
        expected = "the file that 'dask scheduler --scheduler-file' writes"
        raise InputError(path, f"is not a scheduler file ({e})", expected=expected) from e
