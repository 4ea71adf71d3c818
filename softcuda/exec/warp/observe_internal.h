/* observe_internal.h — the handler of observed instructions, and queries for tools about an instruction and its accesses. */
#ifndef GPULOAD_SOFTCUDA_EXEC_WARP_OBSERVE_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_WARP_OBSERVE_INTERNAL_H

#include "softcuda/exec/warp/warp_internal.h"

op_fn gpul_observed;

/* Return the lanes of mask that execute an instruction of the current frame: all of them, or those whose guard is true. */
uint32_t gpul_insn_lanes(const struct warp_state *s, const struct insn *i, uint32_t mask);
/* Return the PTX instruction; NULL: i is the implicit return at the end. */
const gpul_ptx_inst *gpul_insn_ptx(const struct func_code *code, const struct insn *i);
/* Returns true if i is the first, or the last, of the instructions that a PTX instruction was decoded to. */
bool gpul_insn_begins(const struct func_code *code, const struct insn *i);
bool gpul_insn_ends(const struct func_code *code, const struct insn *i);
/* Write the source position: "kernel.ptx:31 (kernel.cu:7)", as in faults.  Also sets the source... members of *f if f is not NULL. */
void gpul_insn_place(const struct func_code *code, const struct insn *i, gpul_exec_fault *f, char *buf, size_t bytes);
/* The values of a register of the warp's frame in its lanes: *bytes for each lane, from lane 0 on; 128 bits: the 32 low words, then the
 * high words; a predicate: *bytes is 0, bit n of the uint32_t is lane n.  NULL: no instruction uses the register. */
const void *gpul_warp_register(const struct warp_state *s, const struct frame *f, uint32_t flat, unsigned *bytes);
/* The %tid of a lane. */
void gpul_lane_thread(const struct warp_state *s, unsigned lane, uint32_t thread[3]);
/* The index of a block or thread as "5", "5,1" or "5,1,2", by the number of dimensions of the grid or block.  Returns buf. */
enum { INDEX_BYTES = 40 };
const char *gpul_index_text(const uint32_t i[3], const uint32_t extent[3], char buf[INDEX_BYTES]);

/* ---- accesses ------------------------------------------------------------------------------------------------ */

enum access_kind { ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_ATOMIC = 3 };
enum access_order { ORDER_WEAK, ORDER_VOLATILE, ORDER_RELAXED, ORDER_ACQUIRE, ORDER_RELEASE, ORDER_ACQ_REL };
enum access_scope { SCOPE_CTA, SCOPE_CLUSTER, SCOPE_GPU, SCOPE_SYS };

/* One access of an instruction by each of its lanes. */
struct lane_accesses {
	enum access_kind kind;
	enum access_order order; /* order in PTX's memory model; ORDER_WEAK: none */
	enum access_scope scope; /* scope of an access that is not weak */
	bool async;              /* made by cp.async, cp.async.bulk or st.async: complete only after the program has waited for it */
	bool mbarrier;           /* an mbarrier instruction accesses its mbarrier object */
	uint32_t lanes;
	uint32_t bytes[LANES]; /* bytes that a lane accesses; 0: it accesses nothing */
	uint8_t space[LANES]; /* SPACE_GLOBAL, SPACE_SHARED, SPACE_LOCAL, SPACE_PARAM: for a generic address, the window that contains it */
	uint64_t at[LANES];   /* a global address, or an offset in shared memory, the lane's local memory, the parameters */
};
enum { MAX_INSN_ACCESSES = 4 };

/* Returns true if the instruction may access memory by an address; gpul_insn_accesses() describes how. */
bool gpul_insn_accesses_memory(const struct insn *i);
/* Returns true for multimem.ld_reduce, .st and .red; their addresses, and those of some ordinary stores, are multicast addresses, which
 * have no memory of their own (multimem_internal.h). */
bool gpul_insn_is_multimem(const struct insn *i);
/* Returns true for an asynchronous copy, with a source and a destination. */
bool gpul_insn_copies(const struct insn *i);
/* Return the bytes of a lane's access, and its kind, if the instruction is not a copy. */
unsigned gpul_insn_access_bytes(const struct insn *i);
enum access_kind gpul_insn_access_kind(const struct insn *i);
/** Describe the accesses that lanes `on` are about to make: call it before the instruction is executed.  Nothing is checked: the
 * addresses may be wrong.  Accesses to the shared memory of other blocks of the cluster have 0 bytes.  Reads of kernel parameters by name,
 * printf, device malloc and textures are not described; tensor copies, wgmma and surfaces by gpul_insn_pieces().  Returns their
 * number. */
unsigned gpul_insn_accesses(struct warp_state *s, const struct insn *i, uint32_t on, struct lane_accesses out[MAX_INSN_ACCESSES]);
/* ---- accesses in pieces: tensor copies, wgmma, surfaces (observe_pieces.c) ------------------------------------------- */

/* an address space for pieces only: memory of an array, given by its host address */
enum { SPACE_SURFACE = SPACE_PARAM + 1 };

struct memory_piece {
	enum access_kind kind;
	uint8_t lane, space;
	bool async;                /* complete only when the program has waited for it */
	bool copies;               /* it writes, or adds, the bytes of the last piece that was read */
	const struct block *block; /* SPACE_SHARED: the owner; another block of the cluster if a copy goes there */
	uint64_t at;               /* as in struct lane_accesses */
	uint32_t bytes;
};
typedef void memory_piece_fn(void *context, const struct memory_piece *p);

bool gpul_insn_has_pieces(const struct insn *i);
/* Call a function for each piece of memory that lanes `on` are about to access: a source comes before its destination; nothing
 * for a lane that will fault.  mbarriers are not described.  A wgmma reads for its whole warp: the first lane has all pieces. */
void gpul_insn_pieces(struct warp_state *s, const struct insn *i, uint32_t on, memory_piece_fn *call, void *context);
/* Combine the pieces to at most one access per kind, space and lane: the lowest address, and all bytes including the gaps.
 * Pieces in other blocks are left out.  Returns the number of accesses. */
unsigned gpul_insn_piece_sums(struct warp_state *s, const struct insn *i, uint32_t on, struct lane_accesses out[MAX_INSN_ACCESSES]);

/* Return the host address of a lane's access, which need not be accessible. */
uint8_t *gpul_access_host(const struct warp_state *s, unsigned lane, unsigned space, uint64_t at);

#endif
