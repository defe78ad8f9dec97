/* y += a x */
#include "device.h"

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
    int i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
    if (i < n) y[i] += a * x[i];
}
