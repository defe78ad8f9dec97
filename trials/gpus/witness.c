/* A witness, for tests: which code objects reached ROCr's loader, for which GPU.
 *
 * Preloaded (LD_PRELOAD), this library stands before three functions of ROCr that HIP calls for every module, and adds a
 * line of JSON to the file that WITNESS names for each code object that is loaded for a GPU: the GPU's ISA, the code
 * object's SHA-256, size, e_flags and ABI version, the file it lies in if that is known, and what the loader returned.
 *
 * It also stands before the two functions that libraries call to register their fat binaries and kernels. A program can
 * then force HIP to load the code of each: see `witness_registered`.
 *
 * Build: gcc -O2 -shared -fPIC -o witness.so witness.c -ldl -lpthread
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* SHA-256, as FIPS 180-4 has it. */

static uint32_t turned(uint32_t word, int by) { return word >> by | word << (32 - by); }

static void hash_block(uint32_t state[8], const uint8_t *block) {
    static const uint32_t constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
        0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
        0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
        0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
        0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
        0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t words[64], now[8];
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | block[4 * i + 1] << 16 | block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t early = words[i - 15], late = words[i - 2];
        words[i] = words[i - 16] + (turned(early, 7) ^ turned(early, 18) ^ early >> 3) + words[i - 7] +
                   (turned(late, 17) ^ turned(late, 19) ^ late >> 10);
    }
    memcpy(now, state, sizeof now);
    for (int i = 0; i < 64; i++) {
        uint32_t a = now[0], e = now[4];
        uint32_t one = now[7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & now[5]) ^ (~e & now[6])) + constants[i] + words[i];
        uint32_t two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & now[1]) ^ (a & now[2]) ^ (now[1] & now[2]));
        memmove(now + 1, now, 7 * sizeof *now);
        now[4] += one;
        now[0] = one + two;
    }
    for (int i = 0; i < 8; i++) state[i] += now[i];
}

static void hash(const uint8_t *data, size_t size, char text[65]) {
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t last[128] = {0};
    size_t whole = size / 64 * 64, rest = size - whole, end = rest < 56 ? 64 : 128;
    for (size_t at = 0; at < whole; at += 64) hash_block(state, data + at);
    memcpy(last, data + whole, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++) last[end - 1 - i] = (uint64_t)size * 8 >> 8 * i;
    for (size_t at = 0; at < end; at += 64) hash_block(state, last + at);
    for (int i = 0; i < 8; i++) sprintf(text + 8 * i, "%08x", state[i]);
}

/* Readers of code objects, by their handles. */

static struct reader { uint64_t handle; size_t size; char sha256[65], file[1024]; uint32_t flags, abi; } readers[1024];
static unsigned reader_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The file that memory is mapped from, or nothing. */
static void find_file(const void *memory, char *file, size_t size) {
    char line[1200], path[1024];
    FILE *maps = fopen("/proc/self/maps", "r");
    *file = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        uintptr_t start, end;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %1023s", &start, &end, path) != 3) continue;
        if (start <= (uintptr_t)memory && (uintptr_t)memory < end && *path == '/' && !strstr(path, "memfd:"))
            snprintf(file, size, "%s", path);
    }
    if (maps) fclose(maps);
}

static void remember(uint64_t handle, const uint8_t *data, size_t size, const char *file) {
    pthread_mutex_lock(&lock);
    struct reader *reader = &readers[reader_count++ % (sizeof readers / sizeof *readers)];
    *reader = (struct reader){.handle = handle, .size = size};
    hash(data, size, reader->sha256);
    if (size >= 52) { /* EI_ABIVERSION and e_flags of an ELF file */
        reader->abi = data[8];
        memcpy(&reader->flags, data + 48, 4);
    }
    if (file) snprintf(reader->file, sizeof reader->file, "%s", file);
    else find_file(data, reader->file, sizeof reader->file);
    pthread_mutex_unlock(&lock);
}

/* What HIP calls. Handles of ROCr are structures of one number, which are passed as this number. */

/* ROCr may be loaded late, for HIP only: it is then after this library in no list that RTLD_NEXT searches. */
static void *rocr(const char *name) {
    void *library = dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *function = library ? dlsym(library, name) : NULL;
    if (!function) {
        fprintf(stderr, "witness: ROCr has no %s\n", name);
        _exit(3);
    }
    return function;
}

#define NEXT(name) (__typeof__(&name))rocr(#name)

int hsa_code_object_reader_create_from_memory(const void *data, size_t size, uint64_t *reader) {
    int status = (NEXT(hsa_code_object_reader_create_from_memory))(data, size, reader);
    if (!status) remember(*reader, data, size, NULL);
    return status;
}

int hsa_code_object_reader_create_from_file(int fd, uint64_t *reader) {
    int status = (NEXT(hsa_code_object_reader_create_from_file))(fd, reader);
    struct stat about;
    char link[64], file[1024] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, file, sizeof file - 1) < 0 || status || fstat(fd, &about)) return status;
    const void *data = mmap(NULL, about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data != MAP_FAILED) remember(*reader, data, about.st_size, file);
    return status;
}

static void isa_name(uint64_t agent, char *name) {
    int (*about_agent)(uint64_t, int, void *) = rocr("hsa_agent_get_info");
    int (*about_isa)(uint64_t, int, void *) = rocr("hsa_isa_get_info_alt");
    enum { AGENT_INFO_ISA = 19, ISA_INFO_NAME = 1 };
    uint64_t isa;
    if (!about_agent(agent, AGENT_INFO_ISA, &isa)) about_isa(isa, ISA_INFO_NAME, name);
}

int hsa_executable_load_agent_code_object(uint64_t executable, uint64_t agent, uint64_t reader, const char *options, uint64_t *loaded) {
    int status = (NEXT(hsa_executable_load_agent_code_object))(executable, agent, reader, options, loaded);
    const char *path = getenv("WITNESS");
    FILE *output = path ? fopen(path, "a") : NULL;
    if (!output) return status;
    char isa[256] = "";
    isa_name(agent, isa);
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < sizeof readers / sizeof *readers; i++) {
        /* The newest of this handle: ROCr may give a handle out again. */
        struct reader *one = &readers[(reader_count - 1 - i) % (sizeof readers / sizeof *readers)];
        if (one->handle != reader) continue;
        fprintf(output, "{\"isa\": \"%s\", \"sha256\": \"%s\", \"size\": %zu, \"flags\": %u, \"abi\": %u, \"file\": \"%s\", \"status\": %d}\n",
                isa, one->sha256, one->size, one->flags, one->abi, one->file, status);
        break;
    }
    pthread_mutex_unlock(&lock);
    fclose(output);
    return status;
}

/* What libraries call when they are loaded. A runtime takes a fat binary with code that it can't read, or none. */

static struct registered { const void *bundle, *kernel; void *handle; } registered[4096];
static unsigned registered_count;

static void *hip(const char *name) {
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
    void *function = NULL;
    for (unsigned i = 0; i < sizeof names / sizeof *names && !function; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library) function = dlsym(library, name);
    }
    if (!function) {
        fprintf(stderr, "witness: HIP has no %s\n", name);
        _exit(3);
    }
    return function;
}

#define HIP(name) (__typeof__(&name))hip(#name)

struct wrapper { uint32_t magic, version; const void *binary; };

void **__hipRegisterFatBinary(const struct wrapper *wrapper) {
    void **handle = (HIP(__hipRegisterFatBinary))(wrapper);
    pthread_mutex_lock(&lock);
    if (registered_count < sizeof registered / sizeof *registered)
        registered[registered_count++] = (struct registered){wrapper->binary, NULL, handle};
    pthread_mutex_unlock(&lock);
    return handle;
}

void __hipRegisterFunction(void **handle, const void *kernel, char *name, const char *device_name, unsigned limit, void *thread,
                           void *block, void *block_size, void *grid_size, int *warp_size) {
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < registered_count; i++)
        if (handle && registered[i].handle == handle && !registered[i].kernel) registered[i].kernel = kernel;
    pthread_mutex_unlock(&lock);
    (HIP(__hipRegisterFunction))(handle, kernel, name, device_name, limit, thread, block, block_size, grid_size, warp_size);
}

/* Libraries that are linked without the C library's start files lack this function, which unregisters their code. */
int atexit(void (*function)(void)) {
    (void)function;
    return 0;
}

/* For programs: the address of the bundle that was registered as the one with this number, whether HIP accepted it, and its
 * first kernel. Returns 0 if there are no more. Without a kernel, nothing can ask for the bundle's code. */
int witness_registered(unsigned number, const void **bundle, int *accepted, const void **kernel) {
    if (number >= registered_count) return 0;
    *bundle = registered[number].bundle;
    *accepted = registered[number].handle != NULL;
    *kernel = registered[number].kernel;
    return 1;
}
