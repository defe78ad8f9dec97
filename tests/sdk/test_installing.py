"""Commands that install packages say where the packages come from."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.sdk.installed import FROM_INDEX

pytestmark = pytest.mark.slow

Make = Callable[..., Any]
COMMAND = 'pip install "rocm==7.2.0"'


def installation_hint(environment: Any) -> str:
    return str(environment.evaluate("from rocm_sdk._installing import installation_hint; print(installation_hint())"))


def note_origin(environment: Any, text: str) -> None:
    (environment.site / "rocm-7.2.0.dist-info/direct_url.json").write_text(text)


def test_packages_from_an_index_or_with_a_damaged_note_give_no_folder(make_set: Make, make_environment: Make) -> None:
    # Given packages that no note is about
    environment = make_environment(make_set())
    environment.install("rocm")
    assert installation_hint(environment) == f"{COMMAND} {FROM_INDEX}"
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
        f'{{"url": "file:{"../" * 30}tmp/rocm.whl", "archive_info": {{}}}}',
    ):
        note_origin(environment, note)
        assert installation_hint(environment) == f"{COMMAND} {FROM_INDEX}", note


def test_the_folder_of_an_installed_file_is_given_and_quoted(make_set: Make, make_environment: Make) -> None:
    environment = make_environment(make_set())
    environment.install("rocm")
    folder = environment.path / "my files; here"
    folder.mkdir()
    note_origin(environment, json.dumps({"url": (folder / "rocm-7.2.0.tar.gz").as_uri(), "archive_info": {}}))
    assert installation_hint(environment) == f"{COMMAND} --find-links '{folder}'"


def test_a_core_package_installed_by_pip_from_a_file_gives_its_folder(make_set: Make, make_environment: Make) -> None:
    environment = make_environment(make_set())
    environment.install("rocm")
    core = next(environment.dist.glob("rocm_sdk_core-*.whl"))
    environment.installer("install", "--no-index", "--no-deps", "--force-reinstall", str(core))
    assert installation_hint(environment) == f"{COMMAND} --find-links {environment.dist}"


def test_every_kind_of_command_says_where_to_install_from(make_set: Make, make_environment: Make) -> None:
    environment = make_environment(make_set())
    environment.install("rocm")
    code = (
        "from rocm_sdk._installing import *; "
        "print(installation_hint('devel'), reinstallation_hint('devel'), overwriting_hint('devel'), sep='\\n')"
    )
    command = 'pip install "rocm[devel]==7.2.0"'
    assert environment.evaluate(code).splitlines() == [
        f"{command} {FROM_INDEX}",
        f"{command} --force-reinstall {FROM_INDEX}",
        f"{command} --ignore-installed {FROM_INDEX}",
    ]


def test_an_installation_without_the_folder_module_gives_no_folder(make_set: Make, make_environment: Make) -> None:
    environment = make_environment(make_set())
    environment.install("rocm", "--link-mode=copy")
    (environment.site / "rocm_sdk/_distributions.py").unlink()
    assert installation_hint(environment) == f"{COMMAND} {FROM_INDEX}"


def test_finding_libraries_reads_no_metadata(make_set: Make, make_environment: Make) -> None:
    environment = make_environment(make_set())
    environment.install("rocm")
    slow = {"importlib.metadata", "json", "shlex"}
    code = f"import rocm_sdk, sys; rocm_sdk.find_libraries('amdhip64'); print({slow!r} & {{*sys.modules}})"
    assert environment.evaluate(code) == "set()"
