/* Starts the program named in the variable PROGRAM with the command line in LINE, and ends with its exit code. */
#include <windows.h>

static wchar_t program[32768], line[32768];

int main(void) {
    STARTUPINFOW startup = {.cb = sizeof startup};
    PROCESS_INFORMATION process;
    DWORD code = 99;
    GetEnvironmentVariableW(L"PROGRAM", program, 32768);
    GetEnvironmentVariableW(L"LINE", line, 32768);
    if (!CreateProcessW(program, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &process)) return 98;
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    return code;
}
