/* A DLL that needs dep6.dll and says which it got. */
const char *dep_says(void);
__declspec(dllexport) const char *api_says(void) { return dep_says(); }
