/* Stand-in for what the driver does on Windows, where ROCm has no ROCR of its own: it finds no device. */
int hsa_init(void) { return 0; }
