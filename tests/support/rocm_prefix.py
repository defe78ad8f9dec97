"""A folder laid out like AMD's own ``/opt/rocm``, of ROCm 6 or 7, with small real programs and libraries.

The names are those of https://rocm.docs.amd.com/en/docs-5.7.0/understand/file_reorg.html, of listings in AMD's issue
trackers, and of the file lists that distributions with the same layout publish.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, NamedTuple

from tests.support.bundles import bundle_of
from tests.support.rocm_prefix_files import CLANG, HIPCC, LINKS, TEXTS, TOOL

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ROCM_6", "ROCM_7", "Release", "make_rocm_prefix"]


class Release(NamedTuple):
    """What differs between the releases that the tree can be of."""

    version: str
    build: int
    """The number behind the version in ``.info/version``."""
    llvm: int
    """LLVM's major version, which names clang's resource folder."""
    libraries: str
    """The SONAMEs of the libraries in ``lib``."""


ROCM_6 = Release(
    "6.4.0",
    47,
    19,
    """
    libhsa-runtime64.so.1 librocprofiler-register.so.0 libamd_comgr.so.3 libamdhip64.so.6 libhiprtc.so.6
    libhiprtc-builtins.so.6 librocm_smi64.so.7 liboam.so.1 libamd_smi.so.25 librocm-core.so.1
    libhsa-amd-aqlprofile64.so.1
    libamdocl64.so.2 libcltrace.so.2 libOpenCL.so.1 librocm-dbgapi.so.0 librocm-debug-agent.so.2 libroctx64.so.4
    libroctracer64.so.4 librocprofiler64.so.1 librocprofiler-sdk.so.0 librocprofiler-sdk-roctx.so.0 librocblas.so.4
    libhipblas.so.2 libhipblaslt.so.0 librocsparse.so.1 libhipsparse.so.1 libhipsparselt.so.0 librocsolver.so.0
    libhipsolver.so.0 librocrand.so.1 libhiprand.so.1 librocfft.so.0 libhipfft.so.0 libMIOpen.so.1 librccl.so.1
    librpp.so.1
    librocalution.so.1 libhiptensor.so.0 librocdecode.so.0 librocjpeg.so.0 libmigraphx_c.so.3
    """,
)
ROCM_7 = Release(
    "7.0.0",
    38,
    20,
    """
    libhsa-runtime64.so.1 librocprofiler-register.so.0 libamd_comgr.so.3 libamdhip64.so.7 libhiprtc.so.7
    libhiprtc-builtins.so.7 librocm_smi64.so.1 liboam.so.1 libamd_smi.so.26 librocm-core.so.1
    libhsa-amd-aqlprofile64.so.1
    libamdocl64.so.2 libcltrace.so.2 libOpenCL.so.1 librocm-dbgapi.so.0 librocm-debug-agent.so.2 libroctx64.so.4
    libroctracer64.so.4 librocprofiler-sdk.so.1 librocprofiler-sdk-roctx.so.1 librocblas.so.5 libhipblas.so.3
    libhipblaslt.so.1 librocroller.so.1 liborigami.so.1 librocsparse.so.1 libhipsparse.so.4 libhipsparselt.so.0
    librocsolver.so.0 libhipsolver.so.1 librocrand.so.1 libhiprand.so.1 librocfft.so.0 libhipfft.so.0 libMIOpen.so.1
    librccl.so.1 librpp.so.2 librocalution.so.1 libhiptensor.so.2 librocdecode.so.1 librocjpeg.so.1 libmigraphx_c.so.3
    """,
)

_NEEDS = {
    "libamdhip64": ("libamd_comgr", "libhsa-runtime64", "librocprofiler-register"),
    "libhiprtc": ("libamd_comgr",),
    "libhipblas": ("librocblas", "librocsolver"),
    "librocblas": ("libamdhip64", "libhipblaslt"),
    "librocsolver": ("librocblas", "libamdhip64"),
    "libMIOpen": ("librocblas", "libhipblaslt", "libamdhip64", "librocrand"),
    "librocalution": ("librocblas", "librocsparse", "librocrand"),
}
"""What libraries need, by the stems of their names; each RUNPATH is AMD's."""

_RUN_PATH = "$ORIGIN:$ORIGIN/../lib:$ORIGIN/../lib64"

_BITCODE = ("asanrtl", "hip", "ockl", "ocml", "oclc_abi_version_500", "oclc_isa_version_942", "opencl")
_TARGETS = ("gfx90a", "gfx942", "gfx1100")


def make_rocm_prefix(folder: Path, release: Release = ROCM_6) -> Path:
    """Make ``folder/rocm-VERSION``, and the link ``folder/rocm`` to it, as AMD's packages do in ``/opt``; needs gcc.

    Return the folder with the version.
    """
    root = folder / f"rocm-{release.version}"
    for name, text in TEXTS.items():
        _write(root / _fill(name, release), _fill(text, release).encode())
    for name in _BITCODE:
        _write(root / f"lib/llvm/lib/clang/{release.llvm}/lib/amdgcn/bitcode/{name}.bc", b"BC\xc0\xde" + name.encode())
    for target in _TARGETS:
        _write(root / f"lib/rocblas/library/Kernels_{target}.co", bundle_of(target))
        _write(root / f"lib/rocblas/library/TensileLibrary_{target}.dat", b"table")
    _make_binaries(root, release)
    for name, target in LINKS.items():
        _link(root / name, _fill(target, release))
    (folder / "rocm").symlink_to(root.name)
    return root


def _make_binaries(root: Path, release: Release) -> None:
    sonames = {soname.partition(".so")[0]: soname for soname in release.libraries.split()}
    library = f"lib/llvm/lib/libLLVM.so.{release.llvm}.0git"
    _compile(root / library, "", "-shared", f"-Wl,-soname,libLLVM.so.{release.llvm}.0git")
    linked = ("-Wl,--no-as-needed", f"-Wl,-rpath,$ORIGIN/../lib:$ORIGIN/../../lib:{root}/lib", str(root / library))
    sources = {"bin/hipcc": HIPCC, "bin/hipconfig": TOOL, "bin/hipify-clang": TOOL, "bin/clinfo": TOOL}
    sources |= {"bin/rocgdb": TOOL, "bin/rocminfo": TOOL, "bin/migraphx-driver": TOOL}
    compilers = {
        f"lib/llvm/bin/clang-{release.llvm}": CLANG,
        "lib/llvm/bin/lld": TOOL,
        "lib/llvm/bin/offload-arch": TOOL,
    }
    for path, source in sources.items():
        _compile(root / path, _fill(source, release))
    for path, source in compilers.items():
        _compile(root / path, _fill(source, release), *linked)
    for stem in sorted(sonames, key=lambda stem: _depth(stem, sonames)):
        _make_library(root, sonames, stem)


def _depth(stem: str, sonames: dict[str, str]) -> int:
    return 1 + max((_depth(needed, sonames) for needed in _NEEDS.get(stem, ()) if needed in sonames), default=0)


def _make_library(root: Path, sonames: dict[str, str], stem: str) -> None:
    """Make the library with its full version, and its two links."""
    soname = sonames[stem]
    real = root / f"lib/{soname}.0.{root.name.removeprefix('rocm-').replace('.', '0')}"
    needed = [str(root / "lib" / sonames[other]) for other in _NEEDS.get(stem, ()) if other in sonames]
    source = f"int {stem.replace('-', '_')}_version(void) {{ return 1; }}\n"
    options = ("-shared", f"-Wl,-soname,{soname}", f"-Wl,-rpath,{_RUN_PATH}", "-Wl,--no-as-needed", *needed)
    _compile(real, source, *options)
    _link(root / "lib" / soname, real.name)
    _link(root / "lib" / f"{stem}.so", soname)


def _compile(path: Path, source: str, *options: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-O1", "-fPIC", "-Wl,--build-id", "-x", "c", "-", "-x", "none", *options, "-o", str(path)]
    subprocess.run(command, input=source.encode(), check=True, capture_output=True)


def _fill(text: str, release: Release) -> str:
    values = {
        "VERSION": release.version,
        "MAJOR": release.version[0],
        "BUILD": str(release.build),
        "LLVM": str(release.llvm),
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o755 if data.startswith(b"#!") else 0o644)


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
