#pragma once
#include <stddef.h>
#include <stdint.h>
uint32_t lzma_crc32(const uint8_t *data, size_t size, uint32_t crc);
