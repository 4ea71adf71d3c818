/* expression.c — evaluates expressions in conditions and watches: C's operators, parsed by precedence climbing. */
#include "softcuda/tools/debug/debug_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

struct parser {
	const struct lane *at;
	const char *text, *here;
	gpul_error *err;
	bool skips; /* set while an operand of && or || is parsed without being evaluated */
	unsigned depth;
};

static bool climb(struct parser *p, unsigned least, struct value *out);

__attribute__((format(printf, 2, 3))) static bool wrong(struct parser *p, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	gpul_fail(p->err, GPUL_EINVAL, 0, "'%.80s', column %d: %s", p->text, (int)(p->here - p->text) + 1, what);
	return false;
}

static bool next_is(struct parser *p, const char *token)
{
	while (isspace((unsigned char)*p->here))
		p->here++;
	if (strncmp(p->here, token, strlen(token)) != 0)
		return false;
	p->here += strlen(token);
	return true;
}

static bool expect(struct parser *p, const char *token)
{
	return next_is(p, token) || wrong(p, "expected '%s'", token);
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static size_t word_length(const char *at)
{
	size_t n = *at == '%';

	while (is_word(at[n]) || (at[n] == '.' && *at == '%' && is_word(at[n + 1])) ||
	       (n && !strncmp(at + n, "::", 2) && is_word(at[n + 2])))
		n += at[n] == ':' ? 3 : 1;
	return n;
}

static struct value integer(int64_t i)
{
	return (struct value){ .kind = VALUE_INT, .i = i };
}

/* ---- operands --------------------------------------------------------------------------------------------------------- */

/* Parse [address]:type, shared[offset]:type ...; the type is s32 if not given. */
static bool parse_memory(struct parser *p, unsigned space, struct value *out)
{
	unsigned type = GPUL_PTX_MOD_S32;
	struct value address;
	const uint8_t *bytes;

	if (!climb(p, 1, &address) || !expect(p, "]"))
		return false;
	if (address.kind == VALUE_FLOAT)
		return wrong(p, "an address cannot be a float");
	if (next_is(p, ":")) {
		char name[16];
		const size_t n = word_length(p->here);

		snprintf(name, sizeof name, "%.*s", (int)n, p->here);
		type = gpul_debug_type(name);
		if (!type || gpul_ptx_type_bytes(type) == 0 || gpul_ptx_type_bytes(type) > 8)
			return wrong(p, "unknown type '%s'; types are u8 s8 b8 ... u64 s64 b64 f16 bf16 f32 f64", name);
		p->here += n;
	}
	if (p->skips)
		return *out = integer(0), true;
	bytes = gpul_debug_memory(p->at, space, address.u, gpul_ptx_type_bytes(type));
	if (!bytes)
		return wrong(p, "%u bytes at 0x%llx cannot be read", gpul_ptx_type_bytes(type), (unsigned long long)address.u);
	*out = gpul_debug_load(bytes, type);
	return true;
}

static bool parse_number(struct parser *p, struct value *out)
{
	char *end, *float_end;
	const double f = strtod(p->here, &float_end);

	errno = 0;
	out->kind = VALUE_INT;
	out->bytes = 0;
	out->u = strtoull(p->here, &end, 0);
	if (float_end > end || errno) {
		out->kind = VALUE_FLOAT;
		out->f = f;
		end = float_end;
	} else if (out->i < 0) {
		out->kind = VALUE_UINT;
	}
	if (is_word(*end))
		return wrong(p, "'%.20s' is not a number", p->here);
	p->here = end;
	return true;
}

static bool parse_register(struct parser *p, size_t n, struct value *out)
{
	const struct lane *at = p->at;
	uint32_t flat;

	if (!at->warp)
		return wrong(p, "there are no registers, because no kernel runs");
	if (gpul_debug_find_register(at->frame->code, p->here, n, &flat)) {
		if (!gpul_debug_register(at, flat, out))
			return wrong(p, "no instruction uses the register %.*s", (int)n, p->here);
	} else if (!gpul_debug_special(at, p->here, n, out)) {
		return wrong(p, "function %s has no register %.*s",
			     SHOWN_NAME(gpul_ptx_name(at->frame->code->program->module, at->frame->code->ptx->name)), (int)n, p->here);
	}
	p->here += n;
	return true;
}

/* Find a variable of the function or module and return its address, or its offset for .shared and .local variables. */
static bool find_variable(const struct lane *at, const char *name, uint64_t *address)
{
	const struct func_code *code = at->warp ? at->frame->code : NULL;
	const struct gpul_exec_program *p = code ? code->program : NULL;

	if (!p)
		return false;
	for (uint32_t k = 0; k < code->ptx->n_vars; k++) {
		const gpul_ptx_var *v = &code->ptx->vars[k];

		if (!gpul_shown_name_is(gpul_ptx_name(p->module, v->name), name))
			continue;
		*address = code->var_address && code->var_address[k] ? code->var_address[k] : code->var_offset[k];
		if (v->space == GPUL_PTX_MOD_LOCAL)
			*address += at->frame->local_offset;
		return true;
	}
	for (uint32_t k = 0; k < p->module->n_vars; k++) {
		if (!gpul_shown_name_is(gpul_ptx_name(p->module, p->module->vars[k].name), name))
			continue;
		*address = p->module->vars[k].space == GPUL_PTX_MOD_SHARED ? p->shared_offset[k] : p->variables[k].address;
		return true;
	}
	return false;
}

static bool parse_word(struct parser *p, size_t n, struct value *out)
{
	static const struct {
		const char *name;
		unsigned space;
	} spaces[] = {
		{ "shared", SPACE_SHARED },
		{ "local", SPACE_LOCAL },
		{ "param", SPACE_PARAM },
		{ "global", SPACE_GLOBAL },
	};
	const struct lane *at = p->at;
	char name[TEXT_BYTES];
	uint64_t address;

	snprintf(name, sizeof name, "%.*s", (int)n, p->here);
	for (unsigned k = 0; k < sizeof spaces / sizeof spaces[0]; k++) {
		if (!strcmp(name, spaces[k].name) && p->here[n] == '[') {
			p->here += n + 1;
			return parse_memory(p, spaces[k].space, out);
		}
	}
	if (at->warp && !strcmp(name, "lane"))
		*out = integer(at->index);
	else if (at->warp && !strcmp(name, "warp"))
		*out = integer(at->warp->index);
	else if (at->warp && !strcmp(name, "block"))
		*out = integer((int64_t)gpul_debug_block_index(at->warp->block));
	else if (at->warp && !strcmp(name, "thread"))
		*out = integer((int64_t)at->warp->index * LANES + at->index);
	else if (find_variable(at, name, &address))
		*out = (struct value){ .kind = VALUE_UINT, .bytes = 8, .u = address };
	else
		return wrong(
			p, "unknown name '%.40s'; names are %%registers, lane, warp, block, thread, variables, and memory as [address]:f32",
			name);
	p->here += n;
	return true;
}

static bool negate(struct parser *p, struct value *out)
{
	if (!climb(p, 11, out))
		return false;
	if (out->kind == VALUE_FLOAT)
		out->f = -out->f;
	else
		*out = integer((int64_t)(0 - out->u));
	return true;
}

static bool parse_operand(struct parser *p, struct value *out)
{
	size_t n;

	if (next_is(p, "("))
		return climb(p, 1, out) && expect(p, ")");
	if (next_is(p, "["))
		return parse_memory(p, SPACE_GLOBAL, out);
	if (next_is(p, "-"))
		return negate(p, out);
	if (next_is(p, "!")) {
		if (!climb(p, 11, out))
			return false;
		*out = integer(!gpul_debug_true(out));
		return true;
	}
	if (next_is(p, "~")) {
		if (!climb(p, 11, out))
			return false;
		if (out->kind == VALUE_FLOAT)
			return wrong(p, "~ needs an integer");
		out->u = ~out->u;
		return true;
	}
	if (isdigit((unsigned char)*p->here) || (*p->here == '.' && isdigit((unsigned char)p->here[1])))
		return parse_number(p, out);
	n = word_length(p->here);
	if (!n)
		return wrong(p, *p->here ? "expected a number, a register or '('" : "the expression ends too early");
	return *p->here == '%' ? parse_register(p, n, out) : parse_word(p, n, out);
}

/* ---- operators ------------------------------------------------------------------------------------------------------- */

static const struct operator
{
	const char *text;
	unsigned precedence;
}
operators[] = {
	{ "||", 1 }, { "&&", 2 }, { "==", 6 }, { "!=", 6 }, { "<<", 8 }, { ">>", 8 }, { "<=", 7 }, { ">=", 7 }, { "<", 7 },
	{ ">", 7 },  { "|", 3 },  { "^", 4 },  { "&", 5 },  { "+", 9 },  { "-", 9 },  { "*", 10 }, { "/", 10 }, { "%", 10 },
};

static const struct operator* find_operator(struct parser *p)
{
	while (isspace((unsigned char)*p->here))
		p->here++;
	for (size_t k = 0; k < sizeof operators / sizeof operators[0]; k++)
		if (!strncmp(p->here, operators[k].text, strlen(operators[k].text)))
			return &operators[k];
	return NULL;
}

static double as_float(const struct value *v)
{
	return v->kind == VALUE_FLOAT ? v->f : v->kind == VALUE_INT ? (double)v->i : (double)v->u;
}

static bool apply_float(struct parser *p, const char *op, double a, double b, struct value *out)
{
	*out = (struct value){ .kind = VALUE_FLOAT };
	switch (op[0]) {
	case '+':
		out->f = a + b;
		return true;
	case '-':
		out->f = a - b;
		return true;
	case '*':
		out->f = a * b;
		return true;
	case '/':
		out->f = a / b;
		return true;
	case '=':
		*out = integer(a == b);
		return true;
	case '!':
		*out = integer(a != b);
		return true;
	case '<':
		*out = integer(op[1] == '=' ? a <= b : a < b);
		return op[1] != '<' || wrong(p, "<< needs integers");
	case '>':
		*out = integer(op[1] == '=' ? a >= b : a > b);
		return op[1] != '>' || wrong(p, ">> needs integers");
	default:
		return wrong(p, "%s needs integers", op);
	}
}

/* Apply an operator to integers.  The result is unsigned if both operands are, or if an unsigned one is too large for int64_t. */
static bool apply_integer(struct parser *p, const char *op, struct value a, struct value b, struct value *out)
{
	const bool is_unsigned = a.kind == VALUE_UINT && b.kind == VALUE_UINT, less = is_unsigned ? a.u < b.u : a.i < b.i;

	*out = (struct value){ .kind = is_unsigned ? VALUE_UINT : VALUE_INT };
	switch (op[0]) {
	case '+':
		out->u = a.u + b.u;
		return true;
	case '-':
		*out = integer((int64_t)(a.u - b.u));
		return true;
	case '*':
		out->u = a.u * b.u;
		return true;
	case '|':
		out->u = a.u | b.u;
		return true;
	case '&':
		out->u = a.u & b.u;
		return true;
	case '^':
		out->u = a.u ^ b.u;
		return true;
	case '=':
		*out = integer(a.u == b.u);
		return true;
	case '!':
		*out = integer(a.u != b.u);
		return true;
	case '/':
	case '%':
		if (!b.u)
			return p->skips ? true : wrong(p, "division by zero");
		if (is_unsigned)
			out->u = op[0] == '/' ? a.u / b.u : a.u % b.u;
		else if (b.i == -1)
			out->u = op[0] == '/' ? 0 - a.u : 0;
		else
			out->i = op[0] == '/' ? a.i / b.i : a.i % b.i;
		return true;
	case '<':
		if (op[1] == '<')
			out->u = b.u < 64 ? a.u << b.u : 0;
		else
			*out = integer(op[1] == '=' ? less || a.u == b.u : less);
		return true;
	default:
		if (op[1] == '>')
			out->u = b.u >= 64 ? 0 : a.kind == VALUE_UINT ? a.u >> b.u : (uint64_t)(a.i >> b.u);
		else
			*out = integer(op[1] == '=' ? !less : !less && a.u != b.u);
		return true;
	}
}

/* Parse an operand and all following operators whose precedence is at least `least`. */
static bool climb(struct parser *p, unsigned least, struct value *out)
{
	const struct operator* op;
	bool ok = p->depth++ < 64 || wrong(p, "more than 64 nested parts");

	ok = ok && parse_operand(p, out);
	while (ok && (op = find_operator(p)) && op->precedence >= least) {
		const bool logical = op->precedence <= 2, skipped = p->skips;
		struct value right;

		p->here += strlen(op->text);
		if (logical)
			p->skips |= gpul_debug_true(out) == (op->precedence == 1);
		ok = climb(p, op->precedence + 1, &right);
		p->skips = skipped;
		if (!ok)
			break;
		if (logical)
			*out = integer(op->precedence == 1 ? gpul_debug_true(out) || gpul_debug_true(&right)
							   : gpul_debug_true(out) && gpul_debug_true(&right));
		else if (out->kind == VALUE_FLOAT || right.kind == VALUE_FLOAT)
			ok = apply_float(p, op->text, as_float(out), as_float(&right), out);
		else
			ok = apply_integer(p, op->text, *out, right, out);
	}
	p->depth--;
	return ok;
}

gpul_status gpul_debug_evaluate(const struct lane *at, const char *text, struct value *out, gpul_error *err)
{
	gpul_error why = { 0 };
	struct parser p = { .at = at, .text = text, .here = text, .err = &why };
	struct value v = integer(0);

	if (!climb(&p, 1, &v))
		return gpul_fail(err, why.status, 0, "%s", why.text);
	if (*p.here) {
		wrong(&p, "expected an operator");
		return gpul_fail(err, why.status, 0, "%s", why.text);
	}
	*out = v;
	return GPUL_OK;
}
