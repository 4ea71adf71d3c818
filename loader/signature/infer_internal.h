/* infer_internal.h — defines the facts that infer.c collects about a kernel's parameters, for roles.c. */
#ifndef GPULOAD_LOADER_SIGNATURE_INFER_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_INFER_INTERNAL_H

#include "loader/signature/evidence_internal.h"
#include "loader/signature/signature_internal.h"

#define INVENTED_ELEMENTS 1024 /* gpuload run gives a buffer this many elements by default */

#define MAX_VECTOR 64 /* maximum number of elements per thread; a larger stride is treated as a row of a matrix */

typedef struct param_facts {
	uint32_t widths;   /* widths in bytes (1, 2, 4, 8, 16) of all accesses, combined by bitwise OR */
	uint16_t evidence; /* evidence of the types of the loaded and stored values */
	uint16_t fallback; /* evidence from the accesses themselves: f32 for ld.f32 */
	uint32_t vector;
	uint64_t offset; /* how many bytes past its own element a thread accesses */
	uint64_t growth; /* how many bytes a loop advances the address in one iteration */
	bool accessed, loaded, stored, escapes, called;
	bool is_end; /* the parameter is compared with an address, so it is the end of a buffer */
} param_facts;

/* In each set, bit k represents leaf k: a parameter, or a member of a struct. */
typedef struct gpul_inference {
	const gpul_dataflow *p;
	gpul_evidence e;
	gpul_signature_owned *s;
	param_facts facts[DATAFLOW_MAX_LEAVES];
	uint64_t index_bounds;               /* set of parameters that are compared with a thread index */
	uint64_t loop_bounds;                /* set of parameters that are compared with a loop counter */
	uint64_t counter_growth;             /* the smallest increment of a loop counter; 0: no loop counter */
	uint64_t in_index;                   /* set of parameters on which an address depends, except the base of the address */
	uint64_t bound_offset;               /* the largest constant added to an index bound */
	uint64_t floats;                     /* set of leaves whose values are of a floating-point type */
	uint64_t read_indexes;               /* set of leaves: buffers from which an index is loaded */
	bool negative_index;                 /* a thread accesses an address before its own element */
	bool index_checked;                  /* an index is compared with a constant, as in i > 0 */
	bool unbounded_loop;                 /* a loop advances an address by constants */
	char names[DATAFLOW_MAX_LEAVES][48]; /* "parameter 2", for messages */
	const char *needs_count;             /* why the buffers are big enough only if a parameter is a COUNT; else NULL */
} gpul_inference;

/* Return the lowest parameter in a set; -1: the set is empty. */
static inline int gpul_first_param(uint64_t set)
{
	return set ? __builtin_ctzll(set) : -1;
}

/* Return the name of the first leaf in a set, for a message. */
const char *gpul_leaf_name(const gpul_inference *i, uint64_t set);

/* Return the gpul_param of leaf number `leaf`: a parameter, or a member of a struct. */
gpul_param *gpul_leaf_param(const gpul_inference *i, uint32_t leaf);

/* Set the role and type of every parameter in i->s, or record why the signature is incomplete. */
gpul_status gpul_inference_assign_roles(gpul_inference *i, gpul_error *err);

#endif
