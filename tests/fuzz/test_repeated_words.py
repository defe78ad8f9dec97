"""Patterns that search texts of others take no square of the time where a word is repeated without end."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

import trials.fuzz.build_info  # noqa: F401 (before what reads it)
from rocwheel.sdk.rocm_sdk import _doctor_device_code
from rocwheel.sdk.rocm_sdk._gpus import LISTED
from rocwheel.stores.urls import without_secrets
from rocwheel.targets.serving import split_overlay_path
from rocwheel.wheels.binaries import installed_place
from trials.fuzz.attempt import attempt
from trials.fuzz.harness import Harness

if TYPE_CHECKING:
    from collections.abc import Callable


def _device_wheels(line: str) -> object:
    with patch.object(_doctor_device_code, "_header", lambda _: [line]):
        return _doctor_device_code._read_host(None)  # type: ignore[arg-type]


SEARCHES: dict[str, tuple[Callable[[str], object], str]] = {
    "URLs in a server's text": (without_secrets, "a" * 1_000_000),
    "devices that clinfo lists": (lambda text: list(LISTED.finditer(text)), "\n" * 200_000),
    "libraries of one target": (split_overlay_path, "a/0" + ".so." * 50_000),
    "folders of a wheel": (installed_place, "w.da" * 50_000),
    "blanks of a host wheel's requirement": (_device_wheels, "Requires-Dist: a" + " " * 200_000),
    "a name that a host wheel requires": (_device_wheels, f"Requires-Dist: {'a' * 50_000};{'x' * 50_000}"),
    "a marker of a host wheel": (_device_wheels, "Requires-Dist: a;" + "extra " * 50_000),
}


@pytest.mark.parametrize("search", SEARCHES)
def test_searching_a_text_with_one_repeated_word_takes_linear_time(search: str) -> None:
    run, text = SEARCHES[search]
    assert attempt(Harness("patterns.search", lambda data: run(data.decode()), list), text.encode()) is None
