"""Compile the templates of the relays with MinGW-w64 (Debian package gcc-mingw-w64-x86-64-win32).

python scripts/build_relays.py            writes src/rocwheel/binary/relays/*.bin
python scripts/build_relays.py DIR        writes them into DIR instead
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src" / "rocwheel" / "binary" / "relays"
COMPILERS = {"x86_64": "x86_64-w64-mingw32-gcc"}

COMPILE = [
    "-Os",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-ffreestanding",
    "-fno-asynchronous-unwind-tables",
    "-fno-ident",
    # No call of memset in place of a loop: there is no C runtime.
    "-fno-tree-loop-distribute-patterns",
    "-nostdlib",
    "-s",
]
LINK = ["-Wl,--entry=start,--subsystem=console,--no-insert-timestamp", "-lkernel32"]


def main() -> None:
    """Compile every template."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCES
    for source in sorted(SOURCES.glob("*.c")):
        compiler = COMPILERS[source.stem]
        if shutil.which(compiler) is None:
            sys.exit(f"{compiler} is missing; install Debian's gcc-mingw-w64-x86-64-win32")
        output = folder / f"{source.stem}.bin"
        subprocess.run([compiler, *COMPILE, str(source), "-o", str(output), *LINK], check=True)
        output.chmod(0o644)


if __name__ == "__main__":
    main()
