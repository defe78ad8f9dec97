"""Where the files that tests use are."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The checkout."""
CACHE = ROOT / ".cache"
"""Downloads; empty on a fresh clone."""
FIXTURES = ROOT / "tests/fixtures"
"""Files that compilers and hands made."""
ELF_FIXTURES = FIXTURES / "elf"
HIP_FIXTURES = FIXTURES / "hip"
