"""Takes the picture of an index's front page for the documentation, in a headless Chromium.

The index is of the sample SDK as packages per family: the page has what all share, and leads to the families.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rocwheel import api
from rocwheel.demo import SAMPLE_SDK
from rocwheel.index.pages import FRONT_PAGE
from tests.support.chromium import open_page

__all__: list[str] = []

_PICTURE = Path(__file__).parents[1] / "docs/pictures/front-page.png"
_ADDRESS = "https://example.org/rocm/simple/"
_WIDTH, _HEIGHT = 1000, 1950


def _make_recipe(path: Path) -> Path:
    """Write the recipe for ROCm, but for packages per family."""
    default = (SAMPLE_SDK.parent / "build/rocm.toml").read_text(encoding="utf-8")
    path.write_text(default.replace("schema = 1", 'schema = 1\nlayout = "per-family"', 1), encoding="utf-8")
    return path


def main() -> int:
    """Write the picture; return 1 where no browser is installed."""
    with tempfile.TemporaryDirectory() as folder, open_page(Path(folder, "profile")) as page:
        if page is None:
            sys.stderr.write("no chromium: install it with scripts/install-debian-packages.sh\n")
            return 1
        api.build(SAMPLE_SDK, Path(folder, "packages"), recipe=_make_recipe(Path(folder, "per-family.toml")))
        report = api.index(Path(folder, "packages/dist"), front_page=_ADDRESS)
        # As a reader sees it there: the script would put the address of this folder into the lines.
        page.allow_scripts(allowed=False)
        page.visit(Path(report.output, FRONT_PAGE).as_uri(), width=_WIDTH, height=_HEIGHT)
        page.picture(_PICTURE)
        return 0


if __name__ == "__main__":
    sys.exit(main())
