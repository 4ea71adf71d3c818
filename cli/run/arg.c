/* arg.c — parses the arguments of a kernel. */
#include "cli/run/arg.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/fill.h"
#include "cli/lib/value.h"

static gpul_status not_an_arg(const char *text, gpul_error *err)
{
	return gpul_fail(err, GPUL_EINVAL, 0,
			 "'%s' is not a valid kernel argument; expected TYPE=NUMBER, TYPE[COUNT]=FILL, "
			 "out:TYPE[COUNT], "
			 "inout:TYPE[COUNT]=FILL, bytes=@FILE, hex:BYTES, struct[BYTES]{OFFSET:ARG;...} or fn:VARIABLE",
			 text);
}

static gpul_status unknown_type(const char *name, size_t name_bytes, gpul_error *err)
{
	return gpul_fail(err, GPUL_EINVAL, 0, "unknown type '%.*s'; the types are i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64",
			 (int)(name_bytes < 20 ? name_bytes : 20), name);
}

static gpul_status parse_hex(const char *hex, struct arg *out, gpul_error *err)
{
	size_t n = strlen(hex);

	if (n == 0 || n % 2 || strspn(hex, "0123456789abcdefABCDEF") != n)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "hex: needs an even number of hexadecimal digits, the byte at the lowest "
				 "address first, not '%s'",
				 hex);
	out->kind = ARG_BYTES;
	out->bytes = n / 2;
	out->data = malloc(out->bytes);
	if (!out->data)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu bytes", out->bytes);
	for (size_t i = 0; i < out->bytes; i++) {
		char two[3] = { hex[2 * i], hex[2 * i + 1], 0 };

		out->data[i] = (unsigned char)strtoul(two, NULL, 16);
	}
	return GPUL_OK;
}

static gpul_status parse_bytes(const char *value, const char *dir, struct arg *out, gpul_error *err)
{
	out->kind = ARG_BYTES;
	if (*value != '@')
		return gpul_fail(err, GPUL_EINVAL, 0, "bytes= needs @FILE, not '%s'; to give the bytes themselves, write hex:", value);
	return fill_read_file(value + 1, dir, (void **)&out->data, &out->bytes, err);
}

static gpul_status parse_scalar(const char *text, const char *equals, struct arg *out, gpul_error *err)
{
	out->kind = ARG_SCALAR;
	out->type = value_type(text, (size_t)(equals - text));
	if (!out->type)
		return unknown_type(text, (size_t)(equals - text), err);
	out->bytes = gpul_type_bytes(out->type);
	out->data = calloc(1, 8);
	if (!out->data)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a scalar");
	return value_parse(out->type, equals + 1, out->data, err);
}

/* Parse NAME or NAME[3].  The function pointer itself is read later, from the loaded module. */
static gpul_status parse_function(const char *name, struct arg *out, gpul_error *err)
{
	const char *bracket = strchr(name, '['), *close = bracket ? strchr(bracket, ']') : NULL;
	size_t n = bracket ? (size_t)(bracket - name) : strlen(name);

	if (n == 0 || (bracket && (!close || close[1] || value_parse_size(bracket + 1, (size_t)(close - bracket - 1), &out->index, NULL))))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "fn: needs a __device__ variable that contains a function pointer, "
				 "NAME or NAME[INDEX], not '%s'",
				 name);
	out->kind = ARG_FUNCTION;
	out->type = GPUL_U64;
	out->bytes = sizeof(uint64_t);
	out->variable = strndup(name, n);
	out->data = calloc(1, out->bytes);
	if (!out->variable || !out->data)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for an argument");
	return GPUL_OK;
}

/* Parse "in:", "out:", "inout:" or nothing; returns the text after it. */
static const char *parse_direction(const char *text, struct arg *out)
{
	static const struct {
		const char *prefix;
		bool in, out;
	} directions[] = {
		{ "inout:", true, true },
		{ "in:", true, false },
		{ "out:", false, true },
		{ "", true, false },
	};
	size_t d = 0;

	while (strncmp(text, directions[d].prefix, strlen(directions[d].prefix)))
		d++;
	out->in = directions[d].in;
	out->out = directions[d].out;
	return text + strlen(directions[d].prefix);
}

/* Create the contents of a buffer whose type, direction and count are known. */
static gpul_status fill_buffer(const char *fill, const char *dir, struct arg *out, gpul_error *err)
{
	gpul_status st;

	if (out->in && !fill)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%s needs contents, such as %s=iota; if the kernel only writes the buffer, put out: before the argument",
				 out->text, out->text);
	if (!out->in && fill)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%s: an out: buffer cannot be given contents; write inout: if the kernel also reads the buffer",
				 out->text);
	if (!out->in && out->count == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s: an out: buffer needs a count", out->text);
	if (out->in)
		st = fill_make(out->type, fill, dir, &out->count, (void **)&out->data, err);
	else
		st = fill_alloc(out->type, out->count, (void **)&out->data, err);
	if (st)
		return st;
	out->bytes = out->count * gpul_type_bytes(out->type);
	if (!out->in)
		for (size_t i = 0; i < out->bytes; i++)
			out->data[i] = arg_poison(i);
	return GPUL_OK;
}

static gpul_status parse_buffer(const char *text, const char *bracket, const char *dir, struct arg *out, gpul_error *err)
{
	const char *type = parse_direction(text, out), *close = strchr(bracket, ']');
	bool empty = close == bracket + 1; /* f64[]=@FILE: the number of elements comes from the file */
	gpul_status st;

	out->kind = ARG_BUFFER;
	if (!close || (close[1] && close[1] != '='))
		return not_an_arg(text, err);
	out->type = value_type(type, (size_t)(bracket - type));
	if (!out->type)
		return unknown_type(type, (size_t)(bracket - type), err);
	if (!empty) {
		st = value_parse_size(bracket + 1, (size_t)(close - bracket - 1), &out->count, err);
		if (st)
			return st;
		if (out->count == 0)
			return gpul_fail(err, GPUL_EINVAL, 0, "%s: a buffer needs at least one element", text);
	}
	return fill_buffer(close[1] ? close + 2 : NULL, dir, out, err);
}

static gpul_status not_a_struct(const char *text, gpul_error *err)
{
	return gpul_fail(err, GPUL_EINVAL, 0,
			 "'%s' is not a struct; expected struct[BYTES]{OFFSET:ARG;OFFSET:ARG}, such as "
			 "struct[16]{0:f32[8]=iota;8:i32=8}",
			 text);
}

/* Parse OFFSET:ARG.  If the ARG is a value, copy it into the bytes of the struct. */
static gpul_status parse_member(const char *text, const char *dir, struct arg *out, struct arg *m, gpul_error *err)
{
	const char *colon = strchr(text, ':');
	size_t offset = 0, bytes;
	gpul_status st;

	if (!colon || value_parse_size(text, (size_t)(colon - text), &offset, NULL))
		return not_a_struct(out->text, err);
	st = arg_parse(colon + 1, dir, m, err);
	if (st)
		return st;
	m->offset = offset;
	if (m->kind == ARG_FUNCTION || m->kind == ARG_STRUCT)
		return gpul_fail(err, GPUL_EINVAL, 0, "'%s': a member of a struct must be a scalar, a buffer, bytes=@FILE or hex:BYTES",
				 text);
	bytes = m->kind == ARG_BUFFER ? sizeof m->address : m->bytes;
	if (offset > out->bytes || bytes > out->bytes - offset)
		return gpul_fail(err, GPUL_EINVAL, 0, "'%s' ends beyond the struct of %zu bytes", text, out->bytes);
	if (m->kind != ARG_BUFFER)
		memcpy(out->data + offset, m->data, m->bytes);
	return GPUL_OK;
}

/* Parse [BYTES]{OFFSET:ARG;...}; text is the part after "struct". */
static gpul_status parse_struct(const char *text, const char *dir, struct arg *out, gpul_error *err)
{
	const char *close = strchr(text, ']');
	size_t n = strlen(text);
	gpul_status st = GPUL_OK;
	char *members, *rest = NULL;

	out->kind = ARG_STRUCT;
	if (!close || close[1] != '{' || text[n - 1] != '}' || value_parse_size(text + 1, (size_t)(close - text - 1), &out->bytes, NULL) ||
	    out->bytes == 0 || out->bytes > UINT16_MAX)
		return not_a_struct(out->text, err);
	members = strndup(close + 2, n - (size_t)(close + 2 - text) - 1);
	out->data = calloc(1, out->bytes);
	out->members = calloc(n, sizeof *out->members); /* n, the length of the text, is more than the number of members */
	if (!members || !out->data || !out->members) {
		free(members);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a struct");
	}
	for (char *m = strtok_r(members, ";", &rest); st == GPUL_OK && m; m = strtok_r(NULL, ";", &rest))
		st = parse_member(m, dir, out, &out->members[out->n_members++], err);
	free(members);
	return st;
}

gpul_status arg_parse(const char *text, const char *dir, struct arg *out, gpul_error *err)
{
	size_t name_bytes = strcspn(text, "=[");
	gpul_status st;

	*out = (struct arg){ .text = strdup(text) };
	if (!out->text)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for an argument");
	if (!strncmp(text, "hex:", 4))
		st = parse_hex(text + 4, out, err);
	else if (!strncmp(text, "bytes=", 6))
		st = parse_bytes(text + 6, dir, out, err);
	else if (!strncmp(text, "struct[", 7))
		st = parse_struct(text + 6, dir, out, err);
	else if (!strncmp(text, "fn:", 3))
		st = parse_function(text + 3, out, err);
	else if (text[name_bytes] == '[')
		st = parse_buffer(text, text + name_bytes, dir, out, err);
	else if (text[name_bytes] == '=' && !strchr(text, ':'))
		st = parse_scalar(text, text + name_bytes, out, err);
	else
		st = not_an_arg(text, err);
	if (st)
		arg_free(out);
	return st;
}

void arg_free(struct arg *a)
{
	for (size_t i = 0; i < a->n_members; i++)
		arg_free(&a->members[i]);
	free(a->members);
	free(a->data);
	free(a->text);
	free(a->variable);
	*a = (struct arg){ 0 };
}

/* ---- unwritten elements -------------------------------------------------------------- */

/* a kernel cannot have written this number of consecutive poison bytes by chance */
enum { SURE_BYTES = 4 };

unsigned char arg_poison(size_t i)
{
	uint64_t z = ((uint64_t)i / 8 + 1) * UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 32) * UINT64_C(0xD6E8FEB86659FD93);
	z ^= z >> 32;
	return (unsigned char)(z >> i % 8 * 8);
}

static bool is_poison(const struct arg *a, size_t i)
{
	size_t bytes = gpul_type_bytes(a->type), at = i * bytes;

	while (bytes && a->data[at] == arg_poison(at)) {
		at++;
		bytes--;
	}
	return bytes == 0;
}

/* Return the number of consecutive poison bytes around element i, which contains poison; counting ends at SURE_BYTES. */
static size_t run_bytes(const struct arg *a, size_t i)
{
	size_t bytes = gpul_type_bytes(a->type), first = i, end = i + 1;

	while ((end - first) * bytes < SURE_BYTES && first > 0 && is_poison(a, first - 1))
		first--;
	while ((end - first) * bytes < SURE_BYTES && end < a->count && is_poison(a, end))
		end++;
	return (end - first) * bytes;
}

void arg_examine(struct arg *a)
{
	size_t bytes = gpul_type_bytes(a->type), n_sure = 0, n_lone = 0;

	a->lone_unwritten = false;
	if (a->kind != ARG_BUFFER || a->in || bytes >= SURE_BYTES)
		return;
	for (size_t i = 0; i < a->count; i++) {
		if (!is_poison(a, i))
			continue;
		if (run_bytes(a, i) >= SURE_BYTES)
			n_sure++;
		else
			n_lone++;
	}
	a->lone_unwritten = (double)n_lone * (bytes == 1 ? 256.0 : 65536.0) > 4.0 * (double)(a->count - n_sure);
}

bool arg_unwritten(const struct arg *a, size_t i)
{
	return !a->in && is_poison(a, i) && (a->lone_unwritten || run_bytes(a, i) >= SURE_BYTES);
}
