/* cubin_target.c — finds the GPU for which a cubin was compiled. */
#include "loader/image/cubin_internal.h"
#include "loader/image/images.h"

#define ACCELERATORS    0x800 /* bit of e_flags in the older ABI: the target has the suffix "a", such as sm_90a */
#define ACCELERATORS_12 0x8   /* bit of e_flags with the same meaning in ABI version 8, as CUDA 12 wrote it for sm_100 and later */
#define FAMILIES_FROM   100   /* the first SM with the suffix "f" */
#define COMPAT_SPECIFIC 9     /* attribute of .nv.compat; value 1: the target has the suffix "a" */

static bool is_arch_specific(const gpul_cubin *c)
{
	const bool flag = c->header.e_flags & ACCELERATORS_12;

	for (uint32_t i = 1; i < c->n_sections; i++) {
		Elf64_Shdr s = gpul_cubin_section(c, i);
		const unsigned char *p;
		gpul_attribute one;

		if (!gpul_cubin_is_named(c, &s, ".nv.compat") || !(p = gpul_cubin_bytes(c, &s)))
			continue;
		for (gpul_attributes a = { p, p + s.sh_size }; gpul_attribute_next(&a, &one);)
			if (one.id == COMPAT_SPECIFIC)
				return one.value == 1;
		return flag; /* only the first section of this name is read, to limit the time */
	}
	return flag;
}

/* True for code for a family of GPUs (suffix "f").  The headers do not contain this suffix, only the note of ptxas does. */
static bool is_family_specific(const gpul_cubin *c)
{
	for (uint32_t i = 1; i < c->n_sections; i++) {
		Elf64_Shdr s = gpul_cubin_section(c, i);
		gpul_cubin_build build;

		if (!gpul_cubin_is_tool_note(c, &s))
			continue;
		build = gpul_cubin_build_of(c, &s);
		return gpul_cubin_build_is_for(&build, 'f');
	}
	return false;
}

gpul_status gpul_cubin_target(const void *bytes, size_t n_bytes, uint16_t *sm, char *suffix, bool *relocatable, gpul_error *err)
{
	gpul_cubin c;
	gpul_status st = gpul_cubin_open(bytes, n_bytes, (gpul_cubin_gap){ 0 }, &c, err);

	if (st)
		return st;
	*sm = c.sm;
	*suffix = (c.older ? c.header.e_flags & ACCELERATORS : is_arch_specific(&c)) ? 'a' : 0;
	if (c.sm < 90) /* before sm_90 the bit has another meaning: it is set in cubins for sm_60 */
		*suffix = 0;
	if (*suffix == 0 && c.sm >= FAMILIES_FROM && is_family_specific(&c))
		*suffix = 'f';
	*relocatable = c.relocatable;
	return GPUL_OK;
}
