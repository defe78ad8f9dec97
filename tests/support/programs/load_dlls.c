/* Does with DLLs what its arguments say, one after another, and prints a line for each that asks something:
 *
 * add PATH, remove PATH   AddDllDirectory, and the same taken back; as Python's os.add_dll_directory
 * default                 SetDefaultDllDirectories for what is loaded without flags
 * first PATH              SetDllDirectoryW
 * path PATH               puts a folder into PATH
 * load PATH               LoadLibraryExW as Python's ctypes and import do, for full paths; prints the name and "loaded" or the error
 * plain PATH              LoadLibraryW
 * where NAME              prints where the process has a DLL from
 * call NAME FUNCTION      prints the text that a function without arguments returns
 */
#include <stdio.h>
#include <wchar.h>
#include <windows.h>

static struct { const wchar_t *path; DLL_DIRECTORY_COOKIE cookie; } added[64];
static int added_count;

static void show(const wchar_t *text) {
    static char line[1 << 17];
    WideCharToMultiByte(CP_UTF8, 0, text, -1, line, sizeof line, NULL, NULL);
    fputs(line, stdout);
}

static void report(const wchar_t *path, HMODULE module) {
    DWORD error = GetLastError();
    const wchar_t *last = wcsrchr(path, L'\\');
    show(last ? last + 1 : path);
    if (module) puts(": loaded");
    else printf(": error %lu\n", error);
}

static void add(const wchar_t *path) {
    added[added_count].path = path;
    added[added_count++].cookie = AddDllDirectory(path);
}

static void remove_added(const wchar_t *path) {
    for (int i = 0; i < added_count; i++)
        if (!wcscmp(added[i].path, path)) RemoveDllDirectory(added[i].cookie);
}

static void where(const wchar_t *name) {
    static wchar_t path[32768];
    HMODULE module = GetModuleHandleW(name);
    show(name);
    show(L": ");
    if (module) GetModuleFileNameW(module, path, 32768);
    show(module ? path : L"not loaded");
    puts("");
}

static void call(const wchar_t *name, const wchar_t *function) {
    char text[256];
    WideCharToMultiByte(CP_UTF8, 0, function, -1, text, sizeof text, NULL, NULL);
    const char *(*found)(void) = (const char *(*)(void))(void *)GetProcAddress(GetModuleHandleW(name), text);
    puts(found ? found() : "no such function");
}

int wmain(int count, wchar_t **arguments) {
    for (int i = 1; i < count; i++) {
        const wchar_t *what = arguments[i], *value = i + 1 < count ? arguments[i + 1] : L"";
        if (!wcscmp(what, L"default")) {
            SetDefaultDllDirectories(LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
            continue;
        }
        i++;
        if (!wcscmp(what, L"add")) add(value);
        else if (!wcscmp(what, L"remove")) remove_added(value);
        else if (!wcscmp(what, L"first")) SetDllDirectoryW(value);
        else if (!wcscmp(what, L"path")) SetEnvironmentVariableW(L"PATH", value);
        else if (!wcscmp(what, L"load"))
            report(value, LoadLibraryExW(value, NULL, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR));
        else if (!wcscmp(what, L"plain")) report(value, LoadLibraryW(value));
        else if (!wcscmp(what, L"where")) where(value);
        else if (!wcscmp(what, L"call")) call(value, arguments[++i]);
        else return 2;
    }
    return 0;
}
