/* Stand-in for hipDNN: its version, and whether it has a device to work on. */
#include "api.h"

int hipGetDeviceCount(int *);

API int hipdnnGetVersion(void) { return 10000; }
API int hipdnnCreate(void **handle) {
    int count;
    *handle = 0;
    return hipGetDeviceCount(&count);
}
