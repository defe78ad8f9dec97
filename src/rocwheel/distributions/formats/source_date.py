"""The moment that archives are dated with: SOURCE_DATE_EPOCH, else 1980-01-01, never the time of the build."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import msgspec

from rocwheel.distributions.zip.writer import ZipTime
from rocwheel.foundation.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SourceDate"]

_ZIP_EPOCH = 315532800
_SECONDS = re.compile(r"[0-9]{1,12}")


class SourceDate(msgspec.Struct, frozen=True):
    """Seconds since 1970, as the reproducible builds specification defines SOURCE_DATE_EPOCH."""

    seconds: int = _ZIP_EPOCH

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> SourceDate:
        """Read SOURCE_DATE_EPOCH; raises `InputError` when it is not a whole number of at most 12 digits."""
        text = environment.get("SOURCE_DATE_EPOCH", "")
        if not text:
            return cls()
        if not _SECONDS.fullmatch(text):
            variable, found, expected = "SOURCE_DATE_EPOCH", f"is {text!r}", "a whole number of seconds since 1970"
            raise InputError(variable, found, expected=expected, remedy="Correct or unset it.")
        return cls(int(text))

    @property
    def zip_time(self) -> ZipTime:
        """The moment as ZIP stores it."""
        moment = time.gmtime(self.seconds)
        return ZipTime.from_fields(*moment[:6])
