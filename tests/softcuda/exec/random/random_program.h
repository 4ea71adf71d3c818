/* random_program.h — random structured programs, printed as PTX and executed by a reference implementation.
 *
 * A program is a tree of assignments, ifs, loops with breaks, warp operations, calls and indirect calls.  random_program_ptx() prints it
 * for the interpreter, which sees only branches and must find where lanes diverge and reconverge.  random_program_run() walks the tree
 * with the set of active lanes, which follows from the structure of the tree.  Both must compute the same values.
 *
 * Every warp operation has a mask of its lanes, computed by votes just before lanes diverge, as in a correct CUDA program. */
#ifndef GPULOAD_TESTS_SOFTCUDA_RANDOM_PROGRAM_H
#define GPULOAD_TESTS_SOFTCUDA_RANDOM_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { RANDOM_VARS = 6, RANDOM_FUNCTIONS = 3, RANDOM_NODES = 600, RANDOM_MAX_THREADS = 128 };

enum node_kind { NODE_ASSIGN, NODE_IF, NODE_LOOP, NODE_BREAK_IF, NODE_WARP, NODE_CALL, NODE_CALL_EITHER, NODE_EXCHANGE };

struct node {
	enum node_kind kind;
	unsigned op;           /* ASSIGN, WARP: the operation; IF, LOOP: the comparison */
	unsigned dst, a, b, k; /* dst, a, b: variables; k: a small constant */
	int body, other;       /* first node of the body and of the else branch; -1: empty */
	int next;              /* next node of the same block; -1: none */
};

struct random_program {
	struct node nodes[RANDOM_NODES];
	int n_nodes;
	int main_body;
	int function_body[RANDOM_FUNCTIONS]; /* function i only calls functions with higher numbers */
	uint64_t seed;
};

void random_program_make(struct random_program *p, uint64_t seed);

/* PTX with a kernel random_kernel(.u64 values).  values[t] contains the variables of thread t, before and after the run.  The
 * caller frees the text. */
char *random_program_ptx(const struct random_program *p);

/* Compute the values of the threads of one block with the reference implementation, without the interpreter. */
void random_program_run(const struct random_program *p, uint32_t (*values)[RANDOM_VARS], unsigned n_threads);

#endif
