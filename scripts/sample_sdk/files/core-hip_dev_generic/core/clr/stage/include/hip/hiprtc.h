#pragma once
#ifdef __cplusplus
extern "C"
#endif
int hiprtcVersion(int *major, int *minor);
