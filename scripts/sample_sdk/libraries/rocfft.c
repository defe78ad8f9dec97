/* Stand-in for rocFFT: the transform of two points. */
#include "api.h"

int hipGetDeviceCount(int *);

API int rocfft_setup(void) {
    int count;
    return hipGetDeviceCount(&count) == 100 ? 0 : 1;
}
API void rocfft_two_points(const float in[2], float out[2]) {
    out[0] = in[0] + in[1];
    out[1] = in[0] - in[1];
}
