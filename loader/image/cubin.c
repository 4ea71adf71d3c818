/* cubin.c — reads the headers, sections and attributes of a cubin. */
#include "loader/image/cubin_internal.h"

#include <limits.h>
#include <string.h>

#include "loader/image/images_internal.h"

#define EM_NVIDIA     190  /* NVIDIA CUDA, as in the ELF registry of machines */
#define OSABI_CUDA_13 0x41 /* EI_OSABI since CUDA 13; before that, 0x33 */
#define OSABI_CUDA    0x33

static gpul_status damaged(uint64_t at, gpul_error *err, const char *what, uint64_t number, size_t n_bytes)
{
	int native = at > INT_MAX ? INT_MAX : (int)at;

	return gpul_fail(err, GPUL_EFORMAT, native, "cubin: at byte %llu: %s (the value is %llu; the image has %zu bytes)" GPUL_AGAIN,
			 (unsigned long long)at, what, (unsigned long long)number, n_bytes);
}

static bool inside(const gpul_cubin *c, uint64_t offset, uint64_t bytes)
{
	return offset <= c->n_bytes && bytes <= c->n_bytes - offset;
}

Elf64_Shdr gpul_cubin_section(const gpul_cubin *c, uint32_t i)
{
	Elf64_Shdr s;

	memcpy(&s, c->base + c->header.e_shoff + (uint64_t)i * sizeof s, sizeof s);
	return s;
}

const unsigned char *gpul_cubin_bytes(const gpul_cubin *c, const Elf64_Shdr *s)
{
	if (s->sh_type == SHT_NOBITS || !inside(c, s->sh_offset, s->sh_size))
		return NULL;
	if (s->sh_offset < c->gap.to && s->sh_offset + s->sh_size > c->gap.from)
		return NULL;
	return c->base + s->sh_offset;
}

static gpul_status check_header(gpul_cubin *c, gpul_error *err)
{
	const Elf64_Ehdr *h = &c->header;

	if (c->n_bytes < sizeof *h || memcmp(c->base, ELFMAG, SELFMAG) != 0)
		return damaged(0, err, "shorter than a 64-byte ELF header, or not ELF", c->n_bytes, c->n_bytes);
	memcpy(&c->header, c->base, sizeof *h);
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
		return damaged(EI_CLASS, err, "not 64-bit little-endian ELF", h->e_ident[EI_CLASS], c->n_bytes);
	if (h->e_machine != EM_NVIDIA)
		return damaged(18, err, "e_machine is not 190, NVIDIA CUDA", h->e_machine, c->n_bytes);
	if (h->e_ident[EI_OSABI] != OSABI_CUDA_13 && h->e_ident[EI_OSABI] != OSABI_CUDA)
		return damaged(EI_OSABI, err, "EI_OSABI is neither 0x33 nor 0x41", h->e_ident[EI_OSABI], c->n_bytes);
	if (h->e_type != ET_REL && h->e_type != ET_EXEC)
		return damaged(16, err, "e_type is neither ET_REL nor ET_EXEC", h->e_type, c->n_bytes);
	c->older = h->e_ident[EI_OSABI] == OSABI_CUDA;
	c->relocatable = h->e_type == ET_REL;
	c->sm = (uint16_t)((c->older ? h->e_flags : h->e_flags >> 8) & 0xff);
	return GPUL_OK;
}

/* Find the section table.  With more than 65279 sections, their number and the index of the section names are in section 0. */
static gpul_status find_sections(gpul_cubin *c, gpul_error *err)
{
	const Elf64_Ehdr *h = &c->header;
	uint64_t n = h->e_shnum, names = h->e_shstrndx;
	Elf64_Shdr first;

	if (h->e_shentsize != sizeof(Elf64_Shdr))
		return damaged(58, err, "section headers are not of 64 bytes", h->e_shentsize, c->n_bytes);
	if (!inside(c, h->e_shoff, sizeof first))
		return damaged(40, err, "the section table is outside the image", h->e_shoff, c->n_bytes);
	first = gpul_cubin_section(c, 0);
	if (n == 0)
		n = first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (n > (c->n_bytes - h->e_shoff) / sizeof first)
		return damaged(60, err, "more sections than fit into the image", n, c->n_bytes);
	if (names == SHN_UNDEF || names >= n)
		return damaged(62, err, "the string table of section names does not exist", names, c->n_bytes);
	c->n_sections = (uint32_t)n;
	c->names = gpul_cubin_section(c, (uint32_t)names);
	if (!gpul_cubin_bytes(c, &c->names))
		return damaged(h->e_shoff + names * sizeof first, err, "the string table of section names is outside the image",
			       c->names.sh_offset, c->n_bytes);
	return GPUL_OK;
}

gpul_status gpul_cubin_open(const void *bytes, size_t n_bytes, gpul_cubin_gap gap, gpul_cubin *out, gpul_error *err)
{
	gpul_cubin c = { .base = bytes, .n_bytes = n_bytes, .gap = gap };
	gpul_status st = check_header(&c, err);

	if (!st)
		st = find_sections(&c, err);
	if (!st)
		*out = c;
	return st;
}

bool gpul_attribute_next(gpul_attributes *a, gpul_attribute *out)
{
	size_t left = (size_t)(a->end - a->at), payload = 0;

	if (left < 4)
		return false;
	out->format = a->at[0];
	out->id = a->at[1];
	out->value = (uint16_t)(a->at[2] | a->at[3] << 8);
	out->payload = a->at + 4;
	if (out->format < 1 || out->format > 4)
		return false;
	if (out->format == 4)
		payload = out->value;
	if (payload > left - 4)
		return false;
	payload = (payload + 3) & ~(size_t)3;
	a->at += payload > left - 4 ? left : payload + 4;
	return true;
}

uint32_t gpul_attribute_u32(const gpul_attribute *a, unsigned i)
{
	const unsigned char *p = a->payload + (size_t)i * 4;

	if (a->format != 4 || a->value < (i + 1) * 4)
		return 0;
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint16_t gpul_attribute_u16(const gpul_attribute *a, unsigned i)
{
	const unsigned char *p = a->payload + (size_t)i * 2;

	if (a->format != 4 || a->value < (i + 1) * 2)
		return 0;
	return (uint16_t)(p[0] | p[1] << 8);
}
