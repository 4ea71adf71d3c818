/* test_trace.c — a trace, as text and as JSON, contains what the test's own observer records: instructions, lanes, register
 * values. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>
#include <math.h>
#include <unistd.h>

#include "softcuda/exec/warp/observe_internal.h"
#include "softcuda/tools/trace/trace_internal.h"

enum { MAX_LINES = 4096, LINE_BYTES = 700 };

/* Records each PTX instruction: "block warp lanes opcode", and in hex the 32 values of each 32-bit register that it writes. */
struct recorder {
	struct observer o;
	unsigned n;
	char line[MAX_LINES][LINE_BYTES];
};

static void after(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits)
{
	struct recorder *r = (struct recorder *)o;
	const struct func_code *code = s->frame->code;
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);
	const gpul_ptx_operand *d = in && in->n_operands ? &code->ptx->operands[in->first_operand] : NULL;
	char *to;

	if (waits || !in || !gpul_insn_ends(code, i))
		return;
	assert_true(r->n < MAX_LINES);
	to = r->line[r->n++];
	to += sprintf(to, "%u %u %08x %s", s->block->index[0], s->index, on, gpul_ptx_opcode_text((gpul_ptx_opcode)in->opcode));
	if (d && d->kind == GPUL_PTX_OP_REG && on) {
		unsigned bytes;
		const uint32_t *v = gpul_warp_register(s, s->frame, d->index, &bytes);

		for (unsigned l = 0; v && bytes == 4 && l < LANES; l++)
			to += on >> l & 1 ? sprintf(to, " %x", v[l]) : sprintf(to, " -");
	}
}

/* ---- reading a trace --------------------------------------------------------------------------------------------- */

static uint32_t bits_of(const char *word)
{
	uint32_t bits;
	float f;

	if (!strpbrk(word, ".enif") || !strncmp(word, "0x", 2))
		return (uint32_t)strtoll(word, NULL, 0);
	f = strtof(word, NULL);
	memcpy(&bits, &f, sizeof bits);
	return bits;
}

/* Append the values that a trace abbreviates as "7", as "0, 4 ... 124", or as a list.  floats: the values are floats, even "3". */
static void append_values(char *to, char *text, uint32_t on, bool floats)
{
	char *word[LANES + 1], *rest = text, *next;
	unsigned n = 0;
	uint32_t v[2];

	to += strlen(to);
	while (n <= LANES && (next = strsep(&rest, " ")))
		word[n++] = next;
	for (unsigned k = 0; k < 2 && k < n; k++) {
		const float f = strtof(word[k], NULL);

		v[k] = bits_of(word[k]);
		if (floats)
			memcpy(&v[k], &f, sizeof f);
	}
	for (unsigned l = 0; l < LANES; l++) {
		uint32_t value = v[0];

		if (n == LANES && on >> l & 1) {
			const float f = strtof(word[l], NULL);

			value = bits_of(word[l]);
			if (floats)
				memcpy(&value, &f, sizeof f);
		} else if (n == 4) {
			value += (v[1] - v[0]) * (l - first_lane(on));
		}
		to += on >> l & 1 ? sprintf(to, " %x", value) : sprintf(to, " -");
	}
}

/* Convert a line like "#21 block 0,0,0 warp 0 lanes ffffffff k.ptx:20: add.u32 %r5, %r2, %r3;  %r5 = ..." to the recorder's form. */
static bool convert_line(char *line, char out[LINE_BYTES])
{
	unsigned block, warp, lanes, n;
	char *text = strstr(line, ": "), *values, *end, op[16];

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "#%u block %u,0,0 warp %u lanes %x", &n, &block, &warp, &lanes) != 4)
		return false;
	assert_non_null(text);
	text += 2;
	if (*text == '@')
		text = strchr(text, ' ') + 1;
	snprintf(op, sizeof op, "%.*s", (int)strcspn(text, ". ;"), text);
	sprintf(out, "%u %u %08x %s", block, warp, lanes, op);
	values = strstr(text, ";  ");
	if (!values || !lanes || !strstr(values, " = ") || !(strchr("ab", values[3]) || (values[3] == '%' && strchr("rft", values[4]))))
		return true;
	end = strstr(values + 3, "  ");
	if (end)
		*end = '\0';
	append_values(out, strstr(values, " = ") + 3, lanes, values[4] == 'f');
	return true;
}

/* ---- running a kernel with the tool ------------------------------------------------------------------------------- */

/* The kernel has divergence, a loop, a barrier, shared memory, floats, an atomic operation, and guards that are false for some
 * lanes or for all. */
#define KERNEL \
	PTX_HEADER KERNEL_OUT( \
		"k") ".shared .b8 s[512];" \
		     "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2; cvt.rn.f32.u32 %f1, %r1;" \
		     "mul.f32 %f2, %f1, 0f3DCCCCCD; st.shared.f32 [%r3], %f2; bar.sync 0; xor.b32 %r4, %r3, 64; ld.shared.b32 %r5, [%r4];" \
		     "and.b32 %r6, %r1, 3; setp.eq.u32 %p1, %r6, 0; @%p1 bra done; loop: mad.lo.u32 %r5, %r5, %r6, 3; sub.u32 %r6, %r6, 1;" \
		     "setp.ne.u32 %p2, %r6, 0; @%p2 bra loop; done: @%p1 mul.hi.u32 %r7, %r5, %r5; setp.gt.u32 %p3, %r1, 99;" \
		     "@%p3 add.u32 %r7, %r7, 1; mov.u32 %r8, 5; shfl.sync.bfly.b32 %r8, %r1, 3, 31, -1; st.global.u32 [%mine], %r5;" \
		     "atom.global.add.u32 %r9, [%o], 1; sqrt.rn.f32 %f3, %f2; div.rn.f32 %f4, %f2, 0fC0400000; ret; }"

struct run {
	struct recorder *recorder;
	char text[40], json[40];
};

/* volatile, so that the pointers stay in memory, where leak checkers find them: tools are never destroyed */
static struct observer *volatile traces[8];

static struct observer *create_trace(struct tool_options *options)
{
	static unsigned n;
	struct observer *trace;
	gpul_error err = { 0 };

	assert_true(n < sizeof traces / sizeof *traces);
	if (gpul_trace_tool.create(options, NULL, &trace, &err))
		fail_msg("%s", err.text);
	return traces[n++] = trace;
}

static void run_kernel(struct run *r, const char *only)
{
	char files[100];
	struct tool_options options = { .n = only ? 2 : 1, .option = { { "file", files }, { "only", only } } };
	struct observer *trace;

	r->recorder = calloc(1, sizeof *r->recorder);
	assert_non_null(r->recorder);
	r->recorder->o = (struct observer){ .name = "test", .serial = true, .after = after };
	snprintf(r->text, sizeof r->text, "/tmp/test_trace.%d.txt", getpid());
	snprintf(r->json, sizeof r->json, "/tmp/test_trace.%d.json", getpid());
	snprintf(files, sizeof files, "%s,%s", r->text, r->json);
	trace = create_trace(&options);
	struct observer *const list[] = { &r->recorder->o, trace };
	struct rig *g = rig_open_observed(KERNEL, (gpul_exec_machine_options){ .n_workers = 2 }, list, 2);
	uint32_t *out = rig_memory(g, 256 * 4);

	assert_int_equal(rig_run(g, "k", 3, 48, out, 0), GPUL_EXEC_OK);
	rig_close(g);
	gpul_trace_tool.finish(trace);
}

static void end_run(struct run *r)
{
	unlink(r->text);
	unlink(r->json);
	free(r->recorder);
}

static void text_has_what_an_observer_sees(void **state)
{
	static char line[16384], got[LINE_BYTES];
	struct run r;
	unsigned n = 0, n_values = 0;
	FILE *f;

	(void)state;
	run_kernel(&r, NULL);
	f = fopen(r.text, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		if (!convert_line(line, got))
			continue;
		assert_true(n < r.recorder->n);
		assert_string_equal(got, r.recorder->line[n++]);
		n_values += strlen(got) > 60;
	}
	fclose(f);
	assert_int_equal(n, r.recorder->n);
	assert_true(n > 200 && n_values > 100);
	end_run(&r);
}

static void json_has_the_same_instructions(void **state)
{
	static char line[16384];
	struct run r;
	unsigned n = 0;
	FILE *f;

	(void)state;
	run_kernel(&r, NULL);
	f = fopen(r.json, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		unsigned ts, pid, tid, lanes;
		char name[40], want[100];

		if (sscanf(line, "{\"ph\":\"X\",\"ts\":%u,\"dur\":1,\"pid\":%u,\"tid\":%u,\"name\":\"%39[a-z0-9]%*[^}]\"lanes\":\"%x", &ts,
			   &pid, &tid, name, &lanes) < 4)
			continue;
		assert_int_equal(ts, n);
		lanes = (unsigned)strtoul(strstr(line, "\"lanes\":\"") + 9, NULL, 16);
		sprintf(want, "%u %u %08x %s", pid, tid, lanes, name);
		assert_memory_equal(want, r.recorder->line[n], strlen(want));
		n++;
	}
	fclose(f);
	assert_int_equal(n, r.recorder->n);
	end_run(&r);
}

static void a_filter_selects_by_warp_and_opcode(void **state)
{
	static char line[16384], got[LINE_BYTES];
	struct run r;
	unsigned n = 0, k = 0;
	FILE *f;

	(void)state;
	run_kernel(&r, "op=mad,op=atom,warp=1");
	f = fopen(r.text, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		if (!convert_line(line, got))
			continue;
		while (k < r.recorder->n && strcmp(r.recorder->line[k], got) != 0)
			k++;
		assert_true(k < r.recorder->n); /* the lines are in the same order */
		assert_true(strstr(got, " mad") || strstr(got, " atom"));
		assert_true(got[2] == '1');
		n++;
	}
	fclose(f);
	for (k = 0; k < r.recorder->n; k++)
		if (r.recorder->line[k][2] == '1' && (strstr(r.recorder->line[k], " mad") || strstr(r.recorder->line[k], " atom")))
			n--;
	assert_int_equal(n, 0);
	end_run(&r);
}

/* ---- values as text ---------------------------------------------------------------------------------------------- */

static void floats_can_be_read_back(void **state)
{
	uint32_t bits = 1;
	char text[64];

	(void)state;
	for (unsigned k = 0; k < 200000; k++, bits = bits * 1664525 + 1013904223) {
		float f, back;

		memcpy(&f, &bits, sizeof f);
		if (k % 2)
			f = (float)(bits >> 8) / (float)(1 << k % 24); /* numbers of usual magnitudes */
		if (f != f)
			continue;
		memcpy(&bits, &f, sizeof bits);
		*gpul_trace_number(text, bits, 4, 'f') = '\0';
		back = strtof(text, NULL);
		assert_memory_equal(&back, &f, sizeof f);
	}
}

static void doubles_can_be_read_back(void **state)
{
	uint64_t bits = 1;
	char text[64];

	(void)state;
	for (unsigned k = 0; k < 100000; k++, bits = bits * UINT64_C(6364136223846793005) + 1442695040888963407) {
		uint64_t tried = bits;
		double d, back;

		memcpy(&d, &bits, sizeof d);
		if (k % 3)
			d = (double)(bits >> 40) / (k % 3 == 1 ? 1000 : 1e12); /* few digits, or ordinary magnitudes */
		if (d != d)
			continue;
		memcpy(&tried, &d, sizeof d);
		*gpul_trace_number(text, tried, 8, 'f') = '\0';
		back = strtod(text, NULL);
		assert_memory_equal(&back, &d, sizeof d);
		if (k % 3 == 1)
			assert_true(strlen(text) < 13); /* the text has no more digits than the number needs */
	}
}

/* Collect the builds of decimals.c that this CPU can run. */
static unsigned find_builds(trace_floats_fn *out[3])
{
	unsigned n = 0;

	out[n++] = gpul_trace_floats_base;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
		out[n++] = gpul_trace_floats_v3;
	if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
	    __builtin_cpu_supports("avx512cd"))
		out[n++] = gpul_trace_floats_v4;
#endif
	return n;
}

static void floats_of_32_lanes_can_be_read_back(void **state)
{
	static char text[3][TRACE_LANES_BYTES];
	trace_floats_fn *build[3];
	const unsigned n = find_builds(build);
	uint32_t bits[LANES], random = 1;

	(void)state;
	for (unsigned k = 0; k < 20000; k++) {
		const uint32_t on = k % 2 ? ALL_LANES : random | 1;
		char *rest = text[0], *word;

		for (unsigned l = 0; l < LANES; l++, random = random * 1664525 + 1013904223) {
			float f = (float)(int32_t)random / (float)(1u << random % 31);

			memcpy(&bits[l], &f, sizeof f);
			if (k % 4 == 3)
				bits[l] = l % 7 ? random : l % 2 ? 0 : 0x80000000;
			if (k % 4 == 2)
				bits[l] &= 0xffc00000; /* powers of two, and numbers with few digits */
		}
		for (unsigned b = 0; b < n; b++) {
			*build[b](text[b], bits, on) = '\0';
			assert_string_equal(text[b], text[0]);
		}
		assert_string_equal(strsep(&rest, " "), ""); /* the text begins with a blank */
		for (unsigned l = 0; l < LANES; l++) {
			float want, got;

			word = strsep(&rest, " ");
			if (!(on >> l & 1)) {
				assert_string_equal(word, "-");
				continue;
			}
			memcpy(&want, &bits[l], sizeof want);
			got = strtof(word, NULL);
			assert_true(want != want ? got != got : !memcmp(&got, &want, sizeof want));
		}
	}
}

static void integers_of_32_lanes_are_those_of_each_lane(void **state)
{
	static char text[TRACE_LANES_BYTES];
	char word[64], want[32 * 64];
	uint64_t values[LANES], random = 1;

	(void)state;
	for (unsigned k = 0; k < 20000; k++) {
		const uint32_t on = k % 2 ? ALL_LANES : (uint32_t)(random >> 9) | 4;
		const char type = "usbf"[k / 2 % 4];
		char *to = want;

		for (unsigned l = 0; l < LANES; l++, random = random * UINT64_C(6364136223846793005) + 1442695040888963407) {
			const uint64_t v = random >> (k % 3 ? 37 + random % 27 : 32 + random % 32);
			const double d = (double)v;

			values[l] = v;
			if (type == 'f')
				memcpy(&values[l], &d, sizeof d);
		}
		values[2] = values[3] + 1; /* the values are neither all equal nor an arithmetic sequence */
		values[4] = 17;
		for (unsigned l = 0; l < LANES; l++) {
			*gpul_trace_number(word, values[l], 8, type) = '\0';
			to += sprintf(to, l ? " %s" : "%s", on >> l & 1 ? word : "-");
		}
		*gpul_trace_lanes(text + 1, values, 8, type, on) = '\0';
		if (on & (on - 1) && strchr(text + 1, ' '))
			assert_string_equal(text + 1, want);
	}
}

static void numbers_are_short(void **state)
{
	/* clang-format off */
	static const struct { double value; const char *f32, *f64; } cases[] = {
		{ 0, "0", "0" }, { -0.0, "-0", "-0" }, { 0.1, "0.1", "0.1" }, { 1.0 / 3, "0.33333334", "0.3333333333333333" }, { -2.5, "-2.5", "-2.5" },
		{ 16777216, "16777216", "16777216" }, { 123456792, "123456792", "123456792" }, { 1e-4, "0.0001", "0.0001" },
		{ 5e-5, "5e-05", "5e-05" }, { 1e20, "1e+20", "1e+20" }, { 4294967296, "4.2949673e+09", "4294967296" }, { INFINITY, "inf", "inf" },
		{ -INFINITY, "-inf", "-inf" }, { NAN, "nan", "nan" },
	};
	/* clang-format on */

	(void)state;
	for (unsigned k = 0; k < sizeof cases / sizeof *cases; k++) {
		const float f = (float)cases[k].value;
		char text[64];
		uint64_t wide;
		uint32_t bits;

		memcpy(&bits, &f, sizeof bits);
		memcpy(&wide, &cases[k].value, sizeof wide);
		*gpul_trace_number(text, bits, 4, 'f') = '\0';
		assert_string_equal(text, cases[k].f32);
		*gpul_trace_number(text, wide, 8, 'f') = '\0';
		assert_string_equal(text, cases[k].f64);
	}
	for (unsigned k = 0; k < 64; k++) {
		char text[64], want[64];

		for (unsigned m = 0; m < 3; m++) {
			const uint64_t v = (UINT64_C(1) << k) + m - 1;

			*gpul_trace_decimal(text, v) = '\0';
			sprintf(want, "%llu", (unsigned long long)v);
			assert_string_equal(text, want);
			*gpul_trace_number(text, v, 8, 'b') = '\0';
			sprintf(want, v < 0x10000 ? "%llu" : "0x%llx", (unsigned long long)v);
			assert_string_equal(text, want);
		}
	}
}

static void a_wrong_option_leaves_nothing(void **state)
{
	char text[40], folder[40], files[100], same[100];
	const struct {
		struct tool_option option[3];
		const char *message;
	} wrong[] = {
		{ { { "file", text }, { "limit", "none" } }, "limit needs a number" },
		{ { { "file", text }, { "only", "op=st,warp=x" } }, "warp needs a number" },
		{ { { "file", same } }, "two files of the same kind" },
		{ { { "file", "a.doc" } }, "must end in .txt" },
		{ { { "file", files }, { "only", "op=st" } }, "No such file or directory" },
	};

	(void)state;
	snprintf(text, sizeof text, "/tmp/test_trace.%d.txt", getpid());
	snprintf(folder, sizeof folder, "/tmp/test_trace.%d.missing", getpid());
	snprintf(files, sizeof files, "%s,%s/a.json", text, folder);
	snprintf(same, sizeof same, "%s,%s", text, text);
	for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
		struct tool_options options = { 0 };
		struct observer *trace = NULL;
		gpul_error err = { 0 };

		for (; options.n < 3 && wrong[k].option[options.n].key; options.n++)
			options.option[options.n] = wrong[k].option[options.n];
		assert_int_not_equal(gpul_trace_tool.create(&options, NULL, &trace, &err), GPUL_OK);
		assert_non_null(strstr(err.text, wrong[k].message));
		assert_null(trace);
		assert_int_not_equal(access(text, F_OK), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_has_what_an_observer_sees),
		cmocka_unit_test(json_has_the_same_instructions),
		cmocka_unit_test(a_filter_selects_by_warp_and_opcode),
		cmocka_unit_test(floats_can_be_read_back),
		cmocka_unit_test(doubles_can_be_read_back),
		cmocka_unit_test(floats_of_32_lanes_can_be_read_back),
		cmocka_unit_test(integers_of_32_lanes_are_those_of_each_lane),
		cmocka_unit_test(numbers_are_short),
		cmocka_unit_test(a_wrong_option_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
