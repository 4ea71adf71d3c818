/* texture_internal.h — textures and surfaces, and the handles by which kernels refer to them.
 *
 *     handle ──texture_table.c──> struct texture ──texture_address.c──> texels of a level ──sample.c──> weights ──filter.c──> result
 *
 * A handle is the index of a row in a table of the process, plus the row's generation: a stale or invented handle is a fault. A
 * struct texture never changes; a texture reference is bound anew by replacing it. After that, and after removing a handle, the
 * caller waits with gpul_exec_machine_settle() before it frees the old struct texture: a handler uses it for one instruction. */
#ifndef GPULOAD_SOFTCUDA_EXEC_TEXTURE_TEXTURE_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_TEXTURE_TEXTURE_INTERNAL_H

#include "softcuda/exec/exec_memory_internal.h"

enum { TEXTURE_LEVELS = 18 };

/* clang-format off */
enum channel_type {
	CHANNEL_U8, CHANNEL_U16, CHANNEL_U32, CHANNEL_S8, CHANNEL_S16, CHANNEL_S32, CHANNEL_F16, CHANNEL_F32,
};
/* clang-format on */
/* how coordinates outside of the texture are treated, with the numbers of CUaddress_mode */
enum address_mode { ADDRESS_WRAP, ADDRESS_CLAMP, ADDRESS_MIRROR, ADDRESS_BORDER };

struct texture_level {
	const uint8_t *at;
	uint32_t width, height, depth; /* extents of one layer; at least 1 */
	uint64_t pitch, slice;         /* bytes from row to row, and from slice, layer or face to the next */
};

struct sampler {
	uint8_t address[3];         /* values of enum address_mode */
	bool linear, linear_levels; /* filters; false: the nearest texel, the nearest level */
	bool normalised;            /* coordinates are from 0 to 1 */
	float bias, least_level, most_level;
	uint8_t border[16]; /* border colour, in the format of an element: gpul_texture_set_border() */
};

struct texture {
	uint8_t channel; /* a value of enum channel_type */
	uint8_t n_channels, element_bytes;
	bool read_integer; /* kernels read texels as integers; false: as floats, for which integer texels are divided by their greatest value */
	bool unorm;        /* the format itself is normalised: integers stand for fractions of 1 */
	bool srgb;
	bool in_table;      /* memory with an address: kernels may access it only if the table says so */
	bool linear_memory; /* one row, read with integer coordinates only */
	bool cube, layered;
	uint8_t dimensions;          /* 1 to 3, for messages and queries */
	uint32_t n_levels, n_layers; /* faces do not count as layers */
	struct texture_level level[TEXTURE_LEVELS];
	struct sampler sampler;
};

/* ---- texture_table.c ------------------------------------------------------------------------------- */

enum texture_kind { TEXTURE_OBJECT = 1, SURFACE_OBJECT };

/* Create a handle for t; NULL: nothing is bound yet.  Returns 0 if out of memory. */
uint64_t gpul_texture_add(enum texture_kind kind, const struct texture *t);
/* Bind the handle to t; returns the previous texture. */
const struct texture *gpul_texture_bind(uint64_t handle, const struct texture *t);
const struct texture *gpul_texture_remove(uint64_t handle); /* returns the texture that was bound */
/* Return the texture that is bound to the handle; NULL: there is no such handle, or nothing is bound.  Any thread may call. */
const struct texture *gpul_texture_find(uint64_t handle, enum texture_kind kind);
bool gpul_texture_is(uint64_t handle, enum texture_kind kind);

/* ---- texel.c ------------------------------------------------------------------------------- */

/* Return the bytes of one channel. */
unsigned gpul_channel_bytes(unsigned channel);
/* Convert an element to four results: bits of floats, or integers extended to 32 bits.  Absent channels are 0. */
void gpul_texel_decode(const struct texture *t, const uint8_t *from, uint32_t out[4]);
/* Return one channel of an element, as a float and as an integer extended to 32 bits. */
float gpul_texel_float(const struct texture *t, const uint8_t *from, unsigned channel);
uint32_t gpul_texel_integer(const struct texture *t, const uint8_t *from, unsigned channel);
/* Returns true if the channel is converted from sRGB to linear light. */
bool gpul_texel_is_srgb(const struct texture *t, unsigned channel);
/* The linear light of a channel is a multiple of 2^-bits. */
unsigned gpul_srgb_bits(uint8_t channel);
/* Set the sampler's border from the bits of floats, or of integers for read_integer; the format of t is set. */
void gpul_texture_set_border(struct texture *t, const uint32_t border[4]);
/* Convert 32-bit components to an element: floats to halves; integers are truncated. */
void gpul_texel_encode(const struct texture *t, const uint32_t in[4], uint8_t *to);
float gpul_half_to_float(uint16_t h);
uint16_t gpul_float_to_half(float f);

/* ---- texture_address.c ------------------------------------------------------------------------------- */

/* index of a texel that is the border */
enum { OUTSIDE = -1 };

struct axis {             /* the texels that a coordinate selects in one dimension */
	int64_t index[2]; /* index[1] is used by linear filters; OUTSIDE: the border */
	uint32_t weight;  /* weight of index[1], in 1/256 */
};

/* Find the texel nearest to a coordinate, or its two neighbours; offset: in texels, added to the coordinate. */
struct axis gpul_texture_axis(double x, uint32_t extent, enum address_mode mode, bool normalised, bool linear, int32_t offset);
/* Find the face in a direction, and the coordinates in the face, from 0 to 1: CUDA C++ Programming Guide, Cubemap Textures. */
unsigned gpul_cube_face(const float direction[3], double in_face[2]);

/* ---- sample.c ---------------------------------------------------------------------------------- */

enum lod_kind { LOD_BASE, LOD_LEVEL, LOD_GRADIENT };

struct texture_read {                /* one lane's tex or tld4 */
	uint8_t dimensions;          /* dimensions of the instruction: 1 to 3 */
	bool layered, cube, integer; /* integer: coordinates are texels */
	enum lod_kind lod_kind;
	uint32_t layer;
	float at[3];
	int32_t texel[3], offset[3];
	float lod, dx[3], dy[3];
};

struct texture_reader { /* the device whose access rights apply to the reads */
	struct range_cache *cache;
	unsigned slot;
	uint64_t denied; /* the address of a texel that must not be read */
};

/* Read and filter texels.  Returns false if the texel at r->denied must not be read. */
bool gpul_texture_sample(const struct texture *t, const struct texture_read *read, struct texture_reader *r, uint32_t out[4]);
/* Get one component of the four texels that a linear filter would use, in the order of tld4. */
bool gpul_texture_gather(const struct texture *t, const struct texture_read *read, unsigned component, struct texture_reader *r,
			 uint32_t out[4]);

/* The texels that one read filters, and their weights; sample.c collects them, filter.c adds them.
 * MAX_TAPS: 8 texels in each of two levels; WHOLE: the sum of all weights. */
enum { MAX_TAPS = 16, WHOLE = 256 };

struct tap {
	const uint8_t *at; /* the element in memory, or the border */
	uint32_t weight;   /* from 1 to WHOLE */
	uint8_t group;     /* number of the group: the texels of one slice of one level; floats are added group by group */
};

struct taps {
	unsigned n, n_groups;
	struct tap tap[MAX_TAPS];
};

/* The weighted sum of the texels; 0 for absent channels. */
void gpul_texture_filter(const struct texture *t, const struct taps *taps, uint32_t out[4]);

#endif
