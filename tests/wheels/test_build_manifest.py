"""Tests of `rocwheel.wheels.build_manifest`."""

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

from rocwheel.core.errors import InputError, ProblemsError, RocwheelError, WorkError
from rocwheel.wheels.build_manifest import (
    BuildManifest,
    ManifestInput,
    ManifestOutput,
    ManifestRecipe,
    check_manifest_place,
    find_manifest,
    make_predicate,
    make_statement,
    parse_manifest,
    read_manifest,
    remove_manifest,
    render_json,
    render_manifest,
    render_sums,
    write_manifest,
)
from tests.wheels.build_manifest.manifests import manifest_of

TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from("\udc80\udcff"), max_size=20)
PLACES = TEXTS.filter(lambda place: "\0" not in place)
DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
SIZES = st.integers(0, 2**60)
NAMES = st.text("abz019._-", min_size=1, max_size=12).filter(lambda name: set(name) != {"."})
MANIFESTS = st.builds(
    BuildManifest,
    TEXTS,
    st.integers(0, 253402300799),
    st.dictionaries(TEXTS, st.none() | TEXTS | SIZES | st.lists(TEXTS)),
    st.builds(ManifestRecipe, TEXTS, DIGESTS, PLACES),
    st.lists(st.builds(ManifestInput, TEXTS, SIZES, SIZES, DIGESTS, PLACES)).map(tuple),
    st.lists(
        st.builds(ManifestOutput, NAMES.map("dist/{}".format), SIZES, DIGESTS), unique_by=lambda one: one.path
    ).map(tuple),
    st.dictionaries(TEXTS, TEXTS),
    st.dictionaries(TEXTS, TEXTS),
)


@given(MANIFESTS)
def test_a_manifest_round_trips(manifest: BuildManifest) -> None:
    assert parse_manifest(render_manifest(manifest), "m") == manifest


def test_the_schema_comes_first_and_the_text_is_ascii() -> None:
    text = render_manifest(manifest_of({"dist/a.whl": b"a"})).decode("ascii")
    assert text.startswith('{\n  "schema": "rocwheel.build-manifest/1",\n  "rocwheel": "1.0",\n')
    assert json.loads(text)["outputs"] == [
        {
            "path": "dist/a.whl",
            "size": 1,
            "sha256": "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
        }
    ]


def test_checksums_have_a_line_for_each_output() -> None:
    assert render_sums(manifest_of({"dist/a.whl": b"a", "dist/f/b.whl": b""})).decode() == (
        "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb  dist/a.whl\n"
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  dist/f/b.whl\n"
    )


GOOD: dict[str, Any] = json.loads(render_manifest(manifest_of({"dist/a.whl": b"a"})))


def test_a_manifest_is_found_from_its_file_its_folder_or_the_folder_of_the_packages(tmp_path: Path) -> None:
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
def test_a_folder_may_be_given_relative_to_a_subfolder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str, given: str, found: str
) -> None:
    (tmp_path / "dist/in").mkdir(parents=True)
    (tmp_path / "rocwheel-build.json").touch()
    monkeypatch.chdir(tmp_path / here)
    assert find_manifest(Path(given)) == Path(found)


def test_the_expected_place_is_returned_for_a_folder_without_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    assert find_manifest(tmp_path / "dist") == tmp_path / "dist" / "rocwheel-build.json"
    assert find_manifest(tmp_path / "gone") == tmp_path / "gone"


def with_path(path: str) -> bytes:
    return json.dumps(GOOD | {"outputs": [GOOD["outputs"][0] | {"path": path}]}).encode()


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (
            b"",
            (
                "m: is empty; expected a rocwheel-build.json written by 'rocwheel build'. "
                "Copy the file again, or repeat the build"
            ),
        ),
        (
            b"{",
            "m: is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1)); expected",
        ),
        (b"\xff\xfe", "m: is not JSON ("),
        (b"[" * 100_000, "m: is not JSON ("),
        (b"[]", "m: has no schema; expected a rocwheel-build.json written by 'rocwheel build'"),
        (b'{"schema": 1}', "m: has the schema '1'; expected"),
        (b'{"schema": "rocwheel.plan/1"}', "m: has the schema 'rocwheel.plan/1'; expected"),
        (
            b'{"schema": "rocwheel.build-manifest/2"}',
            (
                "m: has the schema rocwheel.build-manifest/2, which is from a different version of "
                "rocwheel; expected rocwheel.build-manifest/1"
            ),
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
            "m: lists 'rocm.toml' at 'a\\x00b'; expected a path or a URL",
        ),
        (
            json.dumps(GOOD | {"inputs": [GOOD["inputs"][0] | {"place": "\ud800"}]}).encode(),
            "m: lists 'base_lib_generic' at '\\ud800'; expected a path or a URL",
        ),
        (with_path("/etc/passwd"), "m: lists the output '/etc/passwd', an absolute path; expected a path inside the"),
        (with_path("dist/../../a"), "m: lists the output 'dist/../../a', a path that points outside the folder"),
        (with_path("dist\\a"), "m: lists the output 'dist\\\\a', a name with a backslash"),
        (with_path("dist//a"), "m: lists the output 'dist//a', a path that isn't normalized"),
        (with_path(""), "m: lists the output '', which is not a file"),
        (with_path("a\nb"), "m: lists the output 'a\\nb', which contains control characters"),
    ],
    ids=lambda value: str(value[:40]) if isinstance(value, bytes) else None,
)
def test_an_invalid_manifest_is_reported_in_one_message(data: bytes, found: str) -> None:
    with pytest.raises(InputError, match=re.escape(found)):
        parse_manifest(data, "m")


def test_all_bad_paths_are_reported_together() -> None:
    outputs = [GOOD["outputs"][0] | {"path": path} for path in ("/a", "../b", "c", "c")]
    with pytest.raises(ProblemsError) as caught:
        parse_manifest(json.dumps(GOOD | {"outputs": outputs}).encode(), "m")
    assert [str(problem) for problem in caught.value.problems] == [
        "m: lists the output '/a', an absolute path; expected a path inside the manifest's folder",
        (
            "m: lists the output '../b', a path that points outside the folder; expected a path inside the manifest's "
            "folder"
        ),
        "m: lists the output 'c' 2 times; expected each output only once",
    ]


def test_paths_that_are_not_utf_8_are_read() -> None:
    document = GOOD | {"inputs": [GOOD["inputs"][0] | {"place": "in/\udcff"}]}
    assert parse_manifest(json.dumps(document).encode(), "m").inputs[0].place == "in/\udcff"


def test_keys_from_a_later_rocwheel_are_ignored() -> None:
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


MANIFEST = manifest_of({"dist/gfx90a/a-1.0-py3-none-any.whl": b"a"})
SHA256 = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"


def statement() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        render_json(
            make_statement(
                MANIFEST.outputs[0], make_predicate(MANIFEST, render_manifest(MANIFEST), "https://example.org/ci")
            )
        )
    )
    return found


def test_the_subject_is_the_file_name_in_indexes() -> None:
    found = statement()
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    assert found["predicateType"] == "https://slsa.dev/provenance/v1"
    assert found["subject"] == [{"name": "a-1.0-py3-none-any.whl", "digest": {"sha256": SHA256}}]


def test_the_predicate_has_inputs_parameters_and_the_builder() -> None:
    predicate = statement()["predicate"]
    assert predicate["buildDefinition"]["resolvedDependencies"] == [
        {
            "name": "base_lib_generic",
            "digest": {"sha256": "1" * 64},
            "annotations": {
                "hashed": "what sha256sum prints for its files except artifact_manifest.txt, sorted by path",
                "files": "1",
                "bytes": "4",
            },
        },
        {"name": "rocm.toml", "digest": {"sha256": "0" * 64}},
    ]
    assert predicate["buildDefinition"]["externalParameters"] == {
        "options": {"level": 6},
        "source_date_epoch": "315532800",
    }
    assert predicate["runDetails"]["builder"] == {"id": "https://example.org/ci", "version": {"rocwheel": "1.0"}}
    assert predicate["runDetails"]["byproducts"][0]["name"] == "rocwheel-build.json"


def test_the_in_toto_library_accepts_the_statement_and_the_predicate() -> None:
    """Which refuses every field that it doesn't know."""
    json_format = pytest.importorskip("google.protobuf.json_format")
    pytest.importorskip("in_toto_attestation")
    from in_toto_attestation.predicates.provenance.v1 import provenance_pb2  # noqa: PLC0415
    from in_toto_attestation.v1 import statement_pb2  # noqa: PLC0415
    from in_toto_attestation.v1.statement import Statement  # noqa: PLC0415

    found = statement()
    Statement.copy_from_pb(json_format.ParseDict(found, statement_pb2.Statement())).validate()
    predicate = json_format.ParseDict(found["predicate"], provenance_pb2.Provenance())
    assert predicate.build_definition.resolved_dependencies[1].digest["sha256"] == "0" * 64
    with pytest.raises(json_format.ParseError):
        json_format.ParseDict(found["predicate"] | {"more": 1}, provenance_pb2.Provenance())


PLACE_MANIFEST = manifest_of({"dist/a.whl": b"a"})


def test_the_manifest_and_its_checksums_are_written_and_removed_together(tmp_path: Path) -> None:
    assert write_manifest(tmp_path, PLACE_MANIFEST) == tmp_path / "rocwheel-build.json"
    assert read_manifest(tmp_path / "rocwheel-build.json") == PLACE_MANIFEST
    check_manifest_place(tmp_path)
    remove_manifest(tmp_path)
    assert list(tmp_path.iterdir()) == []
    remove_manifest(tmp_path)


def test_a_missing_folder_is_accepted(tmp_path: Path) -> None:
    check_manifest_place(tmp_path / "new")
    remove_manifest(tmp_path / "new")


@pytest.mark.parametrize(
    "line", [f"{'0' * 64}  base_lib_generic.tar.xz", f"{'0' * 64}  dist/app.js", f"{'x' * 64}  dist/b.whl"]
)
def test_checksums_of_other_files_are_never_replaced(tmp_path: Path, line: str) -> None:
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  dist/a.whl\n{line}\n")
    with pytest.raises(
        InputError, match="SHA256SUMS: contains checksums for files that aren't from a build; expected no file"
    ):
        check_manifest_place(tmp_path)


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_objects_other_than_files_are_reported_for_both_names(tmp_path: Path, kind: str) -> None:
    for name in ("rocwheel-build.json", "SHA256SUMS"):
        if kind == "folder":
            (tmp_path / name).mkdir()
        elif kind == "link":
            (tmp_path / name).symlink_to("elsewhere")
        else:
            os.mkfifo(tmp_path / name)
    with pytest.raises(ProblemsError) as caught:
        check_manifest_place(tmp_path)
    found = "a symlink" if kind == "link" else "not a file"
    assert [str(problem) for problem in caught.value.problems] == [
        f"{tmp_path / name}: is {found}; expected no file, or a file from an earlier build. "
        "Move that file, or choose a different --dest-dir."
        for name in ("rocwheel-build.json", "SHA256SUMS")
    ]


def test_a_manifest_that_cannot_be_removed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rocwheel-build.json").mkdir()
    with pytest.raises(WorkError, match=r"rocwheel-build\.json: can't be written"):
        remove_manifest(tmp_path)


@pytest.mark.parametrize("dest_dir", [".", "{}", "../{0.name}"])
def test_attestations_of_an_earlier_build_are_removed_and_other_files_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dest_dir: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "attestations"
    (folder / "gfx906").mkdir(parents=True)
    predicate = make_predicate(manifest_of({}), b"{}")
    statement = {"_type": "", "subject": [], "predicateType": "", "predicate": predicate}
    (folder / "provenance.json").write_bytes(render_json(predicate))
    (folder / "gfx906/a.whl.intoto.json").write_bytes(render_json(statement))
    others = {
        "b.whl.intoto.json": b'{"payload": "c2lnbmVk"}',
        "c.whl.intoto.json": render_json({"payload": statement, "signatures": []}),
        "d.whl.intoto.json": b"-----BEGIN PGP SIGNED MESSAGE-----\n\n" + render_json(statement),
        "notes.txt": b"",
    }
    for name, data in others.items():
        (folder / name).write_bytes(data)
    remove_manifest(Path(dest_dir.format(tmp_path)))
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")) == [*others]


def test_attestations_behind_a_link_are_kept(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/provenance.json").touch()
    (tmp_path / "attestations").symlink_to("other")
    remove_manifest(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["other", "provenance.json"]
