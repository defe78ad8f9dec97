"""``rocwheel version``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rocwheel import __version__

if TYPE_CHECKING:
    from tests.support.command_line import Run


def test_version_prints_what_the_option_prints(run: Run) -> None:
    assert run("version") == run("--version") == (0, f"rocwheel {__version__}\n", "")


def test_version_as_json(run: Run) -> None:
    assert json.loads(run("version", "--json").stdout) == {"schema": "rocwheel.version/1", "version": __version__}
