/* types.c — names of types, operations, algorithms, protocols and transports; the properties of the calls. */
#include "comm/types.h"

#include "comm/calls.h"

#include <string.h>

static const char *const dtypes[] = { "f16", "bf16", "f32", "f64", "i32", "u8" };
static const char *const ops[] = { "sum", "prod", "min", "max", "avg" };
static const char *const calls[] = {
#define GPUL_COMM_CALL(id, name, ...) #name,
#include "comm/calls.def"
};
static const char *const algos[] = { "auto", "ring", "oneshot", "direct", "tree", "twolevel" };
static const char *const protos[] = { "auto", "ll", "ll128", "simple" };
static const char *const transports[] = { "auto", "device", "host", "net" };

size_t gpul_comm_dtype_bytes(gpul_comm_dtype dtype)
{
	static const unsigned char bytes[] = { 2, 2, 4, 8, 4, 1 };

	return (unsigned)dtype < GPUL_COMM_N_DTYPES ? bytes[dtype] : 0;
}

/* Define NAME_name() and NAME_parse() for an enum, from a table with the names of its values. */
#define NAMES(type, table) \
	const char *type##_name(type value) \
	{ \
		return (unsigned)value < sizeof table / sizeof *table ? table[value] : "?"; \
	}
#define PARSER(type, table) \
	bool type##_parse(const char *text, type *out) \
	{ \
		for (unsigned i = 0; i < sizeof table / sizeof *table; i++) \
			if (strcmp(text, table[i]) == 0) { \
				*out = (type)i; \
				return true; \
			} \
		return false; \
	}

NAMES(gpul_comm_dtype, dtypes)
NAMES(gpul_comm_op, ops)
NAMES(gpul_comm_call, calls)
NAMES(gpul_comm_algo, algos)
NAMES(gpul_comm_proto, protos)
NAMES(gpul_comm_transport, transports)
PARSER(gpul_comm_dtype, dtypes)
PARSER(gpul_comm_op, ops)
PARSER(gpul_comm_call, calls)
PARSER(gpul_comm_algo, algos)
PARSER(gpul_comm_proto, protos)
PARSER(gpul_comm_transport, transports)

/* ---- the properties of the calls ---- */

enum { REDUCES = 1, HAS_ROOT = 2, TRANSFERS = 4, SENDS_PARTS = 8, RECEIVES_PARTS = 16 };

static const struct gpul_comm_call_info call_infos[] = {
#define GPUL_COMM_CALL(id, name, properties, n_rounds, summary) \
	[GPUL_COMM_##id] = { .reduces = (properties) & REDUCES, \
			     .has_root = (properties) & HAS_ROOT, \
			     .transfers = (properties) & TRANSFERS, \
			     .sends_parts = (properties) & SENDS_PARTS, \
			     .receives_parts = (properties) & RECEIVES_PARTS, \
			     .has_parts = (properties) & (SENDS_PARTS | RECEIVES_PARTS), \
			     .rounds = n_rounds },
#include "comm/calls.def"
	[GPUL_COMM_N_CALLS] = { 0 }, /* the properties of an unknown call */
};

const struct gpul_comm_call_info *gpul_comm_call_info(gpul_comm_call call)
{
	return &call_infos[(unsigned)call < GPUL_COMM_N_CALLS ? call : GPUL_COMM_N_CALLS];
}
