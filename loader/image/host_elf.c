/* host_elf.c — finds the sections with device code in host objects, libraries and programs.
 *
 *     .nv_fatbin          fatbins that the program registers with the CUDA runtime when it starts
 *     __nv_relfatbin      fatbins of nvcc -dc: relocatable, not device-linked yet
 *     .nvFatBinSegment    24-byte wrappers that point to these fatbins; not read, because in an object they are still
 *                         relocations, and strip may remove them
 *     .llvm.offloading    offload binaries of clang -fgpu-rdc or --offload-new-driver
 *     any other data      is searched: it may contain code that a library loads by itself */
#include "loader/image/images_internal.h"

#if GPUL_HAVE_LIBELF
#include <gelf.h>
#include <string.h>

typedef struct host_elf {
	Elf *elf;
	gpul_span bytes;
	size_t names; /* index of the section with the names of sections */
	GPUL_ARRAY(gpul_region) regions;
	GPUL_ARRAY(gpul_loaded) loaded; /* the segments, for files without section headers */
	gpul_span dynamic;
} host_elf;

static gpul_status damaged(const gpul_walk *w, const host_elf *e, const char *what)
{
	return gpul_walk_fail(w, e->bytes.at, "the ELF file is damaged: %s (%s)" GPUL_AGAIN, what, elf_errmsg(-1));
}

/* True for data that compilers generate and that cannot contain device code. */
static bool is_compiler_data(const char *name)
{
	return strncmp(name, ".eh_frame", 9) == 0 || strcmp(name, ".gcc_except_table") == 0 || strcmp(name, ".nvFatBinSegment") == 0;
}

/* Get n bytes at an offset of the file; false: they are not all inside the file. */
static bool bytes_at(const host_elf *e, uint64_t offset, uint64_t n, gpul_span *out)
{
	if (offset > e->bytes.n || n > e->bytes.n - offset)
		return false;
	*out = (gpul_span){ e->bytes.at + offset, (size_t)n };
	return true;
}

static bool is_data(const GElf_Shdr *sh)
{
	return sh->sh_type == SHT_PROGBITS && sh->sh_flags & SHF_ALLOC && !(sh->sh_flags & (SHF_EXECINSTR | SHF_COMPRESSED));
}

/* True for a section with clang's offload binaries, which has a section type of LLVM. */
static bool is_offload(const GElf_Shdr *sh, const char *name)
{
	return strcmp(name, ".llvm.offloading") == 0 && sh->sh_type != SHT_NOBITS && !(sh->sh_flags & SHF_COMPRESSED);
}

static gpul_status add_section(const gpul_walk *w, host_elf *e, const char *name, const GElf_Shdr *sh)
{
	gpul_region *r;

	if (is_compiler_data(name) || (!is_data(sh) && !is_offload(sh, name)))
		return GPUL_OK;
	r = gpul_array_push(&e->regions);
	if (!r)
		return gpul_walk_no_memory(w);
	if (!bytes_at(e, sh->sh_offset, sh->sh_size, &r->bytes))
		return gpul_walk_fail(w, e->bytes.at,
				      "section %.40s ends after the file's %zu bytes: the file is cut off or damaged" GPUL_AGAIN, name,
				      e->bytes.n);
	r->section = name;
	r->relocatable = strcmp(name, "__nv_relfatbin") == 0;
	r->fatbins = r->relocatable || strcmp(name, ".nv_fatbin") == 0;
	r->offload = is_offload(sh, name);
	r->origin = r->fatbins || r->offload ? GPUL_ORIGIN_REGISTERED : GPUL_ORIGIN_EMBEDDED;
	return GPUL_OK;
}

static gpul_status add_sections(const gpul_walk *w, host_elf *e)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(e->elf, section))) {
		const char *name = NULL;
		gpul_status st;
		GElf_Shdr sh;

		if (gelf_getshdr(section, &sh))
			name = elf_strptr(e->elf, e->names, sh.sh_name);
		if (!name)
			return damaged(w, e, "a section's header or name cannot be read");
		st = add_section(w, e, name, &sh);
		if (st)
			return st;
	}
	return GPUL_OK;
}

/* Add a segment to the regions: without section headers (sstrip), all loaded segments are searched. */
static gpul_status add_segment(const gpul_walk *w, host_elf *e, const GElf_Phdr *ph)
{
	gpul_loaded *loaded;
	gpul_region *r;
	gpul_span bytes;

	if (!bytes_at(e, ph->p_offset, ph->p_filesz, &bytes))
		return gpul_walk_fail(w, e->bytes.at,
				      "a segment ends after the file's %zu bytes: the file is cut off or damaged" GPUL_AGAIN, e->bytes.n);
	if (ph->p_type == PT_DYNAMIC)
		e->dynamic = bytes;
	if (ph->p_type != PT_LOAD)
		return GPUL_OK;
	r = gpul_array_push(&e->regions);
	loaded = gpul_array_push(&e->loaded);
	if (!r || !loaded)
		return gpul_walk_no_memory(w);
	*r = (gpul_region){ .section = "", .bytes = bytes, .origin = GPUL_ORIGIN_EMBEDDED };
	*loaded = (gpul_loaded){ .address = ph->p_vaddr, .bytes = bytes, .writable = ph->p_flags & PF_W };
	return GPUL_OK;
}

static gpul_status add_segments(const gpul_walk *w, host_elf *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		gpul_status st;
		GElf_Phdr ph;

		if (!gelf_getphdr(e->elf, (int)i, &ph))
			return damaged(w, e, "a program header cannot be read");
		st = add_segment(w, e, &ph);
		if (st)
			return st;
	}
	return GPUL_OK;
}

/* False if the section table is beyond the end of the file.  libelf does not report this: it treats such a file as stripped. */
static bool sections_are_inside(gpul_span s)
{
	Elf64_Ehdr h;
	uint64_t n;

	if (s.n < sizeof h || s.at[EI_CLASS] != ELFCLASS64 || s.at[EI_DATA] != ELFDATA2LSB)
		return true; /* libelf checks the headers of other classes and byte orders itself */
	memcpy(&h, s.at, sizeof h);
	if (h.e_shoff == 0)
		return true;
	n = h.e_shnum ? h.e_shnum : 1; /* 0: the number is in section 0, and libelf checks it */
	return h.e_shentsize == sizeof(Elf64_Shdr) && h.e_shoff <= s.n && n <= (s.n - h.e_shoff) / sizeof(Elf64_Shdr);
}

/* Collect the regions to search. */
static gpul_status add_regions(const gpul_walk *w, host_elf *e)
{
	size_t n_sections, n_segments;

	if (elf_getshdrnum(e->elf, &n_sections) || elf_getphdrnum(e->elf, &n_segments))
		return damaged(w, e, "its tables are beyond its end");
	if (n_sections == 0)
		return add_segments(w, e, n_segments);
	if (elf_getshdrstrndx(e->elf, &e->names))
		return damaged(w, e, "its sections have no names");
	return add_sections(w, e);
}

/* True if the regions together have more than twice the bytes of the file (segments may share a page): searching a
 * small file with thousands of sections of the same bytes would take hours. */
static bool regions_overlap(const host_elf *e)
{
	uint64_t n_bytes = 0;

	for (size_t i = 0; i < e->regions.n; i++)
		n_bytes += e->regions.at[i].bytes.n;
	return n_bytes / 2 > e->bytes.n;
}

gpul_status gpul_walk_elf(const gpul_walk *w, gpul_span s)
{
	size_t first = w->list->images.n;
	host_elf e = { .bytes = s };
	gpul_status st;

	if (!sections_are_inside(s))
		return gpul_walk_fail(w, s.at,
				      "the ELF file's section table is beyond its %zu bytes: the file is cut off or damaged" GPUL_AGAIN,
				      s.n);
	elf_version(EV_CURRENT);
	/* elf_memory() takes a char *, but only reads from it. */
	e.elf = elf_memory((char *)(uintptr_t)s.at, s.n);
	if (!e.elf)
		return damaged(w, &e, "its header cannot be read");
	st = add_regions(w, &e);
	if (!st && regions_overlap(&e))
		st = gpul_walk_fail(w, s.at,
				    "the ELF file's sections or segments overlap: the file is damaged, or was made to mislead "
				    "readers" GPUL_AGAIN);
	if (!st)
		st = gpul_walk_regions(w, e.regions.at, e.regions.n);
	if (!st && !gpul_stripped_register(w->list, first, e.loaded.at, e.loaded.n, e.dynamic))
		st = gpul_walk_no_memory(w);
	gpul_array_free(&e.loaded);
	gpul_array_free(&e.regions);
	elf_end(e.elf); /* done last, because libelf owns the section names */
	return st;
}

#else

gpul_status gpul_walk_elf(const gpul_walk *w, gpul_span s)
{
	(void)s;
	return gpul_fail(w->err, GPUL_EUNSUPPORTED, 0,
			 "%s: objects, libraries and programs need "
			 "libelf, but this gpuload was built without it: install libelf and build again",
			 w->here.file);
}

#endif
