/* Stand-in for hipSPARSE: forwards to rocSPARSE. */
#include "api.h"

int rocsparse_scsrmv(int, const int *, const int *, const float *, const float *, float *);
const char *hipGetErrorString(int);

API int hipsparseScsrmv(int rows, const int *row, const int *col, const float *val, const float *x, float *y) {
    return rocsparse_scsrmv(rows, row, col, val, x, y);
}
API const char *hipsparseGetErrorString(int status) { return hipGetErrorString(status); }
