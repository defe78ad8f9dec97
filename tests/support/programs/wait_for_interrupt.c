/* Prints "ready" and waits for Ctrl-C, at most half a minute; ends with 42 if it came, else with 1. */
#include <stdio.h>
#include <windows.h>

static volatile LONG seen;

static BOOL WINAPI note(DWORD event) {
    seen = event == CTRL_C_EVENT;
    return TRUE;
}

int main(void) {
    SetConsoleCtrlHandler(note, TRUE);
    puts("ready");
    fflush(stdout);
    for (int i = 0; i < 600 && !seen; i++) Sleep(50);
    /* What should have ended with it is still there for a moment. */
    Sleep(300);
    return seen ? 42 : 1;
}
