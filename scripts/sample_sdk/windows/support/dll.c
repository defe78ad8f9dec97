/* The entry point of DLLs that have nothing to set up. */
int DllMainCRTStartup(void *module, unsigned reason, void *reserved) {
    (void)module, (void)reason, (void)reserved;
    return 1;
}
