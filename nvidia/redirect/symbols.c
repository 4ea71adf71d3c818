/* symbols.c — finds symbols of ELF files. */
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

/* ---- mapped ELF files ------------------------------------------------------------------------ */

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
	return section->sh_type != SHT_NOBITS && section->sh_offset % 8 == 0 && is_inside(elf, section->sh_offset, section->sh_size)
		       ? elf.bytes + section->sh_offset
		       : NULL;
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
