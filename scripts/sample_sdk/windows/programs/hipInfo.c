/* Stand-in for hipInfo: what devices there are. */
#include <stdio.h>

int hipGetDeviceCount(int *);
int hipRuntimeGetVersion(int *);
const char *hipGetErrorString(int);

int main(void) {
    int count, version, error = hipGetDeviceCount(&count);
    if (hipRuntimeGetVersion(&version)) return 1;
    printf("HIP runtime: %d (rocwheel sample SDK)\ndevices: %d (%s)\n", version, count, hipGetErrorString(error));
    return 0;
}
