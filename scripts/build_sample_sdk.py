"""Build the sample SDK from scripts/sample_sdk and pack it as artifact archives into src/rocwheel/sample.

Needs Debian 12's clang-16, lld-16, llvm-16 and binutils. The same sources give the same bytes.
Usage: ``python -m scripts.build_sample_sdk [DIR]``; the archives go into DIR, else where the package has them.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from scripts.sample_sdk.archive import archive
from scripts.sample_sdk.artifact_builder import DEVICE, HERE, LLVM, ArtifactBuilder, run_llvm
from scripts.sample_sdk.layout import CmakePackage, Layout, Library, Program, Single, read_layout

SAMPLE = Path(__file__).parent.parent / "src" / "rocwheel" / "sample"
TOOLS = ("clang", "ld.lld", "llvm-ar", "llvm-objcopy", "clang-offload-bundler")

COMPILE = [
    "-Os",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-builtin",
    "-ffreestanding",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-command-line-argument",
]
LINK = ["-nostdlib", "-Wl,--build-id=sha1", "-Wl,-z,relro,-z,now,-z,max-page-size=4096", "-Wl,--hash-style=gnu"]


class Builder(ArtifactBuilder):
    """Builds the artifacts for Linux."""

    def __init__(self, layout: Layout, work: Path) -> None:
        super().__init__(work)
        self.layout = layout
        self.link_names = work / "link"
        self.link_names.mkdir(parents=True)
        self.libraries = {library.name: library for library in layout.library}

    def build(self) -> None:
        """Build everything."""
        shutil.copytree(HERE / "files", self.artifacts, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        self.build_libc()
        for library in self.layout.library:
            self.build_library(library)
        for program in self.layout.program:
            self.build_program(program)
        for kernels in self.layout.kernels:
            for target in self.layout.targets:
                self.build_kernels(kernels, target)
        for package in self.layout.cmake:
            self.write_cmake(package)
        for item in self.layout.static_library:
            self.build_static_library(item)
        for item in self.layout.debug:
            self.build_debug(item)
        self.build_bitcode()
        self.write_licenses(self.layout.licenses)
        for place, links in self.layout.links.items():
            for path, target in links.items():
                self.place(place, "", path).symlink_to(target)

    def compile(self, source: Path, *options: str | Path) -> Path:
        """Compile for the host; HIP sources with device code for the fat targets."""
        output = self.work / f"{source.stem}.o"
        if source.suffix == ".hip":
            options = (*DEVICE, *(f"--offload-arch={target}" for target in self.layout.fat_targets), *options)
        run_llvm("clang", *COMPILE, "-I", HERE / "support", *options, "-c", source, "-o", output)
        return output

    def build_libc(self) -> None:
        """Make a libc.so.6 to link against, with old symbol versions and nothing in it."""
        compiled = self.compile(HERE / "support" / "libc.c", "-fvisibility=default", "-w")
        script = f"-Wl,--version-script={HERE / 'support' / 'libc.map'}"
        run_llvm("clang", "-shared", "-nostdlib", "-fuse-ld=lld", "-Wl,-soname,libc.so.6", script, compiled,
            "-o", self.link_names / "libc.so.6")  # fmt: skip

    def build_library(self, library: Library) -> None:
        """Compile and link one library, and make the links of its SONAME chain."""
        source = HERE / "libraries" / (library.source or f"{library.name}.c")
        objects = [self.compile(source)]
        if source.suffix == ".hip":
            objects.append(self.compile(HERE / "support" / "exit.c"))
        file = self.place(library.artifact, library.stage, library.path)
        run_llvm("clang", "-shared", *LINK, "-Wl,-s", f"-fuse-ld={'bfd' if library.linker == 'bfd' else 'lld'}",
            *self.name_options(library), *objects, *self.needed(library.needs), "-o", file)  # fmt: skip
        file.chmod(0o755)
        (self.link_names / f"lib{library.name}.so").symlink_to(file)
        self.link_chain(library, file)

    def link_chain(self, library: Library, file: Path) -> None:
        """Make ``libX.so -> libX.so.1 -> libX.so.1.2.3``, as far as the names differ."""
        names = [name for name in (library.short_name, f"lib{library.name}.so") if name]
        previous = file.name
        for name in names:
            if name != previous:
                file.with_name(name).symlink_to(previous)
                previous = name

    def name_options(self, library: Library) -> list[str]:
        """Return the linker options for SONAME, run path and symbol versions."""
        options = [f"-Wl,-soname,{library.short_name}"] if library.short_name else []
        if library.runpath:
            tags = "--disable-new-dtags" if library.rpath else "--enable-new-dtags"
            options += [f"-Wl,{tags},-rpath,{library.runpath}"]
        if library.symbol_version:
            script = self.work / f"{library.name}.map"
            script.write_text(f"{library.symbol_version} {{ global: *; }};\n")
            options.append(f"-Wl,--version-script={script}")
        return options

    def needed(self, names: list[str]) -> list[str | Path]:
        """Return the linker inputs for the libraries needed, the C library among them."""
        files: list[str | Path] = [self.link_names / f"lib{name}.so" for name in names]
        libc = ["-Wl,--as-needed", str(self.link_names / "libc.so.6")]
        return ["-Wl,--no-as-needed", *files, *libc, "-Wl,--unresolved-symbols=ignore-in-shared-libs"]

    def build_program(self, program: Program) -> None:
        """Compile and link one program."""
        file = self.place(program.artifact, program.stage, program.path)
        source = HERE / "programs" / (program.source or f"{file.name}.c")
        objects = [self.compile(source)]
        options: list[str | Path] = ["-static"]
        if not program.static:
            objects.append(self.compile(HERE / "support" / "start.c"))
            options = ["-pie", f"-Wl,--enable-new-dtags,-rpath,{program.runpath}", *self.needed(program.needs)]
        run_llvm("clang", *LINK, "-Wl,-s", "-fuse-ld=lld", *objects, *options, "-o", file)
        file.chmod(0o755)

    def build_static_library(self, item: Single) -> None:
        """Make an archive of one object."""
        compiled = self.compile(HERE / "libraries" / item.source)
        run_llvm("llvm-ar", "rcsD", self.place(item.artifact, item.stage, item.path), compiled)

    def build_debug(self, item: Single) -> None:
        """Write a debug file under the build id of its library."""
        library = self.libraries[item.library]
        note = self.work / "build-id"
        built = self.artifacts / library.artifact / library.stage / library.path
        run_llvm("llvm-objcopy", f"--dump-section=.note.gnu.build-id={note}", built, self.work / "unused")
        build_id = note.read_bytes()[16:].hex()
        path = self.place(item.artifact, item.stage, f".build-id/{build_id[:2]}/{build_id[2:]}.debug")
        run_llvm("llvm-objcopy", "--only-keep-debug", built, path)

    def write_cmake(self, package: CmakePackage) -> None:
        """Write the config and version files of a CMake package."""
        library = self.libraries[package.library]
        values = {"library": library.path, "soname": library.short_name, "version": self.layout.rocm_version}
        self.write_cmake_files(package, HERE / "templates/config.cmake", values)


def find_missing_tools() -> list[str]:
    """Return the tools that this machine lacks."""
    missing = [str(LLVM / tool) for tool in TOOLS if not (LLVM / tool).exists()]
    return missing if shutil.which("ld.bfd") else [*missing, "ld.bfd"]


def main() -> None:
    """Build and pack."""
    if missing := find_missing_tools():
        sys.exit(f"missing: {', '.join(missing)}; install Debian's clang-16, lld-16, llvm-16 and binutils")
    output = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(read_layout(), Path(folder))
        builder.build()
        for old in output.glob("*.tar.xz"):
            old.unlink()
        for artifact in sorted(builder.artifacts.iterdir()):
            archive(artifact, output / f"{artifact.name}.tar.xz")


if __name__ == "__main__":
    main()
