"""What counts as wrong about the end of a command that met a hostile input."""

from __future__ import annotations

import pytest

from tests.hostile.table import wrong
from tests.hostile.trials import Ended


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (Ended(0, "", 9.9, 1 << 30, []), ""),
        (Ended(1, "warning: a", 0, 0, []), ""),
        (Ended(2, "error: a.whl: is damaged", 0, 0, []), ""),
        (Ended(2, "Error: no such option", 0, 0, []), ""),
        (Ended(2, "a.whl is damaged", 0, 0, []), "refused without a message: a.whl is damaged"),
        (Ended(-1, "Traceback", 0, 0, []), "status -1: Traceback"),
        (Ended(-2, "", 0, 0, []), "status -2: "),
        (Ended(3, "error: a", 0, 0, []), "status 3: error: a"),
        (Ended(0, "Traceback (most recent call last)", 0, 0, []), "status 0: Traceback (most recent call last)"),
        (Ended(0, "a\x1b[31m", 0, 0, []), "control characters in the output: 'a\\x1b[31m'"),
        (Ended(0, "a\0", 0, 0, []), "control characters in the output: 'a\\x00'"),
        (Ended(0, "", 10.6, 0, []), "11 seconds, 0 MiB"),
        (Ended(0, "", 0, (1 << 30) + (1 << 20), []), "0 seconds, 1025 MiB"),
        (Ended(0, "", 0, 0, ["out -> /etc/passwd", "pipe of mode 10644"]), "out -> /etc/passwd, pipe of mode 10644"),
    ],
)
def test_only_what_is_refused_by_name_or_contained_soon_is_right(end: Ended, text: str) -> None:
    assert wrong(end) == text
