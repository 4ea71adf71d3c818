/* forms.c — the matrix multiplication forms to compare, and their kernels. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softcuda/api/mma/mma_fuzz.h"

#define DENSE { BITS, 0 }, 0, 0
/* clang-format off */
#define M16(shape, type, in, acc, na, nb, nc) \
	{ "mma.sync.aligned." shape ".row.col." #acc "." #in "." #in "." #acc, { type, na }, { type, nb }, { acc##_E, nc }, acc##_E, nc, 32, 0, DENSE }
/* clang-format on */
#define WMMA(shape, types, in, c_type, nc, d_type, nd) \
	{ "wmma.mma.sync.aligned.row.col." shape "." types, { in, 8 }, { in, 8 }, { c_type, nc }, d_type, nd, 32, 0, DENSE }
/* clang-format off */
#define SPARSE(shape, type, in, acc, na, nb, nc, selector) \
	{ "mma.sp::ordered_metadata.sync.aligned." shape ".row.col." #acc "." #in "." #in "." #acc, { type, na }, { type, nb }, \
	  { acc##_E, nc }, acc##_E, nc, 32, 0, { type == TF32 ? PAIRS : FOURS, 1 }, selector, 0 }
/* clang-format on */
/* clang-format off */
#define WGMMA(columns, k, acc, in, type, nd) \
	{ "wgmma.mma_async.sync.aligned.m64n" #columns "k" #k "." #acc "." #in "." #in, { type, 4 }, { type, columns / 16 }, \
	  { acc##_E, nd }, acc##_E, nd, 128, columns, DENSE }
/* clang-format on */
/* Like WGMMA, with another layout.  a_words and b_words: words that each thread stores to the shared memory of A and B. */
/* clang-format off */
#define WGMMA_IN(columns, k, acc, in, type, nd, layout, a_words, b_words) \
	{ "wgmma.mma_async.sync.aligned.m64n" #columns "k" #k "." #acc "." #in "." #in, { type, a_words }, { type, b_words }, \
	  { acc##_E, nd }, acc##_E, nd, 128, columns, { BITS, 0 }, 0, layout }
/* clang-format on */
/* clang-format off */
#define WGMMA_SPARSE(columns, k, acc, in, type, nd, selector, layout, a_words, b_words) \
	{ "wgmma.mma_async.sp.sync.aligned.m64n" #columns "k" #k "." #acc "." #in "." #in, { type, a_words }, { type, b_words }, \
	  { acc##_E, nd }, acc##_E, nd, 128, columns, { type == TF32 ? PAIRS : FOURS, 1 }, selector, layout }
/* clang-format on */
#define f16_E F16
#define f32_E F32
#define f64_E F64
#define s32_E S32

/* clang-format off */
const struct form forms[] = {
	M16("m16n8k8", F16, f16, f32, 2, 1, 4), M16("m16n8k16", F16, f16, f32, 4, 2, 4),
	M16("m16n8k8", F16, f16, f16, 2, 1, 2), M16("m16n8k16", F16, f16, f16, 4, 2, 2),
	M16("m16n8k8", BF16, bf16, f32, 2, 1, 4), M16("m16n8k16", BF16, bf16, f32, 4, 2, 4),
	M16("m16n8k4", TF32, tf32, f32, 2, 1, 4), M16("m16n8k8", TF32, tf32, f32, 4, 2, 4),
	M16("m16n8k16", E4M3, e4m3, f32, 2, 1, 4), M16("m16n8k32", E4M3, e4m3, f32, 4, 2, 4),
	M16("m16n8k16", E5M2, e5m2, f32, 2, 1, 4), M16("m16n8k32", E5M2, e5m2, f32, 4, 2, 4),
	M16("m16n8k16", E4M3, e4m3, f16, 2, 1, 2), M16("m16n8k32", E4M3, e4m3, f16, 4, 2, 2),
	M16("m16n8k32", E5M2, e5m2, f16, 4, 2, 2),
	{ "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32", { E5M2, 4 }, { E4M3, 2 }, { F32, 4 }, F32, 4, 32, 0, DENSE },
	{ "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", { F16, 2 }, { F16, 2 }, { F32, 8 }, F32, 8, 32, 0, DENSE },
	{ "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32", { F16, 2 }, { F16, 2 }, { F32, 8 }, F32, 8, 32, 0, DENSE },
	{ "mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f16", { F16, 2 }, { F16, 2 }, { F16, 4 }, F32, 8, 32, 0, DENSE },
	{ "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16", { F16, 2 }, { F16, 2 }, { F16, 4 }, F16, 4, 32, 0, DENSE },
	{ "mma.sync.aligned.m8n8k4.col.col.f16.f16.f16.f16", { F16, 2 }, { F16, 2 }, { F16, 4 }, F16, 4, 32, 0, DENSE },
	M16("m8n8k4", F64, f64, f64, 2, 2, 4), M16("m16n8k4", F64, f64, f64, 4, 2, 8),
	M16("m16n8k8", F64, f64, f64, 8, 4, 8), M16("m16n8k16", F64, f64, f64, 16, 8, 8),
	M16("m8n8k16", BITS, s8, s32, 1, 1, 2), M16("m16n8k16", BITS, u8, s32, 2, 1, 4), M16("m16n8k32", BITS, s8, s32, 4, 2, 4),
	{ "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.s8.s32", { BITS, 4 }, { BITS, 2 }, { S32, 4 }, S32, 4, 32, 0, DENSE },
	M16("m8n8k32", BITS, s4, s32, 1, 1, 2), M16("m16n8k64", BITS, u4, s32, 4, 2, 4),
	{ "mma.sync.aligned.m16n8k64.row.col.satfinite.s32.s4.u4.s32", { BITS, 4 }, { BITS, 2 }, { S32, 4 }, S32, 4, 32, 0, DENSE },
	{ "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc", { BITS, 1 }, { BITS, 1 }, { S32, 2 }, S32, 2, 32, 0, DENSE },
	{ "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", { BITS, 4 }, { BITS, 2 }, { S32, 4 }, S32, 4, 32, 0, DENSE },
	WMMA("m16n16k16", "f32.f32", F16, F32, 8, F32, 8), WMMA("m16n16k16", "f16.f16", F16, F16, 4, F16, 4),
	WMMA("m16n16k16", "f16.f32", F16, F32, 8, F16, 4), WMMA("m16n16k16", "f32.f16", F16, F16, 4, F32, 8),
	WMMA("m8n32k16", "f32.f32", F16, F32, 8, F32, 8), WMMA("m32n8k16", "f16.f16", F16, F16, 4, F16, 4),
	{ "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32", { TF32, 4 }, { TF32, 4 }, { F32, 8 }, F32, 8, 32, 0, DENSE },
	{ "wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32", { BF16, 4 }, { BF16, 4 }, { F32, 8 }, F32, 8, 32, 0, DENSE },
	{ "wmma.mma.sync.aligned.row.col.m8n32k16.s32.s8.s8.s32", { BITS, 1 }, { BITS, 4 }, { S32, 8 }, S32, 8, 32, 0, DENSE },
	{ "wmma.mma.sync.aligned.row.col.m32n8k16.satfinite.s32.u8.u8.s32", { BITS, 4 }, { BITS, 1 }, { S32, 8 }, S32, 8, 32, 0, DENSE },
	SPARSE("m16n8k16", F16, f16, f32, 2, 2, 4, 2), SPARSE("m16n8k32", F16, f16, f32, 4, 4, 4, 1),
	SPARSE("m16n8k32", F16, f16, f16, 4, 4, 2, 0), SPARSE("m16n8k32", BF16, bf16, f32, 4, 4, 4, 0),
	SPARSE("m16n8k8", TF32, tf32, f32, 2, 2, 4, 3), SPARSE("m16n8k16", TF32, tf32, f32, 4, 4, 4, 1),
	SPARSE("m16n8k64", E4M3, e4m3, f32, 4, 4, 4, 0), SPARSE("m16n8k32", BITS, s8, s32, 2, 2, 4, 1),
	SPARSE("m16n8k64", BITS, u8, s32, 4, 4, 4, 0), SPARSE("m16n8k64", BITS, s4, s32, 2, 2, 4, 0),
	SPARSE("m16n8k128", BITS, u4, s32, 4, 4, 4, 0),
	WGMMA(32, 16, f32, f16, F16, 16), WGMMA(16, 16, f16, f16, F16, 4), WGMMA(32, 16, f32, bf16, BF16, 16),
	WGMMA(32, 8, f32, tf32, TF32, 16), WGMMA(32, 32, f32, e4m3, E4M3, 16), WGMMA(32, 32, f32, e5m2, E5M2, 16),
	WGMMA(16, 32, f16, e4m3, E4M3, 4), WGMMA(16, 32, f16, e5m2, E5M2, 4), WGMMA(32, 32, s32, s8, BITS, 16),
	WGMMA_IN(32, 16, f32, f16, F16, 16, LAYOUT_REGISTERS, 4, 2), WGMMA_IN(32, 8, f32, tf32, TF32, 16, LAYOUT_REGISTERS, 4, 2),
	WGMMA_IN(32, 32, f32, e4m3, E4M3, 16, LAYOUT_REGISTERS, 4, 2), WGMMA_IN(32, 32, s32, u8, BITS, 16, LAYOUT_REGISTERS, 4, 2),
	WGMMA_IN(32, 16, f32, f16, F16, 16, LAYOUT_32, 4, 2), WGMMA_IN(32, 16, f32, f16, F16, 16, LAYOUT_64, 8, 4),
	WGMMA_IN(32, 16, f32, f16, F16, 16, LAYOUT_128, 16, 8), WGMMA_IN(32, 8, f32, tf32, TF32, 16, LAYOUT_128, 16, 8),
	WGMMA_IN(32, 32, s32, s8, BITS, 16, LAYOUT_64, 8, 4),
	WGMMA_IN(64, 16, f32, f16, F16, 32, LAYOUT_A_BY_COLUMN | LAYOUT_B_BY_ROW, 4, 4),
	WGMMA_IN(64, 16, f32, f16, F16, 32, LAYOUT_32 | LAYOUT_A_BY_COLUMN | LAYOUT_B_BY_ROW, 4, 4),
	WGMMA_IN(64, 16, f32, f16, F16, 32, LAYOUT_64 | LAYOUT_A_BY_COLUMN | LAYOUT_B_BY_ROW, 4, 4),
	WGMMA_IN(64, 16, f32, bf16, BF16, 32, LAYOUT_128 | LAYOUT_A_BY_COLUMN | LAYOUT_B_BY_ROW, 4, 4),
	WGMMA_IN(64, 16, f16, f16, F16, 16, LAYOUT_128 | LAYOUT_B_BY_ROW, 16, 4),
	WGMMA_SPARSE(32, 32, f32, f16, F16, 16, 0, 0, 4, 4), WGMMA_SPARSE(32, 32, f32, f16, F16, 16, 1, 0, 4, 4),
	WGMMA_SPARSE(16, 32, f16, f16, F16, 4, 1, 0, 4, 2), WGMMA_SPARSE(32, 32, f32, bf16, BF16, 16, 0, 0, 4, 4),
	WGMMA_SPARSE(32, 16, f32, tf32, TF32, 16, 0, 0, 4, 4), WGMMA_SPARSE(32, 16, f32, tf32, TF32, 16, 1, 0, 4, 4),
	WGMMA_SPARSE(32, 64, f32, e4m3, E4M3, 16, 0, 0, 4, 4), WGMMA_SPARSE(32, 64, f32, e5m2, E5M2, 16, 0, 0, 4, 4),
	WGMMA_SPARSE(16, 64, f16, e4m3, E4M3, 4, 0, 0, 4, 2), WGMMA_SPARSE(16, 64, f16, e5m2, E5M2, 4, 0, 0, 4, 2),
	WGMMA_SPARSE(32, 64, s32, s8, BITS, 16, 0, 0, 4, 4), WGMMA_SPARSE(32, 64, s32, u8, BITS, 16, 0, 0, 4, 4),
	WGMMA_SPARSE(32, 32, f32, f16, F16, 16, 1, LAYOUT_REGISTERS, 4, 4), WGMMA_SPARSE(32, 64, f32, e4m3, E4M3, 16, 0, LAYOUT_REGISTERS, 4, 4),
	WGMMA_SPARSE(32, 16, f32, tf32, TF32, 16, 1, LAYOUT_REGISTERS, 4, 4), WGMMA_SPARSE(32, 64, s32, s8, BITS, 16, 0, LAYOUT_REGISTERS, 4, 4),
	WGMMA_SPARSE(32, 32, f32, f16, F16, 16, 0, LAYOUT_32, 4, 4), WGMMA_SPARSE(32, 32, f32, f16, F16, 16, 0, LAYOUT_64, 8, 4),
	WGMMA_SPARSE(32, 32, f32, f16, F16, 16, 0, LAYOUT_128, 16, 8), WGMMA_SPARSE(32, 64, s32, s8, BITS, 16, 0, LAYOUT_128, 16, 8),
	WGMMA_SPARSE(64, 32, f32, f16, F16, 32, 0, LAYOUT_A_BY_COLUMN | LAYOUT_B_BY_ROW, 4, 8),
	WGMMA_SPARSE(64, 32, f32, f16, F16, 32, 0, LAYOUT_32 | LAYOUT_A_BY_COLUMN | LAYOUT_B_BY_ROW, 4, 8),
	WGMMA_SPARSE(64, 32, f32, f16, F16, 32, 1, LAYOUT_64 | LAYOUT_A_BY_COLUMN | LAYOUT_B_BY_ROW, 4, 8),
	WGMMA_SPARSE(64, 32, f32, bf16, BF16, 32, 0, LAYOUT_128 | LAYOUT_A_BY_COLUMN | LAYOUT_B_BY_ROW, 4, 8),
};
/* clang-format on */
const unsigned n_forms = sizeof forms / sizeof forms[0];

void form_name(const struct form *f, char out[96])
{
	static const char *const names[] = { "registers", "32", "64", "128", "A by column", "B by row" };
	int n = snprintf(out, 96, "%s", f->name);

	if (f->threads == 128 && f->metadata.words)
		n += snprintf(out + n, 96 - (size_t)n, " %u", f->selector);
	for (unsigned k = 0; k < sizeof names / sizeof names[0]; k++)
		if (f->layout >> k & 1)
			n += snprintf(out + n, 96 - (size_t)n, ", %s", names[k]);
}

unsigned form_words(const struct form *f)
{
	return f->a.words + f->b.words + f->c.words + f->metadata.words;
}

struct text {
	char *at;
	size_t bytes, capacity;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;

	if (t->capacity - t->bytes < 1024) {
		t->capacity = 2 * t->capacity + 4096;
		t->at = realloc(t->at, t->capacity);
		if (!t->at)
			abort();
	}
	va_start(ap, fmt);
	t->bytes += (size_t)vsnprintf(t->at + t->bytes, 1024, fmt, ap);
	va_end(ap);
}

static const char *register_type(enum element e)
{
	return e == F64 ? "f64" : e == F32 ? "f32" : "b32";
}

static unsigned registers(enum element e, unsigned words)
{
	return e == F64 ? words / 2 : words;
}

static void add_list(struct text *t, char name, enum element e, unsigned words)
{
	add(t, "{");
	for (unsigned k = 0; k < registers(e, words); k++)
		add(t, "%s%c%u", k ? "," : "", name, k);
	add(t, "}");
}

static unsigned add_loads(struct text *t, char name, const struct operand *o, unsigned at)
{
	const unsigned bytes = o->type == F64 ? 8 : 4;

	for (unsigned k = 0; k < registers(o->type, o->words); k++, at += bytes)
		add(t, "ld.global.%s %c%u, [%%in+%u];\n", register_type(o->type), name, k, at);
	return at;
}

/* Return the matrix descriptor of A or B, which starts at byte `at` of ab; PTX ISA, wgmma, defines its leading and stride offsets.
 * by_column: adjacent elements in memory belong to adjacent rows of M or columns of N, not to adjacent k. */
static uint64_t descriptor(const struct form *f, unsigned at, bool by_column, unsigned k_bytes, unsigned rows)
{
	const unsigned row_bytes = f->layout & LAYOUT_128 ? 128 : f->layout & LAYOUT_64 ? 64 : f->layout & LAYOUT_32 ? 32 : 16;
	const uint64_t swizzle = row_bytes == 128 ? 1 : row_bytes == 64 ? 2 : row_bytes == 32 ? 3 : 0;
	uint64_t leading = 128, stride = row_bytes == 16 ? 8 * k_bytes : 8 * row_bytes;

	if (by_column) { /* the matrix has k_bytes / 2 rows of 2 * rows bytes, one row for each k */
		leading = row_bytes == 16 ? 16 * rows : (uint64_t)row_bytes * k_bytes / 2;
		stride = row_bytes == 16 ? 128 : 8 * row_bytes;
	} else if (row_bytes == 32 && k_bytes == 64) {
		leading = 32 * rows; /* 64 bytes of k fill two swizzled rows of 32 bytes */
	}
	return at / 16 | leading / 16 << 16 | stride / 16 << 32 | swizzle << 62;
}

/* Print wgmma and the stores of A and B to shared memory.  Not swizzled, the core matrices of eight rows are adjacent, followed by those
 * of the next eight rows; swizzled, rows of 32 to 128 bytes are adjacent. */
static void add_wgmma(struct text *t, const struct form *f)
{
	const bool integer = f->c.type == S32, halves = f->a.type == F16 || f->a.type == BF16, registers = f->layout & LAYOUT_REGISTERS;
	const bool a_column = f->layout & LAYOUT_A_BY_COLUMN, b_row = f->layout & LAYOUT_B_BY_ROW;
	const unsigned a_bytes = 512 * f->a.words;

	add(t, ".shared .align 1024 .b8 ab[%u];\n.reg .b32 %%s; .reg .b64 %%da, %%db; .reg .pred %%one;\n", a_bytes + 512 * f->b.words);
	for (unsigned k = 0; k < f->a.words; k++)
		add(t, "mov.u32 %%s, ab; mad.lo.u32 %%s, %%t, %u, %%s; st.shared.b32 [%%s+%u], a%u;\n", 4 * f->a.words, 4 * k, k);
	for (unsigned k = 0; k < f->b.words; k++)
		add(t, "mov.u32 %%s, ab; mad.lo.u32 %%s, %%t, %u, %%s; st.shared.b32 [%%s+%u], b%u;\n", 4 * f->b.words, a_bytes + 4 * k, k);
	add(t,
	    "fence.proxy.async; bar.sync 0; setp.eq.u32 %%one, 0, 0;\n"
	    "mov.u32 %%s, ab; shr.u32 %%s, %%s, 4; cvt.u64.u32 %%da, %%s; mov.u64 %%db, %%da; add.u64 %%da, %%da, 0x%" PRIx64
	    "; add.u64 %%db, %%db, 0x%" PRIx64 ";\n",
	    descriptor(f, 0, a_column, 32, 64), descriptor(f, a_bytes, b_row, f->metadata.words ? 64 : 32, f->n));
	for (unsigned k = 0; k < f->c.words; k++)
		add(t, "mov.%s d%u, c%u;\n", register_type(f->d), k, k);
	add(t, "wgmma.fence.sync.aligned;\n%s ", f->name);
	add_list(t, 'd', f->d, f->d_words);
	add(t, ", ");
	if (registers)
		add_list(t, 'a', f->a.type, f->a.words);
	else
		add(t, "%%da");
	add(t, ", %%db");
	if (f->metadata.words)
		add(t, ", e0, %u", f->selector);
	add(t, ", %%one%s", integer ? "" : ", 1, 1");
	if (halves && !registers)
		add(t, ", %d", a_column);
	if (halves)
		add(t, ", %d", b_row);
	add(t, ";\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n");
}

/* True for an mma of f8 with 16 products or with f16 sums: it needs PTX 8.7. */
static bool needs_8_7(const struct form *f)
{
	return f->threads == 32 && (f->a.type == E4M3 || f->a.type == E5M2) && (f->d == F16 || f->a.words == 2);
}

char *form_ptx(const struct form *f)
{
	struct text t = { 0 };
	unsigned at;

	add(&t, ".version %s\n.target %s\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 out) {\n",
	    needs_8_7(f) ? "8.7" : "8.5", f->threads == 128 ? "sm_90a" : "sm_90");
	add(&t, ".reg .u64 %%in, %%out; .reg .u32 %%t, %%b; .reg .%s a<17>; .reg .%s b<17>; .reg .%s c<65>; .reg .%s d<65>;\n",
	    register_type(f->a.type), register_type(f->b.type), register_type(f->c.type), register_type(f->d));
	add(&t,
	    "ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out]; mov.u32 %%t, %%tid.x; mov.u32 %%b, %%ctaid.x;\n"
	    "mad.lo.u32 %%b, %%b, %u, %%t; mad.wide.u32 %%in, %%b, %u, %%in; mad.wide.u32 %%out, %%b, %u, %%out;\n",
	    f->threads, 4 * form_words(f), 4 * f->d_words);
	at = add_loads(&t, 'a', &f->a, 0);
	at = add_loads(&t, 'b', &f->b, at);
	at = add_loads(&t, 'c', &f->c, at);
	add(&t, ".reg .b32 e0;\n");
	add_loads(&t, 'e', &f->metadata, at);
	if (f->threads == 128) {
		add_wgmma(&t, f);
	} else {
		add(&t, "%s ", f->name);
		add_list(&t, 'd', f->d, f->d_words);
		add(&t, ", ");
		add_list(&t, 'a', f->a.type, f->a.words);
		add(&t, ", ");
		add_list(&t, 'b', f->b.type, f->b.words);
		add(&t, ", ");
		add_list(&t, 'c', f->c.type, f->c.words);
		if (f->metadata.words)
			add(&t, ", e0, %u", f->selector);
		add(&t, ";\n");
	}
	for (unsigned k = 0; k < registers(f->d, f->d_words); k++)
		add(&t, "st.global.%s [%%out+%u], d%u;\n", register_type(f->d), (f->d == F64 ? 8 : 4) * k, k);
	add(&t, "ret; }\n");
	return t.at;
}
