"""Sets of small but real packages, assembled from the SDK source."""

from __future__ import annotations

import io
import json
import lzma
import os
import re
import sys
import tarfile
from typing import TYPE_CHECKING, Any

import msgspec

from tests.support.places import ROOT
from tests.support.wheels import write_wheel

if TYPE_CHECKING:
    from pathlib import Path

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["PROGRAM", "RUN_PATH", "SDK", "Builder", "Options", "render_literals"]

SDK = ROOT / "src/rocwheel/sdk"

PROGRAM = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char self[4096] = {0};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 99;
    if (argc == 3 && !strcmp(argv[1], "exit")) return atoi(argv[2]);
    if (argc == 3 && !strcmp(argv[1], "kill")) raise(atoi(argv[2]));
    if (argc == 2 && !strcmp(argv[1], "spin")) for (;;) puts("y");
    printf("%s\n", self);
    for (int i = 0; i < argc; i++) printf("[%s]\n", argv[i]);
    return 0;
}
"""
SCRIPT = '#!/bin/sh\necho "script $(dirname "$(readlink -f "$0")")" "$@"\n'
RUN_PATH = "-Wl,-rpath,$ORIGIN/../../_rocm_sdk_core/lib"
FILE = 0o644
PROGRAM_FILE = 0o755


class Options(msgspec.Struct, frozen=True):
    """What one set of packages is like."""

    version: str = "7.2.0"
    devices: tuple[str, ...] = ("gfx906", "gfx1030")
    families: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Per-family layout when given: families and their targets."""
    served: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Neutral layout: devices and the further targets whose GPUs run their code."""
    default: str = ""
    nonce: str = ""
    selector: str = "sdist"
    devel: str = ""
    """Suffix of the archive: nothing, ``.xz`` or ``.zst``."""
    devel_name: str = "rocm-sdk-devel"
    """Of the distribution."""
    reverse_devel: bool = False
    extra_devel: tuple[tuple[str, str], ...] = ()
    """Further symlinks of the archive: name, text."""
    loose_devel: bool = False
    """Leave out the requirements of rocm-sdk-devel, as older sets did."""
    lacking_library: bool = False
    """Name a public library that no package has."""
    libraries_name: str = "libhipsparse.so.1"
    """Which binary serves as libhipsparse.so.1."""


class Builder:
    """Writes the distributions of one set."""

    def __init__(self, options: Options, binaries: Path, dist: Path) -> None:
        self.options = options
        self.binaries = binaries
        self.dist = dist
        self.per_family = bool(options.families)
        self.version = options.version

    def build(self) -> None:
        """Write all distributions."""
        self._core()
        for family, _ in self.options.families or (("", ()),):
            self._libraries(family)
        if not self.per_family:
            for device in self.options.devices:
                self._device(device)
        self._devel()
        self._profiler()
        self._selector()

    def build_info(self) -> dict[str, Any]:
        """Return the literals of rocm_sdk."""
        v = self.version
        family = "{family}"
        suffix, module_suffix = (f"-{family}", f"_{family}") if self.per_family else ("", "")
        packages = {
            "meta": ("rocm", "rocm_sdk", ""),
            "core": ("rocm-sdk-core", "rocm_sdk_core", f"_rocm_sdk_core{self.options.nonce}"),
            "libraries": (
                f"rocm-sdk-libraries{suffix}",
                f"rocm_sdk_libraries{module_suffix}",
                f"_rocm_sdk_libraries{module_suffix}",
            ),
            "device": ("rocm-sdk-device-{family}", "", "_rocm_sdk_libraries"),
            "devel": (self.options.devel_name, "rocm_sdk_devel", "_rocm_sdk_devel"),
            "profiler": ("rocm-profiler", "rocm_profiler", "_rocm_profiler"),
        }
        if self.per_family or not self.options.devices:
            del packages["device"]
        served = dict(self.options.served)
        families = dict(self.options.families) or {
            device: (device, *served.get(device, ())) for device in self.options.devices
        }
        extras = {"devel": [[f"{self.options.devel_name}=={v}", ""]], "profiler": [[f"rocm-profiler=={v}", ""]]}
        selected = {}
        if self.per_family:
            extras |= {f"libraries-{name.lower()}": [[f"rocm-sdk-libraries-{name}=={v}", ""]] for name in families}
            selected["libraries"] = f"rocm-sdk-libraries-{family}=={v}"
        else:
            extras["libraries"] = [[f"rocm-sdk-libraries=={v}", ""]]
            devices = {
                name: [f"rocm-sdk-device-{name}=={v}", "sys_platform == 'linux'"] for name in self.options.devices
            }
            extras |= {f"device-{name}": [pair] for name, pair in devices.items()}
            extras["device-all"] = list(devices.values())
            extras["device-gfx1100"] = [[f"rocm-sdk-core=={v.split('+')[0]}+gfx1100.is.not.in.this.release", ""]]
            if devices:
                selected["device"] = f"rocm-sdk-device-{family}=={v}"
            else:
                extras["device"] = []
        return {
            "VERSION": v,
            "MODULE_SUFFIX": self.options.nonce,
            "LAYOUT": "per-family" if self.per_family else "neutral",
            "FAMILIES": {name: {"targets": list(t), "platforms": ["linux"]} for name, t in families.items()},
            "DEFAULT_FAMILY": self.options.default,
            "PACKAGES": {
                name: dict(zip(("dist", "module", "platform_module"), names, strict=True))
                for name, names in packages.items()
            },
            "LIBRARIES": {
                "amdhip64": _library("core", "libamdhip64.so*"),
                "rocdxg": _library("core", "librocdxg.so*", optional=True),
                "hipsparse": _library("libraries", "libhipsparse.so*"),
                **({"rccl": _library("libraries", "librccl.so*")} if self.options.lacking_library else {}),
            },
            "OVERLAID": {},
            "COMMON_GPUS": [],
            "UNLOADABLE": ["*/libclang_rt.*"],
            "REQUIRES": [f"rocm-sdk-core=={v}"],
            "EXTRAS": extras,
            "SELECTED": selected if self.options.selector == "sdist" else {},
        }

    def _core(self) -> None:
        prefix = f"_rocm_sdk_core{self.options.nonce}"
        scripts = {
            "hipcc": {"path": "bin/hipcc", "expands": True, "check": ["--version"]},
            "amdclang++": {"path": "lib/llvm/bin/clang", "expands": True, "check": []},
            "rocminfo": {"path": "bin/rocminfo", "expands": False, "check": [], "gpu": True},
            "gone": {"path": "bin/gone", "expands": True},
        }
        info = {
            "VERSION": self.version,
            "PLATFORM_MODULE": prefix,
            "DEVEL_MODULE": "_rocm_sdk_devel",
            "DEVEL_PACKAGE": "rocm_sdk_devel",
            "SDK_MODULE": "rocm_sdk",
            "SCRIPTS": {name: script for name, script in scripts.items() if name != "gone" or self.options.nonce},
        }
        targets = [t for _, ts in self.options.families for t in ts] or list(self.options.devices)
        files = _source("rocm_sdk_core") | {
            "rocm_sdk_core/_build_info.py": (render_literals(info), FILE),
            f"{prefix}/__init__.py": (b"", FILE),
            f"{prefix}/bin/hipcc": (SCRIPT.encode(), PROGRAM_FILE),
            f"{prefix}/bin/rocminfo": (SCRIPT.encode(), PROGRAM_FILE),
            f"{prefix}/lib/llvm/bin/clang": (self._binary("program"), PROGRAM_FILE),
            f"{prefix}/lib/libamdhip64.so.6": (self._binary("libamdhip64.so.6"), PROGRAM_FILE),
            f"{prefix}/lib/clang/libclang_rt.so": (b"\x7fELF\x02\x01 no library", FILE),
            f"{prefix}/share/a,b.txt": (b"data", FILE),
            f"{prefix}/share/therock/dist_info.json": (
                json.dumps({"dist_amdgpu_targets": ";".join(targets)}).encode(),
                FILE,
            ),
        }
        self._wheel("rocm_sdk_core", files, ["Requires-Python: >=3.9"], _entry_points("rocm_sdk_core", info))

    def _libraries(self, family: str) -> None:
        module = f"rocm_sdk_libraries_{family.replace('-', '_')}" if family else "rocm_sdk_libraries"
        files = {
            f"{module}/__init__.py": ((SDK / "rocm_sdk_libraries/__init__.py").read_bytes(), FILE),
            f"_{module}/__init__.py": (b"", FILE),
            f"_{module}/lib/libhipsparse.so.1": (self._binary(self.options.libraries_name), FILE),
            f"_{module}/lib/rocblas/library/common.dat": (b"common", FILE),
        }
        name = f"rocm-sdk-libraries-{family}" if family else "rocm-sdk-libraries"
        self._wheel(name.replace("-", "_"), files, [f"Requires-Dist: rocm-sdk-core=={self.version}"])

    def _device(self, target: str) -> None:
        kernels = [f"lib/rocblas/library/kernels_{target}.co", f".kpack/blas_lib_{target}.kpack"]
        paths = [*kernels, f".device-{target}", "lib/note.txt"]
        links = [
            {"relpath": path, "target": f"{'../' * (path.count('/') + 1)}_rocm_sdk_libraries/{path}"} for path in paths
        ]
        manifest = json.dumps({"version": self.version, "links": links}).encode()
        files = {f"_rocm_sdk_libraries/{path}": (target.encode(), FILE) for path in kernels}
        files[f"_rocm_sdk_libraries/.devel_links/{target}.json"] = (manifest, FILE)
        files[f"_rocm_sdk_libraries/.device-{target}"] = (b"", FILE)
        requirement = [f"Requires-Dist: rocm-sdk-libraries=={self.version}"]
        self._wheel(f"rocm_sdk_device_{target}", files, requirement)

    def devel_members(self) -> list[tuple[str, str | bytes, int]]:
        """Name, link text or content, and mode of each member."""
        core = f"_rocm_sdk_core{self.options.nonce}"
        libraries = "_rocm_sdk_libraries"
        if self.per_family:
            libraries += f"_{self.options.families[0][0].replace('-', '_')}"
        members: list[tuple[str, str | bytes, int]] = [
            ("bin/hipcc", f"../../{core}/bin/hipcc", 0),
            ("bin/amdclang++", "../lib/llvm/bin/clang", 0),
            ("lib/llvm/bin/clang", f"../../../../{core}/lib/llvm/bin/clang", 0),
            ("lib/libamdhip64.so.6", f"../../{core}/lib/libamdhip64.so.6", 0),
            ("lib/libamdhip64.so", "libamdhip64.so.6", 0),
            ("lib/libhipsparse.so.1", f"../../{libraries}/lib/libhipsparse.so.1", 0),
            ("lib/libhipsparse.so", "libhipsparse.so.1", 0),
            ("lib/cmake/hip/hip-config.cmake", b"set(hip_FOUND 1)\n", FILE),
            ("include/hip/hip, runtime.h", b"#pragma once\n", FILE),
            ("libexec/tool", b"#!/bin/sh\necho tool\n", PROGRAM_FILE),
            ("llvm", "lib/llvm", 0),
            ("share/a,b.txt", f"../../{core}/share/a,b.txt", 0),
            ("lib/note.txt", b"of devel itself", FILE),
        ]
        members += [(name, text, 0) for name, text in self.options.extra_devel]
        return members[::-1] if self.options.reverse_devel else members

    def _devel(self) -> None:
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w") as archive:
            for name, content, mode in self.devel_members():
                archive.addfile(*_member(f"_rocm_sdk_devel/{name}", content, mode))
        suffix = self.options.devel
        files = _source("rocm_sdk_devel") | {
            f"rocm_sdk_devel/_devel.tar{suffix}": (_compress(tar.getvalue(), suffix), FILE)
        }
        families = [f"-{family}" for family, _ in self.options.families[:1]] or [""]
        requires = [f"Requires-Dist: rocm-sdk-core=={self.version}"]
        requires += [f"Requires-Dist: rocm-sdk-libraries{family}=={self.version}" for family in families]
        name = re.sub("[-_.]+", "_", self.options.devel_name)
        self._wheel(name, files, [] if self.options.loose_devel else requires)

    def _profiler(self) -> None:
        script = '#!/bin/sh\necho "$LD_LIBRARY_PATH|$PYTHONPATH|$@"\n'
        info = {
            "VERSION": self.version,
            "PLATFORM_MODULE": "_rocm_profiler",
            "DEVEL_MODULE": "",
            "DEVEL_PACKAGE": "",
            "SDK_MODULE": "rocm_sdk",
            "SCRIPTS": {
                "rocprof-compute": {
                    "path": "bin/rocprof-compute",
                    "expands": False,
                    "check": ["--version"],
                    "prepend": {
                        "LD_LIBRARY_PATH": ["_rocm_profiler/lib", f"_rocm_sdk_core{self.options.nonce}/lib"],
                        "PYTHONPATH": ["_rocm_profiler/absent"],
                    },
                }
            },
        }
        files = _source("rocm_profiler") | {
            "rocm_profiler/_build_info.py": (render_literals(info), FILE),
            "_rocm_profiler/__init__.py": (b"", FILE),
            "_rocm_profiler/lib/data": (b"", FILE),
            "_rocm_profiler/bin/rocprof-compute": (script.encode(), PROGRAM_FILE),
        }
        requires = [f"Requires-Dist: rocm-sdk-core=={self.version}"]
        self._wheel("rocm_profiler", files, requires, _entry_points("rocm_profiler", info))

    def _selector(self) -> None:
        info = self.build_info()
        files = _source("rocm_sdk") | {"rocm_sdk/_build_info.py": (render_literals(info), FILE)}
        if self.options.selector == "wheel":
            fields = ["Requires-Python: >=3.9", *(f"Requires-Dist: {r}" for r in info["REQUIRES"])]
            for extra, pairs in info["EXTRAS"].items():
                fields.append(f"Provides-Extra: {extra}")
                conditions = [(r, f"({m}) and extra == '{extra}'" if m else f"extra == '{extra}'") for r, m in pairs]
                fields += [f"Requires-Dist: {r}; {condition}" for r, condition in conditions]
            self._wheel("rocm", files, fields, "[console_scripts]\nrocm-sdk = rocm_sdk._cli:main\n", pure=True)
            return
        files |= _source("selector")
        files["PKG-INFO"] = (_PKG_INFO.format(version=self.version).encode(), FILE)
        files["pyproject.toml"] = (_PYPROJECT.encode(), FILE)
        files["LICENSE"] = (b"MIT\n", FILE)
        with tarfile.open(self.dist / f"rocm-{self.version}.tar.gz", "w:gz") as archive:
            for name, (data, mode) in files.items():
                archive.addfile(*_member(f"rocm-{self.version}/{name}", data, mode))

    def _binary(self, name: str) -> bytes:
        return (self.binaries / name).read_bytes()

    def _wheel(
        self,
        name: str,
        files: dict[str, tuple[bytes, int]],
        fields: list[str],
        entry_points: str = "",
        *,
        pure: bool = False,
    ) -> None:
        folder = f"{name.lower()}-{self.version}.dist-info"
        tag = "py3-none-any" if pure else f"py3-none-linux_{os.uname().machine}"
        dist_name = name.replace("_", "-")
        metadata = "\n".join(["Metadata-Version: 2.4", f"Name: {dist_name}", f"Version: {self.version}", *fields, ""])
        wheel = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: {str(pure).lower()}\nTag: {tag}\n"
        files = dict(files)
        for leaf, text in (("METADATA", metadata), ("WHEEL", wheel), ("entry_points.txt", entry_points)):
            if text:
                files[f"{folder}/{leaf}"] = (text.encode(), FILE)
        contents = {path: data for path, (data, _) in files.items()}
        modes = {path: 0o100000 | mode for path, (_, mode) in files.items()}
        write_wheel(self.dist / f"{name.lower()}-{self.version}-{tag}.whl", folder, contents, modes)


def _library(package: str, pattern: str, *, optional: bool = False) -> dict[str, Any]:
    return {"package": package, "directory": "lib", "pattern": pattern, "optional": optional}


def _source(package: str) -> dict[str, tuple[bytes, int]]:
    wanted = sorted((SDK / package).rglob("*.py"))
    return {path.relative_to(SDK).as_posix(): (path.read_bytes(), FILE) for path in wanted}


def render_literals(values: dict[str, Any]) -> bytes:
    return "".join(f"{name} = {value!r}\n" for name, value in values.items()).encode()


def _entry_points(module: str, info: dict[str, Any]) -> str:
    lines = [f"{name} = {module}._cli:{name.replace('+', 'p').replace('-', '_')}" for name in sorted(info["SCRIPTS"])]
    return "\n".join(["[console_scripts]", *lines, ""])


def _member(name: str, content: str | bytes, mode: int) -> tuple[tarfile.TarInfo, io.BytesIO | None]:
    member = tarfile.TarInfo(name)
    if isinstance(content, str):
        member.type, member.linkname = tarfile.SYMTYPE, content
        return member, None
    member.size, member.mode = len(content), mode
    return member, io.BytesIO(content)


def _compress(data: bytes, suffix: str) -> bytes:
    if suffix == ".xz":
        return lzma.compress(data)
    if suffix == ".zst":
        return bytes(zstd.compress(data))
    return data


_PYPROJECT = """\
[build-system]
requires = []
build-backend = "selector"
backend-path = ["."]
"""
_PKG_INFO = """\
Metadata-Version: 2.4
Name: rocm
Version: {version}
Summary: Selects the ROCm packages for the GPUs of this machine
License-Expression: MIT
License-File: LICENSE
Requires-Python: >=3.9
Dynamic: Requires-Dist
Dynamic: Provides-Extra

# ROCm

Text for people.
"""
