"""A folder laid out like AMD's own ``/opt/rocm`` since ROCm 7.10: a folder for each release, and links to it.

The releases lie in ``core-X.Y``, which is the tree that TheRock builds; ``core`` and ``core-X`` are links to the newest
one, ``bin``, ``lib`` and others to its folders, all by way of ``/etc/alternatives``, and ``extras-X`` holds what is
built on top of it. Sources: TheRock's RFC 9 (OS packaging requirements), its pull requests 2728 and 4160, and
https://rocm.docs.amd.com/en/docs-10.0.0/about/transition-guide-TheRock.html.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from rocwheel.artifacts.catalog import open_catalog
from rocwheel.demo import SAMPLE_SDK

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["make_core_prefix", "make_extras", "make_rocm_folder"]

_LINKED = ("amdgcn", "bin", "include", "lib", "libexec", "llvm", "share")
_HIP = {"7.14.0": "7.14.60850-0000000", "10.0.0": "7.15.26333-0000000"}
"""How the releases end the name of HIP's library: neither with their own number nor with digits alone."""


def make_rocm_folder(parent: Path, *releases: str) -> Path:
    """Make ``parent/opt/rocm`` with the releases in it, the newest last, and return it."""
    rocm, alternatives = parent / "opt/rocm", parent / "etc/alternatives"
    alternatives.mkdir(parents=True)
    for release in releases:
        newest = make_core_prefix(rocm, release)
    major = newest.name.partition(".")[0]
    targets = {name: newest / name for name in _LINKED} | {"core": newest, major: newest}
    for name, target in targets.items():
        link = alternatives / (name if name.startswith("core") else f"rocm-{name}")
        link.symlink_to(target)
        (rocm / name).symlink_to(link)
    (parent / "opt" / f"rocm-{releases[-1]}").symlink_to(newest)
    return rocm


def make_core_prefix(rocm: Path, release: str) -> Path:
    """Make ``rocm/core-X.Y``, with the files of the sample SDK laid over one another, and return it."""
    root = rocm / f"core-{release.rpartition('.')[0]}"
    with open_catalog(SAMPLE_SDK) as catalog:
        for entry in catalog.entries:
            path = root / _renamed(entry.path, release)
            if entry.source or entry.link:
                path.parent.mkdir(parents=True, exist_ok=True)
            if entry.link:
                path.symlink_to(_renamed(entry.link, release))
            elif entry.source:
                path.write_bytes(entry.source.read())
                path.chmod(entry.mode)
    _state_release(root, release)
    return root


def make_extras(rocm: Path, core: Path, *, major: str = "7") -> Path:
    """Make ``rocm/extras-MAJOR`` with a MIGraphX that needs the HIP of ``core``, and return it; needs gcc."""
    root = rocm / f"extras-{major}"
    for name, text in {
        "bin/rvs": "#!/bin/sh\necho rvs\n",
        "include/migraphx/migraphx.h": "#pragma once\n",
        "lib/cmake/migraphx/migraphx-config.cmake": "add_library(migraphx::c INTERFACE IMPORTED)\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "bin/rvs").chmod(0o755)
    inner = root / "lib/migraphx/lib/libmigraphx.so.2"
    _link_library(inner, str(core / "lib/libamdhip64.so.7"))
    _link_library(root / "lib/libmigraphx_c.so.3", str(inner), "-Wl,-rpath,$ORIGIN/migraphx/lib")
    (root / "lib/libmigraphx_c.so").symlink_to("libmigraphx_c.so.3")
    return root


def _renamed(path: str, release: str) -> str:
    """Return a name of the sample's release as another release has it."""
    major, minor, patch = map(int, release.split("."))
    renamed = path.replace(".70000", f".{major * 10000 + minor * 100 + patch}")
    return renamed.replace("libamdhip64.so.7.0.0", f"libamdhip64.so.{_HIP[release]}")


def _state_release(root: Path, release: str) -> None:
    (root / ".info/version").write_text(f"{release}\n")
    manifest = root / "share/therock/therock_manifest.json"
    facts = json.loads(manifest.read_bytes())
    manifest.write_text(json.dumps(facts | {"rocm_version": release, "rocm_package_version": release}))
    header = root / "include/rocm-core/rocm_version.h"
    numbers = zip(("MAJOR", "MINOR", "PATCH"), release.split("."), strict=True)
    header.write_text("".join(f"#define ROCM_VERSION_{name} {number}\n" for name, number in numbers))


def _link_library(path: Path, needed: str, *options: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-x", "none", f"-Wl,-soname,{path.name}"]
    command += ["-Wl,--no-as-needed", needed, *options, "-o", str(path)]
    subprocess.run(command, input=b"int one(void) { return 1; }\n", check=True, capture_output=True)
