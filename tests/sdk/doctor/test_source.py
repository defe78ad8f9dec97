"""Remedies of ``rocm-sdk doctor`` say where the packages come from."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.sdk.installed import FROM_INDEX

pytestmark = pytest.mark.slow

Make = Callable[..., Any]
COMMAND = 'pip install "rocm==7.2.0"'


def name_source(environment: Any, remedy: str = COMMAND) -> str:
    code = f"from rocm_sdk._doctor.source import name_source; print(name_source({remedy!r}))"
    return str(environment.evaluate(code))


def note_origin(environment: Any, text: str) -> None:
    (environment.site / "rocm-7.2.0.dist-info/direct_url.json").write_text(text)


def test_packages_of_an_index_or_of_a_damaged_note_name_no_folder(make_set: Make, make_environment: Make) -> None:
    # Given packages that no note is about
    environment = make_environment(make_set())
    environment.install("rocm")
    assert name_source(environment) == f"{COMMAND} {FROM_INDEX}"
    assert name_source(environment, "unset ROCM_SDK_TARGET_FAMILY") == "unset ROCM_SDK_TARGET_FAMILY"
    # When the note is not what an installer writes, or the folder is gone
    for note in (
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"url": 1, "archive_info": {}}',
        '{"url": "file://[", "archive_info": {}}',
        '{"url": "https://example.org/tmp/rocm.whl", "archive_info": {}}',
        '{"url": "file:///tmp/rocm", "dir_info": {}}',
        '{"url": "file:///no/such/folder/rocm.whl", "archive_info": {}}',
        '{"url": "file:///%00/rocm.whl", "archive_info": {}}',
    ):
        note_origin(environment, note)
        assert name_source(environment) == f"{COMMAND} {FROM_INDEX}", note


def test_the_folder_of_an_installed_file_is_named_and_quoted(make_set: Make, make_environment: Make) -> None:
    environment = make_environment(make_set())
    environment.install("rocm")
    folder = environment.path / "my files; here"
    folder.mkdir()
    note_origin(environment, json.dumps({"url": (folder / "rocm-7.2.0.tar.gz").as_uri(), "archive_info": {}}))
    assert name_source(environment) == f"{COMMAND} --find-links '{folder}'"


def test_a_core_that_pip_installed_from_a_file_names_its_folder(make_set: Make, make_environment: Make) -> None:
    environment = make_environment(make_set())
    environment.install("rocm")
    core = next(environment.dist.glob("rocm_sdk_core-*.whl"))
    environment.installer("install", "--no-index", "--no-deps", "--force-reinstall", str(core))
    assert name_source(environment) == f"{COMMAND} --find-links {environment.dist}"
