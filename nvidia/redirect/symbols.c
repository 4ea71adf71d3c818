/* symbols.c — the symbols of ELF files, and those of loaded objects. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nvidia/redirect/redirect_internal.h"

bool map_file(const char *path, struct mapped *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *bytes = MAP_FAILED;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return false;
	*out = (struct mapped){ bytes, (size_t)st.st_size };
	return true;
}

void unmap_file(struct mapped *file)
{
	if (file->bytes)
		munmap((void *)(uintptr_t)file->bytes, file->n_bytes);
	*file = (struct mapped){ 0 };
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_inside(struct mapped file, uint64_t offset, uint64_t n_bytes)
{
	return offset <= file.n_bytes && n_bytes <= file.n_bytes - offset;
}

const Elf64_Shdr *elf_sections(struct mapped elf, size_t *n_sections)
{
	const Elf64_Ehdr *head = (const void *)elf.bytes;

	if (elf.n_bytes < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) || head->e_ident[EI_CLASS] != ELFCLASS64 ||
	    head->e_ident[EI_DATA] != ELFDATA2LSB || head->e_machine != EM_X86_64 || head->e_shentsize != sizeof(Elf64_Shdr) ||
	    head->e_shoff % _Alignof(Elf64_Shdr) || !is_inside(elf, head->e_shoff, (uint64_t)head->e_shnum * sizeof(Elf64_Shdr)))
		return NULL;
	*n_sections = head->e_shnum;
	return (const void *)(elf.bytes + head->e_shoff);
}

const void *section_bytes(struct mapped elf, const Elf64_Shdr *section)
{
	return section->sh_type != SHT_NOBITS && section->sh_offset % 8 == 0 && is_inside(elf, section->sh_offset, section->sh_size) ?
		       elf.bytes + section->sh_offset : NULL;
}

const Elf64_Phdr *elf_segments(struct mapped elf, size_t *n_segments)
{
	const Elf64_Ehdr *head = (const void *)elf.bytes;

	if (head->e_phentsize != sizeof(Elf64_Phdr) || head->e_phoff % _Alignof(Elf64_Phdr) ||
	    !is_inside(elf, head->e_phoff, (uint64_t)head->e_phnum * sizeof(Elf64_Phdr)))
		return NULL;
	*n_segments = head->e_phnum;
	return (const void *)(elf.bytes + head->e_phoff);
}

bool is_code(struct mapped elf, uintptr_t address, size_t n_bytes)
{
	size_t n_segments = 0;
	const Elf64_Phdr *segments = elf_segments(elf, &n_segments);

	for (size_t i = 0; i < n_segments; i++) {
		const Elf64_Phdr *s = &segments[i];

		if (s->p_type == PT_LOAD && s->p_flags & PF_X && address >= s->p_vaddr && n_bytes <= s->p_filesz &&
		    address - s->p_vaddr <= s->p_filesz - n_bytes)
			return true;
	}
	return false;
}

/* True for calls such as cudaMalloc and __cudaRegisterFunction; false for cudart's internal functions and C++ names. */
static bool is_runtime_call(const char *name)
{
	if (!strncmp(name, "__", 2))
		name += 2;
	return !strncmp(name, "cuda", 4) && name[4] >= 'A' && name[4] <= 'Z';
}

void add_symbols(struct mapped elf, unsigned type, size_t index, uintptr_t offset, struct static_runtime *out)
{
	size_t n_sections = 0;
	const Elf64_Shdr *sections = elf_sections(elf, &n_sections);

	for (size_t s = 0; s < n_sections; s++) {
		const Elf64_Shdr *table = &sections[s], *texts = table->sh_link < n_sections ? &sections[table->sh_link] : NULL;
		const Elf64_Sym *symbols;
		const char *text;

		if (table->sh_type != type || !texts)
			continue;
		symbols = section_bytes(elf, table);
		text = (const char *)elf.bytes + texts->sh_offset;
		if (!symbols || !is_inside(elf, texts->sh_offset, texts->sh_size) || !texts->sh_size || text[texts->sh_size - 1])
			continue;
		for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
			const Elf64_Sym *y = &symbols[i];

			if (ELF64_ST_TYPE(y->st_info) == STT_FUNC && y->st_shndx != SHN_UNDEF && (!index || y->st_shndx == index) &&
			    y->st_name < texts->sh_size && is_runtime_call(text + y->st_name) && out->n_calls < REDIRECT_MAX_CALLS)
				out->calls[out->n_calls++] = (struct runtime_call){ text + y->st_name, y->st_value + offset };
		}
	}
}

/* ---- loaded objects -------------------------------------------------------------------------- */

struct dynamic { const Elf64_Sym *symbols; const char *text; const uint32_t *gnu_hash, *hash; };

/* In most objects, the dynamic loader replaces addresses in the dynamic section by load addresses, but not in read-only sections. */
static const void *dynamic_pointer(const struct link_map *map, uint64_t value)
{
	return (const void *)(value < map->l_addr ? map->l_addr + value : value);
}

static bool read_dynamic(const struct link_map *map, struct dynamic *out)
{
	*out = (struct dynamic){ 0 };
	for (const Elf64_Dyn *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			out->symbols = dynamic_pointer(map, d->d_un.d_ptr);
		else if (d->d_tag == DT_STRTAB)
			out->text = dynamic_pointer(map, d->d_un.d_ptr);
		else if (d->d_tag == DT_GNU_HASH)
			out->gnu_hash = dynamic_pointer(map, d->d_un.d_ptr);
		else if (d->d_tag == DT_HASH)
			out->hash = dynamic_pointer(map, d->d_un.d_ptr);
	}
	return out->symbols && out->text && (out->gnu_hash || out->hash);
}

/* The number of dynamic symbols before the exported ones.  Linkers write imported symbols first: they are not in the GNU hash
 * table, whose word 1 is the index of the first hashed symbol.  For an object that exports nothing, the hash table does not give
 * the number; it follows from the address of the names, which linkers write directly after the symbols. */
static size_t count_imports(const struct dynamic *d)
{
	const char *symbols = (const char *)d->symbols;

	if (!d->gnu_hash)
		return d->hash[1];
	for (uint32_t i = 0; i < d->gnu_hash[0]; i++)
		if (d->gnu_hash[4 + 2 * (size_t)d->gnu_hash[2] + i])
			return d->gnu_hash[1];
	return d->text > symbols ? (size_t)(d->text - symbols) / sizeof *d->symbols : 0;
}

bool imports(const struct link_map *map, const char *name)
{
	struct dynamic d;
	size_t n;

	if (!read_dynamic(map, &d))
		return false;
	n = count_imports(&d);
	for (size_t i = 1; i < n; i++)
		if (d.symbols[i].st_shndx == SHN_UNDEF && !strcmp(d.text + d.symbols[i].st_name, name))
			return true;
	return false;
}

/* Source: the System V ABI supplement of GNU, DT_GNU_HASH: { n_buckets, first symbol, n_bloom, shift }, bloom filter of 64-bit words,
 * buckets, chains whose last hash has bit 0 set. */
uintptr_t find_export(const struct link_map *map, const char *name)
{
	const uint32_t *buckets, *chains;
	struct dynamic d;
	uint32_t hash = 5381;

	if (!read_dynamic(map, &d) || !d.gnu_hash || !d.gnu_hash[0])
		return 0;
	for (const char *c = name; *c; c++)
		hash = hash * 33 + (uint8_t)*c;
	buckets = d.gnu_hash + 4 + 2 * (size_t)d.gnu_hash[2];
	chains = buckets + d.gnu_hash[0];
	for (uint32_t i = buckets[hash % d.gnu_hash[0]]; i >= d.gnu_hash[1] && i; i++) {
		uint32_t entry = chains[i - d.gnu_hash[1]];

		if ((entry | 1) == (hash | 1) && d.symbols[i].st_shndx != SHN_UNDEF && !strcmp(d.text + d.symbols[i].st_name, name))
			return map->l_addr + d.symbols[i].st_value;
		if (entry & 1)
			break;
	}
	return 0;
}
