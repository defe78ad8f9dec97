"""Real wheels for Windows that break one rule, and such that keep it: for each rule the bad, the good, and settings."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from tests.support.packs import Pack
from tests.support.pe_files import pe_file

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["REAL_CASES"]

TAG = "py3-none-win_amd64"
CHECKSUM_AT, IMAGE_SIZE_AT, CERTIFICATES_AT = 0x40 + 24 + 64, 0x40 + 24 + 56, 0x40 + 24 + 112 + 32


def files(contents: Mapping[str, bytes], name: str = "demo", requires: tuple[str, ...] = ()) -> tuple[Pack, ...]:
    return (Pack(files=contents, tag=TAG, name=name, requires=requires),)


def plain(*paths: str) -> tuple[Pack, ...]:
    return files(dict.fromkeys(paths, b"1"))


def importing(*imports: str, path: str = "demo/a.dll", **more: bytes) -> tuple[Pack, ...]:
    name = path.rpartition("/")[2]
    return files(
        {path: pe_file(name, *imports, is_dll=name.endswith(".dll"))} | {f"demo/{k}.dll": v for k, v in more.items()}
    )


def changed(at: int, layout: str, *values: int) -> bytes:
    data = bytearray(pe_file("a.dll"))
    struct.pack_into(layout, data, at, *values)
    return bytes(data)


def alone(data: bytes) -> tuple[Pack, ...]:
    return files({"demo/a.dll": data})


def signed(data: bytes, content: bytes) -> bytes:
    changed = bytearray(data)
    struct.pack_into("<II", changed, CERTIFICATES_AT, len(data), 8 + len(content))
    return bytes(changed) + struct.pack("<IHH", 8 + len(content), 0x200, 1) + content


B, CORE_B = pe_file("b.dll"), {"_rocm_sdk_core/bin/b.dll": pe_file("b.dll")}
CORE = files(CORE_B, "rocm_sdk_core")
NEEDS_CORE = {"_rocm_sdk_libraries/bin/a.dll": pe_file("a.dll", "b.dll")}
BACK = {"_rocm_sdk_core/bin/b.dll": pe_file("b.dll", "a.dll")}
LATER = {"_rocm_sdk_core/bin/b.dll": pe_file("b.dll", delayed=("a.dll",))}
BOTH = ("rocm-sdk-core", "rocm-sdk-libraries")

REAL_CASES: dict[str, tuple[Any, ...]] = {
    "dll-missing": (importing("absent.dll"), importing("KERNEL32.dll", "api-ms-win-core-synch-l1-2-0.dll")),
    "dll-unreachable": (
        files({"demo/a.dll": pe_file("a.dll", "b.dll"), "demo/lib/b.dll": B}),
        files({"demo/a.dll": pe_file("a.dll", "B.dll"), "demo/b.dll": B}),
    ),
    "dll-function": (
        files({"demo/a.dll": pe_file("a.dll", "b.dll"), "demo/b.dll": pe_file("b.dll", function="g")}),
        files({"demo/a.dll": pe_file("a.dll", "b.dll"), "demo/b.dll": B}),
    ),
    "dll-undeclared": (
        CORE + files(NEEDS_CORE, "rocm_sdk_libraries"),
        CORE + files(NEEDS_CORE, "rocm_sdk_libraries", ("rocm-sdk-core",)),
    ),
    "dll-redistributable": (importing("MSVCP140.dll"), importing("VCRUNTIME140.dll", "ucrtbase.dll")),
    "dll-debug-runtime": (importing("MSVCP140D.dll"), importing("MSVCP140.dll")),
    "dll-from-driver": (
        importing("amdhip64.dll"),
        importing("amdhip64.dll", amdhip64=pe_file("amdhip64.dll")),
    ),
    "dll-of-driver": (
        files({"demo/OpenCL.dll": pe_file("OpenCL.dll")}),
        files({"_rocm_sdk_core/bin/OpenCL.dll": pe_file("OpenCL.dll")}, "rocm_sdk_core"),
    ),
    "dll-clash": (
        files({"one/x.dll": pe_file("x.dll")}, "one") + files({"two/X.dll": pe_file("X.dll")}, "two"),
        files({"one/x.dll": pe_file("x.dll")}, "one") + files({"two/y.dll": pe_file("y.dll")}, "two"),
    ),
    "dll-renamed": (alone(pe_file("b.dll")), alone(pe_file("A.DLL"))),
    "dll-circle": (
        files(BACK, "rocm_sdk_core", BOTH) + files(NEEDS_CORE, "rocm_sdk_libraries", BOTH),
        files(LATER, "rocm_sdk_core", BOTH) + files(NEEDS_CORE, "rocm_sdk_libraries", BOTH),
    ),
    "import-library": (plain("demo/lib/libhipblaslt.dll.a"), plain("demo/lib/hipblaslt.lib")),
    "image-layout": (alone(changed(IMAGE_SIZE_AT, "<I", 0x9000)), alone(pe_file("a.dll"))),
    "image-size": (
        alone(changed(IMAGE_SIZE_AT, "<I", 0x80000000)),
        alone(changed(IMAGE_SIZE_AT, "<I", 0x7FFFF000)),
    ),
    "image-checksum": (alone(changed(CHECKSUM_AT, "<I", 1)), alone(pe_file("a.dll"))),
    "image-signature": (alone(signed(pe_file("a.dll"), bytes(8)) + b"more"), alone(signed(pe_file("a.dll"), bytes(8)))),
    "image-signed": (alone(signed(pe_file("a.dll"), bytes(8))), alone(pe_file("a.dll"))),
    "image-archives": (alone(pe_file("a.dll", section_name=".kpackrf")), alone(pe_file("a.dll"))),
    "windows-name": (plain("demo/gfx90a:xnack+.kpack"), plain("demo/gfx90a-xnack.kpack")),
    "windows-case": (plain("demo/Name", "demo/name"), plain("demo/name", "demo/name2")),
    "windows-path": (plain(f"demo/{'x' * 180}"), plain(f"demo/{'x' * 170}")),
    "windows-kernels": (
        plain(f"{'x' * 90}/rocblas/library/a.dat"),
        plain("_rocm_sdk_libraries/bin/rocblas/library/a.dat"),
    ),
}
