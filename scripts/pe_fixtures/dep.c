__declspec(dllexport) int dep_one(int x) { return x + 1; }
__declspec(dllexport) int dep_two(int x) { return x + 2; }
int dep_secret(int x) { return x + 3; }
