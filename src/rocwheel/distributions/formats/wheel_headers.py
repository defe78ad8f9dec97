"""The headers of WHEEL, one a line (https://packaging.python.org/specifications/binary-distribution-format/)."""

from __future__ import annotations

__all__ = ["wheel_headers"]


def wheel_headers(text: bytes) -> list[tuple[str, str]]:
    """Return the headers of WHEEL as it lists them, names in lower case."""
    # Not by `str.splitlines`, for which values may have ends of lines in them.
    headers = [line.partition(":") for line in text.decode("utf-8", "replace").split("\n")]
    return [(key.strip().lower(), value.strip()) for key, _, value in headers]
