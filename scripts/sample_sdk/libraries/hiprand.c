/* Stand-in for hipRAND: forwards to rocRAND. */
#include "api.h"

unsigned rocrand_next(unsigned);

API int hiprandGenerate(unsigned seed, unsigned *out, int n) {
    if (!seed) return 105;
    for (int i = 0; i < n; ++i) out[i] = seed = rocrand_next(seed);
    return 0;
}
