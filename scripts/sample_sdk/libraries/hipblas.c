/* Stand-in for hipBLAS: forwards to rocBLAS. */
#include "api.h"

int rocblas_saxpy(int, float, const float *, float *);
const char *hipGetErrorString(int);

API int hipblasSaxpy(int n, float a, const float *x, float *y) { return rocblas_saxpy(n, a, x, y); }
API const char *hipblasStatusToString(int status) { return hipGetErrorString(status); }
