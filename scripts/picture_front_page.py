"""Takes the picture of an index's front page for the documentation: of the sample SDK, in a headless Chromium."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rocwheel import api
from rocwheel.demo.demo import SAMPLE_SDK
from rocwheel.distributions.index.pages.simple_pages import FRONT_PAGE
from tests.support.chromium import open_page

__all__: list[str] = []

_PICTURE = Path(__file__).parents[1] / "docs/pictures/front-page.png"
_ADDRESS = "https://example.org/rocm/simple/"
_WIDTH, _HEIGHT = 1000, 1150


def main() -> int:
    """Write the picture; return 1 where no browser is installed."""
    with tempfile.TemporaryDirectory() as folder, open_page(Path(folder, "profile")) as page:
        if page is None:
            sys.stderr.write("no chromium: install it with scripts/install-debian-packages.sh\n")
            return 1
        api.build(SAMPLE_SDK, Path(folder, "packages"))
        report = api.index(Path(folder, "packages/dist"), front_page=_ADDRESS)
        # As a reader sees it there: the script would put the address of this folder into the lines.
        page.allow_scripts(allowed=False)
        page.visit(Path(report.output, FRONT_PAGE).as_uri(), width=_WIDTH, height=_HEIGHT)
        page.picture(_PICTURE)
        return 0


if __name__ == "__main__":
    sys.exit(main())
