"""Manifests of builds as values."""

from __future__ import annotations

import hashlib

from rocwheel.wheels.build_manifest import BuildManifest, ManifestInput, ManifestOutput, ManifestRecipe

__all__ = ["manifest_of"]


def manifest_of(outputs: dict[str, bytes]) -> BuildManifest:
    """Return a manifest whose outputs have these bytes."""
    return BuildManifest(
        rocwheel="1.0",
        source_date_epoch=315532800,
        options={"level": 6},
        recipe=ManifestRecipe("rocm.toml", "0" * 64),
        inputs=(ManifestInput("base_lib_generic", 1, 4, "1" * 64, "../in/base_lib_generic"),),
        outputs=tuple(
            ManifestOutput(path, len(data), hashlib.sha256(data).hexdigest()) for path, data in sorted(outputs.items())
        ),
    )
