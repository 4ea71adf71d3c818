/* base.c — reports errors, and has queries about modifiers and targets, for the other files of the check. */
#include "ptx/strict/strict_internal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

gpul_status strict_fail(struct strict *s, uint32_t line, uint32_t column, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return gpul_fail(s->err, GPUL_EFORMAT, (int)line, "%.100s:%u:%u: %s", s->file_name, line, column, text);
}

gpul_status strict_fail_inst(struct strict *s, const gpul_ptx_inst *in, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return strict_fail(s, in->line, in->column, "%s", text);
}

bool strict_is_type(unsigned mod, const char *text)
{
	if (mod < GPUL_PTX_N_MODS)
		return mod >= GPUL_PTX_MOD_B8 && mod <= GPUL_PTX_MOD_S16X2;
	return (text[0] == 'b' || text[0] == 's' || text[0] == 'u') && isdigit((unsigned char)text[1]);
}

bool strict_has_text(const struct strict *s, const gpul_ptx_inst *in, const char *text)
{
	for (unsigned i = 0; i < in->n_mods; i++)
		if (!strcmp(gpul_ptx_mod_text(s->m, in->mods[i]), text))
			return true;
	return false;
}

unsigned strict_type(const struct strict *s, const gpul_ptx_inst *in, unsigned n)
{
	for (unsigned i = 0; i < in->n_mods; i++)
		if (strict_is_type(in->mods[i], gpul_ptx_mod_text(s->m, in->mods[i])) && n-- == 0)
			return in->mods[i];
	return GPUL_PTX_MOD_NONE;
}

bool strict_has_arch(const struct strict *s, char arch)
{
	bool suffix = s->m->sm_suffix != 0;

	switch (arch) {
	case 'a':
		return suffix;
	case '9':
		return s->m->sm_suffix == 'a' && s->sm == 90;
	case 'f':
		return suffix && s->sm >= 100 && s->sm < 120;
	case 'b':
		return suffix && s->sm >= 100 && s->sm < 110;
	default:
		return true;
	}
}
