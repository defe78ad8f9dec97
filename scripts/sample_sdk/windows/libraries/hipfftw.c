/* Stand-in for hipFFTW: FFTW's way to ask for hipFFT's transform. */
#include "api.h"

int hipfftExecTwoPoints(const float *, float *);

API void fftwf_execute_two_points(const float *in, float *out) { hipfftExecTwoPoints(in, out); }
