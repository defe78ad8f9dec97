"""The checks of ``rocm-sdk doctor``, one module for each subject."""
