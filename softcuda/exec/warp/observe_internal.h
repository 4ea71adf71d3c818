/* observe_internal.h — the handler of observed instructions, and queries for tools about an instruction and its accesses. */
#ifndef GPULOAD_SOFTCUDA_EXEC_WARP_OBSERVE_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_WARP_OBSERVE_INTERNAL_H

#include "softcuda/exec/warp/warp_internal.h"

op_fn gpul_observed;

/* Return the lanes of mask that execute an instruction of the current frame: those whose guard is true, or all if it has no guard. */
uint32_t gpul_insn_lanes(const struct warp_state *s, const struct insn *i, uint32_t mask);
/* Return the PTX instruction from which i was decoded; NULL if i is the implicit return at the end of a function. */
const gpul_ptx_inst *gpul_insn_ptx(const struct func_code *code, const struct insn *i);
/* Return true if i is the first (..._begins) or the last (..._ends) of the instructions to which one PTX instruction was decoded. */
bool gpul_insn_begins(const struct func_code *code, const struct insn *i);
bool gpul_insn_ends(const struct func_code *code, const struct insn *i);
/* Write the source position, as in faults: "kernel.ptx:31 (kernel.cu:7)".  If f is not NULL, set f->source, f->source_line etc., too. */
void gpul_insn_place(const struct func_code *code, const struct insn *i, gpul_exec_fault *f, char *buf, size_t bytes);
/* Return the values of a register in all lanes, *bytes bytes for each lane, from lane 0 on.  A 128-bit register has the low 8 bytes
 * of 32 lanes, then the high 8 bytes; a predicate is a uint32_t whose bit n is lane n, and *bytes is 0.  NULL: the register is unused. */
const void *gpul_warp_register(const struct warp_state *s, const struct frame *f, uint32_t flat, unsigned *bytes);
/* Compute %tid of a lane. */
void gpul_lane_thread(const struct warp_state *s, unsigned lane, uint32_t thread[3]);
/* Write the index of a block or thread as "5", "5,1" or "5,1,2", with as many numbers as the grid or block has dimensions.  Returns buf. */
enum { INDEX_BYTES = 40 };
const char *gpul_index_text(const uint32_t i[3], const uint32_t extent[3], char buf[INDEX_BYTES]);

/* ---- accesses of an instruction ------------------------------------------------------------------------------ */

enum access_kind { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_ATOMIC = 3 };
enum access_order { ORDER_WEAK, ORDER_VOLATILE, ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL };
enum access_scope { SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYS };

/* A memory access of an instruction; each lane of the instruction makes one. */
struct lane_accesses {
	enum access_kind kind;
	enum access_order order; /* order in PTX's memory model */
	enum access_scope scope; /* scope, if the order is not ORDER_WEAK */
	bool async;              /* cp.async, cp.async.bulk, st.async: complete only after the program has waited */
	bool mbarrier;           /* the access of an mbarrier instruction to its mbarrier */
	uint32_t lanes;
	uint32_t bytes[LANES]; /* number of bytes that each lane accesses; 0: the lane accesses nothing */
	uint8_t space[LANES];  /* SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL or SPACE_PARAM, even for a generic address */
	uint64_t at[LANES];    /* a global address; or an offset in shared memory, the lane's local memory or the parameters */
};
enum { MAX_INSN_ACCESSES = 4 };

/* Returns true if the instruction may access memory by an address; gpul_insn_accesses() describes how. */
bool gpul_insn_accesses_memory(const struct insn *i);
/* Returns true for multimem.ld_reduce, .st and .red.  Their addresses are multicast addresses, which refer to memory at other
 * addresses (multimem_internal.h); ordinary stores may also use such addresses. */
bool gpul_insn_is_multimem(const struct insn *i);
/* Returns true for an asynchronous copy, with a source and a destination. */
bool gpul_insn_copies(const struct insn *i);
/* Return the size of a lane's access, and the kind of the access, if the instruction is not a copy. */
unsigned gpul_insn_access_bytes(const struct insn *i);
enum access_kind gpul_insn_access_kind(const struct insn *i);
/** Describe the accesses that the lanes in `on` are about to make, and return their number.  Call it before the instruction is
 * executed. Addresses are not checked and may be invalid.  Accesses to shared memory of other blocks have size 0.  Not described:
 * reads of kernel parameters by name, printf, device malloc, textures; tensor copies, wgmma and surfaces: see gpul_insn_pieces(). */
unsigned gpul_insn_accesses(struct warp_state *s, const struct insn *i, uint32_t on, struct lane_accesses out[MAX_INSN_ACCESSES]);
/* ---- accesses in pieces: tensor copies, wgmma, surfaces (observe_pieces.c) ------------------------------------------- */

/* an address space used only in struct memory_piece: array memory, by its host address */
enum { SPACE_SURFACE = SPACE_PARAM + 1 };

struct memory_piece {
	enum access_kind kind;
	uint8_t lane, space;
	bool async;                /* the access is complete only after the program has waited for it */
	bool copies;               /* a write or reduction whose source is the piece that was passed just before */
	const struct block *block; /* SPACE_SHARED: the block that owns the shared memory; it may be another block in the cluster */
	uint64_t at;               /* as in struct lane_accesses */
	uint32_t bytes;
};
typedef void memory_piece_fn(void *context, const struct memory_piece *p);

bool gpul_insn_has_pieces(const struct insn *i);
/* Call a function for each piece of memory that the lanes in `on` are about to access: for a source before its destination, and not
 * for lanes that will fault.  Accesses to mbarriers are not included.  The pieces of a wgmma are attributed to the warp's first lane. */
void gpul_insn_pieces(struct warp_state *s, const struct insn *i, uint32_t on, memory_piece_fn *call, void *context);
/* Combine the pieces to at most one access per kind, space and lane, with the lowest address and the sum of the sizes.  Pieces in the
 * shared memory of other blocks are omitted.  Returns the number of accesses. */
unsigned gpul_insn_piece_sums(struct warp_state *s, const struct insn *i, uint32_t on, struct lane_accesses out[MAX_INSN_ACCESSES]);

/* Return the host address of a lane's access, without checking it. */
uint8_t *gpul_access_host(const struct warp_state *s, unsigned lane, unsigned space, uint64_t at);

#endif
