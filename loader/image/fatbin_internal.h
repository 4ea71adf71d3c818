/* fatbin_internal.h — defines the layout of a fatbin, observed in files of nvcc 11.0 to 13.0; NVIDIA does not document it. */
#ifndef GPULOAD_LOADER_IMAGE_FATBIN_INTERNAL_H
#define GPULOAD_LOADER_IMAGE_FATBIN_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#define GPUL_FATBIN_MAGIC 0xBA55ED50u

typedef struct fatbin_header {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t payload_bytes;
} fatbin_header;
_Static_assert(sizeof(fatbin_header) == 16, "as in the file");

typedef struct fatbin_entry {
	uint16_t kind, version;
	uint32_t header_bytes;
	uint64_t padded_bytes;
	uint32_t compressed_bytes; /* 0: stored without compression */
	uint32_t options_at;       /* where in the entry {u32 offset, bytes} of the options are; 0: no options */
	uint16_t minor, major;     /* version of the PTX language, or of the cubin's ABI */
	uint32_t arch;
	uint32_t ident_at, ident_bytes;
	uint64_t flags;
	uint64_t unknown;
	uint64_t unpacked_bytes; /* 0: stored without compression */
} fatbin_entry;
_Static_assert(sizeof(fatbin_entry) == 64, "as in the file");

/* Return the distance in bytes from an entry to the next one. */
static inline size_t gpul_fatbin_entry_bytes(const fatbin_entry *e)
{
	return (size_t)e->header_bytes + (size_t)e->padded_bytes;
}

#endif
