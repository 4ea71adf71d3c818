/* host_elf.c — host objects, libraries and programs: which of their sections hold device code.
 *
 *     .nv_fatbin          fatbins that the CUDA runtime is told of when the program starts
 *     __nv_relfatbin      the same of nvcc -dc: relocatable, waiting for a device link
 *     .nvFatBinSegment    24-byte wrappers that point into those; in an object they are relocations
 *                         still, and strip may have left none: not needed to find the code
 *     any other data      what a library loads by itself, if it wants to: searched */
#include "loader/image/images_internal.h"

#if GPUL_HAVE_LIBELF
#include <gelf.h>
#include <string.h>

typedef struct host_elf {
	Elf *elf;
	gpul_span bytes;
	size_t names; /* section of the sections' names */
} host_elf;

static gpul_status damaged(const gpul_walk *w, const host_elf *e, const char *what)
{
	return gpul_walk_fail(w, e->bytes.at, "the ELF file is damaged: %s (%s)", what,
			      elf_errmsg(-1));
}

/* Nothing that device code could be in, though its kind is plain data: what compilers make. */
static bool is_compilers_own(const char *name)
{
	return strncmp(name, ".eh_frame", 9) == 0 || strcmp(name, ".gcc_except_table") == 0 ||
	       strcmp(name, ".nvFatBinSegment") == 0;
}

static gpul_status walk_section(const gpul_walk *w, const host_elf *e, const char *name,
				const GElf_Shdr *sh)
{
	gpul_walk inner = *w;
	gpul_span s;

	if (sh->sh_type != SHT_PROGBITS || !(sh->sh_flags & SHF_ALLOC) ||
	    sh->sh_flags & (SHF_EXECINSTR | SHF_COMPRESSED))
		return GPUL_OK;
	inner.here.section = name;
	if (sh->sh_offset > e->bytes.n || sh->sh_size > e->bytes.n - sh->sh_offset)
		return gpul_walk_fail(&inner, e->bytes.at, "the section lies beyond the file's %zu "
							   "bytes: cut off or damaged", e->bytes.n);
	s = (gpul_span){ e->bytes.at + sh->sh_offset, (size_t)sh->sh_size };
	inner.relocatable = strcmp(name, "__nv_relfatbin") == 0;
	if (inner.relocatable || strcmp(name, ".nv_fatbin") == 0)
		return gpul_walk_fatbins(&inner, s);
	inner.origin = GPUL_ORIGIN_EMBEDDED;
	return is_compilers_own(name) ? GPUL_OK : gpul_walk_data(&inner, s);
}

static gpul_status walk_sections(const gpul_walk *w, const host_elf *e)
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
		st = walk_section(w, e, name, &sh);
		if (st)
			return st;
	}
	return GPUL_OK;
}

/* Without section headers (sstrip), what is loaded is all data. */
static gpul_status walk_segments(const gpul_walk *w, const host_elf *e, size_t n)
{
	gpul_walk inner = *w;

	inner.origin = GPUL_ORIGIN_EMBEDDED;
	for (size_t i = 0; i < n; i++) {
		gpul_status st;
		GElf_Phdr ph;

		if (!gelf_getphdr(e->elf, (int)i, &ph))
			return damaged(w, e, "a program header cannot be read");
		if (ph.p_type != PT_LOAD)
			continue;
		if (ph.p_offset > e->bytes.n || ph.p_filesz > e->bytes.n - ph.p_offset)
			return gpul_walk_fail(w, e->bytes.at, "a segment lies beyond the file's %zu "
							      "bytes: cut off or damaged", e->bytes.n);
		st = gpul_walk_data(&inner, (gpul_span){ e->bytes.at + ph.p_offset,
							 (size_t)ph.p_filesz });
		if (st)
			return st;
	}
	return GPUL_OK;
}

gpul_status gpul_walk_elf(const gpul_walk *w, gpul_span s)
{
	host_elf e = { .bytes = s };
	size_t n_sections, n_segments;
	gpul_status st;

	elf_version(EV_CURRENT);
	/* libelf wants a char *, and only reads. */
	e.elf = elf_memory((char *)(uintptr_t)s.at, s.n);
	if (!e.elf)
		return damaged(w, &e, "its header cannot be read");
	if (elf_getshdrnum(e.elf, &n_sections) || elf_getphdrnum(e.elf, &n_segments))
		st = damaged(w, &e, "its tables lie beyond its end");
	else if (n_sections == 0)
		st = walk_segments(w, &e, n_segments);
	else if (elf_getshdrstrndx(e.elf, &e.names))
		st = damaged(w, &e, "its sections have no names");
	else
		st = walk_sections(w, &e);
	elf_end(e.elf);
	return st;
}

#else

gpul_status gpul_walk_elf(const gpul_walk *w, gpul_span s)
{
	(void)s;
	return gpul_fail(w->err, GPUL_EUNSUPPORTED, 0, "%s: gpuload was built without libelf, which "
			 "reads objects, libraries and programs: build it with libelf", w->here.file);
}

#endif
