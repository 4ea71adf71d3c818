/* loaded.c — finds symbols of objects that the dynamic loader has mapped, which may not be relocated yet. */
#include "nvidia/loaded.h"

#include <elf.h>
#include <string.h>

struct dynamic {
	const Elf64_Sym *symbols;
	const char *text;
	const uint32_t *gnu_hash, *hash;
};

/* Convert an address in the dynamic section to a pointer.  In most objects the dynamic loader has already added the load address to
 * it, but not in objects whose dynamic section is read-only. */
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

/* Count the dynamic symbols before the exported ones.  Linkers write imported symbols first: they are not in the GNU hash table,
 * whose word 1 is the index of the first hashed symbol.  For an object that exports nothing, the hash table does not give the
 * number; it follows from the address of the names, which linkers write directly after the symbols. */
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

static bool is_export(const struct dynamic *d, uint32_t symbol, const char *name)
{
	return d->symbols[symbol].st_shndx != SHN_UNDEF && !strcmp(d->text + d->symbols[symbol].st_name, name);
}

/* Look up a name by DT_HASH; 0: none.  Source: System V ABI, DT_HASH: { n_buckets, n_chains }, buckets, chains. */
static uint32_t find_by_hash(const struct dynamic *d, const char *name)
{
	const uint32_t *buckets = d->hash + 2, *chains = buckets + d->hash[0];
	uint32_t hash = 0;

	for (const char *c = name; *c; c++) {
		hash = (hash << 4) + (uint8_t)*c;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	for (uint32_t i = d->hash[0] ? buckets[hash % d->hash[0]] : 0; i; i = chains[i])
		if (is_export(d, i, name))
			return i;
	return 0;
}

/* Look up a name by DT_GNU_HASH.  Source: GNU supplement of the System V ABI: { n_buckets, first symbol, n_bloom, shift }, bloom
 * filter of 64-bit words, buckets, and chains of hashes, whose bit 0 is set in the last hash of a chain. */
static uint32_t find_by_gnu_hash(const struct dynamic *d, const char *name)
{
	const uint32_t *buckets = d->gnu_hash + 4 + 2 * (size_t)d->gnu_hash[2], *chains = buckets + d->gnu_hash[0];
	uint32_t hash = 5381;

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (uint8_t)*c;
	for (uint32_t i = d->gnu_hash[0] ? buckets[hash % d->gnu_hash[0]] : 0; i >= d->gnu_hash[1] && i; i++) {
		const uint32_t entry = chains[i - d->gnu_hash[1]];

		if ((entry | 1) == (hash | 1) && is_export(d, i, name))
			return i;
		if (entry & 1)
			break;
	}
	return 0;
}

const Elf64_Sym *find_symbol(const struct link_map *map, const char *name)
{
	struct dynamic d;
	uint32_t symbol;

	if (!read_dynamic(map, &d))
		return NULL;
	symbol = d.gnu_hash ? find_by_gnu_hash(&d, name) : find_by_hash(&d, name);
	return symbol ? &d.symbols[symbol] : NULL;
}

uintptr_t find_export(const struct link_map *map, const char *name)
{
	const Elf64_Sym *symbol = find_symbol(map, name);

	return symbol ? map->l_addr + symbol->st_value : 0;
}

/* Return the text of an entry of the dynamic section that has this tag; NULL: none. */
static const char *dynamic_text(const struct link_map *map, const struct dynamic *d, int64_t tag)
{
	for (const Elf64_Dyn *entry = map->l_ld; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == tag)
			return d->text + entry->d_un.d_val;
	return NULL;
}

bool needs_library(const struct link_map *map, const struct link_map *library)
{
	const char *slash = strrchr(library->l_name, '/'), *name = slash ? slash + 1 : library->l_name, *soname = NULL;
	struct dynamic of_map, of_library;

	if (!read_dynamic(map, &of_map))
		return false;
	if (read_dynamic(library, &of_library))
		soname = dynamic_text(library, &of_library, DT_SONAME);
	for (const Elf64_Dyn *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		const char *needed = of_map.text + entry->d_un.d_val;

		if (entry->d_tag == DT_NEEDED && (!strcmp(needed, name) || (soname && !strcmp(needed, soname))))
			return true;
	}
	return false;
}
