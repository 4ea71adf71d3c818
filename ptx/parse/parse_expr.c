/* parse_expr.c — parses and evaluates constant expressions, in 64 bits: PTX ISA 9.0, 4.5. */
#include "ptx/parse/parser_internal.h"

#include <string.h>

static double as_double(ptx_value v)
{
	double d;
	float f;
	uint32_t bits = (uint32_t)v.bits;

	switch (v.kind) {
	case PTX_S64:
		return (double)(int64_t)v.bits;
	case PTX_U64:
		return (double)v.bits;
	case PTX_F32:
		memcpy(&f, &bits, sizeof f);
		return (double)f;
	default:
		memcpy(&d, &v.bits, sizeof d);
		return d;
	}
}

static ptx_value from_double(double d)
{
	ptx_value v = { .kind = PTX_F64 };

	memcpy(&v.bits, &d, sizeof d);
	return v;
}

static ptx_value signed_value(int64_t i)
{
	return (ptx_value){ PTX_S64, (uint64_t)i };
}

static bool is_float(ptx_value v)
{
	return v.kind == PTX_F32 || v.kind == PTX_F64;
}

static ptx_value parse_unary(ptx_parser *p);

/* Parse ( expression ) or a cast: (.s64) x, (.u64) x */
static ptx_value parse_parenthesis(ptx_parser *p)
{
	bool to_signed = ptx_tok_is(&p->tok, PTX_TOK_DOT, "s64");
	ptx_value v;

	if (to_signed || ptx_tok_is(&p->tok, PTX_TOK_DOT, "u64")) {
		ptx_next(p);
		ptx_expect(p, ')', "the type of a cast");
		v = parse_unary(p);
		if (!is_float(v))
			v.kind = to_signed ? PTX_S64 : PTX_U64;
		return v;
	}
	v = ptx_parse_expr(p);
	ptx_expect(p, ')', "an expression");
	return v;
}

static ptx_value parse_primary(ptx_parser *p)
{
	ptx_token t = p->tok;

	switch (t.kind) {
	case PTX_TOK_INT:
		ptx_next(p);
		return (ptx_value){ t.is_unsigned ? PTX_U64 : PTX_S64, t.value };
	case PTX_TOK_F32:
	case PTX_TOK_F64:
		ptx_next(p);
		return (ptx_value){ t.kind == PTX_TOK_F32 ? PTX_F32 : PTX_F64, t.value };
	case '(':
		ptx_next(p);
		return parse_parenthesis(p);
	case PTX_TOK_WORD:
		if (ptx_tok_is(&t, PTX_TOK_WORD, "WARP_SZ")) {
			ptx_next(p);
			return signed_value(32);
		}
		break;
	default:
		break;
	}
	ptx_fail_at(p, &t, "expected a constant");
	return signed_value(0);
}

static ptx_value apply_unary(int op, ptx_value v)
{
	switch (op) {
	case '-':
		if (v.kind == PTX_F32)
			v.bits ^= UINT64_C(1) << 31;
		else if (v.kind == PTX_F64)
			v.bits ^= UINT64_C(1) << 63;
		else
			v.bits = 0 - v.bits;
		return v;
	case '!':
		return signed_value(is_float(v) ? as_double(v) == 0 : v.bits == 0);
	case '~':
		v.bits = ~v.bits;
		return v;
	default:
		return v;
	}
}

static ptx_value parse_unary(ptx_parser *p)
{
	ptx_token op = p->tok;
	ptx_value v;

	if (!ptx_enter(p))
		return signed_value(0);
	if (op.kind == '-' || op.kind == '+' || op.kind == '!' || op.kind == '~') {
		ptx_next(p);
		v = parse_unary(p);
		if (op.kind == '~' && is_float(v))
			ptx_fail_at(p, &op, "'~' requires an integer");
		v = apply_unary(op.kind, v);
	} else {
		v = parse_primary(p);
	}
	ptx_leave(p);
	return v;
}

/* Return the precedence of a binary operator, as in C; 0: not a binary operator. */
static int precedence(int op)
{
	switch (op) {
	case '*':
	case '/':
	case '%':
		return 10;
	case '+':
	case '-':
		return 9;
	case PTX_TOK_SHL:
	case PTX_TOK_SHR:
		return 8;
	case '<':
	case '>':
	case PTX_TOK_LE:
	case PTX_TOK_GE:
		return 7;
	case PTX_TOK_EQ:
	case PTX_TOK_NE:
		return 6;
	case '&':
		return 5;
	case '^':
		return 4;
	case '|':
		return 3;
	case PTX_TOK_AND_AND:
		return 2;
	case PTX_TOK_OR_OR:
		return 1;
	default:
		return 0;
	}
}

static ptx_value compare_values(int op, bool less, bool equal, bool unordered)
{
	switch (op) {
	case '<':
		return signed_value(less);
	case '>':
		return signed_value(!less && !equal && !unordered);
	case PTX_TOK_LE:
		return signed_value(less || equal);
	case PTX_TOK_GE:
		return signed_value(!less && !unordered);
	case PTX_TOK_EQ:
		return signed_value(equal);
	default:
		return signed_value(!equal);
	}
}

static ptx_value apply_float(ptx_parser *p, const ptx_token *op, double a, double b)
{
	switch (op->kind) {
	case '*':
		return from_double(a * b);
	case '/':
		return from_double(a / b);
	case '+':
		return from_double(a + b);
	case '-':
		return from_double(a - b);
	case '<':
	case '>':
	case PTX_TOK_LE:
	case PTX_TOK_GE:
	case PTX_TOK_EQ:
	case PTX_TOK_NE:
		return compare_values(op->kind, a < b, a == b, a != a || b != b);
	case PTX_TOK_AND_AND:
		return signed_value(a != 0 && b != 0);
	case PTX_TOK_OR_OR:
		return signed_value(a != 0 || b != 0);
	default:
		ptx_fail_at(p, op, "this operator requires integers");
		return signed_value(0);
	}
}

static uint64_t divide_integers(int op, uint64_t a, uint64_t b, bool is_signed)
{
	if (!is_signed)
		return op == '/' ? a / b : a % b;
	if (b == UINT64_MAX) /* b is -1.  In C, INT64_MIN / -1 is undefined, so compute the result without a division */
		return op == '/' ? 0 - a : 0;
	return (uint64_t)(op == '/' ? (int64_t)a / (int64_t)b : (int64_t)a % (int64_t)b);
}

static ptx_value shift_integer(int op, ptx_value a, uint64_t by)
{
	bool negative = a.kind == PTX_S64 && a.bits >> 63;

	if (op == PTX_TOK_SHL)
		a.bits = by > 63 ? 0 : a.bits << by;
	else if (by > 63)
		a.bits = negative ? UINT64_MAX : 0;
	else
		a.bits = a.bits >> by | (negative && by ? UINT64_MAX << (64 - by) : 0);
	return a;
}

static ptx_value apply_integer(ptx_parser *p, const ptx_token *op, ptx_value a, ptx_value b)
{
	ptx_value r = { a.kind == PTX_S64 && b.kind == PTX_S64 ? PTX_S64 : PTX_U64, 0 };
	bool is_signed = r.kind == PTX_S64;

	switch (op->kind) {
	case '*':
		r.bits = a.bits * b.bits;
		return r;
	case '/':
	case '%':
		if (b.bits == 0)
			ptx_fail_at(p, op, "division by zero");
		else
			r.bits = divide_integers(op->kind, a.bits, b.bits, is_signed);
		return r;
	case '+':
		r.bits = a.bits + b.bits;
		return r;
	case '-':
		r.bits = a.bits - b.bits;
		return r;
	case '&':
		r.bits = a.bits & b.bits;
		return r;
	case '^':
		r.bits = a.bits ^ b.bits;
		return r;
	case '|':
		r.bits = a.bits | b.bits;
		return r;
	case PTX_TOK_SHL:
	case PTX_TOK_SHR:
		return shift_integer(op->kind, a, b.bits);
	case PTX_TOK_AND_AND:
		return signed_value(a.bits && b.bits);
	case PTX_TOK_OR_OR:
		return signed_value(a.bits || b.bits);
	default:
		return compare_values(op->kind, is_signed ? (int64_t)a.bits < (int64_t)b.bits : a.bits < b.bits, a.bits == b.bits, false);
	}
}

/* Parse binary operators whose precedence is at least `least`, by precedence climbing. */
static ptx_value parse_binary(ptx_parser *p, int least)
{
	ptx_value a = parse_unary(p);

	while (precedence(p->tok.kind) >= least) {
		ptx_token op = p->tok;

		ptx_next(p);
		ptx_value b = parse_binary(p, precedence(op.kind) + 1);
		if (is_float(a) || is_float(b))
			a = apply_float(p, &op, as_double(a), as_double(b));
		else
			a = apply_integer(p, &op, a, b);
	}
	return a;
}

ptx_value ptx_parse_expr(ptx_parser *p)
{
	ptx_value condition, yes, no;

	if (!ptx_enter(p))
		return signed_value(0);
	condition = parse_binary(p, 1);
	if (ptx_accept(p, '?')) {
		yes = ptx_parse_expr(p);
		ptx_expect(p, ':', "the second part of '?'");
		no = ptx_parse_expr(p);
		condition = (is_float(condition) ? as_double(condition) != 0 : condition.bits != 0) ? yes : no;
	}
	ptx_leave(p);
	return condition;
}

uint64_t ptx_parse_integer(ptx_parser *p, const char *what)
{
	ptx_token where = p->tok;
	ptx_value v = ptx_parse_expr(p);

	if (is_float(v) || (v.kind == PTX_S64 && v.bits >> 63))
		ptx_fail_at(p, &where, "expected %s: an integer that is not negative", what);
	return v.bits;
}
