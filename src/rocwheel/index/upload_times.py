"""The upload dates of files in an index: how to read, write, and choose them.

A file has the date given for new files, or else the date of its last modification. It keeps that date while its bytes
stay the same. Dates in the future come from a wrong clock and become the present: installers with a date limit would
otherwise ignore such files for years.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import msgspec

from rocwheel.core.errors import InputError
from rocwheel.wheels.sdist import SourceDate

if TYPE_CHECKING:
    from collections.abc import Mapping

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_YEAR_10000 = 253402300800 * 1_000_000
DAY = 86_400 * 1_000_000
"""One day in microseconds."""
_FIRST_RELEASE = 1_735_689_600 * 1_000_000
"""2025, before the first release of rocwheel. An earlier clock is wrong, for example after a dead battery."""


def render_time(microseconds: int) -> str:
    """Return a time in the format of :pep:`700`. A time before 1970 becomes 1970."""
    moment = _EPOCH + timedelta(microseconds=min(max(microseconds, 0), _YEAR_10000 - 1))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> int:
    """Return the microseconds since 1970 of a date with an optional time (ISO 8601). The default time zone is UTC.

    Raises `InputError` for other text.
    """
    try:
        moment = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
        microseconds = to_microseconds(aware)
    except (ValueError, OverflowError) as e:
        raise _no_time(text) from e
    if not 0 <= microseconds < _YEAR_10000:  # a time zone can lead to such a value, which no page can contain
        raise _no_time(text)
    return microseconds


def parse_upload_time(text: str, now: int) -> int:
    """Return the result of `parse_time`. Raise `InputError` for a date more than a day ahead of the clock.

    One day is allowed for other time zones and slow clocks. An unset clock allows any date.
    """
    moment = parse_time(text)
    if now >= _FIRST_RELEASE and moment > now + DAY:
        option, found = "--upload-time", f"is {text!r}, which is in the future: the clock says {render_time(now)[:10]}"
        raise InputError(option, found, expected="a date in the past", remedy="Correct the date or the clock.")
    return moment


def to_microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970 of a time with a time zone, as an integer: a float lacks the precision."""
    return (moment - _EPOCH) // _MICROSECOND


def _no_time(text: str) -> InputError:
    parameter, expected = "--upload-time", "a date since 1970, such as 2026-01-31 or 2026-01-31T12:00:00Z"
    return InputError(parameter, f"is {text!r}", expected=expected)


def read_clock(now: int, given: int | None) -> UploadTimes:
    """Return the dating rules for a clock, in microseconds since 1970, with the date ``given`` for new files, if any.

    A clock before the first release of rocwheel can't tell which dates are in the future, because all dates of an index
    would seem to be. Raises `InputError` for such a clock without a given date.
    """
    if now >= _FIRST_RELEASE:
        return UploadTimes(now, given)
    if given is None:
        place, found = "the clock of this machine", f"says {render_time(now)[:10]}"
        expected = f"a date after {render_time(_FIRST_RELEASE)[:10]}"
        remedy = "Set the clock, or give the upload date of new files to rocwheel index: --upload-time."
        raise InputError(place, found, expected=expected, remedy=remedy)
    return UploadTimes(_YEAR_10000, given)


def choose_upload_time(given: str | None, environment: Mapping[str, str], now: int) -> int | None:
    """Return the date of all new files: the given date, or else SOURCE_DATE_EPOCH, or else `None`.

    Raises `InputError` for an invalid date, and for a SOURCE_DATE_EPOCH that is not a number of seconds.
    """
    if given is not None:
        return parse_upload_time(given, now)
    date = SourceDate.from_environment(environment)
    return min(date.seconds * 1_000_000, _YEAR_10000 - 1) if environment.get("SOURCE_DATE_EPOCH") else None


class UploadTimes(msgspec.Struct, frozen=True):
    """The rules for dating the files of an index. All values are in microseconds since 1970."""

    now: int
    given: int | None = None
    """The date of all new files."""

    def is_future(self, time: int) -> bool:
        """Return whether a date can come neither from a correct clock nor from the user."""
        return time > self.now and time != self.given

    def choose(self, earlier: int | None, changed: int) -> int:
        """Return the date of a file with an ``earlier`` listed date, if any, and a last modification at ``changed``."""
        if earlier is not None and not self.is_future(earlier):
            return earlier
        return self.given if self.given is not None else min(max(changed, 0), self.now)
