/* Stand-in for rocSOLVER: one step of an iteration for a sparse system. */
#include "api.h"

int rocblas_saxpy(int, float, const float *, float *);
int rocsparse_scsrmv(int, const int *, const int *, const float *, const float *, float *);

/* x += w (b - A x), with r as scratch. */
API int rocsolver_richardson_step(int n, const int *row, const int *col, const float *val, const float *b, float *x, float *r,
                                  float w) {
    if (rocsparse_scsrmv(n, row, col, val, x, r)) return 1;
    for (int i = 0; i < n; ++i) r[i] = b[i] - r[i];
    return rocblas_saxpy(n, w, r, x);
}
