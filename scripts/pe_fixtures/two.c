/* A library with device code as hipcc makes it, and what a program can ask to see that all of it is loaded. */
struct wrapper {
    unsigned magic, version;
    const unsigned long long *bundle;
    unsigned index, zero;
};
extern struct wrapper __hip_wrappers[2];

/* Data behind the device code, with pointers that the loader corrects. */
__attribute__((section(".late"))) int late_numbers[4] = {7, 11, 13, 17};
__attribute__((section(".late"))) int *late_pointers[2] = {&late_numbers[1], &late_numbers[3]};

__declspec(dllexport) int answer(void) { return *late_pointers[0] + *late_pointers[1] + late_numbers[0]; }
__declspec(dllexport) unsigned wrapper_magic(int i) { return __hip_wrappers[i].magic; }
__declspec(dllexport) unsigned wrapper_index(int i) { return __hip_wrappers[i].index; }
__declspec(dllexport) unsigned long long bundle_head(int i) { return *__hip_wrappers[i].bundle; }
