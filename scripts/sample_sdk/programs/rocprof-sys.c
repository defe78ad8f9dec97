/* Stand-in for the programs of rocprofiler-systems: starts the clock and says so. */
#include <stdint.h>
#include <stdio.h>

int rocprofsys_init(uint64_t *);

int main(int argc, char **argv) {
    uint64_t start;
    (void)argc;
    if (rocprofsys_init(&start)) return 1;
    printf("%s: no GPU to profile (rocwheel sample SDK)\n", argv[0]);
    return 0;
}
