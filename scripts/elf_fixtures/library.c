/* A library without any C library.
 *
 * With MORE it refers to dlopen, as libraries with plugins do. With BSS_SIZE its memory ends far behind its file. With
 * LARGE it calls a large function of its own through a slot of the GOT. */

int answer_value = 42;

int answer(void) { return answer_value; }

#ifdef MORE
void *dlopen(const char *, int);
void *open_plugin(void) { return dlopen("plugin.so", 2); }
#endif

#ifdef BSS_SIZE
char block[BSS_SIZE];
#endif

#ifdef LARGE
void large(void) { __asm__(".skip 20000, 0x90"); }
void call_large(void) { large(); }
#endif
