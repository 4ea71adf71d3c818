/* bare_cubin.c — finds cubins that are not in a fatbin: a file, a member of an archive, or a part of plain data. */
#include <string.h>

#include "loader/image/cubin_internal.h"
#include "loader/image/images_internal.h"

/* Raise *end to offset + n; false: some of the n bytes are outside s. */
static bool extend_end(gpul_span s, uint64_t offset, uint64_t n, size_t *end)
{
	if (offset > s.n || n > s.n - offset)
		return false;
	if (offset + n > *end)
		*end = (size_t)(offset + n);
	return true;
}

/* False for sections of NVIDIA's types that reserve memory for a kernel, and have a size, but no bytes in the file.  Observed in
 * relocatable cubins of CUDA 13.0. */
static bool has_bytes(const Elf64_Shdr *sh)
{
	enum { NV_GLOBAL = 0x70000007, NV_LOCAL = 0x70000009, NV_SHARED = 0x7000000a, NV_SHARED_RESERVED = 0x70000015 };

	switch (sh->sh_type) {
	case SHT_NULL:
	case SHT_NOBITS:
	case NV_GLOBAL:
	case NV_LOCAL:
	case NV_SHARED:
	case NV_SHARED_RESERVED:
		return false;
	default:
		return true;
	}
}

/* ELF headers do not contain the length of the file: it ends where the last header table or section ends. */
size_t gpul_cubin_extent(gpul_span s)
{
	size_t end = sizeof(Elf64_Ehdr);
	gpul_cubin c;

	if (gpul_cubin_open(s.at, s.n, (gpul_cubin_gap){ 0 }, &c, NULL) || c.n_sections == 0 ||
	    !extend_end(s, c.header.e_shoff, (uint64_t)c.n_sections * sizeof(Elf64_Shdr), &end) ||
	    !extend_end(s, c.header.e_phoff, (uint64_t)c.header.e_phnum * c.header.e_phentsize, &end))
		return 0;
	for (uint32_t i = 0; i < c.n_sections; i++) {
		Elf64_Shdr sh = gpul_cubin_section(&c, i);

		if (has_bytes(&sh) && !extend_end(s, sh.sh_offset, sh.sh_size, &end))
			return 0;
	}
	return end;
}

/* Return the cost of rejecting a candidate: its number of sections. */
static int64_t reject_cost(gpul_span s)
{
	gpul_cubin c;

	return gpul_cubin_open(s.at, s.n, (gpul_cubin_gap){ 0 }, &c, NULL) ? 1 : c.n_sections;
}

gpul_status gpul_walk_cubin(const gpul_walk *w, gpul_span s)
{
	size_t n = gpul_cubin_extent(s);
	bool relocatable = false;
	gpul_error why = { 0 };
	gpul_image *image;
	uint16_t sm = 0;
	char suffix = 0;

	if (gpul_cubin_target(s.at, s.n, &sm, &suffix, &relocatable, &why))
		return gpul_walk_fail(w, s.at, "%s", why.text);
	if (n == 0 && w->rejects_left)
		atomic_fetch_sub(w->rejects_left, reject_cost(s));
	if (n == 0)
		return gpul_walk_fail(w, s.at, "the sections of a cubin end after its %zu bytes: the file is cut off or damaged" GPUL_AGAIN,
				      s.n);
	image = gpul_walk_add(w, GPUL_NEW_UNIT);
	if (!image)
		return GPUL_ENOMEM;
	image->kind = GPUL_IMAGE_CUBIN;
	image->sm = sm;
	image->suffix = suffix;
	image->relocatable |= relocatable;
	image->stored = s.at;
	image->offset = (uint64_t)(s.at - w->file.at);
	image->stored_bytes = image->bytes = n;
	return GPUL_OK;
}
