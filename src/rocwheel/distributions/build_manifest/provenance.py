"""What a manifest says, as in-toto statements with a predicate of SLSA provenance.

Statements: https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md. The predicate:
https://slsa.dev/spec/v1.0/provenance. Both are written as JSON, unsigned.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from rocwheel.distributions.build_manifest.values import MANIFEST_NAME

if TYPE_CHECKING:
    from rocwheel.distributions.build_manifest.values import BuildManifest, ManifestInput, ManifestOutput

__all__ = [
    "BUILD_TYPE",
    "DEFAULT_BUILDER",
    "PREDICATE_TYPE",
    "is_rendered",
    "make_predicate",
    "make_statement",
    "render_json",
]

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://slsa.dev/provenance/v1"
DEFAULT_BUILDER = "https://github.com/rocwheel/rocwheel/blob/main/docs/verify.md#unnamed-builder"
"""The builder where nobody names the service that ran the build; the section says that it is nobody's name."""
BUILD_TYPE = "https://github.com/rocwheel/rocwheel/blob/main/docs/verify.md#attestations"
_STATEMENT = frozenset({"_type", "subject", "predicateType", "predicate"})
_PREDICATE = frozenset({"buildDefinition", "runDetails"})
_HASHED = "what sha256sum prints for its files but artifact_manifest.txt, sorted by path"
"""What the hash of an artifact is of: no archive has it. Signing tools refuse a name of their own for it."""


def make_predicate(manifest: BuildManifest, text: bytes, builder: str = DEFAULT_BUILDER) -> dict[str, Any]:
    """Return the provenance of a build; ``builder`` is a URI that stands for who ran it.

    ``text`` is what the manifest was read from, which may be spelled otherwise than this rocwheel writes it.
    """
    recipe = {"name": manifest.recipe.name, "digest": {"sha256": manifest.recipe.sha256}}
    listed = {"name": MANIFEST_NAME, "digest": {"sha256": hashlib.sha256(text).hexdigest()}}
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {"options": manifest.options, "source_date_epoch": str(manifest.source_date_epoch)},
            "internalParameters": {"tools": manifest.tools, "codecs": manifest.codecs},
            "resolvedDependencies": [*map(_dependency, manifest.inputs), recipe],
        },
        "runDetails": {
            "builder": {"id": builder, "version": {"rocwheel": manifest.rocwheel}},
            "byproducts": [listed],
        },
    }


def _dependency(used: ManifestInput) -> dict[str, Any]:
    return {
        "name": used.name,
        "digest": {"sha256": used.sha256},
        "annotations": {"hashed": _HASHED, "files": str(used.files), "bytes": str(used.size)},
    }


def make_statement(output: ManifestOutput, predicate: dict[str, Any]) -> dict[str, Any]:
    """Return the statement about one output; its subject is named without folders, as indexes name files."""
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": output.path.rpartition("/")[2], "digest": {"sha256": output.sha256}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }


def render_json(document: dict[str, Any]) -> bytes:
    """Return a document as JSON: always the same bytes for the same values."""
    return json.dumps(document, indent=2).encode() + b"\n"


def is_rendered(data: bytes) -> bool:
    """Return whether a file is a statement, or a predicate alone, of a build type of ours, as `render_json` has it.

    What is signed has more around it, or other fields.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return False
    predicate = document.get("predicate") if _has(document, _STATEMENT) else document
    if not _has(predicate, _PREDICATE) or not isinstance(predicate["buildDefinition"], dict):
        return False
    return predicate["buildDefinition"].get("buildType") == BUILD_TYPE and render_json(document) == data


def _has(document: object, names: frozenset[str]) -> bool:
    return isinstance(document, dict) and document.keys() == names
