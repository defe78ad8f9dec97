#pragma once
namespace rocprim {

/// The sum of n values, as the real library computes it on a GPU.
template <typename T> T reduce(const T *values, unsigned n) {
    T sum{};
    for (unsigned i = 0; i < n; ++i) sum += values[i];
    return sum;
}

} // namespace rocprim
