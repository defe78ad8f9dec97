"""Every rule of the audit on real files: one wheel that breaks it, and one that keeps it."""

from __future__ import annotations

import io
import struct
import zipfile
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from elftools.elf.elffile import ELFFile

from rocwheel.audit.audit import audit
from rocwheel.audit.rules import ALL_RULES
from rocwheel.audit.settings import AuditSettings
from rocwheel.environment.read_tree import read_environments
from rocwheel.wheels.render_sbom import render_bill
from rocwheel.wheels.sbom import SBOM_NAME, BillItem, BillOfMaterials
from tests.audit.rules.windows.real_cases import REAL_CASES
from tests.support.libraries import Lib, needs_compiler
from tests.support.packs import FIXTURES, Pack, adding, bundles, changed, pack, repacked, without

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = [pytest.mark.slow, needs_compiler]

HIP = "libamdhip64.so.7"
CORE = Pack((Lib(f"_rocm_sdk_core/lib/{HIP}"),), name="rocm_sdk_core")
TO_CORE = "$ORIGIN/../_rocm_sdk_core/lib"
F, USES_F = "int f(void) { return 1; }", "int f(void); int use(void) { return f(); }"
LLVM = "int LLVMInitializeCore(void) { return 1; }"
DEVICE = "rocm_sdk_device_gfx1030"
# The end of a program header: 4 bytes in the file and in memory, and the alignment.
_ALIGNED, _TO_16 = struct.pack("<3Q", 4, 4, 0x1000), struct.pack("<3Q", 4, 4, 16)


_VERSIONED = (
    Lib(
        "demo/a.so",
        source="double fma(double, double, double); double use(double x) { return fma(x, x, x); }",
        options=("-lm",),
    ),
)


def _without_needed(path: Path, name: str) -> Path:
    """Do what patchelf --remove-needed does to a file that needs one library: its table of versions stays."""
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    data = bytearray(members[name])
    section = ELFFile(io.BytesIO(data)).get_section_by_name(".dynamic")
    assert section is not None
    start = section["sh_offset"]
    assert data[start] == 1
    data[start] = 21  # DT_DEBUG, which loaders pass over in libraries
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in (members | {name: bytes(data)}).items():
            archive.writestr(member, content)
    return path


class Case(NamedTuple):
    """Wheels that break a rule, wheels that keep it, and the settings of both audits."""

    bad: tuple[Pack, ...]
    good: tuple[Pack, ...]
    settings: Mapping[str, Any] = {}


def one(bad: Lib, good: Lib, *more: Lib, **settings: Any) -> Case:
    """Return a case of one library, with further ones beside it."""
    return Case((Pack((bad, *more)),), (Pack((good, *more)),), settings)


def run_path(bad: str, good: str = "$ORIGIN", path: str = "demo/a.so", **settings: Any) -> Case:
    return one(Lib(path, (), bad), Lib(path, (), good), **settings)


def pair(first: tuple[Lib, ...], bad: Lib, good: Lib) -> Case:
    return Case((Pack((*first, bad)),), (Pack((*first, good)),))


def device(bad: bytes, good: bytes) -> Case:
    return Case((Pack(files={"demo/k.hipfb": bad}),), (Pack(files={"demo/k.hipfb": good}),))


def bill(*texts: str) -> dict[str, bytes]:
    items = (BillItem("c", "rocFFT", license_files=texts),)
    return {
        f"demo-1.0.dist-info/{SBOM_NAME}": render_bill(BillOfMaterials(BillItem("s", "demo", made_of=("c",)), items, 0))
    }


def commands(module: bytes) -> dict[str, bytes]:
    return {
        "demo/_cli.py": module,
        "demo-1.0.dist-info/entry_points.txt": b"[console_scripts]\nroc-obj = demo._cli:main\n",
    }


def with_unknown_field(info: zipfile.ZipInfo, data: bytes) -> bytes:
    return data.replace(b"\nName:", b"\nX-Built-By: me\nName:") if info.filename.endswith("/METADATA") else data


def with_idle_zip64(info: zipfile.ZipInfo, data: bytes) -> bytes:
    info.extra = b"\1\0\x08\0" + bytes(8)
    return data


USES_PYTHON, ABI3 = "void *{0}(void); void *f(void) {{ return {0}(); }}", "cp39-abi3-manylinux_2_5_x86_64"
MACH_O, JAVA_CLASS = bytes.fromhex("cffaedfe0c000001") + bytes(56), bytes.fromhex("cafebabe00000041") + bytes(56)
TWO = (FIXTURES / "v22/libtwo.plain.so").read_bytes()
CASES: dict[str, Case] = {
    "unresolved-library": one(Lib("demo/a.so", ("libfoo.so.1",)), Lib("demo/a.so", ("libc.so.6",))),
    "unreachable-library": one(
        Lib("demo/a.so", ("libb.so",)), Lib("demo/a.so", ("libb.so",), "$ORIGIN/lib"), Lib("demo/lib/libb.so")
    ),
    "inherited-run-path": one(
        Lib("demo/libb.so", ("libd.so",)),
        Lib("demo/libb.so", ("libd.so",), "$ORIGIN/lib"),
        Lib("demo/a.so", ("libb.so",), "$ORIGIN:$ORIGIN/lib", is_rpath=True),
        Lib("demo/lib/libd.so"),
    ),
    "unresolved-dlopen": one(
        Lib("demo/a.so"), Lib("demo/a.so", (), "$ORIGIN"), Lib("demo/libb.so"), dlopen={"demo/a.so": ("libb.so",)}
    ),
    "undeclared-requirement": Case(
        (CORE, Pack((Lib("demo/a.so", (HIP,), TO_CORE),))),
        (CORE, Pack((Lib("demo/a.so", (HIP,), TO_CORE),), requires=("rocm-sdk-core",))),
    ),
    "unintended-library": Case(
        (CORE, Pack((Lib("demo/a.so", (HIP,), f"{TO_CORE}:$ORIGIN"), Lib(f"demo/{HIP}")))),
        (CORE, Pack((Lib("demo/a.so", (HIP,), f"$ORIGIN:{TO_CORE}"), Lib(f"demo/{HIP}")))),
    ),
    "undefined-symbol": one(
        Lib("demo/a.so", source=USES_F),
        Lib("demo/a.so", ("libf.so",), "$ORIGIN", source=USES_F),
        Lib("demo/libf.so", source=F),
    ),
    "version-of-unneeded": Case(
        (Pack(_VERSIONED, finish=lambda path: _without_needed(path, "demo/a.so")),),
        (Pack(_VERSIONED),),
    ),
    "run-path-relative": run_path("rocm_dis/lib"),
    "run-path-eaten-origin": run_path("/../rocm/lib"),
    "run-path-build-folder": run_path("$ORIGIN/../../_solib_k8/x"),
    "run-path-absolute": run_path("/opt/rocm/lib"),
    "run-path-repeated": run_path("$ORIGIN:$ORIGIN/../demo"),
    "run-path-dead": run_path("$ORIGIN/lib"),
    "run-path-wrong-depth": run_path(TO_CORE, f"$ORIGIN/../{TO_CORE.removeprefix('$ORIGIN/')}", path="demo/gpu/a.so"),
    "run-path-mixed": one(
        Lib("demo/a.so", (), "$ORIGIN", is_rpath=True), Lib("demo/a.so", (), "$ORIGIN"), Lib("demo/b.so", (), "$ORIGIN")
    ),
    "rpath-into-others": Case(
        (CORE, Pack((Lib("demo/a.so", (HIP,), TO_CORE, is_rpath=True),), requires=("rocm-sdk-core",))),
        (CORE, Pack((Lib("demo/a.so", (HIP,), TO_CORE, is_rpath=True),), requires=("rocm-sdk-core==1.0",))),
    ),
    "run-path-unexpected": run_path("$ORIGIN", "$ORIGIN/..", expect_runpath="$ORIGIN/.."),
    "run-path-tag": one(
        Lib("demo/a.so", (), "$ORIGIN", is_rpath=True), Lib("demo/a.so", (), "$ORIGIN"), expect_tag="runpath"
    ),
    "unreadable-binary": Case(
        (Pack(files={"demo/a.so": (FIXTURES / "elf/libplain.so").read_bytes()[:300]}),),
        (Pack(files={"demo/a.so": (FIXTURES / "elf/libplain.so").read_bytes()}),),
    ),
    "symlink": Case((Pack(finish=adding("demo/liba.so", b"liba.so.1", 0o120777)),), (Pack(),)),
    "wrong-mode": Case((Pack(finish=adding("demo/a.py", mode=0o100666)),), (Pack(finish=adding("demo/a.py")),)),
    "duplicate-library": one(Lib("demo/libx.so", soname="libx.so.1"), Lib("demo/liby.so.1"), Lib("demo/libx.so.1")),
    "soname-clash": pair(
        (
            Lib("demo/a/a.so", ("libx.so",), "$ORIGIN"),
            Lib("demo/a/libx.so", source=F),
            Lib("demo/b/b.so", ("libx.so",), "$ORIGIN"),
        ),
        Lib("demo/b/libx.so", source="int g(void) { return 2; }"),
        Lib("demo/b/libx.so", source=F),
    ),
    "path-collision": Case(
        (Pack(files={"shared/x.py": b"1"}, name="one"), Pack(files={"shared/x.py": b"2"}, name="two")),
        (Pack(files={"shared/x.py": b"1"}, name="one"), Pack(files={"shared/y.py": b"2"}, name="two")),
    ),
    "path-outside": Case((Pack(finish=adding("../evil.so")),), (Pack(finish=adding("demo/good.so")),)),
    "tag-too-old": Case(
        (Pack((Lib("demo/a.so", source="unsigned arc4random(void); int f(void) { return arc4random(); }",
                   options=("-lc",)),), tag="py3-none-manylinux_2_17_x86_64"),),
        (Pack((Lib("demo/a.so", source="int getpid(void); int f(void) { return getpid(); }", options=("-lc",)),),
              tag="py3-none-manylinux_2_17_x86_64"),),
    ),
    "tag-too-new": Case(
        (Pack((Lib("demo/a.so"),), tag="py3-none-manylinux_2_28_x86_64"),), (Pack((Lib("demo/a.so"),)),)
    ),
    "tag-unknown": Case(
        (Pack((Lib("demo/a.so"),), tag="py3-none-manylinx_2_28_x86_64"),), (Pack((Lib("demo/a.so"),)),)
    ),
    "tag-local": Case((Pack((Lib("demo/a.so"),), tag="py3-none-linux_x86_64"),), (Pack((Lib("demo/a.so"),)),)),
    "elf-in-any-wheel": Case((Pack((Lib("demo/a.so"),), tag="py3-none-any"),), (Pack((Lib("demo/a.so"),)),)),
    "elf-in-purelib": Case((Pack((Lib("demo/a.so"),), is_purelib=True),), (Pack((Lib("demo/a.so"),)),)),
    "wrong-machine": Case(
        (Pack(files={"demo/a.so": (FIXTURES / "elf/libaarch64.so").read_bytes()}),),
        (Pack(files={"demo/a.so": (FIXTURES / "elf/libaarch64.so").read_bytes()},
              tag="py3-none-manylinux_2_17_aarch64"),),
    ),
    "wrong-python": one(Lib("demo/a.so", ("libpython3.11.so.1.0",)), Lib("demo/a.so", ("libpython3.so",))),
    "unstable-symbol": Case(
        (Pack((Lib("demo/a.abi3.so", source=USES_PYTHON.format("PyUnicode_Resize_")),), tag=ABI3),),
        (Pack((Lib("demo/a.abi3.so", source=USES_PYTHON.format("PyUnicode_Resize")),), tag=ABI3),),
    ),
    "mach-o-unchecked": Case(
        (Pack(files={"demo/a.dylib": MACH_O}, tag="py3-none-macosx_11_0_arm64"),),
        (Pack(files={"demo/A.class": JAVA_CLASS}, tag="py3-none-macosx_11_0_arm64"),),
    ),
    "tag-mismatch": Case(
        (Pack(finish=lambda path: path.rename(path.with_name("demo-1.0-py3-none-linux_x86_64.whl"))),), (Pack(),)
    ),
    "musl-unchecked": Case(
        (Pack((Lib("demo/a.so", ("libc.musl-x86_64.so.1",)),), tag="py3-none-musllinux_1_2_x86_64"),),
        (Pack((Lib("demo/a.so", ("libc.so.6",)),)),),
    ),
    "segment-alignment": Case(
        (Pack(files={"demo/a.so": changed("elf/liblld.so", _ALIGNED, _TO_16)}, tag="py3-none-linux_x86_64"),),
        (Pack(files={"demo/a.so": (FIXTURES / "elf/liblld.so").read_bytes()}, tag="py3-none-linux_x86_64"),),
    ),
    "executable-stack": one(
        Lib("demo/a.so", options=("-Wl,-z,execstack",)), Lib("demo/a.so", options=("-Wl,-z,noexecstack",))
    ),
    "text-relocations": one(
        Lib("demo/a.so", source=F + '__asm__(".text\\n.quad f");', options=("-Wl,-z,notext",)),
        Lib("demo/a.so", source=F + '__asm__(".data\\n.quad f");'),
    ),
    "writable-code": one(Lib("demo/a.so", source=F, options=("-Wl,--omagic",)), Lib("demo/a.so", source=F)),
    "missing-build-id": one(Lib("demo/a.so", source=F, options=("-Wl,--build-id=none",)), Lib("demo/a.so", source=F)),
    "two-hip-runtimes": one(
        Lib("demo/a.so", ("libamdhip64.so.6", "libamdhip64.so.7"), "$ORIGIN"),
        Lib("demo/a.so", ("libamdhip64.so.7",), "$ORIGIN"),
        Lib("demo/libamdhip64.so.6"), Lib("demo/libamdhip64.so.7"),
    ),
    "two-llvms": one(
        Lib("demo/a.so", ("libb.so",), "$ORIGIN", source=LLVM),
        Lib("demo/a.so", ("libb.so",), "$ORIGIN", source=f'__attribute__((visibility("hidden"))) {LLVM}'),
        Lib("demo/libb.so", source=LLVM),
    ),
    "symbol-collision": one(
        Lib("demo/a.so", ("libb.so",), "$ORIGIN", source=F),
        Lib("demo/a.so", ("libb.so",), "$ORIGIN", source=f"static {F} int *use(void) {{ return (int *)f; }}"),
        Lib("demo/libb.so", source=F),
    ),
    "device-target-missing": device(
        bundles("hip/fam.gfx1030.hipfb", "hip/fam.gfx1100.hipfb"), bundles("v22/saxpy.hipfb", "v23/saxpy.hipfb")
    ),
    "device-target-absent": Case(
        (Pack(files={"_libs/k.hipfb": bundles("hip/fam.gfx1100.hipfb")}, name=DEVICE),),
        (Pack(files={"_libs/k.hipfb": bundles("hip/fam.gfx1030.hipfb")}, name=DEVICE),),
    ),
    "device-target-uneven": Case(
        (Pack(files={"demo/a.so": TWO, "demo/b.so": TWO.replace(b"hsa--gfx1030", b"hsa--gfx1031")}),),
        (Pack(files={"demo/a.so": TWO, "demo/b.so": TWO}),),
    ),
    "kpack-archives": Case(
        (Pack(files={"demo/a.so": changed("v22/libtwo.plain.so", b"FPIH", b"HIPK")}),),
        (Pack(files={"demo/a.so": TWO}),),
    ),
    "kernel-folders": Case(
        (Pack(files={"demo/librocblas.so.5": TWO, "demo/rocblas/library/TensileLibrary_lazy_gfx906.dat": b"x"}),),
        (Pack(files={"demo/librocsparse.so.1": TWO, "demo/hipblaslt/library/TensileLibrary_lazy_gfx906.dat": b"x"}),),
    ),
    "device-code-versions": device(
        bundles("v16/vadd.cov2.hipfb", "v16/vadd.cov3.hipfb"), bundles("v16/vadd.cov3.hipfb", "v16/vadd.cov3.hipfb")
    ),
    "device-code-plain": device(bundles(*["v22/saxpy.hipfb"] * 30), bundles(*["v22/saxpy.ccob.hipfb"] * 500)),
    "kernel-metadata": device(
        changed("v22/saxpy.hipfb", b"\xaeamdhsa.kernels", b"\xc1amdhsa.kernels"), bundles("v22/saxpy.hipfb")
    ),
    "kernel-metadata-target": device(
        changed("v22/saxpy.hipfb", b"amdhsa.target", b"amdhsa.nobody"), bundles("v22/saxpy.hipfb")
    ),
    "device-compilers": device(
        bundles("v22/saxpy.hipfb", "v23/saxpy.hipfb"), bundles("v22/saxpy.hipfb", "v22/saxpy.hipfb")
    ),
    "host-compiler": Case(
        (Pack(files={"demo/a.so": changed("v22/libtwo.plain.so", b"clang version 22.1.8", b"clang version 18.1.8")}),),
        (Pack(files={"demo/a.so": (FIXTURES / "v22/libtwo.plain.so").read_bytes()}),),
    ),
    "license-file-missing": Case((Pack(finish=without("LICENSE")),), (Pack(),)),
    "license-missing": Case((Pack(finish=without("LICENSE")),), (Pack(),)),
    "component-license-missing": Case((Pack(files=bill()),), (Pack(files=bill("LICENSE")),)),
    "metadata-malformed": Case((Pack(requires=("numpy = 1",)),), (Pack(requires=("numpy == 1",)),)),
    "metadata-invalid": Case((Pack(finish=repacked(with_unknown_field)),), (Pack(),)),
    "archive-refused": Case((Pack(finish=repacked(with_idle_zip64)),), (Pack(),)),
    "script-broken": Case((Pack(files=commands(b"")),), (Pack(files=commands(b"def main(): ...")),)),
    "requirement-unsatisfied": Case(
        (CORE, Pack(requires=("rocm-sdk-core==2.0",))), (CORE, Pack(requires=("rocm-sdk-core==1.0",)))
    ),
    "requirement-unavailable": Case(
        (Pack(requires=("rocm-sdk-core",)),), (CORE, Pack(requires=("rocm-sdk-core",))), {"closed": True}
    ),
    "record-wrong": Case((Pack(finish=adding("demo/a.py")),), (Pack(files={"demo/a.py": b""}),)),
    "import-clash": Case(
        (Pack(files={"plugins/__init__.py": b""}, name="one"), Pack(files={"plugins/x.py": b""}, name="two")),
        (Pack(files={"plugins/a.py": b""}, name="one"), Pack(files={"plugins/x.py": b""}, name="two")),
    ),
}  # fmt: skip
CASES |= {rule: Case(*case) for rule, case in REAL_CASES.items()}


def test_every_rule_has_real_files_in_these_tests() -> None:
    assert set(CASES) == {rule.name for rule in ALL_RULES}


@pytest.mark.parametrize("rule", CASES)
@pytest.mark.parametrize("kind", ["bad", "good"])
def test_a_rule_reports_the_bad_wheel_and_accepts_the_good_wheel(tmp_path: Path, rule: str, kind: str) -> None:
    case = CASES[rule]
    wheels = [pack(tmp_path, described) for described in (case.bad if kind == "bad" else case.good)]
    report = audit(read_environments(wheels), AuditSettings(select=(rule,), **case.settings))
    assert {finding.rule for finding in report.findings} == ({rule} if kind == "bad" else set())
