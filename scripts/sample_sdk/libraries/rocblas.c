/* Stand-in for rocBLAS: saxpy on the host. */
#include "api.h"

void cblas_saxpy(int, float, const float *, int, float *, int);
int hipGetDeviceCount(int *);

API int rocblas_saxpy(int n, float a, const float *x, float *y) {
    if (!x || !y) return 5;
    cblas_saxpy(n, a, x, 1, y, 1);
    return 0;
}
API int rocblas_device_count(void) {
    int count = 0;
    hipGetDeviceCount(&count);
    return count;
}
