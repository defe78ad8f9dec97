"""What files find before and after a repair, by the loader's rules."""
