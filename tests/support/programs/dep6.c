/* A DLL that says which it is. */
__declspec(dllexport) const char *dep_says(void) { return WHICH; }
