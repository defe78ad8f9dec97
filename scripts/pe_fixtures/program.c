__declspec(dllimport) int api_one(int);
__declspec(dllimport) int api_far(int);
__declspec(dllimport) int dep_two(int);
__declspec(dllimport) int dep_secret(int);
int mainCRTStartup(void) { return api_one(1) + api_far(2) + dep_two(3) + dep_secret(4); }
