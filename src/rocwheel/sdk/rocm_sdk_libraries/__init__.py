"""Marks the ROCm libraries as installed; ``rocm_sdk.find_libraries`` finds them."""
