"""What a user can do about a ZIP archive that is damaged, or that programs would read differently."""

from __future__ import annotations

from typing import Final

__all__ = ["AGAIN"]

AGAIN: Final = "Build or download it again."
"""The remedy for all of them: nothing but another archive helps."""
