__declspec(dllimport) int dep_one(int);
__declspec(dllexport) int api_one(int x) { return dep_one(x); }
/* What the linker asks for where a DLL is loaded late; Visual C++ has it in a library. */
void *__delayLoadHelper2(void *a, void *b) { return a; }
