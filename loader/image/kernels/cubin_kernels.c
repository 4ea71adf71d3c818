/* cubin_kernels.c — reads the kernels of a cubin from its symbol table and NVIDIA's .nv.* sections.
 *
 *     .symtab                FUNC with st_other 0x10 and a section: a kernel; LOCAL ones are static
 *     .nv.info               registers and stack frame, by symbol
 *     .nv.info.<kernel>      parameters, limits, cluster
 *     .nv.shared.<kernel>    its size is the static shared memory
 *     .nv.constant0.<kernel> its size is the constant bank
 *     .text.<kernel>         the sections above give its index in sh_info, so no names are compared;
 *                            in hand-written code, its own sh_info has the registers
 *     .note.nv.tkinfo        version and options of ptxas (since CUDA 12.8)
 *
 * Observed in cubins of ptxas 11.8, 12.4 and 13.0 for sm_75 to sm_120, linked and relocatable.
 * sh_info and the names were found to agree for each kernel of CUDA 13.0's libraries and cuDNN
 * 9. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "loader/image/cubin_internal.h"
#include "loader/image/images_internal.h"
#include "loader/image/kernels/kernel_rows_internal.h"

#define STO_ENTRY 0x10 /* value of st_other for a kernel; device functions do not have it */

/* From sm_90 on, the shared memory of linked code starts with this number of bytes, reserved for the system.  ptxas -v
 * does not count them, and neither does gpuload. */
#define RESERVED_SHARED 1024
#define RESERVES_SHARED 90

enum { /* attributes of .nv.info.<kernel> */
       ATTR_MAX_THREADS = 0x05,
       ATTR_REQUIRED_THREADS = 0x10,
       ATTR_PARAM = 0x17,
       ATTR_CLUSTER = 0x3d,
       ATTR_PARAM_V2 = 0x45, /* written by ptxas 12.1 and later for kernels with more than 4 KB of parameters */
       ATTR_BARRIERS = 0x4c,
};

enum { /* attributes of .nv.info, {u32 symbol; u32 value} */
       ATTR_FRAME_BYTES = 0x11,
       ATTR_STACK_BYTES = 0x12, /* stack of the kernel and of the functions that it calls; ptxas -c does not write this attribute */
       ATTR_REGISTERS = 0x2f,
};

typedef struct section_facts { /* properties of the kernel whose code is in a section */
	gpul_kernel_info info;
	size_t first_param;
	bool has_info; /* true: .nv.info.<kernel> was read; another one for the same code is an error */
} section_facts;

typedef struct reader {
	gpul_cubin c;
	section_facts *facts; /* indexed by section; [0] is unused */
	gpul_kernel_rows rows;
	uint32_t *symbols;          /* for each kernel in `rows`: index of its symbol in .symtab; ascending */
	uint64_t bytes_read;        /* total size of the attribute sections; if it exceeds the size of the image, sections overlap */
	uint64_t n_params;          /* total of all kernels; parameters that kernels share are counted for each of them */
	uint64_t names_bytes;       /* total length of the names; if it exceeds the size of the string table, names overlap */
	Elf64_Shdr info;            /* header of .nv.info; sh_size 0: none */
	Elf64_Shdr symtab, indices; /* headers of SYMTAB and SYMTAB_SHNDX; sh_size 0: none */
} reader;

static gpul_status damaged(uint64_t at, gpul_error *err, const char *what)
{
	int native = at > INT_MAX ? INT_MAX : (int)at;

	return gpul_fail(err, GPUL_EFORMAT, native, "cubin: at byte %llu: %s" GPUL_AGAIN, (unsigned long long)at, what);
}

static gpul_status no_memory(gpul_error *err)
{
	return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the kernels of a cubin");
}

/* ---- .nv.info.<kernel> ----------------------------------------------------------------------- */

static gpul_status begin_attributes(reader *r, const Elf64_Shdr *s, gpul_attributes *out, gpul_error *err)
{
	const unsigned char *p = gpul_cubin_bytes(&r->c, s);

	if (!p)
		return damaged(s->sh_offset, err, "a section of attributes is outside the image");
	r->bytes_read += s->sh_size;
	if (r->bytes_read > r->c.n_bytes)
		return damaged(s->sh_offset, err, "sections of attributes overlap");
	*out = (gpul_attributes){ p, p + s->sh_size };
	return GPUL_OK;
}

static gpul_status end_attributes(const reader *r, const gpul_attributes *a, gpul_error *err)
{
	if (a->at == a->end)
		return GPUL_OK;
	return damaged((uint64_t)(a->at - r->c.base), err, "an attribute has an unknown format, or is cut short");
}

static bool is_param(const gpul_attribute *a)
{
	return a->id == ATTR_PARAM || a->id == ATTR_PARAM_V2;
}

static void read_three(const gpul_attribute *a, uint32_t out[3])
{
	for (unsigned i = 0; i < 3; i++)
		out[i] = gpul_attribute_u32(a, i);
}

/* Store the offset and size of a parameter, which its attribute contains; the meaning of fields marked ? is unknown:
 *
 *     KPARAM_INFO     {u32 ?; u16 ordinal, offset; u32 ?, bytes in bits 18 to 31}
 *     KPARAM_INFO_V2  {u32 ?; u16 ordinal, offset; u16 bytes, ?} */
static gpul_status place_param(reader *r, const section_facts *f, const gpul_attribute *a, gpul_error *err)
{
	uint16_t ordinal = gpul_attribute_u16(a, 2);
	gpul_kernel_param *p = r->rows.params.at + f->first_param;

	if (a->format != 4 || a->value < 12)
		return damaged((uint64_t)(a->payload - r->c.base), err, "the attribute of a parameter has less than 12 bytes");
	if (ordinal >= f->info.n_params || p[ordinal].bytes)
		return damaged((uint64_t)(a->payload - r->c.base), err, "parameters are not numbered from 0, each once");
	p += ordinal;
	p->offset = gpul_attribute_u16(a, 3);
	p->bytes = a->id == ATTR_PARAM ? gpul_attribute_u32(a, 2) >> 18 : gpul_attribute_u16(a, 4);
	if (p->bytes == 0)
		return damaged((uint64_t)(a->payload - r->c.base), err, "a parameter has 0 bytes");
	return GPUL_OK;
}

/* Check that parameters do not overlap: an image in which thousands of parameters have the same bytes is damaged. */
static gpul_status check_order(const reader *r, const section_facts *f, const gpul_attributes *a, gpul_error *err)
{
	for (size_t i = 1; i < f->info.n_params; i++) {
		const gpul_kernel_param *p = &r->rows.params.at[f->first_param + i];

		if (p->offset < p[-1].offset + p[-1].bytes)
			return damaged((uint64_t)(a->at - r->c.base), err, "parameters overlap each other");
	}
	return GPUL_OK;
}

static gpul_status place_params(reader *r, const section_facts *f, gpul_attributes a, gpul_error *err)
{
	const gpul_attributes all = a;
	gpul_attribute one;

	for (uint32_t i = 0; i < f->info.n_params; i++) {
		gpul_kernel_param *p = gpul_array_push(&r->rows.params);

		if (!p)
			return no_memory(err);
	}
	while (gpul_attribute_next(&a, &one)) {
		gpul_status st = is_param(&one) ? place_param(r, f, &one, err) : GPUL_OK;

		if (st)
			return st;
	}
	return check_order(r, f, &all, err);
}

static gpul_status read_info(reader *r, const Elf64_Shdr *s, section_facts *f, gpul_error *err)
{
	gpul_attributes all, a;
	gpul_attribute one;
	gpul_status st = begin_attributes(r, s, &all, err);

	if (st)
		return st;
	if (f->has_info)
		return damaged(s->sh_offset, err, "there is a second section .nv.info for the same code");
	f->has_info = true;
	f->first_param = r->rows.params.n;
	for (a = all; gpul_attribute_next(&a, &one);) {
		if (is_param(&one))
			f->info.n_params++;
		else if (one.id == ATTR_MAX_THREADS)
			read_three(&one, f->info.max_threads);
		else if (one.id == ATTR_REQUIRED_THREADS)
			read_three(&one, f->info.required_threads);
		else if (one.id == ATTR_CLUSTER)
			read_three(&one, f->info.cluster);
		else if (one.id == ATTR_BARRIERS)
			f->info.barriers = one.value;
	}
	st = end_attributes(r, &a, err);
	return st ? st : place_params(r, f, all, err);
}

/* ---- sections -------------------------------------------------------------------------------- */

static uint32_t static_shared(const reader *r, const Elf64_Shdr *s)
{
	uint64_t bytes = s->sh_size;

	if (!r->c.relocatable && r->c.sm >= RESERVES_SHARED && bytes >= RESERVED_SHARED)
		bytes -= RESERVED_SHARED;
	return bytes > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)bytes;
}

static gpul_status read_section(reader *r, uint32_t i, gpul_error *err)
{
	Elf64_Shdr s = gpul_cubin_section(&r->c, i);
	section_facts *f = s.sh_info < r->c.n_sections ? &r->facts[s.sh_info] : &r->facts[0];

	if (s.sh_type == SHT_SYMTAB) {
		r->symtab = s;
	} else if (s.sh_type == SHT_SYMTAB_SHNDX) {
		r->indices = s;
	} else if (gpul_cubin_is_named(&r->c, &s, ".text.")) {
		if (r->c.older && r->facts[i].info.barriers == 0)
			r->facts[i].info.barriers = (uint32_t)(s.sh_flags >> 20 & 0x7f);
		r->facts[i].info.registers = s.sh_info >> 24;
	} else if (gpul_cubin_is_named(&r->c, &s, ".nv.shared.")) {
		f->info.shared_bytes = static_shared(r, &s);
	} else if (gpul_cubin_is_named(&r->c, &s, ".nv.constant0.")) {
		f->info.const_bytes = s.sh_size < UINT32_MAX ? (uint32_t)s.sh_size : UINT32_MAX;
	} else if (gpul_cubin_is_named(&r->c, &s, ".nv.info.")) {
		return f == r->facts ? GPUL_OK : read_info(r, &s, f, err);
	} else if (s.sh_type != SHT_NOBITS && gpul_cubin_is_named(&r->c, &s, ".nv.info")) {
		r->info = s;
	} else if (!r->rows.build.version && gpul_cubin_is_tool_note(&r->c, &s)) {
		r->rows.build = gpul_cubin_build_of(&r->c, &s);
	}
	return GPUL_OK;
}

static gpul_status read_sections(reader *r, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	r->facts = calloc((size_t)r->c.n_sections + 1, sizeof *r->facts);
	if (!r->facts)
		return no_memory(err);
	for (uint32_t i = 1; i < r->c.n_sections && !st; i++)
		st = read_section(r, i, err);
	return st;
}

/* ---- symbols --------------------------------------------------------------------------------- */

/* Return the section of a symbol's code; 0: none; n_sections or more: the image is damaged.  In files with more
 * than 65279 sections the index is in SYMTAB_SHNDX. */
static uint32_t code_section(const reader *r, const Elf64_Sym *s, uint64_t i)
{
	const unsigned char *p;
	uint32_t index;

	if (s->st_shndx != SHN_XINDEX)
		return s->st_shndx < SHN_LORESERVE ? s->st_shndx : 0;
	p = gpul_cubin_bytes(&r->c, &r->indices);
	if (!p || i >= r->indices.sh_size / sizeof index)
		return r->c.n_sections;
	memcpy(&index, p + i * sizeof index, sizeof index);
	return index;
}

/* Return the length of a name; 0: invalid.  Names with control characters are invalid, because names are printed. */
static size_t name_bytes(const char *name)
{
	size_t n = 0;

	for (; (unsigned char)name[n] > ' ' && name[n] != 0x7f; n++)
		;
	return name[n] ? 0 : n;
}

static const char *wrong_with_kernel(reader *r, const Elf64_Sym *s, uint32_t section)
{
	size_t n;

	if (section >= r->c.n_sections)
		return "the code of a kernel is not in a section";
	n = s->st_name < r->rows.names_bytes ? name_bytes(r->rows.names + s->st_name) : 0;
	if (n == 0)
		return "a kernel has an invalid name";
	r->names_bytes += n;
	if (r->names_bytes > r->rows.names_bytes)
		return "the names of two kernels overlap";
	return NULL;
}

static gpul_status add_kernel(reader *r, const Elf64_Sym *s, uint32_t section, gpul_error *err)
{
	gpul_kernel_row *row = gpul_kernel_rows_add(&r->rows);
	const section_facts *f = &r->facts[section];

	if (!row)
		return no_memory(err);
	/* Each parameter has an attribute of at least 16 bytes, which limits their number.  Without this check, a million symbols
	 * of a small image could refer to the same code, and printing the parameters of each kernel would take hours. */
	r->n_params += f->info.n_params;
	if (r->n_params > r->c.n_bytes / 16)
		return damaged(r->symtab.sh_offset, err, "too many kernels with the same code");
	row->info = f->info;
	if (row->info.registers == 0)
		row->info.registers = GPUL_NOT_RECORDED;
	row->info.stack_bytes = row->info.frame_bytes = GPUL_NOT_RECORDED;
	row->info.is_static = ELF64_ST_BIND(s->st_info) == STB_LOCAL;
	row->first_param = f->first_param;
	row->name_at = s->st_name;
	return GPUL_OK;
}

static gpul_status find_names(reader *r, gpul_error *err)
{
	Elf64_Shdr s = { 0 };

	if (r->symtab.sh_link < r->c.n_sections)
		s = gpul_cubin_section(&r->c, r->symtab.sh_link);
	r->rows.names = (const char *)gpul_cubin_bytes(&r->c, &s);
	r->rows.names_bytes = s.sh_size;
	if (s.sh_type != SHT_STRTAB || !r->rows.names)
		return damaged(r->symtab.sh_offset, err, "the symbol table's names are not inside the image");
	if (s.sh_size == 0 || r->rows.names[s.sh_size - 1] != 0)
		return damaged(s.sh_offset, err, "the last symbol name is not terminated");
	return GPUL_OK;
}

static gpul_status read_symbols(reader *r, gpul_error *err)
{
	const unsigned char *p = gpul_cubin_bytes(&r->c, &r->symtab);
	uint64_t n = r->symtab.sh_size / sizeof(Elf64_Sym), at;
	GPUL_ARRAY(uint32_t) symbols = { 0 };
	gpul_status st;

	if (r->symtab.sh_size == 0)
		return GPUL_OK;
	if (!p)
		return damaged(r->symtab.sh_offset, err, "the symbol table is outside the image");
	if (r->symtab.sh_entsize != sizeof(Elf64_Sym) || r->symtab.sh_size % sizeof(Elf64_Sym))
		return damaged(r->symtab.sh_offset, err, "the entries of the symbol table do not have 24 bytes");
	st = find_names(r, err);
	for (uint64_t i = 1; i < n && !st; i++) {
		uint32_t section, *symbol;
		const char *wrong;
		Elf64_Sym s;

		at = r->symtab.sh_offset + i * sizeof s;
		memcpy(&s, p + i * sizeof s, sizeof s);
		if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || !(s.st_other & STO_ENTRY))
			continue;
		section = code_section(r, &s, i);
		if (section == 0)
			continue;
		wrong = wrong_with_kernel(r, &s, section);
		if (wrong) {
			st = damaged(at, err, wrong);
			break;
		}
		symbol = gpul_array_push(&symbols);
		if (symbol)
			*symbol = (uint32_t)i;
		st = symbol ? add_kernel(r, &s, section, err) : no_memory(err);
	}
	r->symbols = symbols.at;
	return st;
}

/* Return the element of r->rows for a symbol; NULL: the symbol is not a kernel. */
static gpul_kernel_row *row_of(const reader *r, uint32_t symbol)
{
	size_t low = 0, high = r->rows.kernels.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (r->symbols[middle] < symbol)
			low = middle + 1;
		else
			high = middle;
	}
	return low < r->rows.kernels.n && r->symbols[low] == symbol ? &r->rows.kernels.at[low] : NULL;
}

static gpul_status read_registers(reader *r, gpul_error *err)
{
	gpul_attributes a;
	gpul_attribute one;
	gpul_status st;

	if (r->info.sh_size == 0)
		return GPUL_OK;
	st = begin_attributes(r, &r->info, &a, err);
	if (st)
		return st;
	while (gpul_attribute_next(&a, &one)) {
		gpul_kernel_row *row = NULL;

		if (one.id == ATTR_REGISTERS || one.id == ATTR_FRAME_BYTES || one.id == ATTR_STACK_BYTES)
			row = row_of(r, gpul_attribute_u32(&one, 0));
		if (row && one.id == ATTR_REGISTERS)
			row->info.registers = gpul_attribute_u32(&one, 1);
		else if (row && one.id == ATTR_FRAME_BYTES)
			row->info.frame_bytes = gpul_attribute_u32(&one, 1);
		else if (row)
			row->info.stack_bytes = gpul_attribute_u32(&one, 1);
	}
	return end_attributes(r, &a, err);
}

/* Fill in missing stack sizes.  Hand-written kernels in linked code of NVIDIA's libraries have no stack attribute and call no
 * function, so the size of their stack is that of their frame, or 0 without a frame. */
static void complete_stacks(reader *r)
{
	for (size_t i = 0; i < r->rows.kernels.n && !r->c.relocatable; i++) {
		gpul_kernel_info *k = &r->rows.kernels.at[i].info;

		if (k->stack_bytes == GPUL_NOT_RECORDED)
			k->stack_bytes = k->frame_bytes == GPUL_NOT_RECORDED ? 0 : k->frame_bytes;
	}
}

gpul_status gpul_kernels_of_cubin(const void *bytes, size_t n_bytes, gpul_cubin_gap gap, gpul_kernel_table *out, gpul_error *err)
{
	reader r = { 0 };
	gpul_status st = gpul_cubin_open(bytes, n_bytes, gap, &r.c, err);

	if (!st)
		st = read_sections(&r, err);
	if (!st)
		st = read_symbols(&r, err);
	if (!st)
		st = read_registers(&r, err);
	complete_stacks(&r);
	if (!st)
		st = gpul_kernel_rows_finish(&r.rows, out, err);
	free(r.symbols);
	free(r.facts);
	gpul_array_free(&r.rows.kernels);
	gpul_array_free(&r.rows.params);
	return st;
}
