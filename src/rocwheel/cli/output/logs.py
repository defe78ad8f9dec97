"""Log records, which go to standard error."""

from __future__ import annotations

import logging
from importlib import import_module

from rocwheel.cli.output.consoles import messages
from rocwheel.cli.output.errors import report_warning

__all__ = ["setup_logging"]


def setup_logging(*, quiet: bool, verbose: bool) -> None:
    """Send log records to standard error: warnings by default, all with ``verbose``, errors only with ``quiet``."""
    level = logging.ERROR if quiet else logging.DEBUG if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(message)s", handlers=[_MessageHandler()], force=True)


class _MessageHandler(logging.Handler):
    """Print records, each in its own line that is never folded, and warnings as `report_warning` does."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record."""
        if record.levelno == logging.WARNING and not record.exc_info:
            report_warning(record.getMessage())
        elif not record.exc_info:
            messages.print(record.getMessage(), markup=False)
        else:
            self._emit_with_traceback(record)

    def _emit_with_traceback(self, record: logging.LogRecord) -> None:
        # Only now, as most runs have none.
        handler = import_module("rich.logging").RichHandler(console=messages.rich, show_time=False, show_path=False)
        handler.setFormatter(self.formatter)
        handler.emit(record)
