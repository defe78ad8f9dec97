"""The variant label that ends the file name of a wheel (:pep:`825`, a draft), such as ``-py3-none-any-gfx942.whl``."""

from __future__ import annotations

import re

from rocwheel.distributions.variants.draft import load_draft

__all__ = ["split_label", "with_label", "without_label"]

_SUFFIX = ".whl"
_PARTS = 5
"""Those of a name without build number and label."""
_PYTHON = re.compile(r"[a-z]+\d\w*(\.\w+)*", re.ASCII | re.IGNORECASE)


def split_label(file_name: str) -> tuple[str, str]:
    """Return the file name of a wheel without its variant label, and the label; empty for none.

    A build number begins with a digit, and the tag of a Python can't: that tells a name with a build number from one
    with a label. A name with other parts, or whose last part can't be a label, is returned as it is: readers of plain
    names refuse it.
    """
    stem = file_name.removesuffix(_SUFFIX)
    parts = stem.split("-")
    has_build = len(parts) > _PARTS and parts[2][:1].isdecimal()
    is_labelled = len(parts) == _PARTS + has_build + 1 and _PYTHON.fullmatch(parts[2 + has_build])
    if not is_labelled or not load_draft().grammar.has("label", parts[-1]):
        return file_name, ""
    return f"{'-'.join(parts[:-1])}{file_name[len(stem) :]}", parts[-1]


def without_label(file_name: str) -> str:
    """Return the file name of a wheel without its variant label, as readers of plain names take it."""
    return split_label(file_name)[0]


def with_label(file_name: str, label: str) -> str:
    """Return the plain file name of a wheel with a variant label; an empty one changes nothing."""
    return f"{file_name.removesuffix(_SUFFIX)}-{label}{_SUFFIX}" if label else file_name
