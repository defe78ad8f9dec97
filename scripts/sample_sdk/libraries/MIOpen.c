/* Stand-in for MIOpen: a rectifier, and its version. */
#include "api.h"

int rocblas_device_count(void);
unsigned amd_comgr_llvm_major(void);
const char *hipGetErrorString(int);

API int miopenGetVersion(unsigned long *major, unsigned long *minor, unsigned long *patch) {
    *major = amd_comgr_llvm_major() >= 22 ? 3 : 2;
    *minor = *patch = (unsigned long)rocblas_device_count();
    return 0;
}
API void miopenRectify(float *values, int n) {
    for (int i = 0; i < n; ++i) values[i] = values[i] > 0 ? values[i] : 0;
}
API const char *miopenGetErrorString(int error) { return hipGetErrorString(error); }
