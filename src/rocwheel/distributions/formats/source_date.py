"""The moment that archives are dated with: SOURCE_DATE_EPOCH, else 1980-01-01, never the time of the build."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.distributions.zip.writer import ZipTime

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LATEST_SECONDS", "SourceDate"]

LATEST_SECONDS = 253402300799
"""The last second of the year 9999; documents that are dated have four digits for the year."""

_ZIP_EPOCH = 315532800
_SECONDS = re.compile(r"[0-9]{1,12}")


class SourceDate(msgspec.Struct, frozen=True):
    """Seconds since 1970, as the reproducible builds specification defines SOURCE_DATE_EPOCH."""

    seconds: int = _ZIP_EPOCH

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> SourceDate:
        """Read SOURCE_DATE_EPOCH; raises `InputError` when it is not a whole number, or is after the year 9999."""
        text = environment.get("SOURCE_DATE_EPOCH", "")
        if not text:
            return cls()
        if not _SECONDS.fullmatch(text):
            variable, found, expected = "SOURCE_DATE_EPOCH", f"is {text!r}", "a whole number of seconds since 1970"
            raise InputError(variable, found, expected=expected, remedy="Correct or unset it.")
        if int(text) > LATEST_SECONDS:
            variable, found, expected = "SOURCE_DATE_EPOCH", f"is {text}", f"at most {LATEST_SECONDS}, in the year 9999"
            raise InputError(variable, found, expected=expected, remedy="Correct or unset it.")
        return cls(int(text))

    @property
    def zip_time(self) -> ZipTime:
        """The moment as ZIP stores it."""
        moment = time.gmtime(self.seconds)
        return ZipTime.from_fields(*moment[:6])
