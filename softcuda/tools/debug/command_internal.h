/* command_internal.h — what the commands of a client share. */
#ifndef GPULOAD_SOFTCUDA_TOOLS_DEBUG_COMMAND_INTERNAL_H
#define GPULOAD_SOFTCUDA_TOOLS_DEBUG_COMMAND_INTERNAL_H

#include "softcuda/tools/debug/debug_internal.h"

struct call {
	struct debug *d;
	char **word;                     /* word[0]: the command */
	unsigned n;
	FILE *out;
	gpul_error *err;
};

/* lane.c */
gpul_status gpul_debug_usage(const struct call *c, const char *usage);
uint64_t gpul_debug_number(const struct call *c, unsigned k);             /* word k; 0: there is none */
void gpul_debug_print_text(FILE *out, const char *text);                  /* without tabs and line ends, which separate words and lines */
struct split *gpul_debug_split_of(struct warp_state *s, unsigned lane);   /* NULL: the lane has ended */
struct block *gpul_debug_find_block(const struct debug *d, uint64_t index);  /* NULL: it is not resident */
/* The frame, instruction and mask of a lane; *frame NULL: it has ended. */
const struct insn *gpul_debug_lane_at(const struct debug *d, struct warp_state *s, unsigned lane, struct frame **frame, uint32_t *mask);
/* Words 1 to 4: block, warp, lane and frame; 0 is the innermost frame.  Errors: GPUL_EINVAL no such lane runs. */
gpul_status gpul_debug_find_lane(const struct call *c, struct lane *out, const struct insn **insn);

/* show.c: one function for each command */
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
