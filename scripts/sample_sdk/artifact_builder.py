"""What the sample SDKs for Linux and for Windows are built of alike: device code, licenses, CMake packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.sample_sdk.kernel_files import index_kernels, pack_kernels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scripts.sample_sdk.layout import CmakePackage, Kernels

__all__ = ["DEVICE", "HERE", "LLVM", "ArtifactBuilder", "run_llvm"]

HERE = Path(__file__).parent
LLVM = Path("/usr/lib/llvm-16/bin")
DEVICE = ["-x", "hip", "-nogpulib", "-nogpuinc", "-I", str(HERE / "support")]


def run_llvm(tool: str, *arguments: str | Path) -> None:
    """Run a tool of LLVM in the folder of the sources; leave when it fails."""
    command = [str(LLVM / tool), *map(str, arguments)]
    if subprocess.run(command, cwd=HERE, check=False).returncode:
        sys.exit(f"failed: {' '.join(command)}")


class ArtifactBuilder:
    """Builds into ``artifacts``, a folder of exploded artifacts; ``work`` holds what nobody keeps."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.artifacts = work / "artifacts"

    def place(self, artifact: str, stage: str, path: str) -> Path:
        """Return where a file goes, with its folder made."""
        file = self.artifacts / artifact / stage / path
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

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

    def build_bitcode(self) -> None:
        """Compile one device library."""
        path = self.place("amd-llvm_lib_generic", "compiler/amd-llvm/stage", "lib/llvm/amdgcn/bitcode/ocml.bc")
        self.compile_for_device(HERE / "kernels" / "bitcode.hip", "gfx906", path, "-emit-llvm", "-c")

    def write_licenses(self, licenses: Mapping[str, Mapping[str, str]]) -> None:
        """Write the license of all of the sample into the folder of each project that has no text of its own."""
        text = (HERE.parents[1] / "LICENSE").read_bytes()
        for artifact, projects in licenses.items():
            for project, folder in projects.items():
                self.place(artifact, f"{project}/stage", f"{folder}/LICENSE.md").write_bytes(text)

    def write_cmake_files(self, package: CmakePackage, config: Path, values: Mapping[str, str]) -> None:
        """Write the config and version files of a CMake package from templates, ``config`` the one of the first."""
        aliases = [f"  add_library({name} ALIAS {package.target})\n" for name in package.aliases]
        dependencies = "".join(f"find_dependency({name} CONFIG)\n" for name in package.dependencies)
        own = {"package": package.package, "target": package.target, "dependencies": dependencies}
        for template in (config, HERE / "templates/config-version.cmake"):
            text = template.read_text()
            for name, value in (own | {"aliases": "".join(aliases)} | dict(values)).items():
                text = text.replace(f"@{name}@", value)
            path = f"lib/cmake/{package.package}/{package.package}-{template.name}"
            self.place(package.artifact, package.stage, path).write_text(text)
