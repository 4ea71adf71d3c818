/* run_fit.c — check the arguments against the kernel's signature. */
#include "cli/run/cli_run.h"

#include <stdio.h>
#include <string.h>

/* Describe the argument that parameter p needs, as inferred from the code of the kernel. */
static const char *describe_param(const gpul_param *p, char *buf, size_t buf_bytes)
{
	if (p->role == GPUL_ROLE_BUFFER)
		snprintf(buf, buf_bytes, "an address (%s *): a buffer such as %s[1024]=iota", p->type ? gpul_type_name(p->type) : "any",
			 p->type ? gpul_type_name(p->type) : "f32");
	else if (p->role == GPUL_ROLE_FUNCTION)
		snprintf(buf, buf_bytes, "a function: fn:VARIABLE");
	else if (p->role == GPUL_ROLE_STRUCT)
		snprintf(buf, buf_bytes, "a struct of %u bytes: struct[%u]{...}, bytes=@FILE or hex:BYTES", p->bytes, p->bytes);
	else if (p->type)
		snprintf(buf, buf_bytes, "a value: %s=NUMBER", gpul_type_name(p->type));
	else
		snprintf(buf, buf_bytes, "a value of %u byte%s", p->bytes, p->bytes == 1 ? "" : "s");
	return buf;
}

/* False for a float where an address is needed, and for a buffer where a value is needed.  Values of type u64 and i64 may be addresses. */
static bool kind_fits(const gpul_param *p, const struct arg *a)
{
	bool may_be_address = p->role == GPUL_ROLE_BUFFER || p->role == GPUL_ROLE_UNKNOWN;

	if (a->kind == ARG_BUFFER)
		return p->bytes == sizeof(CUdeviceptr) && may_be_address;
	if (a->bytes != p->bytes)
		return false;
	if (a->kind == ARG_STRUCT)
		return p->role == GPUL_ROLE_STRUCT;
	if (a->kind == ARG_FUNCTION)
		return p->role == GPUL_ROLE_FUNCTION || p->role == GPUL_ROLE_UNKNOWN || p->role == GPUL_ROLE_SCALAR;
	return (p->role != GPUL_ROLE_BUFFER && p->role != GPUL_ROLE_FUNCTION) || a->kind == ARG_BYTES || !value_type_is_float(a->type);
}

static bool arg_fits(const gpul_param *p, const struct arg *a)
{
	bool is_float = value_type_is_float(p->type);

	if (!kind_fits(p, a))
		return false;
	/* If the kernel computes with floats, elements of another size are a mistake.  Kernels often load several
	 * integers at once, so the size of integers is not checked; a u8 buffer may contain any type. */
	if (a->kind == ARG_BUFFER)
		return !is_float || a->type == GPUL_U8 || gpul_type_bytes(a->type) == gpul_type_bytes(p->type);
	if (a->kind == ARG_BYTES || a->kind == ARG_FUNCTION || a->kind == ARG_STRUCT || p->role == GPUL_ROLE_BUFFER)
		return true;
	/* Refuse i32=1 if the parameter is a float, because the kernel would read 1.4e-45.  An argument hex: can pass any bits. */
	return !p->type || is_float == value_type_is_float(a->type);
}

gpul_status run_fit(const gpul_signature *s, const struct arg *args, size_t n_args, gpul_error *err)
{
	char signature[120], want[80];

	if (gpul_signature_print(s, signature, sizeof signature) >= sizeof signature)
		memcpy(signature + sizeof signature - 5, "...)", 5);
	if (n_args != s->n_params)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s takes %zu argument%s, but %zu %s given", signature, s->n_params,
				 s->n_params == 1 ? "" : "s", n_args, n_args == 1 ? "was" : "were");
	for (size_t i = 0; i < n_args; i++)
		if (!arg_fits(&s->params[i], &args[i]))
			return gpul_fail(err, GPUL_EINVAL, 0, "argument %zu is %s, but parameter %zu of %s must be %s", i, args[i].text, i,
					 signature, describe_param(&s->params[i], want, sizeof want));
	return GPUL_OK;
}
