"""``python -m venv FOLDER`` for examples, but for compiling all of pip, which takes seconds of a processor.

A program by itself: each Python runs it for its own environments.
"""

from __future__ import annotations

import ensurepip
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

_PIP = '#!/bin/sh\nexec "$(dirname "$0")/python" -m pip "$@"\n'


def main(folder: Path) -> None:
    """Make the environment with the pip that ``venv`` would put there."""
    wheels = sorted(Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl"))
    if not wheels:  # where a distribution keeps it elsewhere
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        return
    venv.create(folder, symlinks=True)
    [site] = (folder / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheels[-1]) as wheel:
        wheel.extractall(site)
    (folder / "bin/pip").write_text(_PIP)
    (folder / "bin/pip").chmod(0o755)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
