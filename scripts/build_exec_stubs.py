"""Assemble the machine-code templates of the exec stubs with LLVM (Debian package llvm-16 or llvm-15).

python scripts/build_exec_stubs.py            writes src/rocwheel/binary/exec_stubs/*.bin
python scripts/build_exec_stubs.py DIR        writes them into DIR instead
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src" / "rocwheel" / "binary" / "exec_stubs"
LLVM_RELEASES = (16, 15)


def find_tools() -> tuple[str, str] | None:
    """Return ``llvm-mc`` and ``llvm-objcopy`` of one LLVM release; None when this machine has neither release."""
    for release in LLVM_RELEASES:
        assembler, objcopy = shutil.which(f"llvm-mc-{release}"), shutil.which(f"llvm-objcopy-{release}")
        if assembler and objcopy:
            return assembler, objcopy
    return None


def assemble(source: Path, destination: Path, tools: tuple[str, str]) -> None:
    """Assemble ``source``, named for its architecture, to the bare bytes of its text section."""
    assembler, objcopy = tools
    with tempfile.TemporaryDirectory() as folder:
        object_file = Path(folder, "stub.o")
        triple = f"--triple={source.stem}-linux-gnu"
        subprocess.run([assembler, triple, "--filetype=obj", "-o", str(object_file), str(source)], check=True)
        command = [objcopy, "--output-target=binary", "--only-section=.text", str(object_file), str(destination)]
        subprocess.run(command, check=True)


def main() -> None:
    """Assemble every template."""
    tools = find_tools()
    if tools is None:
        sys.exit("llvm-mc and llvm-objcopy are missing; install Debian's llvm-16")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCES
    for source in sorted(SOURCES.glob("*.s")):
        assemble(source, folder / f"{source.stem}.bin", tools)


if __name__ == "__main__":
    main()
