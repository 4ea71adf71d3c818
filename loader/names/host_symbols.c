/* host_symbols.c — reads the symbol tables of an ELF file.  The file is untrusted: a table outside the file is treated as empty. */
#include "loader/names/host_symbols_internal.h"

#include <elf.h>
#include <string.h>

#include "core/bytes.h"

enum { SYMBOL_BYTES = sizeof(Elf64_Sym) };

struct section {
	uint32_t name, type, link;
	uint64_t offset, n_bytes;
};

/* ---- sections ---------------------------------------------------------------------- */

static struct section section_at(const gpul_host_object *f, uint64_t table, uint32_t index)
{
	gpul_bytes b = gpul_bytes_of(f->bytes, f->n_bytes);
	struct section s = { 0 };

	gpul_bytes_seek(&b, table + index * (uint64_t)sizeof(Elf64_Shdr));
	s.name = gpul_bytes_u32(&b);
	s.type = gpul_bytes_u32(&b);
	gpul_bytes_skip(&b, 16); /* skip sh_flags and sh_addr */
	s.offset = gpul_bytes_u64(&b);
	s.n_bytes = gpul_bytes_u64(&b);
	s.link = gpul_bytes_u32(&b);
	if (b.overrun || s.type == SHT_NOBITS || s.offset > f->n_bytes || s.n_bytes > f->n_bytes - s.offset)
		return (struct section){ 0 };
	return s;
}

/* Return the string at an offset of a table that ends in NUL; "": the offset is outside the table. */
static const char *string_at(const void *names, size_t names_bytes, uint32_t at)
{
	return at < names_bytes ? (const char *)names + at : "";
}

/* Return the usable length of a string table: up to its last NUL. */
static size_t terminated_bytes(const char *names, size_t names_bytes)
{
	const char *last = names_bytes ? memrchr(names, 0, names_bytes) : NULL;

	return last ? (size_t)(last - names) + 1 : 0;
}

static gpul_host_table symbol_table(const gpul_host_object *f, uint64_t sections, const struct section *s)
{
	struct section names = section_at(f, sections, s->link);
	const char *base = f->bytes;

	return (gpul_host_table){ base + s->offset, base + names.offset, s->n_bytes, terminated_bytes(base + names.offset, names.n_bytes) };
}

static void read_sections(gpul_host_object *o)
{
	gpul_bytes b = gpul_bytes_of(o->bytes, o->n_bytes);
	struct section names;
	uint64_t table;
	uint16_t n, names_index;

	gpul_bytes_seek(&b, offsetof(Elf64_Ehdr, e_shoff));
	table = gpul_bytes_u64(&b);
	gpul_bytes_seek(&b, offsetof(Elf64_Ehdr, e_shnum));
	n = gpul_bytes_u16(&b);
	names_index = gpul_bytes_u16(&b);
	names = section_at(o, table, names_index);
	names.n_bytes = terminated_bytes((const char *)o->bytes + names.offset, names.n_bytes);
	for (uint32_t i = 0; i < n; i++) {
		struct section s = section_at(o, table, i);
		const char *name = string_at((const char *)o->bytes + names.offset, names.n_bytes, s.name);

		if (s.type == SHT_SYMTAB)
			o->all = symbol_table(o, table, &s);
		else if (s.type == SHT_DYNSYM)
			o->dynamic = symbol_table(o, table, &s);
		if (strcmp(name, ".interp") == 0)
			o->shared = false; /* .interp: the file is a position-independent program */
		else if (strcmp(name, ".nv_fatbin") == 0)
			o->has_device_code = true;
		else if (strcmp(name, ".hip_fatbin") == 0)
			o->has_hip_code = true;
		else if (strcmp(name, "__nv_relfatbin") == 0)
			o->relocatable_only = true; /* cleared later if the file has a section .nv_fatbin, too */
	}
}

bool gpul_host_read(const void *bytes, size_t n_bytes, gpul_host_object *out)
{
	gpul_host_object o = { .bytes = bytes, .n_bytes = n_bytes };
	gpul_bytes b = gpul_bytes_of(bytes, n_bytes);
	uint16_t type;

	if (n_bytes < sizeof(Elf64_Ehdr) || memcmp(bytes,
						   "\x7f"
						   "ELF\2\1",
						   6) != 0)
		return false;
	gpul_bytes_seek(&b, offsetof(Elf64_Ehdr, e_type));
	type = gpul_bytes_u16(&b);
	o.linked = type == ET_DYN || type == ET_EXEC;
	o.shared = type == ET_DYN;
	read_sections(&o);
	o.n_symbols = o.all.symbols_bytes / SYMBOL_BYTES;
	o.device_linked = o.has_device_code && o.relocatable_only;
	o.relocatable_only = o.relocatable_only && !o.has_device_code;
	o.has_device_code = o.has_device_code || o.relocatable_only;
	*out = o;
	return true;
}

/* ---- symbols ----------------------------------------------------------------------- */

struct symbol {
	const char *name;
	uint64_t address, n_bytes;
	uint8_t type, bind, visibility;
	bool defined;
};

static struct symbol symbol_at(const gpul_host_table *t, size_t i)
{
	gpul_bytes b = gpul_bytes_of((const char *)t->symbols + i * SYMBOL_BYTES, SYMBOL_BYTES);
	struct symbol s = { .name = string_at(t->names, t->names_bytes, gpul_bytes_u32(&b)) };
	uint8_t info = gpul_bytes_u8(&b);

	s.type = ELF64_ST_TYPE(info);
	s.bind = ELF64_ST_BIND(info);
	s.visibility = ELF64_ST_VISIBILITY(gpul_bytes_u8(&b));
	s.defined = gpul_bytes_u16(&b) != SHN_UNDEF;
	s.address = gpul_bytes_u64(&b);
	s.n_bytes = gpul_bytes_u64(&b);
	return s;
}

static const char *function_at(const gpul_host_table *t, uint64_t address)
{
	for (size_t i = 0; i < t->symbols_bytes / SYMBOL_BYTES; i++) {
		struct symbol s = symbol_at(t, i);

		if (s.type == STT_FUNC && s.defined && *s.name && address >= s.address && address - s.address < (s.n_bytes ? s.n_bytes : 1))
			return s.name;
	}
	return NULL;
}

const char *gpul_host_function_at(const gpul_host_object *o, uint64_t address)
{
	const char *name = function_at(&o->all, address);

	return name ? name : function_at(&o->dynamic, address);
}

const char *gpul_host_variable(const gpul_host_object *o, size_t i, size_t min_bytes)
{
	struct symbol s = symbol_at(&o->all, i);

	return s.type == STT_OBJECT && s.defined && *s.name && s.n_bytes >= min_bytes ? s.name : NULL;
}

size_t gpul_host_n_dynamic(const gpul_host_object *o)
{
	return o->dynamic.symbols_bytes / SYMBOL_BYTES;
}

static bool has_dynamic(const gpul_host_object *o, const char *name, bool defined)
{
	for (size_t i = 0; i < o->dynamic.symbols_bytes / SYMBOL_BYTES; i++) {
		struct symbol s = symbol_at(&o->dynamic, i);

		if (s.defined == defined && s.bind != STB_LOCAL && strcmp(s.name, name) == 0)
			return !defined || s.visibility == STV_DEFAULT || s.visibility == STV_PROTECTED;
	}
	return false;
}

bool gpul_host_exports(const gpul_host_object *o, const char *name)
{
	return has_dynamic(o, name, true);
}

bool gpul_host_imports(const gpul_host_object *o, const char *name)
{
	return has_dynamic(o, name, false);
}
