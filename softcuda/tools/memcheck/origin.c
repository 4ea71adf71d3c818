/* origin.c — finds the function of the program that called the driver. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__GLIBC__)
#include <execinfo.h>
#endif

#include "core/file/file.h"
#include "softcuda/tools/memcheck/parts_internal.h"

struct memcheck gpul_memcheck;

bool gpul_reports_leaks(void)
{
	return gpul_memcheck.leaks && !gpul_memcheck.has_faulted && !gpul_memcheck.has_ended;
}

#if defined(__GLIBC__)
typedef unsigned long long ull;

/* ---- the program's symbol table, because dladdr() finds only exported symbols --------------------------------------------------- */

static const uint8_t *program; /* the program's executable file, mapped into memory */
static size_t program_bytes;
static const ElfW(Sym) * symbols;
static size_t n_symbols;
static const char *names;
static size_t names_bytes;

static bool is_inside(uint64_t at, uint64_t bytes)
{
	return at <= program_bytes && bytes <= program_bytes - at;
}

/* Load the symbol table and its names, if the program's file has them. */
static void find_symbols(void)
{
	const ElfW(Ehdr) *h = (const void *)program;
	const ElfW(Shdr) * s;

	if (!is_inside(0, sizeof *h) || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_shentsize != sizeof *s || h->e_shoff % 8 ||
	    !is_inside(h->e_shoff, (uint64_t)h->e_shnum * sizeof *s))
		return;
	s = (const void *)(program + h->e_shoff);
	for (unsigned k = 0; k < h->e_shnum; k++) {
		if (s[k].sh_type != SHT_SYMTAB || s[k].sh_link >= h->e_shnum || s[k].sh_offset % 8 ||
		    !is_inside(s[k].sh_offset, s[k].sh_size) || !is_inside(s[s[k].sh_link].sh_offset, s[s[k].sh_link].sh_size))
			continue;
		symbols = (const void *)(program + s[k].sh_offset);
		n_symbols = s[k].sh_size / sizeof *symbols;
		names = (const char *)(program + s[s[k].sh_link].sh_offset);
		names_bytes = s[s[k].sh_link].sh_size;
	}
}

static void map_program(void)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && st.st_size > 0) {
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p != MAP_FAILED) {
			program = p;
			program_bytes = (size_t)st.st_size;
			find_symbols();
		}
	}
	close(fd);
}

/* Return the program's function that contains the address; NULL: unknown. base: the program's load address. */
static const char *program_function(uint64_t at, uint64_t base, uint64_t *start)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const ElfW(Ehdr) * h;
	uint64_t bias;

	pthread_once(&once, map_program);
	h = (const void *)program;
	if (!symbols)
		return NULL;
	bias = h->e_type == ET_DYN ? base : 0;
	for (size_t k = 0; k < n_symbols; k++) {
		const ElfW(Sym) *s = &symbols[k];

		if (ELF64_ST_TYPE(s->st_info) == STT_FUNC && at - bias - s->st_value < s->st_size && s->st_name < names_bytes &&
		    memchr(names + s->st_name, '\0', names_bytes - s->st_name)) {
			*start = s->st_value + bias;
			return names + s->st_name;
		}
	}
	return NULL;
}

/* ---- the caller of the driver ----------------------------------------------------------------------------------------- */

struct caller {
	const char *function, *file; /* function is NULL if unknown */
	uint64_t offset;             /* offset from the start of the function or file */
};

/* Return the load address of the program itself. */
static void *main_base(void)
{
	Dl_info f;

	return dladdr((void *)getauxval(AT_PHDR), &f) ? f.dli_fbase : NULL;
}

static bool is_in(void *address, const Dl_info *file)
{
	Dl_info f;

	return dladdr(address, &f) && f.dli_fbase == file->dli_fbase;
}

/* Find the function that contains an address; returns false if the address is in no file, or in the driver (own). */
static bool find_caller(void *address, const Dl_info *own, struct caller *out)
{
	const uint64_t at = (uintptr_t)address - 1; /* address inside the call instruction, not the return address after it */
	uint64_t start = 0;
	Dl_info f;

	if (!dladdr((void *)(uintptr_t)at, &f) || f.dli_fbase == own->dli_fbase)
		return false;
	*out = (struct caller){ f.dli_sname, gpul_file_name(f.dli_fname), at + 1 - (uintptr_t)f.dli_fbase };
	start = (uintptr_t)f.dli_saddr;
	if (!out->function && f.dli_fbase == main_base())
		out->function = program_function(at, (uintptr_t)f.dli_fbase, &start);
	if (out->function)
		out->offset = at + 1 - start;
	return true;
}

/* Returns true if the function belongs to a library between the program and the driver, such as NVIDIA's CUDA runtime or libgpuload. */
static bool is_runtime(const struct caller *c)
{
	const char *name = c->function ? c->function : "";

	if (!strncmp(name, "_Z", 2)) /* possibly an instance of a template in NVIDIA's headers: _Z10cudaMallocIfE... */
		name += 2 + strspn(name + 2, "0123456789");
	return !strncmp(c->file, "libcudart", 9) || !strncmp(c->file, "libgpuload", 10) || !strncmp(name, "cuda", 4) ||
	       !strncmp(name, "gpul_", 5) || !strncmp(name, "__cuda", 6);
}

void gpul_origin_take(struct origin *out)
{
	out->n = backtrace(out->frame, ORIGIN_FRAMES);
}

const char *gpul_origin_text(const struct origin *at, char text[ORIGIN_BYTES])
{
	struct caller c, best = { 0 };
	Dl_info own;
	int k = 0;

	*text = '\0';
	if (!dladdr((void *)(uintptr_t)&gpul_memcheck, &own))
		return text;
	/* Skip the frames of a library that wraps backtrace(), such as libasan. */
	while (k < at->n && !is_in(at->frame[k], &own))
		k++;
	for (; k < at->n; k++) {
		if (!find_caller(at->frame[k], &own, &c) || (best.file && is_runtime(&c)))
			continue;
		best = c;
		if (!is_runtime(&c))
			break;
	}
	if (best.function)
		snprintf(text, ORIGIN_BYTES, "%.80s+0x%llx in %.50s", best.function, (ull)best.offset, best.file);
	else if (best.file)
		snprintf(text, ORIGIN_BYTES, "%.80s+0x%llx", best.file, (ull)best.offset);
	return text;
}
#else
void gpul_origin_take(struct origin *out)
{
	out->n = 0;
}

const char *gpul_origin_text(const struct origin *at, char text[ORIGIN_BYTES])
{
	(void)at;
	*text = '\0';
	return text;
}
#endif
