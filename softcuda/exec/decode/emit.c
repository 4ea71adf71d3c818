/* emit.c — appends a decoded instruction to its function, or reports that an instruction cannot be decoded. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "softcuda/exec/decode/decode_internal.h"

/* Return true if the instruction has a modifier that ptx/vocabulary.h does not list: it may belong to a newer PTX version. */
static bool has_unknown_modifier(const gpul_ptx_inst *in)
{
	for (unsigned k = 0; k < in->n_mods; k++)
		if (in->mods[k] >= GPUL_PTX_MOD_EXTRA)
			return true;
	return false;
}

bool gpul_decode_fail(struct decoder *d, gpul_status status, const char *fmt, ...)
{
	char inst[80], what[140];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	gpul_ptx_inst_text(d->m, d->in, inst, sizeof inst);
	if (status == GPUL_EFORMAT && has_unknown_modifier(d->in))
		status = GPUL_EUNSUPPORTED;
	gpul_fail(d->err, status, 0, "%s:%u: %s: %s", d->p->file_name, d->in->line, inst, what);
	return false;
}

bool gpul_emit(struct decoder *d, enum op op, const struct insn *fields)
{
	struct insn *i;

	if (d->n == d->capacity) {
		uint32_t capacity = d->capacity ? 2 * d->capacity : 64;
		struct insn *grown = realloc(d->insns, capacity * sizeof *grown);

		if (!grown)
			return gpul_decode_fail(d, GPUL_ENOMEM, "no memory for the decoded instructions");
		d->insns = grown;
		d->capacity = capacity;
	}
	i = &d->insns[d->n++];
	*i = fields ? *fields : (struct insn){ 0 };
	i->run = gpul_handler(op);
	i->op = (uint16_t)op;
	i->src = d->src;
	return true;
}

bool gpul_decode_patch(struct decoder *d, uint32_t insn, uint32_t label)
{
	if (d->n_patches == d->patches_capacity) {
		uint32_t capacity = d->patches_capacity ? 2 * d->patches_capacity : 32;
		struct patch *grown = realloc(d->patches, capacity * sizeof *grown);

		if (!grown)
			return gpul_decode_fail(d, GPUL_ENOMEM, "no memory for the decoded instructions");
		d->patches = grown;
		d->patches_capacity = capacity;
	}
	d->patches[d->n_patches++] = (struct patch){ insn, label };
	return true;
}
