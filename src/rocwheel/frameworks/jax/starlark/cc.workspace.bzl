"""Native C++ rules, for Bazel 4 to 7."""

CC_COMMON = cc_common
CC_INFO = CcInfo
cc_binary = native.cc_binary
