/* signature.c — creates signatures from declarations, prints and destroys them; names and sizes of the element types. */
#include "loader/signature/signature_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gpul_signature_owned *gpul_signature_blank(const char *kernel, size_t n_params)
{
	gpul_signature_owned *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->s.params = calloc(n_params ? n_params : 1, sizeof *s->s.params);
	if (!s->s.params) {
		free(s);
		return NULL;
	}
	s->s.kernel = kernel;
	s->s.n_params = n_params;
	s->s.complete = true;
	s->s.grid_dims = 1;
	s->s.reads_tid = s->s.reads_ctaid = true; /* assumed until the code is analysed */
	return s;
}

void gpul_signature_destroy(gpul_signature *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_params; i++)
		free(s->params[i].members);
	free(s->params);
	free(s); /* frees the gpul_signature_owned, because s is its first member */
}

static void keep_reason(gpul_signature_owned *s, const char *fmt, va_list ap)
{
	if (!s->s.complete)
		return;
	vsnprintf(s->why_not, sizeof s->why_not, fmt, ap);
	s->s.complete = false;
	s->s.why_not = s->why_not;
}

void gpul_incomplete(gpul_signature_owned *s, const char *fmt, ...)
{
	va_list ap;

	s->blocked = true;
	va_start(ap, fmt);
	keep_reason(s, fmt, ap);
	va_end(ap);
}

void gpul_unsized(gpul_signature_owned *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	keep_reason(s, fmt, ap);
	va_end(ap);
}

/* Copy the block size in .maxntid or .reqntid; dimensions that are not given are 1. */
static void declared_block(uint32_t out[3], const int64_t given[3])
{
	for (int i = 0; i < 3 && given[0] > 0; i++)
		out[i] = given[i] > 0 && given[i] <= UINT32_MAX ? (uint32_t)given[i] : 1;
}

static void declared_param(gpul_param *param, const gpul_ptx_var *v, uint32_t *end)
{
	uint32_t own = gpul_ptx_type_bytes(v->type) * v->vector;

	param->bytes = (uint32_t)v->bytes;
	param->align = v->align ? v->align : own ? own : 1;
	param->offset = (*end + param->align - 1) / param->align * param->align;
	*end = param->offset + param->bytes;
	if (v->n_dims || v->vector > 1)
		param->role = GPUL_ROLE_STRUCT;
}

gpul_status gpul_signature_declared(const gpul_ptx_module *m, const gpul_ptx_func *f, gpul_signature_owned **out, gpul_error *err)
{
	gpul_signature_owned *s;
	uint32_t end = 0;

	if (f->kind != GPUL_PTX_FUNC_ENTRY || !f->has_body)
		return gpul_fail(err, GPUL_EINVAL, 0, "'%s' is not a kernel with a body", gpul_ptx_name(m, f->name));
	s = gpul_signature_blank(gpul_ptx_name(m, f->name), f->n_params);
	if (!s)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a signature of %u parameters", f->n_params);
	for (uint32_t i = 0; i < f->n_params; i++)
		declared_param(&s->s.params[i], &f->params[i], &end);
	declared_block(s->s.reqntid, f->tuning.reqntid);
	declared_block(s->s.maxntid, f->tuning.maxntid);
	*out = s;
	return GPUL_OK;
}

/* ---- printing -------------------------------------------------------------------- */

/* The text printed so far; `wanted` also counts text that does not fit. */
struct text {
	char *buf;
	size_t room, wanted;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *t, const char *fmt, ...)
{
	size_t left = t->wanted < t->room ? t->room - t->wanted : 0;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(left ? t->buf + t->wanted : NULL, left, fmt, ap);
	va_end(ap);
	t->wanted += n > 0 ? (size_t)n : 0;
}

static void append_param(struct text *t, const gpul_param *param);

/* Append a struct with the members that the code loads: "struct of 24 bytes {0: f32 *, 8: i32}". */
static void append_struct(struct text *t, const gpul_param *param)
{
	append(t, "struct of %u bytes", param->bytes);
	for (uint32_t i = 0; i < param->n_members; i++) {
		append(t, "%s%u: ", i ? ", " : " {", param->members[i].offset);
		append_param(t, &param->members[i]);
	}
	append(t, param->n_members ? "}" : "");
}

static void append_param(struct text *t, const gpul_param *param)
{
	switch (param->role) {
	case GPUL_ROLE_BUFFER:
		append(t, "%s *", gpul_type_name(param->type));
		break;
	case GPUL_ROLE_STRUCT:
		append_struct(t, param);
		break;
	case GPUL_ROLE_FUNCTION:
		append(t, "function");
		break;
	case GPUL_ROLE_UNKNOWN:
	case GPUL_ROLE_SCALAR:
	case GPUL_ROLE_COUNT:
		if (param->type != GPUL_TYPE_NONE)
			append(t, "%s", gpul_type_name(param->type));
		else
			append(t, "%u bytes", param->bytes);
		break;
	}
}

size_t gpul_signature_print(const gpul_signature *s, char *buf, size_t buf_bytes)
{
	struct text t = { buf, buf_bytes, 0 };

	append(&t, "%s(", s->kernel);
	for (size_t i = 0; i < s->n_params; i++) {
		append(&t, "%s", i ? ", " : "");
		append_param(&t, &s->params[i]);
	}
	append(&t, ")");
	return t.wanted;
}
char *gpul_signature_text(const gpul_signature *s)
{
	size_t n_bytes = gpul_signature_print(s, NULL, 0) + 1;
	char *text = malloc(n_bytes);

	if (text)
		gpul_signature_print(s, text, n_bytes);
	return text;
}

/* Names and sizes of the element types. */
static const struct {
	const char *name;
	size_t bytes;
} types[GPUL_N_TYPES] = {
	[GPUL_TYPE_NONE] = { "?", 0 }, [GPUL_I8] = { "i8", 1 },   [GPUL_U8] = { "u8", 1 },     [GPUL_I16] = { "i16", 2 },
	[GPUL_U16] = { "u16", 2 },     [GPUL_I32] = { "i32", 4 }, [GPUL_U32] = { "u32", 4 },   [GPUL_I64] = { "i64", 8 },
	[GPUL_U64] = { "u64", 8 },     [GPUL_F16] = { "f16", 2 }, [GPUL_BF16] = { "bf16", 2 }, [GPUL_F32] = { "f32", 4 },
	[GPUL_F64] = { "f64", 8 },
};

const char *gpul_type_name(gpul_type t)
{
	return types[(unsigned)t < GPUL_N_TYPES ? t : GPUL_TYPE_NONE].name;
}

size_t gpul_type_bytes(gpul_type t)
{
	return types[(unsigned)t < GPUL_N_TYPES ? t : GPUL_TYPE_NONE].bytes;
}

gpul_type gpul_type_find(const char *name)
{
	for (unsigned t = GPUL_TYPE_NONE + 1; t < GPUL_N_TYPES; t++)
		if (strcmp(types[t].name, name) == 0)
			return (gpul_type)t;
	return GPUL_TYPE_NONE;
}
