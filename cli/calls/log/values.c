/* values.c — formats numbers, addresses, constants, flags and structs without printf, which is too slow for millions of lines. */
#include "cli/calls/log/values.h"

#include <string.h>

enum { MAX_SHOWN_BYTES = 32 };

static uint64_t read_unsigned(const struct calls_type *type, const uint8_t *bytes)
{
	uint64_t value = 0;

	memcpy(&value, bytes, type->n_bytes < sizeof value ? type->n_bytes : sizeof value);
	return value;
}

static int64_t read_signed(const struct calls_type *type, const uint8_t *bytes)
{
	const unsigned shift = type->n_bytes < 8 ? 64 - 8 * type->n_bytes : 0;

	return (int64_t)(read_unsigned(type, bytes) << shift) >> shift;
}

static double read_float(const struct calls_type *type, const uint8_t *bytes)
{
	double d = 0;
	float f = 0;

	memcpy(type->n_bytes == sizeof f ? (void *)&f : (void *)&d, bytes, type->n_bytes == sizeof f ? sizeof f : sizeof d);
	return type->n_bytes == sizeof f ? (double)f : d;
}

const char *value_constant(const struct calls_type *type, int64_t value)
{
	for (uint32_t i = 0; i < type->n; i++)
		if (type->constants[i].value == value)
			return type->constants[i].name;
	return NULL;
}

static void add_hex(struct out *o, uint64_t value)
{
	char digits[18], *p = digits + sizeof digits;

	do
		*--p = "0123456789abcdef"[value & 15];
	while (value >>= 4);
	*--p = 'x';
	*--p = '0';
	out_bytes(o, p, (size_t)(digits + sizeof digits - p));
}

static void add_i64(struct out *o, int64_t value)
{
	if (value < 0)
		out_text(o, "-");
	out_u64(o, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void add_constant(struct out *o, const struct calls_type *type, const uint8_t *bytes)
{
	const char *name = value_constant(type, read_signed(type, bytes));

	if (!name)
		name = value_constant(type, (int64_t)read_unsigned(type, bytes));
	if (name)
		out_text(o, name);
	else
		add_i64(o, read_signed(type, bytes));
}

/* Append flags as A|B|0x100: the names of the single-bit constants that are set, then the remaining bits in hexadecimal. */
static void add_flags(struct out *o, const struct calls_type *type, const uint8_t *bytes)
{
	uint64_t left = read_unsigned(type, bytes);
	const char *name = value_constant(type, (int64_t)left), *bar = "";

	if (name) {
		out_text(o, name);
		return;
	}
	for (uint32_t i = 0; i < type->n; i++) {
		const uint64_t bit = (uint64_t)type->constants[i].value;

		if (!bit || bit & (bit - 1) || !(left & bit))
			continue;
		out_text(o, bar);
		out_text(o, type->constants[i].name);
		left &= ~bit;
		bar = "|";
	}
	if (left || !*bar) {
		out_text(o, bar);
		add_hex(o, left);
	}
}

static void add_digits(struct out *o, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n && i < MAX_SHOWN_BYTES; i++) {
		char two[2] = { "0123456789abcdef"[bytes[i] >> 4], "0123456789abcdef"[bytes[i] & 15] };

		out_bytes(o, two, 2);
	}
	if (n > MAX_SHOWN_BYTES)
		out_text(o, "...");
}

void value_add_quoted(struct out *o, const struct calls_piece *p)
{
	out_text(o, "\"");
	for (size_t i = 0; i < p->n_bytes; i++) {
		const uint8_t c = p->bytes[i];

		if (c == '\n')
			out_text(o, "\\n");
		else if (c == '"' || c == '\\')
			out_bytes(o, (char[]){ '\\', (char)c }, 2);
		else if (c < ' ' || c == 0x7f)
			out_add(o, "\\x%02x", c);
		else
			out_bytes(o, &c, 1);
	}
	out_text(o, p->cut ? "\"..." : "\"");
}

const char *value_launched_kernel(const struct value_context *c, const struct calls_event *e)
{
	for (size_t i = 0; i < e->row->n_params && !strcmp(e->row->category, "launch"); i++)
		if (e->row->params[i].is_kernel)
			return kernel_name(c->names, c->pid, e->words[e->row->params[i].word]);
	return NULL;
}

static void add_pointer(struct out *o, const struct value_context *c, bool is_kernel, uint64_t value)
{
	const char *kernel = is_kernel ? kernel_name(c->names, c->pid, value) : NULL;

	if (!value) {
		out_text(o, "0");
		return;
	}
	add_hex(o, value);
	if (kernel) {
		out_text(o, "<");
		out_name(o, kernel, strlen(kernel));
		out_text(o, ">");
	}
}

static void add_fields(struct out *o, const struct value_context *c, const struct calls_type *type, const uint8_t *bytes)
{
	out_text(o, "{");
	for (uint32_t i = 0; i < type->n; i++) {
		out_text(o, i ? ", " : "");
		out_text(o, type->fields[i].name);
		out_text(o, "=");
		value_add_text(o, c, type->fields[i].type, type->fields[i].is_kernel, bytes + type->fields[i].offset);
	}
	out_text(o, "}");
}

void value_add_text(struct out *o, const struct value_context *c, const struct calls_type *type, bool is_kernel, const uint8_t *bytes)
{
	switch (type->kind) {
	case CALLS_POINTER:
	case CALLS_TEXT:
		add_pointer(o, c, is_kernel, read_unsigned(type, bytes));
		return;
	case CALLS_SIGNED:
		add_i64(o, read_signed(type, bytes));
		return;
	case CALLS_UNSIGNED:
		out_u64(o, read_unsigned(type, bytes));
		return;
	case CALLS_ENUM:
		add_constant(o, type, bytes);
		return;
	case CALLS_FLAGS:
		add_flags(o, type, bytes);
		return;
	case CALLS_FLOAT:
		out_add(o, "%.7g", read_float(type, bytes));
		return;
	case CALLS_CHARS:
		value_add_quoted(o, &(struct calls_piece){ .bytes = bytes, .n_bytes = strnlen((const char *)bytes, type->n_bytes) });
		return;
	case CALLS_BYTES:
		add_digits(o, bytes, type->n_bytes);
		return;
	case CALLS_STRUCT:
		add_fields(o, c, type, bytes);
		return;
	}
}

void value_add_json(struct json *j, const struct value_context *c, const struct calls_type *type, const char *key, const uint8_t *bytes)
{
	struct out text = { 0 };

	switch (type->kind) {
	case CALLS_SIGNED:
		json_i64(j, key, read_signed(type, bytes));
		return;
	case CALLS_UNSIGNED:
		json_u64(j, key, read_unsigned(type, bytes));
		return;
	case CALLS_FLOAT:
		json_double(j, key, read_float(type, bytes));
		return;
	case CALLS_CHARS:
		json_chars(j, key, (const char *)bytes, strnlen((const char *)bytes, type->n_bytes));
		return;
	case CALLS_STRUCT:
		json_begin(j, key, '{');
		for (uint32_t i = 0; i < type->n; i++)
			value_add_json(j, c, type->fields[i].type, type->fields[i].name, bytes + type->fields[i].offset);
		json_end(j, '}');
		return;
	case CALLS_POINTER:
	case CALLS_TEXT:
		add_hex(&text, read_unsigned(type, bytes));
		break;
	default:
		value_add_text(&text, c, type, false, bytes);
	}
	json_chars(j, key, text.at ? text.at : "", text.n);
	out_free(&text);
}
