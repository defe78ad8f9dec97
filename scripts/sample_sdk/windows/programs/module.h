/* Where the running program is, as LLVM's programs ask for it: what argv[0] says plays no part. */
#pragma once
#include <stdio.h>
#include <string.h>
#include <windows.h>

/* Splits the path of the program: returns its folder, and its name without ".exe". */
static const char *own_folder(char buffer[4096], const char **name) {
    DWORD length = GetModuleFileNameA(NULL, buffer, 4095);
    buffer[length] = 0;
    char *last = strrchr(buffer, '\\');
    if (!last) return ".";
    *last = 0;
    char *end = strrchr(last + 1, '.');
    if (end) *end = 0;
    *name = last + 1;
    return buffer;
}

/* Runs a program with the command line of this one, and returns its exit code. */
__attribute__((unused)) static int run(const char *program) {
    STARTUPINFOA startup = {.cb = sizeof startup};
    PROCESS_INFORMATION process;
    DWORD code = 127;
    if (!CreateProcessA(program, GetCommandLineA(), NULL, NULL, TRUE, 0, NULL, NULL, &startup, &process)) {
        fprintf(stderr, "%s: error %lu\n", program, GetLastError());
        return 127;
    }
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    return (int)code;
}
