/* Stand-in for hipSOLVER: forwards to rocSOLVER. */
#include "api.h"

int rocsolver_richardson_step(int, const int *, const int *, const float *, const float *, float *, float *, float);
int rocblas_device_count(void);

API int hipsolverRichardsonStep(int n, const int *row, const int *col, const float *val, const float *b, float *x, float *r,
                                float w) {
    return rocsolver_richardson_step(n, row, col, val, b, x, r, w);
}
API int hipsolverDeviceCount(void) { return rocblas_device_count(); }
