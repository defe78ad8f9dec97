/* Stand-in for rocm-kpack: recognises a kernel pack. */
#include "api.h"
#include <stdint.h>
#include <string.h>

uint32_t lzma_crc32(const uint8_t *, size_t, uint32_t);

API int kpack_is_archive(const void *data, size_t size) { return size >= 64 && memcmp(data, "KPAK", 4) == 0; }
API uint32_t kpack_checksum(const void *data, size_t size) { return lzma_crc32(data, size, 0); }
