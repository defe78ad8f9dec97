/* Stand-in for roctracer: its version, and whether a HIP device can be traced. */
#include "api.h"

int roctxRangePop(void);
int hipGetDeviceCount(int *);

API int roctracer_version_major(void) { return 4; }
API int roctracer_can_trace(void) {
    int count;
    return hipGetDeviceCount(&count) == 0 && roctxRangePop() < 0;
}
