/* Stand-in for the OpenCL loader: no platforms. */
#include "api.h"

int hsa_init(void);

API int clGetPlatformIDs(unsigned size, void **platforms, unsigned *count) {
    (void)size, (void)platforms;
    if (count) *count = 0;
    return hsa_init() ? -6 : -1001;
}
