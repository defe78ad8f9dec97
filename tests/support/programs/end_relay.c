/* Starts the program named in the variable PROGRAM, which starts another one, and ends it once the other has written.
 *
 * Without arguments it is the other program: it writes and then waits for a minute. The output of both is a pipe whose end
 * comes when both have ended; the exit code is 0 if it came, 1 if there was more to read, 90 or more if starting failed. */
#include <windows.h>

static wchar_t program[32768];

static int wait_for_end(void) {
    DWORD written;
    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), "!", 1, &written, NULL);
    Sleep(60000);
    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), "?", 1, &written, NULL);
    return 0;
}

int main(int count, char **arguments) {
    (void)arguments;
    if (count == 1) return wait_for_end();
    HANDLE output, input;
    SECURITY_ATTRIBUTES inherited = {sizeof inherited, NULL, TRUE};
    PROCESS_INFORMATION process;
    DWORD read = 0;
    char byte = 0;
    CreatePipe(&output, &input, &inherited, 0);
    SetHandleInformation(output, HANDLE_FLAG_INHERIT, 0);
    STARTUPINFOW startup = {.cb = sizeof startup, .dwFlags = STARTF_USESTDHANDLES, .hStdOutput = input};
    GetEnvironmentVariableW(L"PROGRAM", program, 32768);
    if (!CreateProcessW(program, NULL, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &process)) return 90;
    CloseHandle(input);
    if (!ReadFile(output, &byte, 1, &read, NULL) || byte != '!') return 91;
    TerminateProcess(process.hProcess, 5);
    return ReadFile(output, &byte, 1, &read, NULL) && read;
}
