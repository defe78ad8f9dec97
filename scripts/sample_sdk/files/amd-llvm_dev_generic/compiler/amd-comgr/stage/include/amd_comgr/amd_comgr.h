#pragma once
#ifdef __cplusplus
extern "C" {
#endif
void amd_comgr_get_version(unsigned long *major, unsigned long *minor);
unsigned amd_comgr_llvm_major(void);
#ifdef __cplusplus
}
#endif
