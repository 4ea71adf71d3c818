/* forms_special.c — lists the forms of instructions on matrices and textures, and of video instructions: PTX ISA 9.0, 9.7.10,
 * 9.7.11, 9.7.14 to 9.7.18.  Operands are checked only for mma. */
#include "ptx/strict/strict_internal.h"

/* clang-format off */
const struct strict_form strict_special[] = {
	/* the columns are the members of struct strict_form: ops, mods, args, ptx, sm, arch, until */
	{ "wmma", "f16|f32 ...", NULL, 60, 70, 0, 0, 0 },
	{ "wmma", "u8|s8|s32 ...", NULL, 63, 72, 0, 0, 0 },
	{ "wmma", "u4|s4|b1 ...", NULL, 63, 75, 0, 0, 0 },
	{ "wmma", "bf16|tf32|f64 ...", NULL, 70, 80, 0, 0, 0 },
	{ "mma", "sync aligned !sp|sp::ordered_metadata|block_scale m8n8k4 f16|f32 ...", "MMMM", 64, 70, 0, 0, 0 },
	{ "mma", "sync aligned !sp|sp::ordered_metadata|block_scale m16n8k8 !bf16|tf32|f64 ...", "MMMM", 65, 75, 0, 0, 0 },
	{ "mma", "sync aligned !sp|sp::ordered_metadata|block_scale m8n8k16|m8n8k32|m8n8k128 !and ...", "MMMM", 65, 75, 0, 0, 0 },
	{ "mma", "sync aligned !sp|sp::ordered_metadata|block_scale !e4m3|e5m2|e3m2|e2m3|e2m1|ue8m0|kind::f8f6f4|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4 ...", "MMMM", 70, 80, 0, 0, 0 },
	{ "mma", "sync aligned +sp|sp::ordered_metadata !block_scale !e4m3|e5m2|e3m2|e2m3|e2m1|ue8m0|kind::f8f6f4|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4 ...", "MMMMuc", 70, 80, 0, 0, 0 },
	{ "mma", "sync aligned !sp|sp::ordered_metadata|block_scale +e4m3|e5m2 m16n8k32|m16n8k64 !kind::f8f6f4|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4 ...", "MMMM", 84, 89, 0, 0, 0 },
	{ "mma", "sync aligned +sp|sp::ordered_metadata !block_scale +e4m3|e5m2 m16n8k32|m16n8k64 !kind::f8f6f4|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4 ...", "MMMMuc", 84, 89, 0, 0, 0 },
	{ "mma", "sync aligned !sp|sp::ordered_metadata|block_scale +e4m3|e5m2 m16n8k16 ...", "MMMM", 87, 89, 0, 0, 0 },
	{ "mma", "sync aligned +sp|sp::ordered_metadata !block_scale +e4m3|e5m2 m16n8k16 ...", "MMMMuc", 87, 89, 0, 0, 0 },
	{ "mma", "sync aligned !sp|sp::ordered_metadata|block_scale +kind::f8f6f4|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4 ...", "MMMM", 87, 120, 'a', 0, 0 },
	{ "mma", "sync aligned +sp|sp::ordered_metadata !block_scale +kind::f8f6f4|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4 ...", "MMMMuc", 87, 120, 'a', 0, 0 },
	{ "mma", "sync aligned block_scale +kind::f8f6f4|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4 ...", "MMMM*", 87, 120, 'a', 0, 0 },
	{ "ldmatrix", "m8n8 ...", NULL, 65, 75, 0, 0, 0 },
	{ "ldmatrix", "!m8n8 ...", NULL, 86, 100, 'a', 0, 0 },
	{ "stmatrix", "m8n8 ...", NULL, 78, 90, 0, 0, 0 },
	{ "stmatrix", "!m8n8 ...", NULL, 86, 100, 'a', 0, 0 },
	{ "movmatrix", "...", NULL, 78, 75, 0, 0, 0 },
	{ "wgmma", "...", NULL, 80, 90, '9', 0, 0 },
	{ "tcgen05", "...", NULL, 86, 100, 'f', 0, 0 },
	{ "txq", "?level width|height|depth|channel_data_type|channel_order|normalized_coords|force_unnormalized_coords|filter_mode|addr_mode_0|"
	  "addr_mode_1|addr_mode_2|array_size|num_mipmap_levels|num_samples b32", "w./.", 20, 20, 0, 0, 0 },
	{ "suq", "width|height|depth|channel_data_type|channel_order|array_size|memory_layout b32", "w.", 20, 20, 0, 0, 0 },
	{ "vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4", "...", NULL, 30, 30, 0, 0, 0 },
	{ "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset", "...", NULL, 20, 20, 0, 0, 0 },
	{ NULL, NULL, NULL, 0, 0, 0, 0, 0 },
};
