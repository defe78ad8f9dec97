/* Stand-in for amd_comgr: its version and LLVM's. */
#include "api.h"

void LLVMGetVersion(unsigned *, unsigned *, unsigned *);

API void amd_comgr_get_version(unsigned long *major, unsigned long *minor) {
    *major = 3;
    *minor = 0;
}
API unsigned amd_comgr_llvm_major(void) {
    unsigned major = 0;
    LLVMGetVersion(&major, 0, 0);
    return major;
}
