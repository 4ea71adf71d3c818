/* test_mma.c — matrix multiplication in all shapes; the elements are small integers, so products and sums are exact in every type. */
#include "tests/softcuda/exec/engine_rig.h"

#include <math.h>

#include <cmocka.h>

enum { MAX_SIDE = 256 };

struct shape {
	const char *name;
	unsigned rows, columns, k;
};

/* Return the bits of a small integer in a type. */
static uint64_t bits_of_value(const char *type, int x)
{
	const float f = (float)x;
	const double wide = x;
	uint32_t u;
	uint64_t u64;

	memcpy(&u, &f, 4);
	memcpy(&u64, &wide, 8);
	if (!strcmp(type, "f16") || !strcmp(type, "e5m2")) {
		const uint32_t h = x ? (u >> 16 & 0x8000) | (((u & 0x7fffffff) - 0x38000000) >> 13) : 0;

		return type[0] == 'e' ? h >> 8 : h;
	}
	if (!strcmp(type, "e4m3"))
		return x ? (u >> 24 & 0x80) | (((u & 0x7fffffff) - 0x3c000000) >> 20) : 0;
	if (!strcmp(type, "bf16"))
		return u >> 16;
	if (!strcmp(type, "f32") || !strcmp(type, "tf32"))
		return u;
	return !strcmp(type, "f64") ? u64 : (uint32_t)x;
}

static unsigned bits_in_type(const char *type)
{
	if (!strcmp(type, "f16") || !strcmp(type, "bf16"))
		return 16;
	if (!strcmp(type, "f64"))
		return 64;
	if (!strcmp(type, "b1"))
		return 1;
	if (!strcmp(type, "s4") || !strcmp(type, "u4"))
		return 4;
	return type[0] == 'e' || !strcmp(type, "s8") || !strcmp(type, "u8") ? 8 : 32;
}

static int random_value(const char *type, unsigned *state)
{
	*state = *state * 1103515245u + 12345u;
	const int x = (int)(*state >> 16 & 7);

	if (!strcmp(type, "b1"))
		return x & 1;
	return type[0] == 'u' ? x : x / 2 - 2;
}

static void set_bits(void *to, unsigned bits, size_t index, uint64_t value)
{
	uint8_t *at = (uint8_t *)to + index * bits / 8;

	if (bits >= 8)
		memcpy(at, &value, bits / 8);
	else
		*at = (uint8_t)(*at | (value & ((1u << bits) - 1)) << index * bits % 8);
}

struct problem {
	int a[32][MAX_SIDE], b[MAX_SIDE][32], c[32][32], d[32][32];
};

static void make_problem(struct problem *p, const struct shape *s, const char *a, const char *b, bool and)
{
	const bool bits = !strcmp(a, "b1");
	unsigned state = 7;

	for (unsigned r = 0; r < s->rows; r++)
		for (unsigned k = 0; k < s->k; k++)
			p->a[r][k] = random_value(a, &state);
	for (unsigned k = 0; k < s->k; k++)
		for (unsigned c = 0; c < s->columns; c++)
			p->b[k][c] = random_value(b, &state);
	for (unsigned r = 0; r < s->rows; r++)
		for (unsigned c = 0; c < s->columns; c++) {
			p->d[r][c] = p->c[r][c] = random_value("s32", &state);
			for (unsigned k = 0; k < s->k; k++)
				p->d[r][c] += bits && !and ? p->a[r][k] ^ p->b[k][c] : p->a[r][k] * p->b[k][c];
		}
}

/* ---- mma: the registers of lane 4 g + t, as in PTX ISA 9.7.14.5 ---------------------------------------------------------------- */

struct mma_case {
	struct shape shape;
	const char *name, *d, *a, *b;
};

static void fill_registers(const struct mma_case *c, const struct problem *p, uint8_t *in, unsigned lane_bytes)
{
	const unsigned bits = bits_in_type(c->a), sum_bits = bits_in_type(c->d), n = bits < 32 ? 32 / bits : 1;
	const unsigned g = c->shape.rows / 8, x = g * c->shape.k / (4 * n), y = c->shape.k / (4 * n);
	const unsigned reg_bytes = bits < 32 ? 4 : bits / 8;

	for (unsigned l = 0; l < 32; l++, in += lane_bytes) {
		uint8_t *sums = in + (x + y) * reg_bytes;

		for (unsigned e = 0; e < x * n; e++)
			set_bits(in, bits, e, bits_of_value(c->a, p->a[l / 4 + e / n % g * 8][e / n / g * 4 * n + l % 4 * n + e % n]));
		for (unsigned e = 0; e < y * n; e++)
			set_bits(in + x * reg_bytes, bits, e, bits_of_value(c->b, p->b[e / n * 4 * n + l % 4 * n + e % n][l / 4]));
		for (unsigned e = 0; e < 2 * g; e++)
			set_bits(sums, sum_bits, e, bits_of_value(c->d, p->c[l / 4 + e / 2 * 8][l % 4 * 2 + e % 2]));
	}
}

static size_t add_list(char *text, size_t at, size_t bytes, char name, unsigned n, const char *before)
{
	at += (size_t)snprintf(text + at, bytes - at, "%s{", before);
	for (unsigned k = 0; k < n; k++)
		at += (size_t)snprintf(text + at, bytes - at, "%s%c%u", k ? "," : "", name, k);
	return at + (size_t)snprintf(text + at, bytes - at, "}");
}

/* Write a kernel that loads a, b and c of each lane from in, and stores d to out. */
static void write_mma_kernel(const struct mma_case *c, unsigned x, unsigned y, unsigned sums, char *text, size_t bytes)
{
	const unsigned reg = !strcmp(c->a, "f64") ? 8 : 4, lane = reg * (x + y + sums);
	const unsigned n[3] = { x, y, sums };
	size_t at = (size_t)snprintf(text, bytes,
				     PTX_HEADER ".visible .entry k(.param .u64 out, .param .u64 in) {\n"
						".reg .b64 %%o, %%i; .reg .b32 %%t; .reg .b%u a<9>, b<9>, c<9>, d<9>;\n"
						"ld.param.u64 %%o, [out]; ld.param.u64 %%i, [in]; mov.u32 %%t, %%tid.x;\n"
						"mad.wide.u32 %%i, %%t, %u, %%i; mad.wide.u32 %%o, %%t, %u, %%o;\n",
				     8 * reg, lane, reg * sums);
	unsigned from = 0;

	for (unsigned v = 0; v < 3; v++)
		for (unsigned k = 0; k < n[v]; k++, from += reg)
			at += (size_t)snprintf(text + at, bytes - at, "ld.global.b%u %c%u, [%%i+%u];\n", 8 * reg, "abc"[v], k, from);
	at = add_list(text, at, bytes, 'd', sums, c->name);
	at = add_list(text, at, bytes, 'a', x, ",");
	at = add_list(text, at, bytes, 'b', y, ",");
	at = add_list(text, at, bytes, 'c', sums, ",");
	at += (size_t)snprintf(text + at, bytes - at, ";\n");
	for (unsigned k = 0; k < sums; k++)
		at += (size_t)snprintf(text + at, bytes - at, "st.global.b%u [%%o+%u], d%u;\n", 8 * reg, reg * k, k);
	snprintf(text + at, bytes - at, "ret; }\n");
}

static void check_mma(const struct mma_case *c)
{
	static struct problem p;
	const unsigned bits = bits_in_type(c->a), sum_bits = bits_in_type(c->d), n = bits < 32 ? 32 / bits : 1, g = c->shape.rows / 8;
	const unsigned x = g * c->shape.k / (4 * n), y = c->shape.k / (4 * n), sums = 2 * g * sum_bits / (sum_bits < 32 ? 32 : sum_bits);
	const unsigned reg = bits == 64 ? 8 : 4, lane_bytes = reg * (x + y + sums);
	char text[8192];
	struct rig *r;
	uint8_t *in, *out;

	write_mma_kernel(c, x, y, sums, text, sizeof text);
	make_problem(&p, &c->shape, c->a, c->b, strstr(c->name, ".and"));
	r = rig_open(text);
	in = rig_memory(r, 32 * lane_bytes);
	out = rig_memory(r, 32 * reg * sums);
	fill_registers(c, &p, in, lane_bytes);
	rig_expect_ok(r, "k", 1, 32, out, (uintptr_t)in);
	for (unsigned l = 0; l < 32; l++)
		for (unsigned e = 0; e < 2 * g; e++) {
			const uint64_t want = bits_of_value(c->d, p.d[l / 4 + e / 2 * 8][l % 4 * 2 + e % 2]);

			if (memcmp(out + l * reg * sums + e * sum_bits / 8, &want, sum_bits / 8))
				fail_msg("%s: lane %u, element %u", c->name, l, e);
		}
	rig_close(r);
}

#define MMA(rows, k, d, a, b, more) \
	{ { "m" #rows "n8k" #k, rows, 8, k }, "mma.sync.aligned.m" #rows "n8k" #k ".row.col." #d "." #a "." #b "." #d more " ", #d, #a, #b }

static void mma_multiplies_in_all_shapes_and_types(void **state)
{
	static const struct mma_case cases[] = {
		MMA(16, 8, f32, f16, f16, ""),         MMA(16, 16, f32, f16, f16, ""),         MMA(16, 8, f16, f16, f16, ""),
		MMA(16, 16, f16, f16, f16, ""),        MMA(16, 8, f32, bf16, bf16, ""),        MMA(16, 16, f32, bf16, bf16, ""),
		MMA(16, 4, f32, tf32, tf32, ""),       MMA(16, 8, f32, tf32, tf32, ""),        MMA(16, 16, f32, e4m3, e4m3, ""),
		MMA(16, 32, f32, e4m3, e5m2, ""),      MMA(16, 32, f16, e5m2, e5m2, ""),       MMA(8, 4, f64, f64, f64, ""),
		MMA(16, 4, f64, f64, f64, ""),         MMA(16, 8, f64, f64, f64, ""),          MMA(16, 16, f64, f64, f64, ""),
		MMA(8, 16, s32, s8, u8, ""),           MMA(16, 16, s32, u8, s8, ""),           MMA(16, 32, s32, s8, s8, ""),
		MMA(8, 32, s32, s4, s4, ""),           MMA(16, 32, s32, u4, s4, ""),           MMA(16, 64, s32, s4, u4, ""),
		MMA(8, 128, s32, b1, b1, ".xor.popc"), MMA(16, 128, s32, b1, b1, ".and.popc"), MMA(16, 256, s32, b1, b1, ".xor.popc"),
	};

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
		check_mma(&cases[k]);
}

/* ---- mma.sp: A has two of each four elements, whose positions are in the metadata ---------------------------------------------- */

/* m16n8k32 of f16, selector s: lanes 4 g + 2 s and 4 g + 2 s + 1 hold the metadata of rows g (low half) and g + 8, each for 16 columns. */
static void mma_sp_multiplies_by_the_stored_half(void **state)
{
	static struct problem p;
	struct rig *r = rig_open(
		PTX_HEADER
		".visible .entry k(.param .u64 out, .param .u64 in) {\n.reg .b64 %o, %i; .reg .b32 %t, e, a<4>, b<4>; .reg .f32 c<4>;\n"
		"ld.param.u64 %o, [out]; ld.param.u64 %i, [in]; mov.u32 %t, %tid.x; mad.wide.u32 %o, %t, 16, %o; mad.wide.u32 %i, %t, 48, %i;\n"
		"ld.global.v4.b32 {a0, a1, a2, a3}, [%i]; ld.global.v4.b32 {b0, b1, b2, b3}, [%i+16]; ld.global.b32 e, [%i+32];\n"
		"mov.f32 c0, 0f3f800000; mov.f32 c1, c0; mov.f32 c2, c0; mov.f32 c3, c0;\n"
		"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {c0, c1, c2, c3}, {a0, a1, a2, a3}, {b0, b1, b2, b3}, {c0, c1, c2, c3}, e, 1;\n"
		"st.global.v4.f32 [%o], {c0, c1, c2, c3}; ret; }");
	static const unsigned pairs[6][2] = { { 0, 1 }, { 0, 2 }, { 0, 3 }, { 1, 2 }, { 1, 3 }, { 2, 3 } };
	float *out = rig_memory(r, 512);
	uint8_t *in = rig_memory(r, 32 * 48);

	(void)state;
	make_problem(&p, &(struct shape){ "", 16, 8, 32 }, "f16", "f16", false);
	for (unsigned row = 0; row < 16; row++)
		for (unsigned four = 0; four < 8; four++) {
			const unsigned *at = pairs[(row + 5 * four) % 6], *word = (unsigned *)(in + (row % 8 * 4 + 2 + four / 4) * 48 + 32);

			for (unsigned k = 0; k < 4; k++)
				p.a[row][4 * four + k] *= k == at[0] || k == at[1];
			*(unsigned *)(uintptr_t)word |= (at[0] | at[1] << 2) << (four % 4 * 4 + row / 8 * 16);
			for (unsigned k = 0; k < 2; k++)
				set_bits(in + (row % 8 * 4 + four % 4) * 48 + (row / 8 + four / 4 * 2) * 4, 16, k,
					 bits_of_value("f16", p.a[row][4 * four + at[k]]));
		}
	for (unsigned k = 0; k < 32; k++)
		for (unsigned n = 0; n < 8; n++)
			set_bits(in + (n * 4 + k % 8 / 2) * 48 + 16 + k / 8 * 4, 16, k % 2, bits_of_value("f16", p.b[k][n]));
	rig_expect_ok(r, "k", 1, 32, out, (uintptr_t)in);
	for (unsigned row = 0; row < 16; row++)
		for (unsigned n = 0; n < 8; n++) {
			int want = 1;

			for (unsigned k = 0; k < 32; k++)
				want += p.a[row][k] * p.b[k][n];
			assert_float_equal(out[(row % 8 * 4 + n / 2) * 4 + row / 8 * 2 + n % 2], want, 0);
		}
	rig_close(r);
}

/* ---- wmma: load, mma, store ------------------------------------------------------------------------------------------------ */

struct wmma_case {
	struct shape shape;
	const char *d, *a;
	unsigned n_a, n_b, n_c;
	const char *types;
};

static void check_wmma(const struct wmma_case *c, bool a_by_column, bool b_by_column, bool d_by_column)
{
	static struct problem p;
	const unsigned bits = bits_in_type(c->a), sum_bits = bits_in_type(c->d), pad = bits < 8 ? 128 : 8;
	const struct shape *s = &c->shape;
	const unsigned lda = pad + (a_by_column ? s->rows : s->k), ldb = pad + (b_by_column ? s->k : s->columns);
	const unsigned ldd = pad + (d_by_column ? s->rows : s->columns), reg = bits == 64 ? 64 : 32;
	char text[4096], la[200], lb[200], lc[200], ld[200];
	struct rig *r;
	uint8_t *in, *out;

	add_list(la, 0, sizeof la, 'a', c->n_a, "");
	add_list(lb, 0, sizeof lb, 'b', c->n_b, "");
	add_list(lc, 0, sizeof lc, 'c', c->n_c, "");
	add_list(ld, 0, sizeof ld, 'd', c->n_c, "");
	snprintf(
		text, sizeof text,
		PTX_HEADER
		".visible .entry k(.param .u64 out, .param .u64 in) {\n.reg .b64 %%o, %%i; .reg .b%u a<9>, b<9>, c<9>, d<9>; .reg .b32 %%n;\n"
		".shared .align 32 .b8 s[8192]; ld.param.u64 %%o, [out]; ld.param.u64 %%i, [in]; mov.u32 %%n, %u;\n"
		"wmma.load.a.sync.aligned.%s.%s.%s %s, [%%i], %u; wmma.load.b.sync.aligned.%s.%s.global.%s %s, [%%i+32768], %%n;\n"
		"wmma.load.c.sync.aligned.%s.%s.%s %s, [%%i+65536], %u;\nwmma.mma%s.sync.aligned.%s.%s.%s.%s %s, %s, %s, %s;\n"
		"wmma.store.d.sync.aligned.%s.%s.shared.%s [s+32], %s, %u; wmma.load.c.sync.aligned.%s.%s.shared.%s %s, [s+32], %u;\n"
		"wmma.store.d.sync.aligned.%s.%s.%s [%%o], %s, %u; ret; }\n",
		reg, ldb, a_by_column ? "col" : "row", s->name, c->a, la, lda, b_by_column ? "col" : "row", s->name, c->a, lb,
		d_by_column ? "col" : "row", s->name, c->d, lc, ldd, bits == 1 ? ".xor.popc" : "", a_by_column ? "col" : "row",
		b_by_column ? "col" : "row", s->name, c->types, ld, la, lb, lc, d_by_column ? "col" : "row", s->name, c->d, ld, ldd,
		d_by_column ? "col" : "row", s->name, c->d, lc, ldd, d_by_column ? "col" : "row", s->name, c->d, lc, ldd);
	make_problem(&p, s, c->a, c->a, false);
	r = rig_open(text);
	in = rig_memory(r, 131072);
	out = rig_memory(r, 8192);
	for (unsigned m = 0; m < s->rows; m++)
		for (unsigned k = 0; k < s->k; k++)
			set_bits(in, bits, a_by_column ? k * lda + m : m * lda + k, bits_of_value(c->a, p.a[m][k]));
	for (unsigned k = 0; k < s->k; k++)
		for (unsigned n = 0; n < s->columns; n++)
			set_bits(in + 32768, bits, b_by_column ? n * ldb + k : k * ldb + n, bits_of_value(c->a, p.b[k][n]));
	for (unsigned m = 0; m < s->rows; m++)
		for (unsigned n = 0; n < s->columns; n++)
			set_bits(in + 65536, sum_bits, d_by_column ? n * ldd + m : m * ldd + n, bits_of_value(c->d, p.c[m][n]));
	rig_expect_ok(r, "k", 1, 32, out, (uintptr_t)in);
	for (unsigned m = 0; m < s->rows; m++)
		for (unsigned n = 0; n < s->columns; n++) {
			const uint64_t want = bits_of_value(c->d, p.d[m][n]);

			if (memcmp(out + (d_by_column ? n * ldd + m : m * ldd + n) * sum_bits / 8, &want, sum_bits / 8))
				fail_msg("%s of %s: row %u, column %u", s->name, c->types, m, n);
		}
	rig_close(r);
}

#define WMMA(m, n, k) { "m" #m "n" #n "k" #k, m, n, k }

static void wmma_multiplies_matrices_in_memory(void **state)
{
	/* clang-format off */
	static const struct wmma_case cases[] = {
		{ WMMA(16, 16, 16), "f32", "f16", 8, 8, 8, "f32.f32" },      { WMMA(32, 8, 16), "f32", "f16", 8, 8, 8, "f32.f32" },
		{ WMMA(8, 32, 16), "f32", "f16", 8, 8, 8, "f32.f32" },       { WMMA(16, 16, 16), "f16", "f16", 8, 8, 4, "f16.f16" },
		{ WMMA(32, 8, 16), "f16", "f16", 8, 8, 4, "f16.f16" },       { WMMA(8, 32, 16), "f16", "f16", 8, 8, 4, "f16.f16" },
		{ WMMA(16, 16, 16), "f32", "bf16", 4, 4, 8, "f32.bf16.bf16.f32" }, { WMMA(32, 8, 16), "f32", "bf16", 8, 2, 8, "f32.bf16.bf16.f32" },
		{ WMMA(8, 32, 16), "f32", "bf16", 2, 8, 8, "f32.bf16.bf16.f32" },  { WMMA(16, 16, 8), "f32", "tf32", 4, 4, 8, "f32.tf32.tf32.f32" },
		{ WMMA(16, 16, 16), "s32", "s8", 2, 2, 8, "s32.s8.s8.s32" },  { WMMA(32, 8, 16), "s32", "u8", 4, 1, 8, "s32.u8.u8.s32" },
		{ WMMA(8, 32, 16), "s32", "s8", 1, 4, 8, "s32.s8.s8.s32" },   { WMMA(8, 8, 4), "f64", "f64", 1, 1, 2, "f64.f64.f64.f64" },
		{ WMMA(8, 8, 32), "s32", "s4", 1, 1, 2, "s32.s4.s4.s32" },    { WMMA(8, 8, 128), "s32", "b1", 1, 1, 2, "s32.b1.b1.s32" },
	};
	/* clang-format on */

	(void)state;
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++)
		for (unsigned layout = 0; layout < 8; layout++)
			if (bits_in_type(cases[k].a) >= 8 || (layout & 3) == 2) /* sub-byte types: row.col only */
				check_wmma(&cases[k], layout & 1, layout & 2, layout & 4);
}

/* ---- ldmatrix, stmatrix, movmatrix ------------------------------------------------------------------------------------------- */

/* Row r of matrix m has the elements 100 m + 8 r + 0 ... 7. */
static void ldmatrix_and_stmatrix_move_matrices_of_8_by_8(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT(
		"k") ".shared .align 16 .b8 s[1024]; .reg .b32 %s, %a;\n"
		     "mov.u32 %s, s; shl.b32 %r1, %t, 4; add.u32 %a, %s, %r1; cvt.u64.u32 %d1, %r1; add.u64 %d1, %x, %d1;\n"
		     "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d1]; st.shared.v4.u32 [%a], {%r2, %r3, %r4, %r5};\n"
		     "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%a];\n"
		     "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r6, %r7}, [%a];\n"
		     "ldmatrix.sync.aligned.m8n8.x1.shared::cta.b16 {%r8}, [%a]; movmatrix.sync.aligned.m8n8.trans.b16 %r9, %r8;\n"
		     "mad.wide.u32 %d2, %t, 32, %o; st.global.v4.u32 [%d2], {%r2, %r3, %r4, %r5}; st.global.v4.u32 [%d2+16], {%r6, %r7, %r8, %r9};\n"
		     "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%a+512], {%r2, %r3, %r4, %r5};\n"
		     "ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%a+512]; mad.wide.u32 %d2, %t, 16, %o; st.global.v4.u32 [%d2+1024], {%r2, %r3, %r4, %r5};\n"
		     "ret; }");
	uint16_t *in = rig_memory(r, 512), *out = rig_memory(r, 1536);

	(void)state;
	for (unsigned n = 0; n < 256; n++)
		in[n] = (uint16_t)(n / 64 * 100 + n % 64);
	rig_expect_ok(r, "k", 1, 32, out, (uintptr_t)in);
	for (unsigned l = 0; l < 32; l++)
		for (unsigned k = 0; k < 2; k++) {
			const unsigned row = l / 4, column = l % 4 * 2 + k;
			const uint16_t *mine = out + 16 * l + k;

			for (unsigned m = 0; m < 4; m++)
				assert_int_equal(mine[2 * m], 100 * m + 8 * row + column);
			assert_int_equal(mine[8], 8 * column + row);
			assert_int_equal(mine[10], 100 + 8 * column + row);
			assert_int_equal(mine[12], 8 * row + column);
			assert_int_equal(mine[14], 8 * column + row);
		}
	for (unsigned n = 0; n < 256; n++)
		assert_int_equal(out[512 + n], n / 64 * 100 + n % 8 * 8 + n / 8 % 8);
	assert_int_equal(rig_run(r, "k", 1, 32, out, 64), GPUL_EXEC_ILLEGAL_ADDRESS);
	rig_close(r);
}

static void diverged_lanes_meet_at_a_matrix_instruction(void **state)
{
	struct rig *r = rig_open(PTX_HEADER KERNEL_OUT(
		"k") "setp.lt.u32 %p1, %t, 9; mov.u32 %r1, %t; @%p1 bra LATE;\n"
		     "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1; bra DONE;\n"
		     "LATE: movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1; DONE: st.global.u32 [%mine], %r2; ret; }");
	uint32_t *out = rig_memory(r, 128);

	(void)state;
	assert_int_equal(rig_run(r, "k", 1, 32, out, 0), GPUL_EXEC_OK);
	rig_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mma_multiplies_in_all_shapes_and_types),
		cmocka_unit_test(mma_sp_multiplies_by_the_stored_half),
		cmocka_unit_test(wmma_multiplies_matrices_in_memory),
		cmocka_unit_test(ldmatrix_and_stmatrix_move_matrices_of_8_by_8),
		cmocka_unit_test(diverged_lanes_meet_at_a_matrix_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
