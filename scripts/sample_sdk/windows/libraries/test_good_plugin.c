/* A plugin that only the tests of hipDNN load. */
#include "api.h"

int hipdnnTestHelper(void);

API int hipdnnTestPlugin(void) { return hipdnnTestHelper(); }
