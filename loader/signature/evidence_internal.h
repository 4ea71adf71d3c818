/* evidence_internal.h — type inference: collects how instructions use the values of a kernel (as f32, as a signed integer, ...).
 *
 * Values that an instruction only copies (mov, selp, shfl, parameters of calls) are unified into one class (union-find); each typed
 * instruction adds evidence to the classes of its operands. */
#ifndef GPULOAD_LOADER_SIGNATURE_EVIDENCE_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_EVIDENCE_INTERNAL_H

#include "loader/signature/dataflow_internal.h"

enum evidence {
	EVIDENCE_F16 = 1 << 0,
	EVIDENCE_BF16 = 1 << 1,
	EVIDENCE_F32 = 1 << 2,
	EVIDENCE_F64 = 1 << 3,
	EVIDENCE_SIGNED = 1 << 4,         /* used by a signed operation: setp.lt.s32 */
	EVIDENCE_UNSIGNED = 1 << 5,       /* used by an unsigned operation: div.u32 */
	EVIDENCE_INT = 1 << 6,            /* a signed or unsigned integer: add.s32 is used for both */
	EVIDENCE_MAYBE_UNSIGNED = 1 << 7, /* signed or unsigned, more likely unsigned: atom.add.u32, xor.b32 */
	EVIDENCE_VIA_MEMORY = 1 << 8,     /* stored to .local or .shared memory, or loaded from it */
};
#define EVIDENCE_ANY_INT (EVIDENCE_SIGNED | EVIDENCE_UNSIGNED | EVIDENCE_INT | EVIDENCE_MAYBE_UNSIGNED)
#define EVIDENCE_FLOAT   (EVIDENCE_F16 | EVIDENCE_BF16 | EVIDENCE_F32 | EVIDENCE_F64)

typedef struct gpul_evidence {
	uint32_t *parent;       /* for each node: its parent in a union-find forest */
	uint16_t *mask;         /* for each root of a class: the evidence for the class, a set of enum evidence */
	uint16_t memory_floats; /* the float types that a value in .local or .shared memory may have */
} gpul_evidence;

/* Collect the evidence of all functions of p.  Release *out with gpul_evidence_close(); it is zeroed on failure.
 * Fails with GPUL_ENOMEM only. */
gpul_status gpul_evidence_open(const gpul_dataflow *p, gpul_evidence *out, gpul_error *err);
void gpul_evidence_close(gpul_evidence *e);

/* Return the evidence of the class that contains a node. */
uint16_t gpul_evidence_of(const gpul_evidence *e, uint32_t node);

/* Return the evidence that a PTX type gives: EVIDENCE_F32 for .f32, SIGNED for .s32, 0 for .b32. */
uint16_t gpul_evidence_of_type(uint16_t type);

/* Return the type of a value with the given size in bytes.
 * @mask      the evidence of its class
 * @fallback  the evidence of the access or declaration itself, used if mask is empty */
gpul_type gpul_evidence_type(uint16_t mask, uint16_t fallback, unsigned bytes);

#endif
