"""The generic targets, whose code runs on GPUs of several targets."""

from __future__ import annotations

__all__ = ["GENERIC_TARGETS"]

GENERIC_TARGETS = {
    "gfx9-generic": "gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c",
    "gfx9-4-generic": "gfx942 gfx950",
    "gfx10-1-generic": "gfx1010 gfx1011 gfx1012 gfx1013",
    "gfx10-3-generic": "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036",
    "gfx11-generic": "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1154",
    "gfx11-7-generic": "gfx1170 gfx1171 gfx1172",
    "gfx12-generic": "gfx1200 gfx1201",
    "gfx12-5-generic": "gfx1250 gfx1251",
    "gfx13-generic": "gfx1310",
}
"""The targets whose GPUs run the code for a generic target (https://llvm.org/docs/AMDGPUUsage.html)."""
