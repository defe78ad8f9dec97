/* One function of a compiler's runtime library. */
int __popcountdi2(long long value) {
    int bits = 0;
    for (unsigned long long rest = (unsigned long long)value; rest; rest &= rest - 1) ++bits;
    return bits;
}
