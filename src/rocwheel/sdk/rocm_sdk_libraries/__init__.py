"""Marks the ROCm libraries as installed, so that ``rocm_sdk.find_libraries`` finds them."""
