/* texture_internal.h — textures and surfaces, and the handles by which kernels refer to them.
 *
 *     handle ──texture_table.c──> struct texture ──texture_address.c──> texels of a level ──sample.c──> weights ──filter.c──> result
 *
 * A handle is the index of a row in a table of the process, plus the row's generation, so that the use of a removed or invalid handle
 * is a fault. A struct texture never changes: binding a texture reference again replaces the struct. After that, and after removing a
 * handle, the caller must call gpul_exec_machine_settle() before it frees the old struct texture, because a handler may be using it. */
#ifndef GPULOAD_SOFTCUDA_EXEC_TEXTURE_TEXTURE_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_TEXTURE_TEXTURE_INTERNAL_H

#include "softcuda/exec/exec_memory_internal.h"

enum { TEXTURE_LEVELS = 18 };

/* clang-format off */
enum channel_type {
	CHANNEL_U8, CHANNEL_U16, CHANNEL_U32, CHANNEL_S8, CHANNEL_S16, CHANNEL_S32, CHANNEL_F16, CHANNEL_F32,
};
/* clang-format on */
/* what happens to coordinates outside of the texture; the numbers are those of CUaddress_mode */
enum address_mode { ADDRESS_WRAP, ADDRESS_CLAMP, ADDRESS_MIRROR, ADDRESS_BORDER };

struct texture_level {
	const uint8_t *at;
	uint32_t width, height, depth; /* size of one layer; each is at least 1 */
	uint64_t pitch, slice;         /* bytes from one row to the next; from one slice, layer or face to the next */
};

struct sampler {
	uint8_t address[3];         /* values of enum address_mode */
	bool linear, linear_levels; /* linear filter between texels, between levels; false: the nearest is used */
	bool normalised;            /* coordinates are from 0 to 1 instead of counting texels */
	float bias, least_level, most_level;
	uint8_t border[16]; /* border colour, in the format of an element: gpul_texture_set_border() */
};

struct texture {
	uint8_t channel; /* a value of enum channel_type */
	uint8_t n_channels, element_bytes;
	bool read_integer; /* kernels read texels as integers; false: as floats, and integers are divided by their greatest value */
	bool unorm;        /* a normalised format, whose integers are fractions of 1 */
	bool srgb;
	bool in_table;      /* the texels are device memory, so that a kernel may read them only if the memory table allows it */
	bool linear_memory; /* the texture is one row of memory, read without a filter, and only with integer coordinates */
	bool cube, layered;
	uint8_t dimensions;          /* 1 to 3; used in messages and queries */
	uint32_t n_levels, n_layers; /* the faces of a cubemap are not counted as layers */
	struct texture_level level[TEXTURE_LEVELS];
	struct sampler sampler;
};

/* ---- texture_table.c ------------------------------------------------------------------------------- */

enum texture_kind { TEXTURE_OBJECT = 1, SURFACE_OBJECT };

/* Create a handle for texture t, or, if t is NULL, a handle to which no texture is bound yet.  Returns 0 if out of memory. */
uint64_t gpul_texture_add(enum texture_kind kind, const struct texture *t);
/* Bind the handle to texture t; return the texture that was bound to it. */
const struct texture *gpul_texture_bind(uint64_t handle, const struct texture *t);
const struct texture *gpul_texture_remove(uint64_t handle); /* returns the texture that was bound to the handle */
/* Return the texture that is bound to the handle; NULL: there is no such handle, or no texture is bound to it.  Any thread may call
 * this. */
const struct texture *gpul_texture_find(uint64_t handle, enum texture_kind kind);
bool gpul_texture_is(uint64_t handle, enum texture_kind kind);

/* ---- texel.c ------------------------------------------------------------------------------- */

unsigned gpul_channel_bytes(unsigned channel);
/* Convert an element to four results, each the bits of a float, or an integer extended to 32 bits.  Absent channels are 0. */
void gpul_texel_decode(const struct texture *t, const uint8_t *from, uint32_t out[4]);
/* Return one channel of an element, as a float and as an integer extended to 32 bits. */
float gpul_texel_float(const struct texture *t, const uint8_t *from, unsigned channel);
uint32_t gpul_texel_integer(const struct texture *t, const uint8_t *from, unsigned channel);
/* Returns true if the channel is converted from sRGB to linear light. */
bool gpul_texel_is_srgb(const struct texture *t, unsigned channel);
/* Return the number of fraction bits of the linear value of an 8-bit sRGB channel. */
unsigned gpul_srgb_bits(uint8_t channel);
/* Set the border colour of t's sampler from bits of floats, or, if read_integer is set, integers.  Set the format of t first. */
void gpul_texture_set_border(struct texture *t, const uint32_t border[4]);
/* Convert 32-bit components to an element: in formats of f16, floats are rounded to f16; integers are truncated. */
void gpul_texel_encode(const struct texture *t, const uint32_t in[4], uint8_t *to);
float gpul_half_to_float(uint16_t h);
uint16_t gpul_float_to_half(float f);

/* ---- texture_address.c ------------------------------------------------------------------------------- */

/* index of a texel outside of the texture, for which the border colour is used */
enum { OUTSIDE = -1 };

struct axis {             /* the texels that a coordinate selects in one dimension */
	int64_t index[2]; /* index[0] and index[1]: the texels that a linear filter combines; OUTSIDE: the border colour */
	uint32_t weight;  /* weight of index[1], in 1/256 */
};

/* Find the texel nearest to a coordinate, or, if `linear`, the two texels around it.  `offset` (in texels) is added. */
struct axis gpul_texture_axis(double x, uint32_t extent, enum address_mode mode, bool normalised, bool linear, int32_t offset);
/* Return the cubemap face that a direction selects, and coordinates in it, 0 to 1: CUDA C++ Programming Guide, Cubemap Textures. */
unsigned gpul_cube_face(const float direction[3], double in_face[2]);

/* ---- sample.c ---------------------------------------------------------------------------------- */

enum lod_kind { LOD_BASE, LOD_LEVEL, LOD_GRADIENT };

struct texture_read {                /* the operands of one lane's tex or tld4 */
	uint8_t dimensions;          /* number of dimensions of the instruction: 1 to 3 */
	bool layered, cube, integer; /* integer: the coordinates are texel indices, in texel[] instead of at[] */
	enum lod_kind lod_kind;
	uint32_t layer;
	float at[3];
	int32_t texel[3], offset[3];
	float lod, dx[3], dy[3];
};

struct texture_reader { /* used to check accesses to texels in device memory */
	struct range_cache *cache;
	unsigned slot;
	uint64_t denied; /* address of a texel that the kernel may not read, if a read has failed */
};

/* Read and filter texels.  Returns false if the kernel may not read the texel at r->denied. */
bool gpul_texture_sample(const struct texture *t, const struct texture_read *read, struct texture_reader *r, uint32_t out[4]);
/* Get one component of the four texels that a linear filter would use, in the order of tld4. */
bool gpul_texture_gather(const struct texture *t, const struct texture_read *read, unsigned component, struct texture_reader *r,
			 uint32_t out[4]);

/* The texels and weights that a linear filter adds ("taps"): sample.c collects them, and filter.c computes their weighted sum.
 * MAX_TAPS: 8 texels in each of two levels; WHOLE: the sum of all weights. */
enum { MAX_TAPS = 16, WHOLE = 256 };

struct tap {
	const uint8_t *at; /* the element in memory, or the border colour */
	uint32_t weight;   /* from 1 to WHOLE */
	uint8_t group;     /* floats are summed group by group; the texels of one slice of one level form a group */
};

struct taps {
	unsigned n, n_groups;
	struct tap tap[MAX_TAPS];
};

/* Compute the weighted sum of the texels; channels that the format does not have become 0. */
void gpul_texture_filter(const struct texture *t, const struct taps *taps, uint32_t out[4]);

#endif
