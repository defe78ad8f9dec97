"""Provenance as readers of in-toto attestations take it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rocwheel.distributions.build_manifest.provenance import make_predicate, make_statement, render_json
from rocwheel.distributions.build_manifest.render import render_manifest
from tests.distributions.build_manifest.manifests import manifest_of

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


def test_the_subject_is_the_file_as_indexes_name_it() -> None:
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
                "hashed": "what sha256sum prints for its files but artifact_manifest.txt, sorted by path",
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


def test_the_library_of_in_toto_takes_statement_and_predicate() -> None:
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
