"""Manifests that nobody should trust."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocwheel.core.errors import InputError, ProblemsError, RocwheelError
from rocwheel.distributions.build_manifest.read import find_manifest, parse_manifest, read_manifest
from rocwheel.distributions.build_manifest.render import render_manifest
from tests.distributions.build_manifest.manifests import manifest_of

GOOD: dict[str, Any] = json.loads(render_manifest(manifest_of({"dist/a.whl": b"a"})))


def test_a_manifest_is_given_by_its_file_its_folder_or_that_of_the_packages(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    manifest = tmp_path / "rocwheel-build.json"
    manifest.touch()
    assert [find_manifest(path) for path in (manifest, tmp_path, tmp_path / "dist")] == [manifest] * 3


@pytest.mark.parametrize(
    ("here", "given", "found"),
    [
        ("dist", ".", "../rocwheel-build.json"),
        ("dist/in", "..", "../../rocwheel-build.json"),
        (".", ".", "rocwheel-build.json"),
    ],
)
def test_a_folder_may_be_given_from_within(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str, given: str, found: str
) -> None:
    (tmp_path / "dist/in").mkdir(parents=True)
    (tmp_path / "rocwheel-build.json").touch()
    monkeypatch.chdir(tmp_path / here)
    assert find_manifest(Path(given)) == Path(found)


def test_a_folder_without_a_manifest_is_told_where_it_should_be(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    assert find_manifest(tmp_path / "dist") == tmp_path / "dist" / "rocwheel-build.json"
    assert find_manifest(tmp_path / "gone") == tmp_path / "gone"


def with_path(path: str) -> bytes:
    return json.dumps(GOOD | {"outputs": [GOOD["outputs"][0] | {"path": path}]}).encode()


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "m: is not JSON (Expecting value: line 1 column 1 (char 0)); expected a rocwheel-build.json that"),
        (b"\xff\xfe", "m: is not JSON ("),
        (b"[" * 100_000, "m: is not JSON ("),
        (b"[]", "m: has no schema; expected a rocwheel-build.json that rocwheel build has written"),
        (b'{"schema": 1}', "m: has the schema '1'; expected"),
        (b'{"schema": "rocwheel.plan/1"}', "m: has the schema 'rocwheel.plan/1'; expected"),
        (
            b'{"schema": "rocwheel.build-manifest/2"}',
            "m: has the schema rocwheel.build-manifest/2, of another rocwheel; expected rocwheel.build-manifest/1",
        ),
        (
            b'{"schema": "rocwheel.build-manifest/1"}',
            "m: is damaged: Object missing required field `rocwheel`; expected a rocwheel-build.json",
        ),
        (json.dumps(GOOD | {"outputs": [{}]}).encode(), "m: is damaged: Object missing required field `path`"),
        (
            json.dumps(GOOD | {"outputs": [{"path": "a", "size": -1, "sha256": "0" * 64}]}).encode(),
            "m: is damaged: Expected `int` >= 0 - at `$.outputs[0].size`",
        ),
        (
            json.dumps(GOOD | {"outputs": [{"path": "a", "size": 1, "sha256": "0"}]}).encode(),
            "m: is damaged: Expected `str` matching regex '^[0-9a-f]{64}$' - at `$.outputs[0].sha256`",
        ),
        (
            json.dumps(GOOD | {"source_date_epoch": 10**15}).encode(),
            "m: is damaged: Expected `int` <= 253402300799 - at `$.source_date_epoch`",
        ),
        (json.dumps(GOOD | {"source_date_epoch": 10**30}).encode(), "m: is damaged: "),
        (json.dumps(GOOD | {"\ud800": 1}).encode(), "m: is damaged: 'utf-8' codec can't encode character '\\ud800'"),
        (
            json.dumps(GOOD | {"recipe": GOOD["recipe"] | {"place": "a\0b"}}).encode(),
            "m: has 'rocm.toml' at 'a\\x00b'; expected a path or a URL",
        ),
        (
            json.dumps(GOOD | {"inputs": [GOOD["inputs"][0] | {"place": "\ud800"}]}).encode(),
            "m: has 'base_lib_generic' at '\\ud800'; expected a path or a URL",
        ),
        (with_path("/etc/passwd"), "m: names the output '/etc/passwd', an absolute path; expected a path below its"),
        (with_path("dist/../../a"), "m: names the output 'dist/../../a', a path that leads out of the folder"),
        (with_path("dist\\a"), "m: names the output 'dist\\\\a', a name with a backslash"),
        (with_path("dist//a"), "m: names the output 'dist//a', a path that is not in its plain form"),
        (with_path(""), "m: names the output '', which is no file"),
        (with_path("a\nb"), "m: names the output 'a\\nb', which has characters that can't be printed"),
    ],
    ids=lambda value: str(value[:40]) if isinstance(value, bytes) else None,
)
def test_what_is_no_manifest_is_told_in_one_message(data: bytes, found: str) -> None:
    with pytest.raises(InputError, match=re.escape(found)):
        parse_manifest(data, "m")


def test_all_bad_paths_are_told_together() -> None:
    outputs = [GOOD["outputs"][0] | {"path": path} for path in ("/a", "../b", "c", "c")]
    with pytest.raises(ProblemsError) as caught:
        parse_manifest(json.dumps(GOOD | {"outputs": outputs}).encode(), "m")
    assert [str(problem) for problem in caught.value.problems] == [
        "m: names the output '/a', an absolute path; expected a path below its folder",
        "m: names the output '../b', a path that leads out of the folder; expected a path below its folder",
        "m: names the output 'c' 2 times; expected each once",
    ]


def test_places_whose_names_are_not_utf_8_are_read() -> None:
    document = GOOD | {"inputs": [GOOD["inputs"][0] | {"place": "in/\udcff"}]}
    assert parse_manifest(json.dumps(document).encode(), "m").inputs[0].place == "in/\udcff"


def test_keys_of_a_later_rocwheel_are_passed_over() -> None:
    assert parse_manifest(json.dumps(GOOD | {"more": {}}).encode(), "m").rocwheel == "1.0"


@given(
    st.binary(max_size=60) | st.recursive(st.none() | st.text(), st.lists).map(lambda value: json.dumps(value).encode())
)
def test_any_other_text_is_refused(data: bytes) -> None:
    with pytest.raises(RocwheelError):
        parse_manifest(data, "m")


@given(st.data())
def test_a_manifest_with_a_changed_byte_is_read_or_refused(data: st.DataObject) -> None:
    text = bytearray(render_manifest(manifest_of({"dist/a.whl": b"a"})))
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    with suppress(RocwheelError):
        parse_manifest(bytes(text), "m")


def test_a_pipe_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "none"):
        with pytest.raises(InputError, match=f"{name}: can't be read"):
            read_manifest(tmp_path / name)
