#pragma once
#ifdef __cplusplus
extern "C"
#endif
int hiprandGenerate(unsigned seed, unsigned *out, int n);
