/* texture_form_internal.h — a decoded instruction on textures or surfaces: insn->object of TEX, TLD4, TXQ, SULD, SUST, SURED. */
#ifndef GPULOAD_SOFTCUDA_EXEC_TEXTURE_TEXTURE_FORM_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_TEXTURE_TEXTURE_FORM_INTERNAL_H

#include "softcuda/exec/engine_internal.h"
#include "softcuda/exec/texture/texture_internal.h"

/* clang-format off */
enum texture_query {
	QUERY_WIDTH, QUERY_HEIGHT, QUERY_DEPTH, QUERY_CHANNEL_TYPE, QUERY_CHANNEL_ORDER, QUERY_NORMALISED, QUERY_LAYERS, QUERY_LEVELS,
	QUERY_SAMPLES, QUERY_UNNORMALISED, QUERY_FILTER, QUERY_ADDRESS_0, QUERY_ADDRESS_1, QUERY_ADDRESS_2, QUERY_LAYOUT,
};
/* clang-format on */
/* what a surface instruction does if the position is outside of the surface: .trap, .clamp or .zero */
enum outside { OUTSIDE_TRAP, OUTSIDE_CLAMP, OUTSIDE_ZERO };
enum surface_op { SURFACE_ADD, SURFACE_MIN, SURFACE_MAX, SURFACE_AND, SURFACE_OR };

struct texture_form {
	opref handle;
	uint8_t dimensions;
	bool layered, cube, integer; /* integer: coordinates are .s32 */
	opref layer, at[3];
	/* Members for tex, tld4 and txq: */
	enum lod_kind lod_kind;
	opref lod, dx[3], dy[3], offset[3];
	bool has_offset, halves; /* halves: .v2.f16x2, with four results in two registers */
	opref resident;          /* register of the predicate p of d|p, which is always set to true */
	uint8_t component, query;
	/* Members for suld, sust and sured: */
	uint8_t n, bytes; /* number of registers, and size in memory of the value in each */
	bool formatted;   /* .p: values are converted to the surface's format, and x counts elements instead of bytes */
	enum outside outside;
	enum surface_op op;
	bool is_signed;
	opref data[4]; /* destination registers, or registers with the values to store */
};

/* ---- surface.c: the bytes that lane l of a suld, sust or sured accesses --------------------------- */

enum surface_found {
	SURFACE_FOUND,
	SURFACE_NOTHING, /* the position is outside of the surface, and the instruction has .zero */
	SURFACE_UNKNOWN,
	SURFACE_OUTSIDE,
	SURFACE_MISALIGNED, /* the last three are faults: not a surface; outside, with .trap; misaligned */
};

struct surface_spot {
	const struct texture *t;
	uint8_t *at; /* address of the element, if the result is SURFACE_FOUND */
	/* x, y, slice: the accessed position; bytes: size of the access; row_bytes: size of a surface row */
	int64_t x, y, slice, bytes, row_bytes;
};

enum surface_found gpul_surface_find(const struct warp *w, const struct texture_form *f, unsigned l, struct surface_spot *out);

/* run_texture_warp.c: execute a tex for all lanes together; returns false, and does nothing, for less common kinds of textures. */
bool GPUL_BUILD(gpul_texture_read_warp)(struct warp *w, const struct insn *i);

#endif
