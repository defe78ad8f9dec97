/* Stand-in for liblzma: the checksum of the .xz format. */
#include "api.h"
#include <stdint.h>

API uint32_t lzma_crc32(const uint8_t *data, size_t size, uint32_t crc) {
    crc = ~crc;
    while (size--) {
        crc ^= *data++;
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}
