/* Stand-in for libLLVM: its version. */
#include "api.h"

API void LLVMGetVersion(unsigned *major, unsigned *minor, unsigned *patch) {
    if (major) *major = 22;
    if (minor) *minor = 0;
    if (patch) *patch = 0;
}
