/* What a C library's start files would add to a shared library that registers something to do at its end. */
extern int __cxa_atexit(void (*)(void *), void *, void *);

__attribute__((visibility("hidden"))) void *__dso_handle = &__dso_handle;

__attribute__((visibility("hidden"))) int atexit(void (*function)(void)) {
    return __cxa_atexit((void (*)(void *))function, 0, __dso_handle);
}
