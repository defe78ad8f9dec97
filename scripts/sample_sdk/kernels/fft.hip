/* butterflies of length two */
#include "device.h"

extern "C" __global__ void fft_len2(float *data, int pairs) {
    int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
    if (i >= pairs) return;
    float a = data[2 * i], b = data[2 * i + 1];
    data[2 * i] = a + b;
    data[2 * i + 1] = a - b;
}
