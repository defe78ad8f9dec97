/* Stand-in for the headers that hiprtc compiles with, kept as data. */
#include "api.h"

API const char __hipRTC_header[] = "#pragma once\nstruct dim3 { unsigned x, y, z; };\n";
API const unsigned __hipRTC_header_size = sizeof __hipRTC_header - 1;
