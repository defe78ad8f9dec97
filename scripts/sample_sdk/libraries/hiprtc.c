/* Stand-in for hiprtc: its version. */
#include "api.h"

unsigned amd_comgr_llvm_major(void);

API int hiprtcVersion(int *major, int *minor) {
    if (!major || !minor) return 3;
    *major = amd_comgr_llvm_major() >= 22 ? 7 : 6;
    *minor = 0;
    return 0;
}
