/* A program without any library: writes its arguments, a line each. */
static long write_out(const char *text, unsigned long size) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "0"(1L), "D"(1L), "S"(text), "d"(size) : "rcx", "r11", "memory");
    return result;
}
static int run(long *stack) {
    char **argv = (char **)(stack + 1);
    for (int i = 1; i < stack[0]; ++i) {
        unsigned long size = 0;
        while (argv[i][size]) ++size;
        if (write_out(argv[i], size) < 0 || write_out("\n", 1) < 0) return 1;
    }
    return 0;
}
__asm__(".globl _start\n_start: xor %ebp, %ebp\nmov %rsp, %rdi\nand $-16, %rsp\ncall leave_with\nhlt\n");
__attribute__((used)) void leave_with(long *stack) {
    __asm__ volatile("syscall" : : "a"(231L), "D"((long)run(stack)) : "rcx", "r11", "memory");
}
