/* Stand-in for AMD's OpenCL: which OpenCL C it compiles. */
#include "api.h"

unsigned amd_comgr_llvm_major(void);

API int clSampleLanguageVersion(void) { return amd_comgr_llvm_major() >= 22 ? 300 : 200; }
