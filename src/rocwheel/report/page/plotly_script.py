"""The script of Plotly that pages carry."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module

from rocwheel.foundation.errors import InputError

__all__ = ["plotly_script"]

_END = re.compile("</(?=script)", re.IGNORECASE)
_COMMENT = re.compile("<!--")


@cache
def plotly_script() -> str:
    """Return the script, as plotly's package for Python brings it; raise `InputError` where that is not installed.

    What HTML would take for the end of a script, or for the beginning of a comment in one, stands in it as an escape:
    both occur in texts alone.
    """
    try:
        text: str = import_module("plotly.offline").get_plotlyjs()
    except ImportError as e:
        source, found = "plotly", "is not installed, which draws the pictures of a report"
        raise InputError(source, found, remedy="Install it: pip install 'rocwheel[report]'.") from e
    return _COMMENT.sub(r"<\\!--", _END.sub(r"<\\/", text))
