/* random_walk.c — the reference: walks the program's tree with the set of active lanes. */
#include <string.h>

#include "tests/softcuda/exec/random/random_ops.h"
#include "tests/softcuda/exec/random/random_program.h"

const char *const alu_names[N_ALU_OPS] = {
	[ALU_ADD] = "add.u32", [ALU_SUB] = "sub.u32", [ALU_MUL] = "mul.lo.u32", [ALU_AND] = "and.b32", [ALU_OR] = "or.b32",
	[ALU_XOR] = "xor.b32", [ALU_MIN] = "min.s32", [ALU_MAX] = "max.u32",    [ALU_SHR] = "shr.u32",
};

typedef uint32_t lanes[32][RANDOM_VARS];

static uint32_t alu(unsigned op, uint32_t a, uint32_t b)
{
	switch (op) {
	case ALU_ADD:
		return a + b;
	case ALU_SUB:
		return a - b;
	case ALU_MUL:
		return a * b;
	case ALU_AND:
		return a & b;
	case ALU_OR:
		return a | b;
	case ALU_XOR:
		return a ^ b;
	case ALU_MIN:
		return (int32_t)a < (int32_t)b ? a : b;
	case ALU_MAX:
		return a > b ? a : b;
	default:
		return b > 31 ? 0 : a >> b;
	}
}

static uint32_t condition(const struct node *n, lanes v, uint32_t active)
{
	uint32_t mask = 0;

	for (unsigned l = 0; l < 32; l++) {
		uint32_t a = v[l][n->a], b = v[l][n->b];
		int holds = n->op == COND_LESS ? (int32_t)a < (int32_t)b : n->op == COND_BITS ? (a & 7) < n->k : (a & 7) == n->k;
		mask |= (uint32_t)holds << l;
	}
	return mask & active;
}

static uint32_t warp_value(const struct node *n, lanes v, uint32_t active, unsigned lane)
{
	uint32_t r = 0, from = v[lane][n->b] & 31;

	if (n->op == WARP_SHUFFLE)
		return v[active >> from & 1 ? from : lane][n->a];
	for (unsigned l = 0; l < 32; l++) {
		if (!(active >> l & 1))
			continue;
		if (n->op == WARP_BALLOT)
			r |= (uint32_t)(v[l][n->a] < v[l][n->b]) << l;
		else if (n->op == WARP_MATCH)
			r |= (uint32_t)((v[l][n->a] & 3) == (v[lane][n->a] & 3)) << l;
		else
			r += v[l][n->a];
	}
	return r;
}

static uint32_t walk(const struct random_program *p, int i, lanes v, uint32_t active);

static void call(const struct random_program *p, unsigned f, const struct node *n, lanes v, uint32_t active)
{
	lanes inner;

	if (!active)
		return;
	for (unsigned l = 0; l < 32; l++)
		for (unsigned k = 0; k < RANDOM_VARS; k++)
			inner[l][k] = k == 1 ? v[l][n->b] : v[l][n->a] + (k ? k * FUNCTION_STEP : 0);
	walk(p, p->function_body[f], inner, active);
	for (unsigned l = 0; l < 32; l++)
		if (active >> l & 1)
			v[l][n->dst] = inner[l][0];
}

static void call_either(const struct random_program *p, const struct node *n, lanes v, uint32_t active)
{
	lanes before;
	uint32_t odd = 0;

	memcpy(before, v, sizeof before);
	for (unsigned l = 0; l < 32; l++)
		odd |= (before[l][n->a] & 1) << l;
	call(p, n->k, n, v, active & ~odd);
	call(p, n->k + 1, n, v, active & odd); /* the lanes of the two calls exchange no values: their masks differ */
}

static void loop(const struct random_program *p, const struct node *n, lanes v, uint32_t active)
{
	uint32_t rounds[32];

	for (unsigned l = 0; l < 32; l++)
		rounds[l] = v[l][n->a] & 7;
	for (;;) {
		for (unsigned l = 0; l < 32; l++)
			if (!rounds[l])
				active &= ~(1u << l);
		if (!active)
			return;
		for (unsigned l = 0; l < 32; l++)
			rounds[l] -= active >> l & 1;
		active = walk(p, n->body, v, active);
	}
}

/* All lanes read their operands before any lane writes. */
static void assign(const struct node *n, lanes v, uint32_t active)
{
	uint32_t result[32];

	for (unsigned l = 0; l < 32; l++)
		result[l] = n->kind == NODE_ASSIGN ? alu(n->op, v[l][n->a], v[l][n->b]) : warp_value(n, v, active, l);
	for (unsigned l = 0; l < 32; l++)
		if (active >> l & 1)
			v[l][n->dst] = result[l];
}

/* Returns the lanes that continue at the next node: all except those that break out of the loop. */
static uint32_t walk_node(const struct random_program *p, const struct node *n, lanes v, uint32_t active)
{
	uint32_t yes = condition(n, v, active);

	switch (n->kind) {
	case NODE_ASSIGN:
	case NODE_WARP:
		assign(n, v, active);
		break;
	case NODE_IF:
		walk(p, n->body, v, yes);
		walk(p, n->other, v, active & ~yes);
		break;
	case NODE_LOOP:
		loop(p, n, v, active);
		break;
	case NODE_BREAK_IF:
		return active & ~yes;
	case NODE_CALL:
		call(p, n->k, n, v, active);
		break;
	case NODE_CALL_EITHER:
		call_either(p, n, v, active);
		break;
	case NODE_EXCHANGE: /* exchange() executes this node for the whole block */
		break;
	}
	return active;
}

static uint32_t walk(const struct random_program *p, int i, lanes v, uint32_t active)
{
	for (; i >= 0 && active; i = p->nodes[i].next)
		active = walk_node(p, &p->nodes[i], v, active);
	return active;
}

static void exchange(const struct node *n, uint32_t (*values)[RANDOM_VARS], unsigned n_threads)
{
	uint32_t slots[RANDOM_MAX_THREADS];

	for (unsigned t = 0; t < n_threads; t++)
		slots[t] = values[t][n->a];
	for (unsigned t = 0; t < n_threads; t++)
		values[t][n->dst] = slots[(t * n->k + n->b) % n_threads];
}

static void walk_warp(const struct random_program *p, const struct node *n, uint32_t (*values)[RANDOM_VARS], unsigned n_lanes)
{
	lanes v = { { 0 } };

	memcpy(v, values, n_lanes * sizeof *values);
	walk_node(p, n, v, n_lanes == 32 ? UINT32_MAX : (1u << n_lanes) - 1);
	memcpy(values, v, n_lanes * sizeof *values);
}

void random_program_run(const struct random_program *p, uint32_t (*values)[RANDOM_VARS], unsigned n_threads)
{
	for (int i = p->main_body; i >= 0; i = p->nodes[i].next) {
		const struct node *n = &p->nodes[i];
		if (n->kind == NODE_EXCHANGE)
			exchange(n, values, n_threads);
		for (unsigned t = 0; t < n_threads; t += 32)
			walk_warp(p, n, values + t, n_threads - t < 32 ? n_threads - t : 32);
	}
}
