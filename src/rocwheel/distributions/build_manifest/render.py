"""Writing of build manifests: always the same bytes for the same values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.build_manifest.values import MANIFEST_SCHEMA

if TYPE_CHECKING:
    from rocwheel.distributions.build_manifest.values import BuildManifest

__all__ = ["render_manifest", "render_sums"]


def render_manifest(manifest: BuildManifest) -> bytes:
    """Return a manifest as JSON, in ASCII, so that names which are not UTF-8 need no rule of their own."""
    document = {"schema": MANIFEST_SCHEMA, **msgspec.to_builtins(manifest)}
    return json.dumps(document, indent=2).encode() + b"\n"


def render_sums(manifest: BuildManifest) -> bytes:
    """Return what ``sha256sum -c`` takes in the manifest's folder: a line for each output."""
    return "".join(f"{output.sha256}  {output.path}\n" for output in manifest.outputs).encode()
