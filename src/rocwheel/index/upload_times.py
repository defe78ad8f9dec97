"""When files of an index were uploaded: dates read and written, and which date a file gets.

A file has the date that is given for new files, else the one of its last change. It keeps that while it has the same
bytes. Dates in the future, those of a wrong clock, are the present instead: installers that are given a date would pass
over such files for years.
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
"""In microseconds."""
_FIRST_RELEASE = 1_735_689_600 * 1_000_000
"""2025, before which rocwheel was nowhere: a clock that says so is wrong, as after its battery was empty."""


def render_time(microseconds: int) -> str:
    """Return a moment as :pep:`700` has it; one before 1970 is 1970."""
    moment = _EPOCH + timedelta(microseconds=min(max(microseconds, 0), _YEAR_10000 - 1))
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> int:
    """Return the microseconds since 1970 of a date, with or without a time (ISO 8601), in UTC unless it says otherwise.

    Raises `InputError` for what is not one.
    """
    try:
        moment = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
        aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
        microseconds = to_microseconds(aware)
    except (ValueError, OverflowError) as e:
        raise _no_time(text) from e
    if not 0 <= microseconds < _YEAR_10000:  # which a time zone can lead to, and no page could have
        raise _no_time(text)
    return microseconds


def parse_upload_time(text: str, now: int) -> int:
    """Return what `parse_time` does; raise `InputError` for a date more than a day ahead of the clock, if that is set.

    For a machine in another time zone, or whose clock is somewhat slow, the date may be tomorrow's.
    """
    moment = parse_time(text)
    if now >= _FIRST_RELEASE and moment > now + DAY:
        option, found = "--upload-time", f"is {text!r}, which is to come: the clock says {render_time(now)[:10]}"
        raise InputError(option, found, expected="a date of the past", remedy="Correct it, or the clock.")
    return moment


def to_microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970 of a moment with a time zone, as an integer: a float has not that many."""
    return (moment - _EPOCH) // _MICROSECOND


def _no_time(text: str) -> InputError:
    parameter, expected = "--upload-time", "a date since 1970, such as 2026-01-31 or 2026-01-31T12:00:00Z"
    return InputError(parameter, f"is {text!r}", expected=expected)


def read_clock(now: int, given: int | None) -> UploadTimes:
    """Return how files are dated by a clock, in microseconds since 1970, and the date ``given`` for new files, if any.

    A clock that is before the first release of rocwheel says nothing of what lies in the future: all dates of an index
    would seem to. Raises `InputError` for it where no date is given.
    """
    if now >= _FIRST_RELEASE:
        return UploadTimes(now, given)
    if given is None:
        place, found = "the clock of this machine", f"says {render_time(now)[:10]}"
        expected = f"a date after {render_time(_FIRST_RELEASE)[:10]}"
        remedy = "Set it right, or have rocwheel index say when new files were uploaded: --upload-time."
        raise InputError(place, found, expected=expected, remedy=remedy)
    return UploadTimes(_YEAR_10000, given)


def choose_upload_time(given: str | None, environment: Mapping[str, str], now: int) -> int | None:
    """Return the date of all new files: the one given, else SOURCE_DATE_EPOCH; none if there is neither.

    Raises `InputError` for a text that is no date, and for a SOURCE_DATE_EPOCH that is no number of seconds.
    """
    if given is not None:
        return parse_upload_time(given, now)
    date = SourceDate.from_environment(environment)
    return min(date.seconds * 1_000_000, _YEAR_10000 - 1) if environment.get("SOURCE_DATE_EPOCH") else None


class UploadTimes(msgspec.Struct, frozen=True):
    """Which dates the files of an index get; all in microseconds since 1970."""

    now: int
    given: int | None = None
    """For all that are new."""

    def is_future(self, time: int) -> bool:
        """Return whether a clock that was right can't have given this date, nor can the user have."""
        return time > self.now and time != self.given

    def choose(self, earlier: int | None, changed: int) -> int:
        """Return the date of a file that was listed with an ``earlier`` one, if any, and was last ``changed`` then."""
        if earlier is not None and not self.is_future(earlier):
            return earlier
        return self.given if self.given is not None else min(max(changed, 0), self.now)
