"""A setting as it stands in ``rocm.toml``.

Strings of TOML 1.0 are those of JSON, but that no pair of escapes stands for a character, and DEL is escaped.
"""

from __future__ import annotations

import json

__all__ = ["settings_line"]


def settings_line(name: str, value: object, *, width: int = 0) -> str:
    """Return the line of a setting, with its end; a list that is wider than a ``width`` has a line for each item."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{_spelled(key)} = {_spelled(item)}" for key, item in value.items())
        return f"{name} = {{ {pairs} }}\n"
    text = f"{name} = {_spelled(value)}\n"
    if width and isinstance(value, list) and len(text) > width:
        return f"{name} = [\n" + "".join(f"    {_spelled(item)},\n" for item in value) + "]\n"
    return text


def _spelled(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
