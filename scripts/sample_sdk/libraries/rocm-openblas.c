/* Stand-in for OpenBLAS: y += a x. */
#include "api.h"

API void cblas_saxpy(int n, float a, const float *x, int incx, float *y, int incy) {
    for (int i = 0; i < n; ++i) y[i * incy] += a * x[i * incx];
}
