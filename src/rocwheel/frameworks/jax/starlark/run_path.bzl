"""Run paths of libraries in wheels, as linker options."""

load("@rocm_wheel//:defs.bzl", "WHEEL_RUN_PATH", "WHEEL_RUN_PATH_TAG")

_SITE_PACKAGES = "$SITE_PACKAGES"
_TAG_OPTIONS = {"rpath": "-Wl,--disable-new-dtags", "runpath": "-Wl,--enable-new-dtags"}

def _spell(entry, folder):
    if not entry.startswith(_SITE_PACKAGES):
        return entry
    up = ["$ORIGIN"] + [".." for part in folder.split("/") if part]
    return "/".join(up) + entry[len(_SITE_PACKAGES):]

def wheel_run_path(folder):
    """Returns the run path entries for a library in `folder`, which is relative to site-packages."""
    if folder.startswith("/") or [part for part in folder.split("/") if part in [".", ".."]]:
        fail("%r isn't a folder in site-packages, such as jax_plugins/xla_rocm7" % folder)
    return [_spell(entry, folder) for entry in WHEEL_RUN_PATH]

def wheel_run_path_linkopts(folder):
    """Returns the same entries as linkopts. Because of Make variable expansion, $$ represents a literal $."""
    options = ["-Wl,-rpath,%s" % entry.replace("$", "$$") for entry in wheel_run_path(folder)]
    return [_TAG_OPTIONS[WHEEL_RUN_PATH_TAG]] + options if options else []
