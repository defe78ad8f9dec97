/* Stand-in for hipDNN's engine on MIOpen. */
#include "api.h"

const char *miopenGetErrorString(int);

API const char *hipdnnEnginePluginName(void) { return "miopen"; }
API const char *hipdnnEnginePluginError(int error) { return miopenGetErrorString(error); }
