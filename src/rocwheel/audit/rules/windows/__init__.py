"""Rules about packages for Windows: requirements of Windows, its loader, and its file system."""

from __future__ import annotations

from rocwheel.audit.rules.windows import archives, dlls, images, names, sets

RULES = (*dlls.RULES, *sets.RULES, *images.RULES, *archives.RULES, *names.RULES)
