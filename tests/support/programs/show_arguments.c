/* Prints where the program is, its command line and its arguments in UTF-8, a line each, then what it reads. Ends with the
 * number of the last argument. */
#include <stdio.h>
#include <wchar.h>
#include <windows.h>

static void show(const wchar_t *text) {
    static char line[1 << 17];
    WideCharToMultiByte(CP_UTF8, 0, text, -1, line, sizeof line, NULL, NULL);
    puts(line);
}

int wmain(int count, wchar_t **arguments) {
    static wchar_t path[32768];
    GetModuleFileNameW(NULL, path, 32768);
    show(path);
    show(GetCommandLineW());
    for (int number = 0; number < count; number++) show(arguments[number]);
    for (int byte; (byte = getchar()) != EOF;) putchar(byte);
    return count > 1 ? _wtoi(arguments[count - 1]) : 0;
}
