/* A plugin without SONAME, as tracers load by path. */
#include "api.h"

int roctracer_version_major(void);

API int roctracer_plugin_initialize(int major) { return major == roctracer_version_major() ? 0 : -1; }
