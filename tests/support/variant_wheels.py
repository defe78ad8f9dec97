"""Wheels of packages for single GPUs, and variant wheels, for tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.wheels import make_wheel, write_wheel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["SCHEMA", "add_gpu_package", "add_variant_wheel", "variant_document"]

SCHEMA = "https://variants-schema.wheelnext.dev/peps/850/v0.2.0.json"


def add_gpu_package(
    folder: Path, name: str, *, targets: Sequence[str] = (), version: str = "7.0.0", tag: str = "py3-none-any",
    requires: tuple[str, ...] = ("rocm-sdk-libraries==7.0.0",),
) -> Path:  # fmt: skip
    """Write a package for some GPUs, with a file that no other has and what it declares of ``targets``."""
    module = name.replace("-", "_")
    declared = {"schema": "rocwheel.rocm-targets/1", "rocm_targets": list(targets)}
    files = {
        f"_kernels/{name}.co": name.encode(),
        f"{module}-{version}.dist-info/rocm_targets.json": json.dumps(declared).encode(),
    }
    return make_wheel(folder, name, files, version=version, tag=tag, requires=requires)


def variant_document(label: str, values: Sequence[str], **changes: Any) -> dict[str, Any]:
    """Return a ``variant.json`` for AMD GPUs, with ``changes`` at its top."""
    document = {
        "$schema": SCHEMA,
        "default-priorities": {"namespace": ["amd"]},
        "providers": {"amd": {"static-properties": {"gfx_arch": ["gfx942"]}, "feature-order": ["gfx_arch"]}},
        "variants": {label: {"amd": {"gfx_arch": list(values)}} if values else {}},
    }
    return {**document, **changes}


def add_variant_wheel(
    folder: Path, name: str, label: str, document: dict[str, Any] | bytes | None, *, version: str = "7.0.0"
) -> Path:
    """Write a variant wheel that says ``document`` of itself, or nothing."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    members = {
        f"{module}.py": b"",
        f"{info}/METADATA": f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if document is not None:
        members[f"{info}/variant.json"] = document if isinstance(document, bytes) else json.dumps(document).encode()
    return write_wheel(folder / f"{module}-{version}-py3-none-any-{label}.whl", info, members)
