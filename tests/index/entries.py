"""Entries of an index as a set of ROCm packages has them."""

from __future__ import annotations

from typing import Any

from rocwheel.index.entry import About, IndexEntry
from rocwheel.index.front_page import Gpu
from rocwheel.index.pages import group_by_project

__all__ = ["GPUS", "make_entry", "neutral_set"]

GPUS = (
    Gpu("gfx906", "data-center", ("Radeon Instinct MI50",), ("gfx9-generic", "gfx90X-all")),
    Gpu("gfx1100", "desktop", ("Radeon RX 7900 XTX", "Radeon PRO W7900"), ("gfx11-generic", "gfx110X-all")),
    Gpu("gfx1103", "integrated", ("Radeon 780M",), ("gfx11-generic",)),
    Gpu("gfx1310", "", (), ()),
)


def make_entry(
    project: str, version: str = "7.0.0", *, filename: str = "", size: int = 1000, **about: Any
) -> IndexEntry:
    """Return a wheel's entry; ``about`` are the fields of `About`."""
    name = filename or f"{project.replace('-', '_')}-{version}-py3-none-any.whl"
    return IndexEntry(
        filename=name,
        project=project,
        version=version,
        identity=name,
        size=size,
        sha256="0" * 64,
        requires_python=">=3.9",
        metadata_sha256=None,
        upload_time=1_767_225_600_000_000,
        about=About(**about),
    )


def neutral_set(version: str = "7.0.0") -> dict[str, list[IndexEntry]]:
    """Return a set with device packages for gfx1100 and, generic ones, for gfx1103."""
    selector = {
        "": (("rocm-sdk-core", ""),),
        "libraries": (("rocm-sdk-libraries", ""),),
        "device-gfx1100": (("rocm-sdk-device-gfx1100", ""),),
        "device-gfx11-generic": (("rocm-sdk-device-gfx11-generic", ""),),
        "device-gfx1103": (("rocm-sdk-device-gfx11-generic", ""),),
        "device-all": (("rocm-sdk-device-gfx1100", ""), ("rocm-sdk-device-gfx11-generic", "")),
        "devel": (("rocm-sdk-devel", ""),),
    }
    libraries = {"": (("rocm-sdk-libraries", ""),)}
    entries = [
        make_entry("rocm", version, size=10, summary="Selects packages", requires=selector),
        make_entry("rocm-sdk-core", version, size=200),
        make_entry("rocm-sdk-devel", version, size=5000),
        make_entry("rocm-sdk-libraries", version, size=3000, requires={"": (("rocm-sdk-core", ""),)}),
        make_entry("rocm-sdk-device-gfx1100", version, size=40000, targets=("gfx1100",), requires=libraries),
        make_entry(
            "rocm-sdk-device-gfx11-generic", version, size=600000, targets=("gfx11-generic",), requires=libraries
        ),
    ]
    return group_by_project(entries)
