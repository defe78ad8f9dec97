"""Build the sample SDK for Windows from scripts/sample_sdk and pack it as artifact archives.

Needs Debian 12's clang-16, lld-16, llvm-16 and gcc-mingw-w64-x86-64-win32: clang and lld are what ROCm's builds for
Windows have; MinGW-w64 has the headers, the import libraries and the C runtime. The same sources give the same bytes.
Usage: ``python -m scripts.build_windows_sample_sdk [DIR]``; the archives go into DIR, else where the package has them.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.sample_sdk.archive import archive
from scripts.sample_sdk.artifact_builder import DEVICE, HERE, LLVM, ArtifactBuilder, run_llvm
from scripts.sample_sdk.windows_layout import read_windows_layout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scripts.sample_sdk.layout import CmakePackage
    from scripts.sample_sdk.windows_layout import Dll, Program, WindowsLayout

WINDOWS = HERE / "windows"
SAMPLE = Path(__file__).parent.parent / "src/rocwheel/sample/windows"
TOOLS = ("clang", "lld", "llvm-dlltool", "llvm-rc", "clang-offload-bundler")
MINGW = "x86_64-w64-mingw32-gcc"

TARGET = ["--target=x86_64-w64-mingw32", "-Wno-unused-command-line-argument"]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
PLAIN = ["-ffreestanding", "-fno-builtin", "-fno-stack-protector", "-fno-asynchronous-unwind-tables"]
# Debian's clang does not look where Debian's MinGW-w64 has its runtime.
LINK = [
    "-fuse-ld=lld",
    "-s",
    "-Wl,--no-insert-timestamp",
    "-static-libgcc",
    "-L/usr/lib/gcc/x86_64-w64-mingw32/12-win32",
]


class WindowsBuilder(ArtifactBuilder):
    """Builds the artifacts for Windows."""

    def __init__(self, layout: WindowsLayout, work: Path) -> None:
        super().__init__(work)
        self.layout = layout
        self.dlls = {dll.name: dll for dll in layout.dll}
        self.runtime = work / "VCRUNTIME140.lib"

    def build(self) -> None:
        """Build everything."""
        shutil.copytree(WINDOWS / "files", self.artifacts)
        for path in self.layout.shared_files:
            shutil.copytree(HERE / "files" / path, self.artifacts / path, dirs_exist_ok=True)
        definition = WINDOWS / "support/VCRUNTIME140.def"
        run_llvm("llvm-dlltool", "-m", "i386:x86-64", "-d", definition, "-l", self.runtime)
        for dll in self.layout.dll:
            self.build_dll(dll)
        for program in self.layout.program:
            self.build_program(program)
        for kernels in self.layout.kernels:
            for target in self.layout.targets:
                self.build_kernels(kernels, target)
        for package in self.layout.cmake:
            self.write_cmake(package)
        self.build_bitcode()
        self.write_licenses(self.layout.licenses)

    def compile(self, source: Path, *options: str | Path) -> Path:
        """Compile for the host; HIP sources with device code for the fat targets."""
        output = self.work / f"{source.stem}.o"
        if source.suffix == ".hip":
            options = (*DEVICE, *(f"--offload-arch={target}" for target in self.layout.fat_targets), *options)
        run_llvm("clang", *TARGET, *WARNINGS, "-Os", "-I", HERE / "support", *options, "-c", source, "-o", output)
        return output

    def build_dll(self, dll: Dll) -> None:
        """Compile and link one DLL, with its import library."""
        sources = [HERE / (name if name.startswith("windows/") else f"libraries/{name}") for name in dll.sources]
        sources = sources or [HERE / "libraries" / f"{dll.name}.c"]
        is_fat = any(source.suffix == ".hip" for source in sources)
        # What registers device code when it is loaded takes the C runtime of MinGW, which calls constructors.
        objects = [self.compile(source, *([] if is_fat else PLAIN)) for source in sources]
        if not is_fat:
            objects.append(self.compile(WINDOWS / "support/dll.c", *PLAIN))
        if dll.version:
            objects.append(self.compile_version(dll))
        file = self.place(dll.artifact, dll.stage, dll.path)
        run_llvm("clang", *TARGET, *LINK, "-shared", *objects, *self.imports(dll.needs), *self.delays(dll),
            *([] if is_fat else ["-nostdlib", str(self.runtime), "-lucrt", "-lkernel32"]),
            f"-Wl,--out-implib,{self.import_library(dll)}", "-o", file)  # fmt: skip
        file.chmod(0o755)

    def import_library(self, dll: Dll) -> Path:
        """Return where the import library of a DLL goes; that of a plugin is thrown away."""
        if not dll.import_path:
            return self.work / f"{dll.name}.lib"
        return self.place(dll.artifact.replace("_lib_", "_dev_"), dll.stage, dll.import_path)

    def imports(self, names: Iterable[str]) -> list[str | Path]:
        """Return the linker inputs for the DLLs needed."""
        return [self.import_library(self.dlls[name]) for name in names]

    def delays(self, dll: Dll) -> list[str]:
        """Return the linker options for DLLs that are loaded when they are first called."""
        options = [f"-Wl,--delayload={self.dlls[name].file_name}" for name in dll.delayed]
        return [*options, "-lmingwex"] if options else []

    def compile_version(self, dll: Dll) -> Path:
        """Compile the version resource of a DLL."""
        numbers = ",".join(map(str, dll.version))
        text = (WINDOWS / "support/version.rc").read_text()
        source, output = self.work / f"{dll.name}.rc", self.work / f"{dll.name}.res"
        source.write_text(text.replace("@numbers@", numbers).replace("@name@", dll.file_name))
        run_llvm("llvm-rc", "-no-preprocess", "-fo", output, source)
        return output

    def build_program(self, program: Program) -> None:
        """Compile and link one program, and copy it to its other names."""
        file = self.place(program.artifact, program.stage, program.path)
        # The printf of msvcrt.dll: that of MinGW-w64 is linked into each program.
        compiled = self.compile(WINDOWS / "programs" / program.source, "-D__USE_MINGW_ANSI_STDIO=0")
        run_llvm("clang", *TARGET, *LINK, compiled, *self.imports(program.needs), "-o", file)
        file.chmod(0o755)
        for name in program.copies:
            shutil.copy(file, file.with_name(name))

    def write_cmake(self, package: CmakePackage) -> None:
        """Write the config and version files of a CMake package."""
        dll = self.dlls[package.library]
        values = {"library": dll.path, "import_library": dll.import_path, "version": self.layout.rocm_version}
        self.write_cmake_files(package, WINDOWS / "templates/config.cmake", values)


def find_missing_tools() -> list[str]:
    """Return the tools that this machine lacks."""
    missing = [str(LLVM / tool) for tool in TOOLS if not (LLVM / tool).exists()]
    return missing if shutil.which(MINGW) else [*missing, MINGW]


def main() -> None:
    """Build and pack."""
    if missing := find_missing_tools():
        packages = "clang-16, lld-16, llvm-16 and gcc-mingw-w64-x86-64-win32"
        sys.exit(f"missing: {', '.join(missing)}; install Debian's {packages}")
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        builder = WindowsBuilder(read_windows_layout(), Path(folder))
        builder.build()
        for old in output.glob("*.tar.xz"):
            old.unlink()
        for artifact in sorted(builder.artifacts.iterdir()):
            archive(artifact, output / f"{artifact.name}.tar.xz")


if __name__ == "__main__":
    main()
