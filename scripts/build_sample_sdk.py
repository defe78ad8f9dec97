"""Build the sample SDK from scripts/sample_sdk and pack it as artifact archives into src/rocwheel/sample.

Needs Debian 12's clang-16, lld-16, llvm-16 and binutils. The same sources give the same bytes.
Usage: ``python -m scripts.build_sample_sdk [DIR]``; the archives go into DIR, else where the package has them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.sample_sdk.archive import archive
from scripts.sample_sdk.kernel_files import index_kernels, pack_kernels
from scripts.sample_sdk.layout import CmakePackage, Kernels, Layout, Library, Program, Single, read_layout

HERE = Path(__file__).parent / "sample_sdk"
SAMPLE = Path(__file__).parent.parent / "src" / "rocwheel" / "sample"
LLVM = Path("/usr/lib/llvm-16/bin")
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
DEVICE = ["-x", "hip", "-nogpulib", "-nogpuinc", "-I", str(HERE / "support")]
LINK = ["-nostdlib", "-Wl,--build-id=sha1", "-Wl,-z,relro,-z,now,-z,max-page-size=4096", "-Wl,--hash-style=gnu"]


def run_llvm(tool: str, *arguments: str | Path) -> None:
    """Run a tool of LLVM in the folder of the sources; leave when it fails."""
    command = [str(LLVM / tool), *map(str, arguments)]
    if subprocess.run(command, cwd=HERE, check=False).returncode:
        sys.exit(f"failed: {' '.join(command)}")


class Builder:
    """Builds into ``artifacts``, a folder of exploded artifacts; ``work`` holds what nobody keeps."""

    def __init__(self, layout: Layout, work: Path) -> None:
        self.layout = layout
        self.work = work
        self.artifacts = work / "artifacts"
        self.link_names = work / "link"
        self.link_names.mkdir(parents=True)
        self.libraries = {library.name: library for library in layout.library}

    def build(self) -> None:
        """Build everything."""
        shutil.copytree(HERE / "files", self.artifacts, symlinks=True)
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
        self.write_licenses()
        for place, links in self.layout.links.items():
            for path, target in links.items():
                self.place(place, "", path).symlink_to(target)

    def place(self, artifact: str, stage: str, path: str) -> Path:
        """Return where a file goes, with its folder made."""
        file = self.artifacts / artifact / stage / path
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

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

    def build_kernels(self, kernels: Kernels, target: str) -> None:
        """Compile device code for one target into the files that a library would load at run time."""
        names = {"target": target, "file_target": target.replace(":", "-"), "base_target": target.partition(":")[0]}
        artifact = kernels.artifact.format(**names)
        code_object = self.work / "kernels.hsaco"
        self.compile_for_device(HERE / "kernels" / kernels.source, target, code_object)
        if kernels.code_object:
            file = self.place(artifact, kernels.stage, kernels.code_object.format(**names))
            shutil.copyfile(code_object, file)
        if kernels.bundle:
            self.bundle(code_object, target, self.place(artifact, kernels.stage, kernels.bundle.format(**names)))
        if kernels.lazy_index:
            path = self.place(artifact, kernels.stage, kernels.lazy_index.format(**names))
            path.write_bytes(index_kernels(names["base_target"]))
        if kernels.kpack:
            path = self.place(artifact, kernels.stage, kernels.kpack.format(**names))
            path.write_bytes(pack_kernels(kernels.kpack_member, target, code_object.read_bytes()))

    def compile_for_device(self, source: Path, target: str, output: Path, *options: str) -> None:
        """Compile device code alone, to a code object unless ``options`` ask for less."""
        device_only = ["--offload-device-only", "--no-gpu-bundle-output"]
        # Bitcode keeps the name that its source was given by: a relative one is the same wherever this is built.
        name = source.relative_to(HERE)
        run_llvm("clang", *DEVICE, "-Os", f"--offload-arch={target}", *device_only, *options, name, "-o", output)

    def bundle(self, code_object: Path, target: str, output: Path) -> None:
        """Write an uncompressed offload bundle of the host and one target."""
        targets = f"-targets=host-x86_64-unknown-linux,hipv4-amdgcn-amd-amdhsa--{target}"
        run_llvm("clang-offload-bundler", "-type=o", "-bundle-align=4096", targets,
            "-input=/dev/null", f"-input={code_object}", f"-output={output}")  # fmt: skip

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

    def build_bitcode(self) -> None:
        """Compile one device library."""
        path = self.place("amd-llvm_lib_generic", "compiler/amd-llvm/stage", "lib/llvm/amdgcn/bitcode/ocml.bc")
        self.compile_for_device(HERE / "kernels" / "bitcode.hip", "gfx906", path, "-emit-llvm", "-c")

    def write_licenses(self) -> None:
        """Write the licence of all of the sample into the folder of each project that has no text of its own."""
        text = (HERE.parent.parent / "LICENSE").read_bytes()
        for artifact, projects in self.layout.licenses.items():
            for project, folder in projects.items():
                self.place(artifact, f"{project}/stage", f"{folder}/LICENSE.md").write_bytes(text)

    def write_cmake(self, package: CmakePackage) -> None:
        """Write the config and version files of a CMake package."""
        library = self.libraries[package.library]
        aliases = [f"  add_library({name} ALIAS {package.target})\n" for name in package.aliases]
        values = {
            "package": package.package,
            "target": package.target,
            "library": library.path,
            "soname": library.short_name,
            "version": self.layout.rocm_version,
            "dependencies": "".join(f"find_dependency({name} CONFIG)\n" for name in package.dependencies),
            "aliases": "".join(aliases),
        }
        for template in ("config.cmake", "config-version.cmake"):
            text = (HERE / "templates" / template).read_text()
            for name, value in values.items():
                text = text.replace(f"@{name}@", value)
            path = f"lib/cmake/{package.package}/{package.package}-{template}"
            self.place(package.artifact, package.stage, path).write_text(text)


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
