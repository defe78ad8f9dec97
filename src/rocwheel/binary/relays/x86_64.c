/* The template of relays for Windows on x86-64. scripts/build_relays.py compiles it to x86_64.bin, and stubs.py fills it in.
 *
 * A relay starts a program. The section .relay has the program's path, relative to the relay's own folder. The program
 * gets the relay's command line byte by byte, including argv[0], with the arguments of .relay inserted after argv[0].
 * It inherits the environment, working folder, standard streams, and the data that the C runtime passes on. The relay waits,
 * and exits with the program's exit code. If the relay is killed, the program ends too. Only kernel32.dll is required. */

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/* The longest command line and the longest path that Windows accepts, each with its final NUL. */
#define LONGEST 32767
#define NOT_FOUND 127
#define NOT_ALLOWED 126

/* Volatile, because the compiler must not use these initial values. stubs.py depends on the layout. */
struct setting {
    wchar_t target[260];
    wchar_t arguments[252];
};
__attribute__((section(".relay"), used)) static const volatile struct setting setting = {L"?", L""};

static wchar_t own[LONGEST], path[LONGEST], command[LONGEST], message[LONGEST + 512];
static char bytes[3 * (LONGEST + 512)];
static STARTUPINFOW startup;
static PROCESS_INFORMATION process;
static JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits;

/* Appends a text and returns its end, or NULL if it does not fit before `stop`. */
static wchar_t *append(wchar_t *at, const wchar_t *stop, const volatile wchar_t *text) {
    if (!at) return NULL;
    for (; *text; text++) {
        if (at + 1 >= stop) return NULL;
        *at++ = *text;
    }
    *at = 0;
    return at;
}

static wchar_t *append_number(wchar_t *at, const wchar_t *stop, DWORD number) {
    wchar_t digits[11];
    wchar_t *first = digits + 10;
    *first = 0;
    do *--first = L'0' + number % 10; while (number /= 10);
    return append(at, stop, first);
}

/* Returns the separator before the last part of a path, or NULL at the root of a drive. */
static wchar_t *cut(wchar_t *start, wchar_t *end) {
    while (end > start && *--end != L'\\') {}
    return end > start ? end : NULL;
}

static void say(const wchar_t *text, const wchar_t *end) {
    HANDLE errors = GetStdHandle(STD_ERROR_HANDLE);
    DWORD length = end - text, written;
    if (WriteConsoleW(errors, text, length, &written, NULL)) return;
    length = WideCharToMultiByte(CP_UTF8, 0, text, length, bytes, sizeof bytes, NULL, NULL);
    WriteFile(errors, bytes, length, &written, NULL);
}

__attribute__((noreturn)) static void fail(const wchar_t *name, DWORD error) {
    const wchar_t *stop = message + LONGEST + 512;
    wchar_t *at = append(message, stop, name);
    at = append(at, stop, L": cannot run ");
    at = append(at, stop, path);
    at = append(at, stop, L": error ");
    at = append_number(at, stop, error);
    at = append(at, stop, L"\r\n");
    if (at) say(message, at);
    ExitProcess(error == ERROR_ACCESS_DENIED ? NOT_ALLOWED : NOT_FOUND);
}

/* Returns the end of argv[0] by the rules of the C runtime: a blank outside of quotes. Backslashes have no meaning. */
static const wchar_t *skip_program(const wchar_t *line) {
    BOOL quoted = FALSE;
    for (; *line && (quoted || (*line != L' ' && *line != L'\t')); line++)
        if (*line == L'"') quoted = !quoted;
    return line;
}

/* Writes the command line of the program, and returns whether it fits. */
static BOOL write_command(void) {
    const wchar_t *stop = command + LONGEST, *line = GetCommandLineW(), *rest = skip_program(line);
    wchar_t *at = command;
    while (line < rest && at + 1 < stop) *at++ = *line++;
    if (setting.arguments[0]) {
        at = append(at, stop, L" ");
        at = append(at, stop, setting.arguments);
    }
    return append(at, stop, line) != NULL;
}

/* Writes the path of the target without "..": the folder of the relay, without one part for each "..", then the rest. */
static BOOL write_path(void) {
    const volatile wchar_t *target = setting.target;
    wchar_t *end = cut(path, append(path, path + LONGEST, own));
    for (; end && target[0] == L'.' && target[1] == L'.' && target[2] == L'\\'; target += 3) {
        *end = 0;
        end = cut(path, end);
    }
    end = append(end, path + LONGEST, L"\\");
    return append(end, path + LONGEST, target) != NULL;
}

/* The program also gets Ctrl-C, and decides what to do. */
static BOOL WINAPI leave_to_program(DWORD event) {
    return event == CTRL_C_EVENT || event == CTRL_BREAK_EVENT;
}

static HANDLE inherit(DWORD which) {
    HANDLE stream = GetStdHandle(which);
    SetHandleInformation(stream, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
    return stream;
}

static void set_startup(void) {
    GetStartupInfoW(&startup);
    startup.dwFlags = (startup.dwFlags & STARTF_USESHOWWINDOW) | STARTF_USESTDHANDLES;
    startup.hStdInput = inherit(STD_INPUT_HANDLE);
    startup.hStdOutput = inherit(STD_OUTPUT_HANDLE);
    startup.hStdError = inherit(STD_ERROR_HANDLE);
}

/* The program ends with the relay; processes that the program starts do not. */
static HANDLE make_job(void) {
    HANDLE job = CreateJobObjectW(NULL, NULL);
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK;
    SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits);
    return job;
}

void start(void) {
    DWORD code = NOT_FOUND, length = GetModuleFileNameW(NULL, own, LONGEST);
    wchar_t *name = cut(own, own + length);
    name = name ? name + 1 : own;
    if (!write_path()) fail(name, ERROR_PATH_NOT_FOUND);
    if (!write_command()) fail(name, ERROR_FILENAME_EXCED_RANGE);
    set_startup();
    SetConsoleCtrlHandler(leave_to_program, TRUE);
    HANDLE job = make_job();
    if (!CreateProcessW(path, command, NULL, NULL, TRUE, CREATE_SUSPENDED, NULL, NULL, &startup, &process))
        fail(name, GetLastError());
    AssignProcessToJobObject(job, process.hProcess);
    ResumeThread(process.hThread);
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    ExitProcess(code);
}
