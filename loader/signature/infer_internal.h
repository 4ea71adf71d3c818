/* infer_internal.h — what a walk through a kernel's code found out about its parameters. */
#ifndef GPULOAD_LOADER_SIGNATURE_INFER_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_INFER_INTERNAL_H

#include "loader/signature/evidence_internal.h"
#include "loader/signature/signature_internal.h"

#define INVENTED_ELEMENTS 1024 /* what run makes of a buffer when nobody says otherwise */

typedef struct param_facts {
	uint32_t widths;   /* a bit for each access width in bytes: 1, 2, 4, 8, 16 */
	uint16_t evidence; /* of the values loaded and stored */
	uint16_t fallback; /* of the accesses' own types */
	uint32_t vector;
	uint64_t reach; /* bytes past its own element that a thread touches */
	bool accessed, loaded, stored, leaves, called;
	bool end; /* compared with an address */
} param_facts;

typedef struct gpul_inference {
	const gpul_flow_program *p;
	gpul_evidence e;
	gpul_signature_owned *s;
	param_facts facts[FLOW_MAX_PARAMS];
	uint64_t bounds;       /* compared with a thread index */
	uint64_t turns;        /* compared with a loop's counter */
	uint64_t steers;       /* enter an address other than as its base */
	uint64_t slack;        /* the largest constant that is added to a bound */
	bool below;            /* an address lies before the thread's own element */
	bool above_zero;       /* an index is compared with a constant, as in i > 0 */
	bool walks;            /* a loop moves an address by constants */
	const char *unbounded; /* what only a COUNT can make safe; NULL: nothing met */
} gpul_inference;

/* The parameter of the lowest bit; -1: none. */
static inline int gpul_first_param(uint64_t set)
{
	return set ? __builtin_ctzll(set) : -1;
}

/* Roles and types of all parameters, and what remains doubtful, into i->s. */
void gpul_inference_conclude(gpul_inference *i);

#endif
