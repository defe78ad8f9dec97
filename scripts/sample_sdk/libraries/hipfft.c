/* Stand-in for hipFFT: forwards to rocFFT. */
#include "api.h"

int rocfft_setup(void);
void rocfft_two_points(const float *, float *);

API int hipfftExecTwoPoints(const float *in, float *out) {
    if (rocfft_setup()) return 5;
    rocfft_two_points(in, out);
    return 0;
}
