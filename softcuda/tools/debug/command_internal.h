#ifndef GPULOAD_SOFTCUDA_TOOLS_DEBUG_COMMAND_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_DEBUG_COMMAND_INTERNAL_H

#include "softcuda/tools/debug/debug_internal.h"

/* A command of the client, split into words; its output is written to `out`. */
struct call {
	struct debug *d;
	char **word; /* word[0] is the command */
	unsigned n;
	FILE *out;
	gpul_error *err;
};

/* Functions of lane.c. */
gpul_status gpul_debug_usage(const struct call *c, const char *usage);
uint64_t gpul_debug_number(const struct call *c, unsigned k);           /* returns word k as a number; 0 if there is no such word */
void gpul_debug_print_text(FILE *out, const char *text);                /* replaces tabs and newlines, the separators of the protocol */
struct split *gpul_debug_split_of(struct warp_state *s, unsigned lane); /* returns the lane's split (converged lanes); NULL: it has ended */
struct block *gpul_debug_find_block(const struct debug *d, uint64_t index);
/* Get the frame, instruction and active mask of a lane; sets *frame to NULL if the lane has ended. */
const struct insn *gpul_debug_lane_at(const struct debug *d, struct warp_state *s, unsigned lane, struct frame **frame, uint32_t *mask);
/* Parse words 1 to 4 of a command: block, warp, lane and frame (0 is the innermost). Errors: GPUL_EINVAL if this lane is not running. */
gpul_status gpul_debug_find_lane(const struct call *c, struct lane *out, const struct insn **insn);

/* in show.c: one function for each command */
gpul_status gpul_debug_show_status(const struct call *c);
gpul_status gpul_debug_show_warps(const struct call *c);
gpul_status gpul_debug_show_frames(const struct call *c);
gpul_status gpul_debug_show_registers(const struct call *c);
gpul_status gpul_debug_show_specials(const struct call *c);
gpul_status gpul_debug_show_params(const struct call *c);
gpul_status gpul_debug_show_variables(const struct call *c);
gpul_status gpul_debug_show_evaluate(const struct call *c);
gpul_status gpul_debug_show_lanes(const struct call *c);
gpul_status gpul_debug_show_memory(const struct call *c);
gpul_status gpul_debug_show_programs(const struct call *c);
gpul_status gpul_debug_show_listing(const struct call *c);

#endif
