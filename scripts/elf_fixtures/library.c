/* A library without any C library. With MORE it refers to dlopen, as libraries with plugins do. */

int answer_value = 42;

int answer(void) { return answer_value; }

#ifdef MORE
void *dlopen(const char *, int);
void *open_plugin(void) { return dlopen("plugin.so", 2); }
#endif
