/* A stand-in for the amdgpu kernel driver, for tests on machines without an AMD GPU.
 *
 * Preloaded (LD_PRELOAD), this library answers for /dev/kfd, the render nodes, the KFD topology in sysfs, and the calls
 * of libdrm that ROCr makes. An unmodified ROCr and HIP then find the GPUs that trials/gpus/machines.py describes, and
 * load code for them. The facts about the interface are from the kernel's header linux/kfd_ioctl.h, and from the
 * public sources of ROCr (libhsakmt, amd_blit_sdma.cpp) and of libdrm.
 *
 * The stand-in executes no kernels. Queues complete every packet: a barrier waits for the signals it depends on, a
 * kernel dispatch is counted, and a copy by a DMA engine is a copy by the processor. All memory is host memory.
 *
 * It is a tool for tests. It ends the process on a machine with a real /dev/kfd, and it is in no package. An ioctl or a
 * DMA packet that it doesn't know is an error with its name and number, and fails.
 *
 *   STANDIN_MACHINE  the folder of the machine: "gpus" has a line for each GPU, "topology" is the folder in sysfs
 *   STANDIN_COUNTS   a file; a line of JSON with the numbers of packets is added to it when the process ends
 *   STANDIN_TRACE    if set, every ioctl and packet is printed to standard error
 *
 * Build: gcc -O1 -shared -fPIC -o standin.so standin.c -ldl -lpthread
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/kfd_ioctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST_GPUS 16
#define MOST_QUEUES 256
#define MOST_EVENTS 4096
#define MOST_ALLOCATIONS 65536
#define PAGE 4096ull
#define DOORBELL_PAGE 8192ull /* 1,024 doorbells of 8 bytes, as of gfx9 and later */
#define NOT_RUNG UINT64_MAX
#define OF_DOORBELLS (1ll << 62) /* in an offset for mmap, with the number of the GPU in the bits from 46 on */
#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct gpu {
    uint32_t id, render_minor, family, external_revision, addr_config;
    uint64_t memory, used;
    uint64_t doorbells_at; /* the offset of its doorbells in the memory file */
    volatile uint64_t *doorbells;
    char name[64];
} gpus[MOST_GPUS];
static unsigned gpu_count;
static const char *machine;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */

static void say(const char *format, ...) {
    char text[512];
    va_list rest;
    va_start(rest, format);
    int size = vsnprintf(text, sizeof text - 1, format, rest);
    va_end(rest);
    if (size > (int)sizeof text - 2) size = sizeof text - 2;
    text[size] = '\n';
    if (write(2, text, size + 1) < 0) return;
}

#define TRACE(...) do { if (getenv("STANDIN_TRACE")) say("standin: " __VA_ARGS__); } while (0)

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* Devices are memory files whose names tell them apart, also after dup. */

#define KFD "standin:kfd"
#define RENDER "standin:render:"
#define MEMORY "standin:memory"

static int open_device(const char *name, unsigned flags) { return syscall(SYS_memfd_create, name, flags); }

/* The name of the device of a file descriptor, or NULL for any other file. */
static const char *device_of(int fd, char *buffer, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = fd < 0 ? -1 : readlink(path, buffer, size - 1);
    if (length < 0) return NULL;
    buffer[length] = 0;
    char *name = strstr(buffer, "memfd:standin:");
    char *end = name ? strstr(name, " (deleted)") : NULL;
    if (!end) return NULL;
    *end = 0;
    return name + strlen("memfd:");
}

static struct gpu *gpu_of_id(uint32_t id) {
    for (unsigned i = 0; i < gpu_count; i++)
        if (gpus[i].id == id) return &gpus[i];
    return NULL;
}

static struct gpu *gpu_of_minor(uint32_t minor) {
    for (unsigned i = 0; i < gpu_count; i++)
        if (gpus[i].render_minor == minor) return &gpus[i];
    return NULL;
}

/* Memory: one file has the memory of all GPUs, and mmap_offset is the place in it. Memory that is mapped twice, such as
 * by the runtime and by the driver, is then the same. */

static int memory_fd = -1;
static uint64_t memory_end = 1ull << 32; /* offsets are never 0, and never those of another allocation */
static struct allocation { uint64_t handle, size, at; struct gpu *gpu; } allocations[MOST_ALLOCATIONS];
static unsigned allocation_count;

static uint64_t reserve_memory(uint64_t size, uint64_t alignment) {
    if (memory_fd < 0) memory_fd = open_device(MEMORY, MFD_CLOEXEC);
    uint64_t at = (memory_end + alignment - 1) / alignment * alignment;
    memory_end = at + size;
    return memory_fd < 0 || ftruncate(memory_fd, memory_end) ? 0 : at;
}

static int allocate(struct kfd_ioctl_alloc_memory_of_gpu_args *asked) {
    static uint64_t number = 1;
    struct gpu *gpu = gpu_of_id(asked->gpu_id);
    if (!gpu) return EINVAL;
    bool is_local = asked->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
    bool has_pages = !(asked->flags & (KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL));
    if (is_local && asked->size > gpu->memory - gpu->used) return ENOMEM;
    if (allocation_count == MOST_ALLOCATIONS) return ENOMEM;
    uint64_t at = has_pages ? reserve_memory(asked->size, 2 << 20) : 0;
    if (has_pages && !at) return ENOMEM;
    asked->handle = (uint64_t)gpu->id << 32 | number++;
    if (has_pages) asked->mmap_offset = at; /* that of doorbells is the caller's */
    if (is_local) gpu->used += asked->size;
    allocations[allocation_count++] = (struct allocation){asked->handle, asked->size, at, is_local ? gpu : NULL};
    return 0;
}

static int release(uint64_t handle) {
    for (unsigned i = 0; i < allocation_count; i++) {
        if (allocations[i].handle != handle) continue;
        if (allocations[i].gpu) allocations[i].gpu->used -= allocations[i].size;
        if (allocations[i].at)
            fallocate(memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, allocations[i].at, allocations[i].size);
        allocations[i] = allocations[--allocation_count];
        return 0;
    }
    return EINVAL;
}

/* Events: a thread of the runtime waits for them, and a packet that completes sets them. */

static struct event { bool exists, is_set, resets_itself; } events[MOST_EVENTS];
static pthread_cond_t event_is_set;

static int create_event(struct kfd_ioctl_create_event_args *asked) {
    for (uint32_t id = 1; id < MOST_EVENTS; id++) {
        if (events[id].exists) continue;
        events[id] = (struct event){true, false, asked->auto_reset};
        asked->event_id = asked->event_slot_index = asked->event_trigger_data = id;
        /* A caller that brings no page of its own, one for GPUs beside whose memory is the host's, maps this one. */
        static uint64_t page;
        if (!asked->event_page_offset) asked->event_page_offset = page ? page : (page = reserve_memory(8 * MOST_EVENTS, PAGE));
        return 0;
    }
    return ENOSPC;
}

static int set_event(uint32_t id, bool is_set) {
    if (id >= MOST_EVENTS || !events[id].exists) return EINVAL;
    events[id].is_set = is_set;
    if (is_set) pthread_cond_broadcast(&event_is_set);
    return 0;
}

static int wait_for_events(struct kfd_ioctl_wait_events_args *asked) {
    struct kfd_event_data *data = (void *)(uintptr_t)asked->events_ptr;
    uint64_t end = nanoseconds() + asked->timeout * 1000000ull;
    struct timespec until = {end / 1000000000, end % 1000000000};
    for (;;) {
        unsigned set = 0;
        for (unsigned i = 0; i < asked->num_events; i++) {
            if (data[i].event_id >= MOST_EVENTS || !events[data[i].event_id].exists) return EINVAL;
            set += events[data[i].event_id].is_set;
        }
        if (asked->wait_for_all ? set == asked->num_events : set > 0) break;
        int failed = asked->timeout == UINT32_MAX ? pthread_cond_wait(&event_is_set, &lock)
                                                  : pthread_cond_timedwait(&event_is_set, &lock, &until);
        if (failed) {
            asked->wait_result = KFD_IOC_WAIT_RESULT_TIMEOUT;
            return 0;
        }
    }
    for (unsigned i = 0; i < asked->num_events; i++) {
        struct event *event = &events[data[i].event_id];
        if (event->resets_itself) event->is_set = false;
    }
    asked->wait_result = KFD_IOC_WAIT_RESULT_COMPLETE;
    return 0;
}

/* Signals, as in amd_hsa_signal.h of ROCr. */

struct signal { int64_t kind, value; uint64_t mailbox; uint32_t event, unused; uint64_t start, end; };

static int64_t value_of(uint64_t signal) { return __atomic_load_n(&((struct signal *)signal)->value, __ATOMIC_ACQUIRE); }

static void complete_signal(uint64_t address, uint64_t start) {
    struct signal *signal = (struct signal *)address;
    if (!signal) return;
    signal->start = start;
    signal->end = nanoseconds();
    __atomic_sub_fetch(&signal->value, 1, __ATOMIC_SEQ_CST);
    if (!signal->mailbox) return;
    __atomic_store_n((uint64_t *)signal->mailbox, signal->event, __ATOMIC_RELEASE);
    set_event(signal->event, true);
}

/* Queues: a thread watches the doorbells, and completes what was written to the rings. */

static struct queue {
    uint32_t id, type;
    char *ring;
    uint64_t size, done; /* packets for compute queues, bytes for those of DMA engines */
    volatile uint64_t *write_pointer, *read_pointer, *doorbell;
} queues[MOST_QUEUES];
static unsigned queue_count, queues_made;
static struct { unsigned dispatches, barriers, vendor, copies, others; } counts;

/* A packet of the Architected Queuing Language: its type is in the low byte of its header, a kernel's completion signal
 * is at 56. Barriers wait for five signals at 8, or, with the vendor's format 2, for the value of one. */
enum { VENDOR_PACKET, INVALID_PACKET, KERNEL_DISPATCH, BARRIER_AND, AGENT_DISPATCH, BARRIER_OR, AQL_PACKET_SIZE = 64 };

static bool holds(int64_t value, int64_t wanted, int64_t mask, uint32_t condition) {
    switch (condition) { /* hsa_signal_condition_t */
    case 0: return (value & mask) == wanted;
    case 1: return (value & mask) != wanted;
    case 2: return (value & mask) < wanted;
    default: return (value & mask) >= wanted;
    }
}

static bool is_barrier_open(const char *packet, unsigned type) {
    const uint64_t *signals = (const uint64_t *)(packet + 8);
    if (type == VENDOR_PACKET && packet[2] == 2) {
        const int64_t *operands = (const int64_t *)(packet + 16);
        return !signals[0] || holds(value_of(signals[0]), operands[0], operands[1], *(const uint32_t *)(packet + 32));
    }
    if (type != BARRIER_AND && type != BARRIER_OR) return true;
    unsigned given = 0, open = 0;
    for (unsigned i = 0; i < 5; i++) {
        given += signals[i] != 0;
        open += signals[i] && value_of(signals[i]) == 0;
    }
    return type == BARRIER_AND ? open == given : open > 0 || !given;
}

static bool run_packets(struct queue *queue) {
    bool has_run = false;
    for (; queue->done < *queue->write_pointer; queue->done++, has_run = true) {
        char *packet = queue->ring + queue->done * AQL_PACKET_SIZE % queue->size;
        unsigned type = __atomic_load_n((uint16_t *)packet, __ATOMIC_ACQUIRE) & 0xff;
        if (type == INVALID_PACKET || !is_barrier_open(packet, type)) break; /* not written yet, or has to wait */
        TRACE("queue %u: packet %llu of type %u", queue->id, (unsigned long long)queue->done, type);
        switch (type) {
        case KERNEL_DISPATCH: counts.dispatches++; break;
        case BARRIER_AND: case BARRIER_OR: counts.barriers++; break;
        case VENDOR_PACKET: counts.vendor++; break;
        default: say("standin: unknown AQL packet of type %u; it is completed", type);
        }
        uint64_t signal = *(uint64_t *)(packet + 56);
        __atomic_store_n((uint16_t *)packet, INVALID_PACKET, __ATOMIC_RELEASE);
        __atomic_store_n(queue->read_pointer, queue->done + 1, __ATOMIC_RELEASE);
        complete_signal(signal, nanoseconds());
    }
    return has_run;
}

/* Packets of DMA engines: the operation is in the low byte of the first word, and its kind in the next byte. */
enum { NOP = 0, COPY = 1, FENCE = 5, TRAP = 6, POLL = 8, ATOMIC = 10, FILL = 11, TIMESTAMP = 13, WRITE_REGISTER = 14, CACHE = 17 };
enum { LINEAR = 0, LINEAR_RECTANGLE = 4, ATOMIC_ADD_64 = 47 };

static void *address_at(const uint32_t *words) { return (void *)(uintptr_t)(words[0] | (uint64_t)words[1] << 32); }

/* Does what the packet says. Returns its size in words, 0 if it has to wait, or -1 for an unknown one. */
static int run_dma_packet(const uint32_t *words) {
    unsigned operation = words[0] & 0xff, kind = words[0] >> 8 & 0xff;
    switch (operation) {
    case NOP: return 1 + (words[0] >> 16 & 0x3fff);
    case COPY:
        if (kind != LINEAR) return -1;
        memmove(address_at(words + 5), address_at(words + 3), (uint64_t)(words[1] & 0x3fffffff) + 1);
        counts.copies++;
        return 7;
    case FENCE: __atomic_store_n((uint32_t *)address_at(words + 1), words[3], __ATOMIC_RELEASE); return 4;
    case TRAP: set_event(words[1] & 0xfffffff, true); return 2;
    case POLL: {
        bool is_memory = words[0] >> 31;
        if (!is_memory) return 6; /* a flush */
        uint32_t value = __atomic_load_n((uint32_t *)address_at(words + 1), __ATOMIC_ACQUIRE) & words[4];
        switch (words[0] >> 28 & 7) {
        case 1: return value < words[3] ? 6 : 0;
        case 2: return value <= words[3] ? 6 : 0;
        case 3: return value == words[3] ? 6 : 0;
        case 4: return value != words[3] ? 6 : 0;
        case 5: return value >= words[3] ? 6 : 0;
        case 6: return value > words[3] ? 6 : 0;
        default: return 6;
        }
    }
    case ATOMIC:
        if (words[0] >> 25 != ATOMIC_ADD_64) return -1;
        __atomic_add_fetch((uint64_t *)address_at(words + 1), words[3] | (uint64_t)words[4] << 32, __ATOMIC_SEQ_CST);
        return 8;
    case FILL: {
        uint32_t *at = address_at(words + 1);
        for (uint64_t i = 0; i <= (words[4] & 0x3fffffff) / 4; i++) at[i] = words[3];
        return 5;
    }
    case TIMESTAMP: *(uint64_t *)address_at(words + 1) = nanoseconds(); return 3;
    case WRITE_REGISTER: return 3;
    case CACHE: return 5;
    default: return -1;
    }
}

static bool run_dma_packets(struct queue *queue) {
    bool has_run = false;
    while (queue->done < *queue->write_pointer) {
        uint32_t words[16];
        for (unsigned i = 0; i < COUNT(words); i++) words[i] = *(uint32_t *)(queue->ring + (queue->done + 4 * i) % queue->size);
        TRACE("queue %u: DMA packet 0x%08x", queue->id, words[0]);
        int size = run_dma_packet(words);
        if (size == 0) break;
        if (size < 0) {
            say("standin: unknown DMA packet 0x%08x: the rest of the queue is dropped", words[0]);
            counts.others++;
            queue->done = *queue->write_pointer;
        } else {
            queue->done += 4 * size;
        }
        __atomic_store_n(queue->read_pointer, queue->done, __ATOMIC_RELEASE);
        has_run = true;
    }
    return has_run;
}

static void *watch_doorbells(void *unused) {
    (void)unused;
    for (unsigned idle = 0;; idle++) {
        pthread_mutex_lock(&lock);
        for (unsigned i = 0; i < queue_count; i++) {
            struct queue *queue = &queues[i];
            if (*queue->doorbell == NOT_RUNG) continue;
            if (queue->type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL ? run_packets(queue) : run_dma_packets(queue)) idle = 0;
        }
        pthread_mutex_unlock(&lock);
        usleep(idle < 100 ? 20 : 500);
    }
    return NULL;
}

static int create_queue(struct kfd_ioctl_create_queue_args *asked) {
    struct gpu *gpu = gpu_of_id(asked->gpu_id);
    unsigned slot = queues_made % (DOORBELL_PAGE / 8);
    if (!gpu || queue_count == MOST_QUEUES) return gpu ? ENOMEM : EINVAL;
    if (asked->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE) {
        say("standin: unsupported: a compute queue that isn't of the Architected Queuing Language");
        return EINVAL;
    }
    if (!gpu->doorbells) {
        gpu->doorbells_at = reserve_memory(DOORBELL_PAGE, DOORBELL_PAGE);
        gpu->doorbells = mmap(NULL, DOORBELL_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, gpu->doorbells_at);
        if (gpu->doorbells == MAP_FAILED) return ENOMEM;
    }
    gpu->doorbells[slot] = NOT_RUNG;
    asked->queue_id = ++queues_made;
    asked->doorbell_offset = OF_DOORBELLS | (uint64_t)(gpu - gpus) << 46 | 8 * slot;
    queues[queue_count++] = (struct queue){
        asked->queue_id, asked->queue_type, (char *)asked->ring_base_address, asked->ring_size, 0,
        (uint64_t *)asked->write_pointer_address, (uint64_t *)asked->read_pointer_address, gpu->doorbells + slot};
    if (queues_made > 1) return 0;
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, NULL, watch_doorbells, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static struct queue *queue_of(uint32_t id) {
    for (unsigned i = 0; i < queue_count; i++)
        if (queues[i].id == id) return &queues[i];
    return NULL;
}

static int destroy_queue(uint32_t id) {
    struct queue *queue = queue_of(id);
    if (!queue) return EINVAL;
    *queue = queues[--queue_count];
    return 0;
}

/* The ioctls of /dev/kfd. Each returns 0 or an error number. */

static const char *const names[] = {
    [0x01] = "GET_VERSION", [0x02] = "CREATE_QUEUE", [0x03] = "DESTROY_QUEUE", [0x04] = "SET_MEMORY_POLICY",
    [0x05] = "GET_CLOCK_COUNTERS", [0x06] = "GET_PROCESS_APERTURES", [0x07] = "UPDATE_QUEUE", [0x08] = "CREATE_EVENT",
    [0x09] = "DESTROY_EVENT", [0x0a] = "SET_EVENT", [0x0b] = "RESET_EVENT", [0x0c] = "WAIT_EVENTS",
    [0x0d] = "DBG_REGISTER", [0x0e] = "DBG_UNREGISTER", [0x0f] = "DBG_ADDRESS_WATCH", [0x10] = "DBG_WAVE_CONTROL",
    [0x11] = "SET_SCRATCH_BACKING_VA", [0x12] = "GET_TILE_CONFIG", [0x13] = "SET_TRAP_HANDLER",
    [0x14] = "GET_PROCESS_APERTURES_NEW", [0x15] = "ACQUIRE_VM", [0x16] = "ALLOC_MEMORY_OF_GPU",
    [0x17] = "FREE_MEMORY_OF_GPU", [0x18] = "MAP_MEMORY_TO_GPU", [0x19] = "UNMAP_MEMORY_FROM_GPU",
    [0x1a] = "SET_CU_MASK", [0x1b] = "GET_QUEUE_WAVE_STATE", [0x1c] = "GET_DMABUF_INFO", [0x1d] = "IMPORT_DMABUF",
    [0x1e] = "ALLOC_QUEUE_GWS", [0x1f] = "SMI_EVENTS", [0x20] = "SVM", [0x21] = "SET_XNACK_MODE", [0x22] = "CRIU_OP",
    [0x23] = "AVAILABLE_MEMORY", [0x24] = "EXPORT_DMABUF", [0x25] = "RUNTIME_ENABLE", [0x26] = "DBG_TRAP",
};

static int xnack; /* the mode that the driver gives to new processes */

static int apertures(struct kfd_ioctl_get_process_apertures_new_args *asked) {
    struct kfd_process_device_apertures *each = (void *)(uintptr_t)asked->kfd_process_device_apertures_ptr;
    for (unsigned i = 0; each && i < gpu_count && i < asked->num_of_nodes; i++)
        each[i] = (struct kfd_process_device_apertures){
            .lds_base = 1ull << 48, .lds_limit = 1ull << 48 | UINT32_MAX,
            .scratch_base = 2ull << 48, .scratch_limit = 2ull << 48 | UINT32_MAX,
            .gpuvm_base = 16 << 20, .gpuvm_limit = (1ull << 47) - 1, .gpu_id = gpus[i].id};
    asked->num_of_nodes = gpu_count;
    return 0;
}

static int answer(unsigned number, void *asked) {
    switch (number) {
    case 0x01: *(struct kfd_ioctl_get_version_args *)asked = (struct kfd_ioctl_get_version_args){1, 11}; return 0;
    case 0x02: return create_queue(asked);
    case 0x03: return destroy_queue(((struct kfd_ioctl_destroy_queue_args *)asked)->queue_id);
    case 0x05: {
        struct kfd_ioctl_get_clock_counters_args *clocks = asked;
        clocks->gpu_clock_counter = clocks->cpu_clock_counter = clocks->system_clock_counter = nanoseconds();
        clocks->system_clock_freq = 1000000000;
        return 0;
    }
    case 0x07: return queue_of(((struct kfd_ioctl_update_queue_args *)asked)->queue_id) ? 0 : EINVAL;
    case 0x08: return create_event(asked);
    case 0x09: {
        uint32_t id = ((struct kfd_ioctl_destroy_event_args *)asked)->event_id;
        int failed = set_event(id, true); /* whoever waits for it goes on */
        if (!failed) events[id].exists = false;
        return failed;
    }
    case 0x0a: return set_event(((struct kfd_ioctl_set_event_args *)asked)->event_id, true);
    case 0x0b: return set_event(((struct kfd_ioctl_reset_event_args *)asked)->event_id, false);
    case 0x0c: return wait_for_events(asked);
    case 0x12: {
        struct kfd_ioctl_get_tile_config_args *tiles = asked;
        struct gpu *gpu = gpu_of_id(tiles->gpu_id);
        if (!gpu) return EINVAL;
        tiles->gb_addr_config = gpu->addr_config;
        tiles->num_tile_configs = tiles->num_macro_tile_configs = 0;
        return 0;
    }
    case 0x14: return apertures(asked);
    case 0x16: return allocate(asked);
    case 0x17: return release(((struct kfd_ioctl_free_memory_of_gpu_args *)asked)->handle);
    case 0x18: { struct kfd_ioctl_map_memory_to_gpu_args *map = asked; map->n_success = map->n_devices; return 0; }
    case 0x19: { struct kfd_ioctl_unmap_memory_from_gpu_args *map = asked; map->n_success = map->n_devices; return 0; }
    case 0x21: {
        struct kfd_ioctl_set_xnack_mode_args *mode = asked;
        if (mode->xnack_enabled >= 0) xnack = mode->xnack_enabled;
        mode->xnack_enabled = xnack;
        return 0;
    }
    case 0x23: {
        struct kfd_ioctl_get_available_memory_args *memory = asked;
        struct gpu *gpu = gpu_of_id(memory->gpu_id);
        if (gpu) memory->available = gpu->memory - gpu->used;
        return gpu ? 0 : EINVAL;
    }
    /* Settings that change nothing here: cache policy, scratch memory, trap handlers, the render node's address space,
     * masks of compute units. */
    case 0x04: case 0x11: case 0x13: case 0x15: case 0x1a: return 0;
    default: {
        const char *name = number < COUNT(names) ? names[number] : NULL;
        if (name) say("standin: unsupported ioctl of /dev/kfd: AMDKFD_IOC_%s (0x%02x)", name, number);
        else say("standin: unsupported ioctl of /dev/kfd: 0x%02x, which Linux doesn't have", number);
        return EINVAL;
    }
    }
}

/* What programs call instead of the C library's functions. */

/* Where the machine's folder has what the driver has in sysfs and elsewhere. */
static const char *const places[][2] = {
    {"/sys/devices/virtual/kfd/kfd/topology", "topology"}, {"/sys/class/kfd/kfd/topology", "topology"},
    {"/sys/module/amdgpu", "module"}, {"/proc/modules", "modules"}, {"/dev/dri", "dri"}};

static const char *redirected(const char *path, char *buffer, size_t size) {
    for (unsigned i = 0; path && machine && i < COUNT(places); i++) {
        size_t length = strlen(places[i][0]);
        if (strncmp(path, places[i][0], length) || (path[length] && path[length] != '/')) continue;
        snprintf(buffer, size, "%s/%s%s", machine, places[i][1], path + length);
        return buffer;
    }
    return path;
}

static int open_any(int folder, const char *path, int flags, mode_t mode) {
    char buffer[4096];
    unsigned minor;
    if (path && !strcmp(path, "/dev/kfd")) return open_device(KFD, flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
    if (path && sscanf(path, "/dev/dri/renderD%u", &minor) == 1 && gpu_of_minor(minor)) {
        snprintf(buffer, sizeof buffer, RENDER "%u", minor);
        return open_device(buffer, flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
    }
    return syscall(SYS_openat, folder, redirected(path, buffer, sizeof buffer), flags, mode);
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        return open_any(AT_FDCWD, path, flags, mode); \
    }
#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
        return open_any(folder, path, flags, mode); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))
#define FOPEN(name) \
    FILE *name(const char *path, const char *mode) { \
        char buffer[4096]; \
        return NEXT(FILE *(*)(const char *, const char *), #name)(redirected(path, buffer, sizeof buffer), mode); \
    }
FOPEN(fopen)
FOPEN(fopen64)

DIR *opendir(const char *path) {
    char buffer[4096];
    return NEXT(DIR *(*)(const char *), "opendir")(redirected(path, buffer, sizeof buffer));
}

/* What is said of a path: a device is like another device that everybody may read and write. */
static const char *examined(const char *path, char *buffer, size_t size) {
    unsigned minor;
    bool is_render = path && sscanf(path, "/dev/dri/renderD%u", &minor) == 1 && gpu_of_minor(minor);
    return is_render || (path && !strcmp(path, "/dev/kfd")) ? "/dev/null" : redirected(path, buffer, size);
}

#define EXAMINE(name, type, value) \
    int name(const char *path, type value) { \
        char buffer[4096]; \
        return NEXT(int (*)(const char *, type), #name)(examined(path, buffer, sizeof buffer), value); \
    }
#define EXAMINE_AT(name, type, value) \
    int name(int folder, const char *path, type value, int flags) { \
        char buffer[4096]; \
        return NEXT(int (*)(int, const char *, type, int), #name)(folder, examined(path, buffer, sizeof buffer), value, flags); \
    }
EXAMINE(access, int, mode)
EXAMINE(stat, struct stat *, about)
EXAMINE(stat64, struct stat64 *, about)
EXAMINE(lstat, struct stat *, about)
EXAMINE(lstat64, struct stat64 *, about)
EXAMINE_AT(faccessat, int, mode)
EXAMINE_AT(fstatat, struct stat *, about)
EXAMINE_AT(fstatat64, struct stat64 *, about)

int ioctl(int fd, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void *asked = va_arg(rest, void *);
    va_end(rest);
    char buffer[128];
    const char *device = device_of(fd, buffer, sizeof buffer);
    if (!device) return syscall(SYS_ioctl, fd, request, asked);
    unsigned number = _IOC_NR(request);
    if (strcmp(device, KFD)) {
        say("standin: unsupported ioctl of a render node: 0x%02x (%s)", number, device);
        errno = EINVAL;
        return -1;
    }
    TRACE("AMDKFD_IOC_%s", number < COUNT(names) && names[number] ? names[number] : "?");
    pthread_mutex_lock(&lock);
    int failed = answer(number, asked);
    pthread_mutex_unlock(&lock);
    if (failed) errno = failed;
    return failed ? -1 : 0;
}

static void *map(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    char buffer[128];
    if (fd >= 0 && device_of(fd, buffer, sizeof buffer)) {
        fd = memory_fd;
        if (offset & OF_DOORBELLS) offset = gpus[offset >> 46 & (MOST_GPUS - 1)].doorbells_at;
        protection = PROT_READ | PROT_WRITE; /* copies by the processor need memory that only GPUs would see */
    }
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}
void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    return map(at, size, protection, flags, fd, offset);
}
void *mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    return map(at, size, protection, flags, fd, offset);
}

/* The calls of libdrm that ROCr makes. A device handle points to the GPU. */

int drmOpenRender(int minor) {
    char path[64];
    snprintf(path, sizeof path, "/dev/dri/renderD%d", minor);
    return open(path, O_RDWR | O_CLOEXEC);
}
int drmClose(int fd) { return close(fd); }
int amdgpu_device_initialize(int fd, uint32_t *major, uint32_t *minor, struct gpu **device) {
    char buffer[128];
    unsigned number;
    const char *name = device_of(fd, buffer, sizeof buffer);
    if (!name || sscanf(name, RENDER "%u", &number) != 1) return -EINVAL;
    *major = 3;
    *minor = 54;
    *device = gpu_of_minor(number);
    return 0;
}
int amdgpu_device_deinitialize(struct gpu *gpu) { return gpu ? 0 : -EINVAL; }
int amdgpu_device_get_fd(struct gpu *gpu) { return drmOpenRender(gpu->render_minor); }
const char *amdgpu_get_marketing_name(struct gpu *gpu) { return gpu->name; }

/* The first fields of libdrm's struct amdgpu_gpu_info. */
struct gpu_info {
    uint32_t asic_id, revision, external_revision, family;
    uint64_t flags, most_engine_clock, most_memory_clock;
    uint32_t shader_engines, arrays_per_engine, available_pipes, most_pipes, cache_entries, contexts, render_pipes,
        render_pipe_mask, counter_frequency;
};
int amdgpu_query_gpu_info(struct gpu *gpu, struct gpu_info *info) {
    *info = (struct gpu_info){.asic_id = 1, .external_revision = gpu->external_revision, .family = gpu->family,
                              .counter_frequency = 100000};
    return 0;
}

#define UNSUPPORTED(name) int name(void) { say("standin: unsupported call of libdrm: " #name); return -EINVAL; }
UNSUPPORTED(drmCommandWriteRead)
UNSUPPORTED(amdgpu_bo_cpu_map)
UNSUPPORTED(amdgpu_bo_export)
UNSUPPORTED(amdgpu_bo_free)
UNSUPPORTED(amdgpu_bo_import)
UNSUPPORTED(amdgpu_bo_va_op)

/* A line of "gpus" is the fields of `struct gpu` up to its memory, in its order, and its name; "xnack 1" is a mode. */

static void refuse(const char *why) {
    say("standin: %s", why);
    _exit(3);
}

__attribute__((constructor)) static void begin(void) {
    char path[4096], line[512];
    if (!syscall(SYS_faccessat, AT_FDCWD, "/dev/kfd", F_OK)) refuse("this machine has a real /dev/kfd, so it needs no stand-in");
    machine = getenv("STANDIN_MACHINE");
    if (!machine) refuse("STANDIN_MACHINE names no folder");
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&event_is_set, &clock);
    snprintf(path, sizeof path, "%s/gpus", machine);
    FILE *file = NEXT(FILE *(*)(const char *, const char *), "fopen")(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        struct gpu gpu = {0};
        unsigned long long memory;
        if (sscanf(line, "xnack %d", &xnack) == 1) continue;
        if (gpu_count == MOST_GPUS || sscanf(line, "%u %u %u %u %u %llu %63[^\n]", &gpu.id, &gpu.render_minor, &gpu.family,
                                             &gpu.external_revision, &gpu.addr_config, &memory, gpu.name) != 7)
            refuse("STANDIN_MACHINE/gpus has a line that isn't a GPU's, or too many");
        gpu.memory = memory;
        gpus[gpu_count++] = gpu;
    }
    if (!file) refuse("STANDIN_MACHINE has no file gpus");
    fclose(file);
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("STANDIN_COUNTS");
    FILE *file = path && queues_made ? NEXT(FILE *(*)(const char *, const char *), "fopen")(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "{\"queues\": %u, \"dispatches\": %u, \"barriers\": %u, \"vendor\": %u, \"copies\": %u, \"unknown\": %u}\n",
            queues_made, counts.dispatches, counts.barriers, counts.vendor, counts.copies, counts.others);
    fclose(file);
}
