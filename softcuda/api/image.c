/* image.c — what a module is loaded from: PTX text, alone or inside a fat binary.
 *
 * Machine code is refused with its reason: there is no GPU here to run it.  The layouts are
 * NVIDIA's and undocumented; seen in the output of CUDA 11 to 13:
 *
 *     wrapper {u32 0x466243B1; u32 version; ptr data; ptr ...}
 *     header  {u32 0xBA55ED50; u16 version; u16 header_bytes; u64 payload_bytes}
 *     entry   {u16 kind; u16 ?; u32 header_bytes; u64 padded_bytes; u32 compressed_bytes; ...
 *              u16 minor @24, major @26; u32 arch @28; ... u64 flags @40}
 *
 * A load call is given no size, so the extents inside are all there is to hold on to. */
#include "softcuda/api/api_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRAPPER_MAGIC = 0x466243B1, ENTRY_BYTES = 64 };
#define FATBIN_MAGIC 0xBA55ED50u
enum { ENTRY_PTX = 1, EM_CUDA = 190, FLAG_COMPRESSED = 0x2000 | 0x8000 };

static uint64_t read_le(const unsigned char *p, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

static CUresult refuse_elf(const unsigned char *p, char *why, size_t why_bytes)
{
	if (read_le(p + 18, 2) != EM_CUDA) {
		snprintf(why, why_bytes, "this is an ELF file, but not device code");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	snprintf(why, why_bytes,
		 "this is a cubin, machine code for a GPU: the software driver runs PTX only. "
		 "Compile to PTX (nvcc -ptx), or keep PTX beside the machine code");
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* The better of two targets, 0 for none: a GPU's driver would take the highest that is not above
 * the device.  Here any runs, so without such a one the lowest above it: that is the likeliest to
 * use nothing new. */
static bool better_target(uint64_t arch, uint64_t best)
{
	const uint64_t device = 10 * COMPUTE_MAJOR + COMPUTE_MINOR;

	if (!best || (arch <= device) != (best <= device))
		return !best || arch <= device;
	return arch <= device ? arch > best : arch < best;
}

/* The best PTX entry. */
static CUresult find_in_fatbin(const unsigned char *p, const char **text, size_t *text_bytes,
			       char *why, size_t why_bytes)
{
	const unsigned char *e = p + read_le(p + 6, 2);
	uint64_t left = read_le(p + 8, 8), best = 0;
	bool compressed = false;

	*text = NULL;
	while (left >= ENTRY_BYTES) {
		uint64_t header = read_le(e + 4, 4), padded = read_le(e + 8, 8);
		uint64_t arch = read_le(e + 28, 4);

		if (header < ENTRY_BYTES || header > left || padded > left - header)
			break;
		if (read_le(e, 2) != ENTRY_PTX) {
			/* machine code */
		} else if (read_le(e + 40, 8) & FLAG_COMPRESSED) {
			compressed = true;
		} else if (better_target(arch, best)) {
			best = arch;
			*text = (const char *)(e + header);
			*text_bytes = strnlen(*text, (size_t)padded);
		}
		e += header + padded;
		left -= header + padded;
	}
	if (*text)
		return CUDA_SUCCESS;
	snprintf(
		why, why_bytes, "%s",
		compressed
			? "the PTX in this fat binary is compressed, which the software driver "
			  "does not read: build with nvcc --compress-mode=none"
			: "this fat binary has no PTX for sm_90 or below, only machine code: "
			  "the "
			  "software driver runs PTX only. Compile with nvcc -gencode "
			  "arch=compute_75,code=compute_75");
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult soft_image_ptx(const void *data, const char **text, size_t *text_bytes, char *why,
			size_t why_bytes)
{
	const unsigned char *p = data;
	unsigned char start[4];

	/* Byte by byte: an image may be as short as its terminating NUL. */
	memset(start, 0, sizeof start);
	for (int i = 0; i < 4 && (i == 0 || p[i - 1]); i++)
		start[i] = p[i];
	if (memcmp(start, "\177ELF", 4) == 0)
		return refuse_elf(p, why, why_bytes);
	if (read_le(start, 4) == WRAPPER_MAGIC) {
		memcpy(&p, p + 8, sizeof p);
		if (p && read_le(p, 4) == FATBIN_MAGIC)
			return find_in_fatbin(p, text, text_bytes, why, why_bytes);
		snprintf(why, why_bytes, "a fat binary's wrapper that points to no fat binary");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	if (read_le(start, 4) == FATBIN_MAGIC)
		return find_in_fatbin(p, text, text_bytes, why, why_bytes);
	if (!start[0]) {
		snprintf(why, why_bytes, "the image is empty");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	if (!strchr("\t\n\r ./", start[0])) {
		snprintf(why, why_bytes,
			 "this is neither PTX nor device code: it begins with byte 0x%02x",
			 start[0]);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	*text = data;
	*text_bytes = strlen(data);
	return CUDA_SUCCESS;
}

/* All of f, NUL-terminated; NULL: no memory, or (see ferror) it cannot be read. */
static char *read_all(FILE *f)
{
	char *text = NULL;
	size_t n = 0, room = 32768;

	do {
		char *bigger = realloc(text, room *= 2);

		if (!bigger)
			break;
		text = bigger;
		n += fread(text + n, 1, room - n - 1, f);
	} while (n == room - 1);
	if (text && n < room - 1 && !ferror(f)) {
		text[n] = 0;
		return text;
	}
	free(text);
	return NULL;
}

CUresult soft_read_file(const char *path, char **out)
{
	FILE *f = fopen(path, "rb");
	CUresult r = CUDA_SUCCESS;

	if (!f)
		return soft_refuse(CUDA_ERROR_FILE_NOT_FOUND, "%s: %s", path, strerror(errno));
	*out = read_all(f);
	if (!*out)
		r = ferror(f) ? soft_refuse(CUDA_ERROR_FILE_NOT_FOUND, "%s: %s", path,
					    strerror(errno))
			      : CUDA_ERROR_OUT_OF_MEMORY;
	fclose(f);
	return r;
}
