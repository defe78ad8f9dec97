"""Tools in images: taken out where they stand alone, asked about elsewhere."""

from __future__ import annotations

import pytest

from rocwheel.frameworks.jax_checkout.checkout import Checkout, SourceFile
from rocwheel.frameworks.jax_checkout.editing.draft import Draft
from rocwheel.frameworks.jax_checkout.phases.deprecate import BUILD_PY, deprecate
from rocwheel.frameworks.jax_checkout.phases.plan import Plan
from rocwheel.frameworks.jax_checkout.reading.structure import Structure

ASKED = "# rocwheel asks: does this image still need auditwheel or patchelf? No wheel of this repository\n#   does.\n"


def after(path: str, text: str) -> str:
    draft = Draft(Checkout({path: SourceFile(text)}))
    plan = Plan(draft, Structure(*[""] * 7), {}, "")
    deprecate(plan)
    deprecate(plan)
    return draft.text(path)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            "RUN apt-get install -y \\\n    git \\\n    patchelf \\\n    wget\n",
            "RUN apt-get install -y \\\n    git \\\n    wget\n",
        ),
        ("RUN pip install \\\n    auditwheel>=6 \\\n    build\n", "RUN pip install \\\n    build\n"),
        (
            "RUN pip install auditwheel\nRUN apt install patchelf\n",
            f"{ASKED}RUN pip install auditwheel\nRUN apt install patchelf\n",
        ),
        ("RUN apt install \\\n  patchelf\n", f"RUN apt install \\\n{ASKED}  patchelf\n"),
        ("# patchelf\nRUN true\n", "# patchelf\nRUN true\n"),
    ],
)
def test_tools_leave_images(before: str, expected: str) -> None:
    assert after("docker/Dockerfile.builder", before) == expected


def test_build_py_hands_its_command_line_to_the_translation() -> None:
    assert (
        'subprocess.call(["rocwheel", "jax", "translate", "--", "python", "build/build.py", *sys.argv[1:]])'
        in after(BUILD_PY, "import argparse\n")
    )
