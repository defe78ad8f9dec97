"""Reads, writes, and chooses the upload dates of files in an index.

The date of a file is the date that is specified for new files, or the date of the file's last modification. It remains
the same as long as the file's bytes don't change. Dates in the future come from a wrong clock and are replaced with the
current date. Otherwise, installers with a date limit would ignore such files for years.
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
"""A date in 2025, before the first release of rocwheel.

If the clock shows an earlier date, it is wrong, for example, because its battery died.
"""


def render_time(microseconds: int) -> str:
    """Return a time in the format of :pep:`700`. A time before 1970 becomes 1970."""
    moment = _EPOCH + timedelta(microseconds=min(max(microseconds, 0), _YEAR_10000 - 1))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> int:
    """Return the microseconds since 1970 for a date with an optional time (ISO 8601). The default time zone is UTC.

    Raises `InputError` for other text.
    """
    try:
        moment = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
        microseconds = to_microseconds(aware)
    except (ValueError, OverflowError) as e:
        raise _no_time(text) from e
    if not 0 <= microseconds < _YEAR_10000:  # the time zone can lead to a value that no page can contain
        raise _no_time(text)
    return microseconds


def parse_upload_time(text: str, now: int) -> int:
    """Return the same result as `parse_time`. Raise `InputError` for a date that is more than a day ahead of the clock.

    One day is allowed because of different time zones and slow clocks. If the clock is not set, any date is allowed.
    """
    moment = parse_time(text)
    if now >= _FIRST_RELEASE and moment > now + DAY:
        option, found = (
            "--upload-time",
            f"is {text!r}, which is in the future according to the clock ({render_time(now)[:10]})",
        )
        raise InputError(option, found, expected="a date in the past", remedy="Correct the date or the clock.")
    return moment


def to_microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970 for a time with a time zone. A float would not be precise enough."""
    return (moment - _EPOCH) // _MICROSECOND


def _no_time(text: str) -> InputError:
    parameter, expected = "--upload-time", "a date since 1970, such as 2026-01-31 or 2026-01-31T12:00:00Z"
    return InputError(parameter, f"is {text!r}", expected=expected)


def read_clock(now: int, given: int | None) -> UploadTimes:
    """Return the rules for dates based on the clock ``now``, in microseconds since 1970.

    ``given`` is the date of new files, if the user specified one. If the clock is set to a date before the first
    release of rocwheel, all dates in an index would seem to be in the future. Raises `InputError` for such a clock
    unless a date is specified.
    """
    if now >= _FIRST_RELEASE:
        return UploadTimes(now, given)
    if given is None:
        place, found = "this machine's clock", f"is set to {render_time(now)[:10]}"
        expected = f"a date after {render_time(_FIRST_RELEASE)[:10]}"
        remedy = "Set the clock, or specify the upload date of new files with rocwheel index --upload-time."
        raise InputError(place, found, expected=expected, remedy=remedy)
    return UploadTimes(_YEAR_10000, given)


def choose_upload_time(given: str | None, environment: Mapping[str, str], now: int) -> int | None:
    """Return the date of all new files: the specified date, or SOURCE_DATE_EPOCH, or `None` if neither is set.

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
        """Return whether a date is in the future, so that it can't come from a correct clock or from the user."""
        return time > self.now and time != self.given

    def choose(self, earlier: int | None, changed: int) -> int:
        """Return the date of a file that was last modified at ``changed``.

        ``earlier`` is its date in the index, if listed.
        """
        if earlier is not None and not self.is_future(earlier):
            return earlier
        return self.given if self.given is not None else min(max(changed, 0), self.now)
