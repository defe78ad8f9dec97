#pragma once
#ifdef __cplusplus
extern "C" {
#endif
unsigned rocrand_next(unsigned state);
void rocrand_launch(unsigned *states, int n);
#ifdef __cplusplus
}
#endif
