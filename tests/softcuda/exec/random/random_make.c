/* random_make.c — generates a random program and prints it as PTX. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/softcuda/exec/random/random_program.h"
#include "tests/softcuda/exec/random/random_ops.h"

enum { MAX_DEPTH = 4 };

static unsigned below(struct random_program *p, unsigned n)
{
	uint64_t z = p->seed += 0x9e3779b97f4a7c15u; /* splitmix64 */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (unsigned)((z ^ (z >> 31)) >> 33) % n;
}

/* ---- generating a program ------------------------------------------------------------------------- */

static int make_block(struct random_program *p, int depth, bool in_loop, int function);

static enum node_kind pick_kind(struct random_program *p, int depth, bool in_loop, int function)
{
	unsigned r = below(p, 20);

	if (r < 8)
		return NODE_ASSIGN;
	if (r < 11 && depth == 0 && below(p, 2))
		return NODE_EXCHANGE;
	if (r < 11)
		return NODE_WARP;
	if (r < 12)
		return in_loop ? NODE_BREAK_IF : NODE_ASSIGN;
	if (r < 14 && function + 1 < RANDOM_FUNCTIONS)
		return NODE_CALL;
	if (r < 15 && function + 2 < RANDOM_FUNCTIONS)
		return NODE_CALL_EITHER;
	if (depth >= MAX_DEPTH || r < 14)
		return NODE_ASSIGN;
	return r < 18 ? NODE_IF : NODE_LOOP;
}

/* Fill node n.  Functions are numbered from 0, and the kernel is -1; a function only calls functions with higher numbers. */
static void fill_node(struct random_program *p, struct node *n, int depth, bool in_loop, int function)
{
	n->kind = pick_kind(p, depth, in_loop, function);
	n->dst = below(p, RANDOM_VARS);
	n->a = below(p, RANDOM_VARS);
	n->b = below(p, RANDOM_VARS);
	n->k = 1 + below(p, 7);
	n->op = below(p, n->kind == NODE_ASSIGN ? N_ALU_OPS : n->kind == NODE_WARP ? N_WARP_OPS : N_CONDITIONS);
	n->body = n->other = -1;
	if (n->kind == NODE_IF) {
		n->body = make_block(p, depth + 1, false, function);
		n->other = below(p, 2) ? make_block(p, depth + 1, false, function) : -1;
	} else if (n->kind == NODE_LOOP) {
		n->body = make_block(p, depth + 1, true, function);
	} else if (n->kind == NODE_CALL) {
		n->k = (unsigned)function + 1 + below(p, (unsigned)(RANDOM_FUNCTIONS - 1 - function));
	} else if (n->kind == NODE_CALL_EITHER) {
		n->k = (unsigned)function + 1; /* calls function k or function k + 1 */
	}
}

static int make_block(struct random_program *p, int depth, bool in_loop, int function)
{
	int first = -1, last = -1;

	for (unsigned left = (depth ? 1 : 5) + below(p, 5); left && p->n_nodes < RANDOM_NODES - 1; left--) {
		int i = p->n_nodes++;
		fill_node(p, &p->nodes[i], depth, in_loop, function);
		p->nodes[i].next = -1;
		if (last < 0)
			first = i;
		else
			p->nodes[last].next = i;
		last = i;
	}
	return first;
}

void random_program_make(struct random_program *p, uint64_t seed)
{
	*p = (struct random_program){ .seed = seed };
	for (int f = RANDOM_FUNCTIONS; f-- > 0;)
		p->function_body[f] = make_block(p, 2, false, f);
	p->main_body = make_block(p, 0, false, -1);
}

/* ---- printing a program as PTX ----------------------------------------------------------------- */

struct printer {
	const struct random_program *p;
	FILE *out;
	int labels;  /* number of labels so far; each label's mask and counter registers have the label's number */
	int detours; /* number of print_detour() calls so far; for each, code is printed at the end of the kernel */
};

static void put(struct printer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct printer *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputc('\t', w->out);
	vfprintf(w->out, format, args);
	fputc('\n', w->out);
	va_end(args);
}

static void print_block(struct printer *w, int i, int mask, int loop_end);

/* Print the instructions that set %p to the condition of a node. */
static void print_condition(struct printer *w, const struct node *n)
{
	if (n->op == COND_LESS)
		put(w, "setp.lt.s32 %%p, %%v%u, %%v%u;", n->a, n->b);
	else {
		put(w, "and.b32 %%t, %%v%u, 7;", n->a);
		put(w, "setp.%s.u32 %%p, %%t, %u;", n->op == COND_BITS ? "lt" : "eq", n->k);
	}
}

static void print_if(struct printer *w, const struct node *n, int mask, int loop_end)
{
	int label = w->labels++;

	print_condition(w, n);
	put(w, "vote.sync.ballot.b32 %%m%d, %%p, %%m%d;", label, mask);
	put(w, "not.b32 %%t, %%m%d;", label);
	put(w, "and.b32 %%n%d, %%t, %%m%d;", label, mask);
	put(w, "@!%%p bra ELSE%d;", label);
	print_block(w, n->body, label, loop_end);
	put(w, "bra END%d;", label);
	fprintf(w->out, "ELSE%d:\n", label);
	put(w, "mov.u32 %%m%d, %%n%d;", label, label);
	print_block(w, n->other, label, loop_end);
	fprintf(w->out, "END%d:\n", label);
}

/* Print a loop of up to 7 iterations; each lane reads its number of iterations from a variable.  Lanes that leave the loop are
 * removed from the mask. */
static void print_loop(struct printer *w, const struct node *n, int mask)
{
	int label = w->labels++;

	put(w, "and.b32 %%n%d, %%v%u, 7;", label, n->a);
	put(w, "mov.u32 %%m%d, %%m%d;", label, mask);
	fprintf(w->out, "AGAIN%d:\n", label);
	put(w, "setp.ne.u32 %%p, %%n%d, 0;", label);
	put(w, "vote.sync.ballot.b32 %%m%d, %%p, %%m%d;", label, label);
	put(w, "@!%%p bra END%d;", label);
	put(w, "sub.u32 %%n%d, %%n%d, 1;", label, label);
	print_block(w, n->body, label, label);
	put(w, "bra AGAIN%d;", label);
	fprintf(w->out, "END%d:\n", label);
}

static void print_warp(struct printer *w, const struct node *n, int m)
{
	switch (n->op) {
	case WARP_SHUFFLE: /* read the value of the selected lane if that lane is in the mask, else the lane's own value */
		put(w, "and.b32 %%t, %%v%u, 31;", n->b);
		put(w, "shr.u32 %%u, %%m%d, %%t;", m);
		put(w, "and.b32 %%u, %%u, 1;");
		put(w, "setp.ne.u32 %%p, %%u, 0;");
		put(w, "mov.u32 %%u, %%laneid;");
		put(w, "selp.b32 %%t, %%t, %%u, %%p;");
		put(w, "shfl.sync.idx.b32 %%v%u, %%v%u, %%t, 31, %%m%d;", n->dst, n->a, m);
		break;
	case WARP_BALLOT:
		put(w, "setp.lt.u32 %%p, %%v%u, %%v%u;", n->a, n->b);
		put(w, "vote.sync.ballot.b32 %%v%u, %%p, %%m%d;", n->dst, m);
		break;
	case WARP_MATCH:
		put(w, "and.b32 %%t, %%v%u, 3;", n->a);
		put(w, "match.any.sync.b32 %%v%u, %%t, %%m%d;", n->dst, m);
		break;
	case WARP_ADD:
		put(w, "redux.sync.add.u32 %%v%u, %%v%u, %%m%d;", n->dst, n->a, m);
		break;
	}
}

static void print_call_either(struct printer *w, const struct node *n, int mask)
{
	put(w, "and.b32 %%t, %%v%u, 1;", n->a);
	put(w, "setp.ne.u32 %%p, %%t, 0;");
	put(w, "vote.sync.ballot.b32 %%t, %%p, %%m%d;", mask);
	put(w, "not.b32 %%u, %%t;");
	put(w, "and.b32 %%u, %%u, %%m%d;", mask);
	put(w, "selp.b32 %%t, %%t, %%u, %%p;");
	put(w, "mov.u64 %%f, function%u;", n->k);
	put(w, "mov.u64 %%g, function%u;", n->k + 1);
	put(w, "selp.b64 %%f, %%g, %%f, %%p;");
	put(w, "call (%%v%u), %%f, (%%v%u, %%v%u, %%t), PROTOTYPE;", n->dst, n->a, n->b);
}

/* Print code that makes lanes arrive at the next instruction in up to three groups: two groups branch to the end of the function
 * and back. */
static void print_detour(struct printer *w, const struct node *n)
{
	int label = w->detours++;

	put(w, "and.b32 %%t, %%v%u, 3;", n->b);
	put(w, "setp.eq.u32 %%p, %%t, 0;");
	put(w, "@%%p bra AWAY%d;", label);
	put(w, "setp.eq.u32 %%p, %%t, 1;");
	put(w, "@%%p bra FAR%d;", label);
	fprintf(w->out, "BACK%d:\n", label);
}

static void print_ends_of_detours(struct printer *w)
{
	for (int label = 0; label < w->detours; label++)
		fprintf(w->out, "AWAY%d:\n\tadd.u32 %%t, %%t, 1;\n\tbra BACK%d;\nFAR%d:\n\tbra BACK%d;\n", label, label, label, label);
}

/* Every thread stores a value to its slot and reads another thread's slot.  The second barrier keeps the slots until all threads
 * have read. */
static void print_exchange(struct printer *w, const struct node *n)
{
	put(w, "mov.u32 %%t, %%tid.x;");
	put(w, "mov.u32 %%u, slots;");
	put(w, "mad.lo.u32 %%u, %%t, 4, %%u;");
	put(w, "st.shared.u32 [%%u], %%v%u;", n->a);
	print_detour(w, n);
	put(w, "bar.sync 0;");
	put(w, "mov.u32 %%t, %%tid.x;");
	put(w, "mad.lo.u32 %%t, %%t, %u, %u;", n->k, n->b);
	put(w, "mov.u32 %%u, %%ntid.x;");
	put(w, "rem.u32 %%t, %%t, %%u;");
	put(w, "mov.u32 %%u, slots;");
	put(w, "mad.lo.u32 %%u, %%t, 4, %%u;");
	put(w, "ld.shared.u32 %%v%u, [%%u];", n->dst);
	print_detour(w, n);
	put(w, "bar.sync 0;");
}

static void print_node(struct printer *w, const struct node *n, int mask, int loop_end)
{
	switch (n->kind) {
	case NODE_ASSIGN:
		put(w, "%s %%v%u, %%v%u, %%v%u;", alu_names[n->op], n->dst, n->a, n->b);
		break;
	case NODE_IF:
		print_if(w, n, mask, loop_end);
		break;
	case NODE_LOOP:
		print_loop(w, n, mask);
		break;
	case NODE_BREAK_IF:
		print_condition(w, n);
		put(w, "not.pred %%p, %%p;");
		put(w, "vote.sync.ballot.b32 %%m%d, %%p, %%m%d;", mask, mask);
		put(w, "@!%%p bra END%d;", loop_end);
		break;
	case NODE_WARP:
		print_warp(w, n, mask);
		break;
	case NODE_CALL:
		put(w, "call (%%v%u), function%u, (%%v%u, %%v%u, %%m%d);", n->dst, n->k, n->a, n->b, mask);
		break;
	case NODE_CALL_EITHER:
		print_call_either(w, n, mask);
		break;
	case NODE_EXCHANGE:
		print_exchange(w, n);
		break;
	}
}

static void print_block(struct printer *w, int i, int mask, int loop_end)
{
	for (; i >= 0; i = w->p->nodes[i].next)
		print_node(w, &w->p->nodes[i], mask, loop_end);
}

static void print_registers(struct printer *w)
{
	put(w, ".reg .pred %%p;");
	put(w, ".reg .b32 %%t, %%u, %%v<%d>, %%m<%d>, %%n<%d>;", RANDOM_VARS, RANDOM_NODES, RANDOM_NODES);
	put(w, ".reg .b64 %%a, %%f, %%g;");
	put(w, "PROTOTYPE: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b32 _, .reg .b32 "
	       "_);");
}

/* v0 and v1 are the arguments, m0 is the mask of the calling lanes; v0 is also the result. */
static void print_function(struct printer *w, int f)
{
	fprintf(w->out,
		".func (.reg .b32 %%result) function%d(.reg .b32 %%x, .reg .b32 %%y, .reg .b32 "
		"%%lanes)\n{\n",
		f);
	print_registers(w);
	put(w, "mov.u32 %%v0, %%x;");
	put(w, "mov.u32 %%v1, %%y;");
	for (int v = 2; v < RANDOM_VARS; v++)
		put(w, "add.u32 %%v%d, %%x, %d;", v, v * FUNCTION_STEP);
	int mask = w->labels++;
	put(w, "mov.u32 %%m%d, %%lanes;", mask);
	print_block(w, w->p->function_body[f], mask, -1);
	put(w, "mov.u32 %%result, %%v0;");
	put(w, "ret;");
	fprintf(w->out, "}\n\n");
}

static void print_kernel(struct printer *w)
{
	int mask = w->labels++;

	fprintf(w->out, ".visible .entry random_kernel(.param .u64 values)\n{\n");
	print_registers(w);
	put(w, ".shared .b32 slots[%d];", RANDOM_MAX_THREADS);
	put(w, "ld.param.u64 %%a, [values];");
	put(w, "cvta.to.global.u64 %%a, %%a;");
	put(w, "mov.u32 %%t, %%ctaid.x;");
	put(w, "mov.u32 %%u, %%ntid.x;");
	put(w, "mul.lo.u32 %%t, %%t, %%u;");
	put(w, "mov.u32 %%u, %%tid.x;");
	put(w, "add.u32 %%t, %%t, %%u;");
	put(w, "mul.wide.u32 %%f, %%t, %d;", RANDOM_VARS * 4);
	put(w, "add.u64 %%a, %%a, %%f;");
	for (int v = 0; v < RANDOM_VARS; v++)
		put(w, "ld.global.u32 %%v%d, [%%a+%d];", v, v * 4);
	put(w, "activemask.b32 %%m%d;", mask);
	print_block(w, w->p->main_body, mask, -1);
	for (int v = 0; v < RANDOM_VARS; v++)
		put(w, "st.global.u32 [%%a+%d], %%v%d;", v * 4, v);
	put(w, "ret;");
	print_ends_of_detours(w);
	fprintf(w->out, "}\n");
}

char *random_program_ptx(const struct random_program *p)
{
	char *text = NULL;
	size_t bytes = 0;
	struct printer w = { .p = p, .out = open_memstream(&text, &bytes) };

	if (!w.out)
		return NULL;
	fprintf(w.out, ".version 8.0\n.target sm_90\n.address_size 64\n\n");
	for (int f = RANDOM_FUNCTIONS; f-- > 0;) /* functions are printed before their callers, so that no declarations are needed */
		print_function(&w, f);
	print_kernel(&w);
	fclose(w.out);
	return text;
}
