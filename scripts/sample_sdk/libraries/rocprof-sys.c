/* Stand-in for rocprofiler-systems: starts a clock. */
#include "api.h"
#include <stdint.h>

int rocprofiler_get_timestamp(uint64_t *);

API int rocprofsys_init(uint64_t *start) { return rocprofiler_get_timestamp(start); }
