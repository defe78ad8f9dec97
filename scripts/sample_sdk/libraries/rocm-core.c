/* Stand-in for rocm-core: the version of the SDK. */
#include "api.h"

API int getROCmVersion(unsigned *major, unsigned *minor, unsigned *patch) {
    if (!major || !minor || !patch) return 1;
    *major = 7;
    *minor = 0;
    *patch = 0;
    return 0;
}
