"""Takes the picture of a report for the documentation: of a build, in a headless Chromium.

The build is the folder that is given, such as that of ``make debian``; by default the sample SDK is built.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from rocwheel import api
from rocwheel.demo import SAMPLE_SDK
from rocwheel.report.make_report import make_report
from rocwheel.report.page import write_page
from tests.support.chromium import open_page

__all__: list[str] = []

_PICTURE = Path(__file__).parents[1] / "docs/pictures/report.png"
_WIDTH, _HEIGHT = 1100, 1000


def main() -> int:
    """Write the picture; return 1 where no browser is installed."""
    with tempfile.TemporaryDirectory() as folder, open_page(Path(folder, "profile")) as page:
        if page is None:
            sys.stderr.write("no chromium: install it with scripts/install-debian-packages.sh\n")
            return 1
        build = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else Path(folder, "packages")
        if len(sys.argv) == 1:
            api.build(SAMPLE_SDK, build)
        output = Path(folder, "report.html")
        os.chdir(build.parent)  # the page names the path as it is given
        write_page(output, make_report([Path(build.name)], unread=[], estimate=True))
        page.visit(output.as_uri(), width=_WIDTH, height=_HEIGHT)
        page.wait_for("document.querySelectorAll('#treemap .slice').length")
        page.picture(_PICTURE)
        return 0


if __name__ == "__main__":
    sys.exit(main())
