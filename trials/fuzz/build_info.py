"""The names of packages that a build writes for rocm_sdk: their module is made when this one is imported."""

from __future__ import annotations

import sys
from types import ModuleType

__all__: list[str] = []

_NAMES = {
    "VERSION": "1.0",
    "LAYOUT": "neutral",
    "PACKAGES": {
        "meta": {"dist": "rocm", "module": "rocm_sdk", "platform_module": "rocm_sdk"},
        "devel": {"dist": "rocm-sdk-devel", "module": "rocm_sdk_devel", "platform_module": "_rocm_sdk_devel"},
        "core": {"dist": "rocm-sdk-core", "module": "rocm_sdk_core", "platform_module": "_rocm_sdk_core"},
    },
}
_stub = ModuleType("rocwheel.sdk.rocm_sdk._build_info")
_stub.__dict__.update(_NAMES)
sys.modules.setdefault(_stub.__name__, _stub)  # in packages it is generated
