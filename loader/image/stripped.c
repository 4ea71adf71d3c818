/* stripped.c — finds the registered fatbins of a program without section headers by their wrappers. */
#include "loader/image/images_internal.h"

#include <elf.h>
#include <string.h>

#define WRAPPER_MAGIC 0x466243B1u

/* A wrapper as it is in the file.  In a position-independent program, the field `data` is 0 in the file, and a relocation sets it. */
typedef struct wrapper {
	uint32_t magic, version;
	uint64_t data, more;
} wrapper;
_Static_assert(sizeof(wrapper) == 24, "as nvcc writes it");

typedef struct found {   /* the data field of a wrapper */
	uint64_t field;  /* address of the data field */
	uint64_t target; /* value of the data field: the address of a fatbin */
} found;

typedef struct wrappers {
	const gpul_loaded *loaded;
	size_t n_loaded;
	GPUL_ARRAY(found) found; /* sorted by .field, because the segments are sorted by address */
} wrappers;

/* Return where the n bytes at an address of the loaded program are in the file; NULL: they are not in the file. */
static const unsigned char *at_address(const wrappers *a, uint64_t address, uint64_t n)
{
	for (size_t i = 0; i < a->n_loaded; i++) {
		const gpul_loaded *l = &a->loaded[i];

		if (address >= l->address && address - l->address <= l->bytes.n && n <= l->bytes.n - (address - l->address))
			return l->bytes.at + (address - l->address);
	}
	return NULL;
}

static bool find_wrappers(wrappers *a, const gpul_loaded *l)
{
	const unsigned char *p = l->bytes.at, *end = p + l->bytes.n;

	while ((p = memmem(p, (size_t)(end - p), "\xb1\x43\x62\x46", 4))) {
		wrapper w;
		found *f;

		if ((size_t)(end - p) < sizeof w)
			return true;
		memcpy(&w, p, sizeof w);
		p += 4;
		if (w.version != 1 && w.version != 2)
			continue;
		f = gpul_array_push(&a->found);
		if (!f)
			return false;
		f->field = l->address + (uint64_t)(p - 4 - l->bytes.at) + offsetof(wrapper, data);
		f->target = w.data;
	}
	return true;
}

static int by_field(const void *a, const void *b)
{
	const found *x = a, *y = b;

	return x->field < y->field ? -1 : x->field > y->field;
}

static int by_target(const void *a, const void *b)
{
	const found *x = a, *y = b;

	return x->target < y->target ? -1 : x->target > y->target;
}

/* Apply R_*_RELATIVE relocations (load address plus addend) to the wrappers. */
static void relocate_wrappers(wrappers *a, uint64_t table, uint64_t n_bytes)
{
	const unsigned char *p = at_address(a, table, n_bytes);

	for (uint64_t i = 0; p && i + sizeof(Elf64_Rela) <= n_bytes; i += sizeof(Elf64_Rela)) {
		Elf64_Rela r;
		found *f;

		memcpy(&r, p + i, sizeof r);
		f = bsearch(&(found){ .field = r.r_offset }, a->found.at, a->found.n, sizeof *f, by_field);
		if (f && f->target == 0 && ELF64_R_SYM(r.r_info) == 0)
			f->target = (uint64_t)r.r_addend;
	}
}

static void read_dynamic(wrappers *a, gpul_span dynamic)
{
	uint64_t table = 0, n_bytes = 0;

	for (size_t i = 0; i + sizeof(Elf64_Dyn) <= dynamic.n; i += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;

		memcpy(&d, dynamic.at + i, sizeof d);
		if (d.d_tag == DT_RELA)
			table = d.d_un.d_val;
		else if (d.d_tag == DT_RELASZ)
			n_bytes = d.d_un.d_val;
	}
	relocate_wrappers(a, table, n_bytes);
}

/* Convert the addresses of fatbins to positions in the file, and mark the images there as registered. */
static void mark_registered(wrappers *a, gpul_images *list, size_t first)
{
	for (size_t i = 0; i < a->found.n; i++) /* an address outside the file becomes NULL */
		a->found.at[i].target = (uint64_t)(uintptr_t)at_address(a, a->found.at[i].target, 1);
	qsort(a->found.at, a->found.n, sizeof *a->found.at, by_target);
	for (size_t i = first; i < list->images.n; i++) {
		gpul_image *image = &list->images.at[i];
		const found wanted = { .target = (uint64_t)(uintptr_t)image->fatbin };

		if (image->fatbin && bsearch(&wanted, a->found.at, a->found.n, sizeof wanted, by_target))
			image->origin = GPUL_ORIGIN_REGISTERED;
	}
}

bool gpul_stripped_register(gpul_images *list, size_t first, const gpul_loaded *loaded, size_t n, gpul_span dynamic)
{
	wrappers a = { .loaded = loaded, .n_loaded = n };
	bool ok = true;

	for (size_t i = 0; i < n && ok; i++)
		if (loaded[i].writable)
			ok = find_wrappers(&a, &loaded[i]);
	if (ok && a.found.n) {
		qsort(a.found.at, a.found.n, sizeof *a.found.at, by_field);
		read_dynamic(&a, dynamic);
		mark_registered(&a, list, first);
	}
	gpul_array_free(&a.found);
	return ok;
}
