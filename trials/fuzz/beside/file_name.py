"""Names of wheels and sdists read by hand, held against what rocwheel has of them by `packaging`.

The rules are those of the binary distribution format (:pep:`427`), source distributions (:pep:`625`), versions
(:pep:`440`), normalized names (:pep:`503`) and labels of variants (:pep:`825`). A name that these leave no doubt about
has an answer; rocwheel may take others.
"""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from trials.fuzz.harness import require

if TYPE_CHECKING:
    from packaging.version import Version

    from rocwheel.wheels.file_names import FileName

__all__ = ["compare_name", "read_name"]

_NAME = re.compile(r"[A-Za-z0-9]+(?:[._][A-Za-z0-9]+)*")
_NUMBER = "(?:0|[1-9][0-9]*)"
_VERSION = re.compile(
    rf"(?:({_NUMBER})!)?({_NUMBER}(?:\.{_NUMBER})*)(?:(a|b|rc)({_NUMBER}))?"
    rf"(?:\.post({_NUMBER}))?(?:\.dev({_NUMBER}))?(?:\+([a-z][a-z0-9]*(?:\.[a-z][a-z0-9]*)*))?"
)
_BUILD = re.compile("([0-9]+)([a-z]*)")
_PYTHONS = re.compile(r"[a-z]+[0-9]+(?:\.[a-z]+[0-9]+)*")
_TAGS = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")
_LABEL = re.compile("[0-9a-z_.]{1,64}")
_SEPARATORS = re.compile("[-_.]+")
_WHEEL, _SDIST = ".whl", ".tar.gz"


class ReadName(NamedTuple):
    """What a name says, in plain types."""

    project: str
    version: tuple[object, ...]
    identity: str
    """The version in its shortest form; of a wheel its build number, tags and label, of an sdist that word."""
    label: str


def compare_name(found: FileName | None, text: str) -> None:
    """Require that a name was read as it is by hand, if it has an answer there; none was refused."""
    theirs = read_name(text)
    if theirs is not None:
        own = found and ReadName(found.project, _fields(found.version), found.identity, found.label)
        require(own == theirs, f"{own}, by hand it is {theirs}")


def read_name(text: str) -> ReadName | None:
    """Return what a name says without any doubt, or none."""
    if text.endswith(_SDIST):
        return _read(text.removesuffix(_SDIST).split("-"), "sdist", "")
    parts = text.removesuffix(_WHEEL).split("-")
    if not text.endswith(_WHEEL) or not 5 <= len(parts) <= 7:
        return None
    build = _BUILD.fullmatch(parts[2]) if len(parts) > 5 and parts[2][:1].isdigit() else None
    tags, label = parts[3 if build else 2 :][:3], "".join(parts[6 if build else 5 :])
    is_plain = len(parts) == 5 + bool(build) + bool(label) and all(map(_TAGS.fullmatch, tags))
    if not is_plain or not _PYTHONS.fullmatch(tags[0]) or not (not label or _LABEL.fullmatch(label)):
        return None
    each = {"-".join(one) for one in product(*(tag.lower().split(".") for tag in tags))}
    number = [str(int(build[1])), build[2]] if build else []
    return _read(parts[:2], " ".join([*number, *sorted(each), *([label] if label else [])]), label)


def _read(parts: list[str], what: str, label: str) -> ReadName | None:
    if len(parts) != 2 or not _NAME.fullmatch(parts[0]):
        return None
    version = _VERSION.fullmatch(parts[1])
    if version is None:
        return None
    epoch, release, phase, number, post, dev, local = version.groups()
    fields = (int(epoch or 0), tuple(map(int, release.split("."))), phase and (phase, int(number)))
    # Zeros at its end change no release, nor does an epoch of 0; all else is in its shortest form already.
    short = f"{epoch}!" * (int(epoch or 0) > 0) + re.sub(r"(?:\.0)+$", "", release) + parts[1][version.end(2) :]
    versions = (*fields, post and int(post), dev and int(dev), local)
    return ReadName(_SEPARATORS.sub("-", parts[0]).lower(), versions, f"{short} {what}", label)


def _fields(version: Version) -> tuple[object, ...]:
    return (version.epoch, version.release, version.pre, version.post, version.dev, version.local)
