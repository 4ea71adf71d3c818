/* run_fit.c — do the arguments fit the kernel's signature? */
#include "cli/run/run.h"

#include <stdio.h>
#include <string.h>

/* "f64 *", "i32", "12 bytes": what parameter p is, as far as its kernel's code tells. */
static const char *describe(const gpul_param *p, char *buf, size_t buf_bytes)
{
	if (p->role == GPUL_ROLE_BUFFER)
		snprintf(buf, buf_bytes, "an address (%s *): a buffer such as %s[1024]=iota",
			 p->type ? gpul_type_name(p->type) : "any",
			 p->type ? gpul_type_name(p->type) : "f32");
	else if (p->role == GPUL_ROLE_FUNCTION)
		snprintf(buf, buf_bytes, "a function: fn:VARIABLE");
	else if (p->role == GPUL_ROLE_STRUCT)
		snprintf(buf, buf_bytes, "a struct of %u bytes: bytes=@FILE or hex:", p->bytes);
	else if (p->type)
		snprintf(buf, buf_bytes, "a value: %s=NUMBER", gpul_type_name(p->type));
	else
		snprintf(buf, buf_bytes, "of %u byte%s", p->bytes, p->bytes == 1 ? "" : "s");
	return buf;
}

/* A value where an address belongs, and the other way round.  u64 and i64 may be addresses. */
static bool kind_fits(const gpul_param *p, const struct arg *a)
{
	bool may_be_address = p->role == GPUL_ROLE_BUFFER || p->role == GPUL_ROLE_UNKNOWN;

	if (a->kind == ARG_BUFFER)
		return p->bytes == sizeof(CUdeviceptr) && may_be_address;
	if (a->bytes != p->bytes)
		return false;
	if (a->kind == ARG_FUNCTION)
		return p->role == GPUL_ROLE_FUNCTION || p->role == GPUL_ROLE_UNKNOWN ||
		       p->role == GPUL_ROLE_SCALAR;
	return (p->role != GPUL_ROLE_BUFFER && p->role != GPUL_ROLE_FUNCTION) ||
	       a->kind == ARG_BYTES ||
	       !value_type_is_float(a->type);
}

/* Elements of another size are a mistake when the kernel computes with floats; integers are
 * often loaded several at a time, and u8 means bytes of anything. */
static bool elements_fit(const gpul_param *p, const struct arg *a)
{
	return !value_type_is_float(p->type) || a->type == GPUL_U8 ||
	       gpul_type_bytes(a->type) == gpul_type_bytes(p->type);
}

/* i32=1 for a float would arrive as 1.4e-45; hex: passes bits as they are. */
static bool value_fits(const gpul_param *p, const struct arg *a)
{
	return !p->type || value_type_is_float(p->type) == value_type_is_float(a->type);
}

static bool fits(const gpul_param *p, const struct arg *a)
{
	if (!kind_fits(p, a))
		return false;
	if (a->kind == ARG_BUFFER)
		return elements_fit(p, a);
	return a->kind == ARG_BYTES || a->kind == ARG_FUNCTION || p->role == GPUL_ROLE_BUFFER ||
	       value_fits(p, a);
}

gpul_status run_fit(const gpul_signature *s, const struct arg *args, size_t n_args,
		    gpul_error *err)
{
	char signature[120], want[80];

	gpul_signature_print(s, signature, sizeof signature);
	if (n_args != s->n_params)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%s takes %zu argument%s, but %zu %s given", signature,
				 s->n_params, s->n_params == 1 ? "" : "s", n_args,
				 n_args == 1 ? "was" : "were");
	for (size_t i = 0; i < n_args; i++)
		if (!fits(&s->params[i], &args[i]))
			return gpul_fail(
				err, GPUL_EINVAL, 0,
				"argument %zu is %.40s, but that parameter of %s is %s", i,
				args[i].text, signature,
				describe(&s->params[i], want, sizeof want));
	return GPUL_OK;
}
