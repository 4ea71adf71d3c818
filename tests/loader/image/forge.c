/* forge.c — build cubins for tests, valid or damaged. */
#include "tests/loader/image/forge.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static uint32_t put_name(char *table, size_t *n, const char *name)
{
	size_t at = *n;

	assert(at + strlen(name) + 1 <= 4096);
	memcpy(table + at, name, strlen(name) + 1);
	*n += strlen(name) + 1;
	return (uint32_t)at;
}

void forge_start(forge *f, bool older, unsigned sm, bool relocatable)
{
	*f = (forge){ .section_names_bytes = 1, .names_bytes = 1, .n_symbols = 1 };
	memcpy(f->header.e_ident, ELFMAG, SELFMAG);
	f->header.e_ident[EI_CLASS] = ELFCLASS64;
	f->header.e_ident[EI_DATA] = ELFDATA2LSB;
	f->header.e_ident[EI_VERSION] = EV_CURRENT;
	f->header.e_ident[EI_OSABI] = older ? 0x33 : 0x41;
	f->header.e_ident[EI_ABIVERSION] = older ? 7 : 8;
	f->header.e_type = relocatable ? ET_REL : ET_EXEC;
	f->header.e_machine = 190;
	f->header.e_version = EV_CURRENT;
	f->header.e_flags = older ? sm << 16 | 0x500 | sm : 0x6000004 | sm << 8;
	f->header.e_ehsize = sizeof(Elf64_Ehdr);
	f->header.e_shentsize = sizeof(Elf64_Shdr);
	f->header.e_shstrndx = 1;
	f->n_sections = 1;
	forge_section(f, ".shstrtab", SHT_STRTAB, 0, 0);
	forge_section(f, ".strtab", SHT_STRTAB, 0, 0);
	forge_section(f, ".symtab", SHT_SYMTAB, 0, 0);
	f->sections[3].sh_link = 2;
	f->sections[3].sh_entsize = sizeof(Elf64_Sym);
}

unsigned forge_section(forge *f, const char *name, uint32_t type, uint32_t info, size_t n_bytes)
{
	unsigned i = f->n_sections++;

	assert(i < FORGE_SECTIONS);
	f->sections[i] = (Elf64_Shdr){ .sh_name = put_name(f->section_names, &f->section_names_bytes, name),
				       .sh_type = type,
				       .sh_info = info,
				       .sh_size = n_bytes,
				       .sh_addralign = 4 };
	return i;
}

unsigned forge_symbol(forge *f, const char *name, unsigned char info, unsigned char other, unsigned section)
{
	unsigned i = f->n_symbols++;

	assert(i < FORGE_SYMBOLS);
	f->symbols[i] = (Elf64_Sym){
		.st_name = put_name(f->names, &f->names_bytes, name), .st_info = info, .st_other = other, .st_shndx = (uint16_t)section
	};
	return i;
}

unsigned forge_kernel(forge *f, const char *name, unsigned *symbol)
{
	char text[256];

	snprintf(text, sizeof text, ".text.%s", name);
	unsigned section = forge_section(f, text, SHT_PROGBITS, 0, 128);
	*symbol = forge_symbol(f, name, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0x10, section);
	return section;
}

static void put_attribute(forge *f, unsigned i, const void *bytes, size_t n)
{
	Elf64_Shdr *s = &f->sections[i];

	if (!f->content[i])
		f->content[i] = f->attributes + f->attributes_bytes;
	assert((const unsigned char *)f->content[i] + s->sh_size == f->attributes + f->attributes_bytes);
	assert(f->attributes_bytes + n <= sizeof f->attributes);
	memcpy(f->attributes + f->attributes_bytes, bytes, n);
	f->attributes_bytes += n;
	s->sh_size += n;
}

void forge_numbers(forge *f, unsigned i, unsigned id, unsigned n, const uint32_t *numbers)
{
	unsigned char head[4] = { 4, (unsigned char)id, (unsigned char)(n * 4), 0 };

	put_attribute(f, i, head, sizeof head);
	put_attribute(f, i, numbers, n * sizeof *numbers);
}

void forge_value(forge *f, unsigned i, unsigned format, unsigned id, unsigned value)
{
	unsigned char head[4] = { (unsigned char)format, (unsigned char)id, (unsigned char)value, (unsigned char)(value >> 8) };

	put_attribute(f, i, head, sizeof head);
}

void forge_finish(forge *f)
{
	size_t at = sizeof f->header;

	f->content[1] = f->section_names;
	f->sections[1].sh_size = f->section_names_bytes;
	f->content[2] = f->names;
	f->sections[2].sh_size = f->names_bytes;
	f->content[3] = f->symbols;
	f->sections[3].sh_size = f->n_symbols * sizeof(Elf64_Sym);
	for (unsigned i = 1; i < f->n_sections; i++) {
		Elf64_Shdr *s = &f->sections[i];

		s->sh_offset = at;
		if (s->sh_type == SHT_NOBITS)
			continue;
		assert(at + s->sh_size < sizeof f->bytes);
		if (f->content[i])
			memcpy(f->bytes + at, f->content[i], s->sh_size);
		at = (at + s->sh_size + 7) / 8 * 8;
	}
	f->header.e_shoff = at;
	f->header.e_shnum = (uint16_t)f->n_sections;
	memcpy(f->bytes, &f->header, sizeof f->header);
	memcpy(f->bytes + at, f->sections, f->n_sections * sizeof(Elf64_Shdr));
	f->n_bytes = at + f->n_sections * sizeof(Elf64_Shdr);
}

Elf64_Shdr *forge_header_of(forge *f, unsigned i)
{
	return (Elf64_Shdr *)(void *)(f->bytes + f->header.e_shoff) + i;
}
