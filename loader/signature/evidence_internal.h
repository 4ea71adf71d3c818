/* evidence_internal.h — which types the values in a kernel are used as.
 *
 * Registers that only pass a value on (mov, selp, shfl, parameters of calls) share one class;
 * each instruction with a type leaves evidence in the classes of its operands. */
#ifndef GPULOAD_LOADER_SIGNATURE_EVIDENCE_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_EVIDENCE_INTERNAL_H

#include "loader/signature/flow_internal.h"

enum evidence {
	EVIDENCE_F16 = 1 << 0,
	EVIDENCE_BF16 = 1 << 1,
	EVIDENCE_F32 = 1 << 2,
	EVIDENCE_F64 = 1 << 3,
	EVIDENCE_SIGNED = 1 << 4,   /* used where the sign matters: setp.lt.s32 */
	EVIDENCE_UNSIGNED = 1 << 5, /* likewise: div.u32 */
	EVIDENCE_INT = 1 << 6,      /* an integer of either kind: add.s32 is written for both */
	EVIDENCE_NATURAL = 1 << 7,  /* likewise, but rather unsigned: atom.add.u32, xor.b32 */
	EVIDENCE_PARKED = 1 << 8,   /* passes through memory where floats pass too */
};
#define EVIDENCE_ANY_INT (EVIDENCE_SIGNED | EVIDENCE_UNSIGNED | EVIDENCE_INT | EVIDENCE_NATURAL)
#define EVIDENCE_FLOAT   (EVIDENCE_F16 | EVIDENCE_BF16 | EVIDENCE_F32 | EVIDENCE_F64)

typedef struct gpul_evidence {
	uint32_t *parent; /* by node: a union-find forest */
	uint16_t *mask;   /* of a root: enum evidence */
	uint16_t parked;  /* the floats that a value in .local or .shared memory may be */
} gpul_evidence;

/* Released by gpul_evidence_close(); zeroed on failure, which is GPUL_ENOMEM only. */
gpul_status gpul_evidence_open(const gpul_flow_program *p, gpul_evidence *out, gpul_error *err);
void gpul_evidence_close(gpul_evidence *e);

/* All that is known of a node's class. */
uint16_t gpul_evidence_of(const gpul_evidence *e, uint32_t node);

/* What a type of the PTX alone says: .f32 is EVIDENCE_F32; .s32 SIGNED; .b32 nothing. */
uint16_t gpul_evidence_of_type(uint16_t type);

/* The element type that evidence on a value of so many bytes amounts to.
 * @fallback  the evidence to take when there is none: of the access or declaration itself */
gpul_type gpul_evidence_type(uint16_t mask, uint16_t fallback, unsigned bytes);

#endif
