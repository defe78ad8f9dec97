"""The C++ rules from rules_cc, for Bazel 7 and later with bazel_dep(name = "rules_cc")."""

load("@rules_cc//cc:defs.bzl", _cc_binary = "cc_binary")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

CC_COMMON = cc_common
CC_INFO = CcInfo
cc_binary = _cc_binary
