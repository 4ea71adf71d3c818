/* redirect_archive.c — finds NVIDIA's runtime in a stripped object.
 *
 * libcudart_static.a contains one object, and the linker copies its machine code as a whole. Only bytes that contain addresses
 * change, and the archive's relocations list them. So the runtime is at the place where all other bytes are equal, and each
 * function has the same offset in it as in the archive. */
#include <ar.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "nvidia/real.h"
#include "nvidia/redirect/redirect_internal.h"

enum { ANCHOR_BYTES = 64 };

struct machine_code {
	size_t index; /* index of section .text */
	const uint8_t *bytes;
	size_t n_bytes;
	uint8_t *is_address; /* for each byte of the code: true if the linker writes it; owned */
	size_t anchor;       /* offset of ANCHOR_BYTES bytes that no relocation changes */
};

/* ---- reading libcudart_static.a -------------------------------------------------------------- */

/* Copy a member, because members begin at even offsets, while structures of ELF files must be aligned to 8 bytes. */
static bool copy_member(const void *bytes, size_t n_bytes, struct mapped *out)
{
	void *copy = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return false;
	memcpy(copy, bytes, n_bytes);
	*out = (struct mapped){ copy, n_bytes };
	return true;
}

/* Copy the first member that is an object; the caller calls unmap_file(). */
static bool copy_object(struct mapped archive, struct mapped *out)
{
	size_t at = SARMAG;

	if (archive.n_bytes < SARMAG || memcmp(archive.bytes, ARMAG, SARMAG))
		return false;
	while (archive.n_bytes - at >= sizeof(struct ar_hdr)) {
		const struct ar_hdr *head = (const void *)(archive.bytes + at);
		char digits[sizeof head->ar_size + 1] = { 0 };
		size_t n_bytes;

		memcpy(digits, head->ar_size, sizeof head->ar_size);
		n_bytes = strtoul(digits, NULL, 10);
		at += sizeof *head;
		if (n_bytes > archive.n_bytes - at)
			break;
		if (n_bytes > SELFMAG && !memcmp(archive.bytes + at, ELFMAG, SELFMAG))
			return copy_member(archive.bytes + at, n_bytes, out);
		at += n_bytes + (n_bytes & 1);
		if (at > archive.n_bytes)
			break;
	}
	return false;
}

/* Mark the bytes that relocations change: an address of 4 or 8 bytes, and the 3 bytes before it, because the linker may replace
 * the instruction that loads an address. */
static void mark_addresses(struct machine_code *code, const Elf64_Rela *relocations, size_t n)
{
	enum { BEFORE = 3 };

	for (size_t i = 0; i < n; i++) {
		size_t at = relocations[i].r_offset, first = at < BEFORE ? 0 : at - BEFORE;
		size_t width = ELF64_R_TYPE(relocations[i].r_info) == R_X86_64_64 ? 8 : 4;

		if (at < code->n_bytes)
			memset(code->is_address + first, 1, (at + width > code->n_bytes ? code->n_bytes : at + width) - first);
	}
}

/* Find the anchor: the longest part without addresses, which is the least likely to occur elsewhere. */
static bool find_anchor(struct machine_code *code)
{
	size_t longest = 0;

	for (size_t i = 0, from = 0; i <= code->n_bytes; i++) {
		if (i < code->n_bytes && !code->is_address[i])
			continue;
		if (i - from > longest) {
			longest = i - from;
			code->anchor = from;
		}
		from = i + 1;
	}
	return longest >= ANCHOR_BYTES;
}

/* Read the section .text and its relocations.  The caller frees code->is_address, also after a failure. */
static bool read_code(struct mapped elf, struct machine_code *code)
{
	size_t n_sections = 0;
	const Elf64_Shdr *sections = elf_sections(elf, &n_sections);

	*code = (struct machine_code){ 0 };
	for (size_t i = 1; i < n_sections; i++) { /* take the largest code section, because the others contain C++ constructors */
		const Elf64_Shdr *s = &sections[i];

		if (s->sh_type != SHT_PROGBITS || !(s->sh_flags & SHF_EXECINSTR) || s->sh_size <= code->n_bytes || !section_bytes(elf, s))
			continue;
		code->index = i;
		code->bytes = section_bytes(elf, s);
		code->n_bytes = s->sh_size;
	}
	code->is_address = code->n_bytes ? calloc(1, code->n_bytes) : NULL;
	for (size_t i = 0; i < n_sections && code->is_address; i++)
		if (sections[i].sh_type == SHT_RELA && sections[i].sh_info == code->index && section_bytes(elf, &sections[i]))
			mark_addresses(code, section_bytes(elf, &sections[i]), sections[i].sh_size / sizeof(Elf64_Rela));
	return code->is_address && find_anchor(code);
}

/* ---- finding the archive's code in the object ------------------------------------------------ */

static bool is_equal(const struct machine_code *code, const uint8_t *at)
{
	for (size_t i = 0; i < code->n_bytes; i++)
		if (!code->is_address[i] && code->bytes[i] != at[i])
			return false;
	return true;
}

/* Find the start of the code in an executable segment of the object, as an address in the object; 0: not found. */
static uintptr_t find_code(struct mapped object, const struct machine_code *code)
{
	size_t n_segments = 0;
	const Elf64_Phdr *segments = elf_segments(object, &n_segments);

	for (size_t i = 0; i < n_segments; i++) {
		const Elf64_Phdr *s = &segments[i];
		const uint8_t *begin, *end, *hit;

		if (s->p_type != PT_LOAD || !(s->p_flags & PF_X) || s->p_offset > object.n_bytes ||
		    s->p_filesz > object.n_bytes - s->p_offset)
			continue;
		hit = begin = object.bytes + s->p_offset;
		end = begin + s->p_filesz;
		while ((hit = memmem(hit, (size_t)(end - hit), code->bytes + code->anchor, ANCHOR_BYTES))) {
			if ((size_t)(hit - begin) >= code->anchor && (size_t)(end - hit) >= code->n_bytes - code->anchor &&
			    is_equal(code, hit - code->anchor))
				return s->p_vaddr + (uintptr_t)(hit - code->anchor - begin);
			hit++;
		}
	}
	return 0;
}

bool has_runtime(struct mapped object)
{
	static const char mark[] = "/cudart.shm.";

	return memmem(object.bytes, object.n_bytes, mark, sizeof mark - 1);
}

struct search {
	struct mapped object;
	struct static_runtime *out;
};

static bool try_archive(const char *path, void *context)
{
	struct search *s = context;
	struct machine_code code = { 0 };
	struct mapped archive = { 0 }, elf = { 0 };
	uintptr_t begin = 0;

	if (!map_file(path, &archive))
		return false;
	if (copy_object(archive, &elf) && read_code(elf, &code))
		begin = find_code(s->object, &code);
	free(code.is_address);
	unmap_file(&archive);
	if (begin)
		add_symbols(elf, SHT_SYMTAB, code.index, begin, s->out);
	if (!s->out->n_calls) {
		unmap_file(&elf);
		return false;
	}
	s->out->names = elf;
	return true;
}

bool archive_folder(char path[PATH_MAX])
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	bool own = cache && *cache == '/'; /* the XDG specification says to ignore relative paths */

	return (own || (home && *home == '/')) &&
	       snprintf(path, PATH_MAX, "%s%s/gpuload/cudart", own ? cache : home, own ? "" : "/.cache") < PATH_MAX;
}

/* Try the archives of wheels in a folder: nvidia/cuda_runtime/lib (CUDA 12) or nvidia/cu13/lib, in sub-folders that match `levels`. */
static bool try_wheels(struct search *s, const char *folder, int n_folder, const char *levels)
{
	char pattern[PATH_MAX];
	bool done = false;
	glob_t hits;

	if (snprintf(pattern, sizeof pattern, "%.*s/%snvidia/*/lib/libcudart_static.a", n_folder, folder, levels) >= PATH_MAX ||
	    glob(pattern, 0, NULL, &hits))
		return false;
	for (size_t i = 0; i < hits.gl_pathc && !done; i++)
		done = try_archive(hits.gl_pathv[i], s);
	globfree(&hits);
	return done;
}

/* Search the Python packages that are installed in the same folder as the object's package. */
static bool try_siblings(struct search *s, const char *path)
{
	const char *end = strstr(path, "-packages/"); /* site-packages or dist-packages */

	return end && try_wheels(s, path, (int)(end - path) + (int)strlen("-packages"), "");
}

static bool try_cache(struct search *s)
{
	char folder[PATH_MAX];

	return archive_folder(folder) && try_wheels(s, folder, PATH_MAX, "*/");
}

bool find_by_archive(struct mapped object, const char *path, struct static_runtime *out)
{
	static const char *const sub[] = { "lib64", "lib", NULL }, *const files[] = { "libcudart_static.a", NULL };
	struct search s = { object, out };
	size_t n_sections;

	return elf_sections(object, &n_sections) &&
	       (toolchain_search("GPULOAD_CUDART_STATIC", "cuda_runtime", sub, files, try_archive, &s) || try_siblings(&s, path) ||
		try_cache(&s));
}

void toolkit_version(struct mapped object, char version[16])
{
	static const char mark[] = "Cuda compilation tools, release ";
	const char *hit = memmem(object.bytes, object.n_bytes, mark, sizeof mark - 1);
	const char *end = (const char *)object.bytes + object.n_bytes;
	size_t n = 0;

	*version = '\0';
	while (hit && hit < end && *hit && *hit != 'V')
		hit++;
	for (hit += hit != NULL; hit && hit < end && n < 15 && ((*hit >= '0' && *hit <= '9') || *hit == '.'); hit++)
		version[n++] = *hit;
	version[n] = '\0';
}
