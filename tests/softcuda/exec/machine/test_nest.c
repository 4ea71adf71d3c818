/* test_nest.c — kernels launched by kernels: their order, completion, streams, events, errors and faults. */
#include "tests/softcuda/exec/engine_rig.h"

#include <cmocka.h>

#define EXTERNS \
	".extern .func (.param .b64 v) __cudaCDP2GetParameterBufferV2 (.param .b64 f, .param .align 4 .b8 g[12], " \
	".param .align 4 .b8 b[12], .param .b32 s);\n" \
	".extern .func (.param .b32 v) __cudaCDP2LaunchDeviceV2 (.param .b64 p, .param .b64 s);\n" \
	".extern .func (.param .b32 v) __cudaCDP2GetLastError ();\n" \
	".extern .func (.param .b32 v) __cudaCDP2StreamCreateWithFlags (.param .b64 s, .param .b32 f);\n" \
	".extern .func (.param .b32 v) __cudaCDP2StreamDestroy (.param .b64 s);\n" \
	".extern .func (.param .b32 v) __cudaCDP2StreamWaitEvent (.param .b64 s, .param .b64 e, .param .b32 f);\n" \
	".extern .func (.param .b32 v) __cudaCDP2EventCreateWithFlags (.param .b64 e, .param .b32 f);\n" \
	".extern .func (.param .b32 v) __cudaCDP2EventRecord (.param .b64 e, .param .b64 s);\n"

/* PTX function launch(): what nvcc generates for kernel<<<grid, block, 0, stream>>>(out, x). */
#define LAUNCHER \
	".func launch (.reg .b64 kernel, .reg .b32 grid, .reg .b32 block, .reg .b64 out, .reg .b64 x, .reg .b64 stream) {\n" \
	".reg .pred none; .reg .b64 at; .param .b64 f; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s; " \
	".param .b64 v; .param .b64 p; .param .b64 q; .param .b32 e; st.param.b64 [f], kernel;\n" \
	"st.param.b32 [g], grid; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;\n" \
	"st.param.b32 [b], block; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1; st.param.b32 [s], 0;\n" \
	"call.uni (v), __cudaCDP2GetParameterBufferV2, (f, g, b, s); ld.param.b64 at, [v];\n" \
	"setp.eq.u64 none, at, 0; @none ret; st.u64 [at], out; st.u64 [at+8], x; st.param.b64 [p], at; st.param.b64 [q], stream;\n" \
	"call.uni (e), __cudaCDP2LaunchDeviceV2, (p, q); ret; }\n"
#define HEAD                           PTX_HEADER EXTERNS LAUNCHER
/* Launch kernel(%o, x) in the stream %d8; grid, block and x may be registers or immediates. */
#define LAUNCH(kernel, grid, block, x) "mov.u64 %d9, " kernel "; call launch, (%d9, " grid ", " block ", %o, " x ", %d8);\n"
#define DEFAULT_STREAM                 "mov.u64 %d8, 0;\n"
#define TAIL                           "mov.u64 %d8, 3;\n"
#define FIRE_AND_FORGET                "mov.u64 %d8, 4;\n"
/* Create a stream or an event with these flags; store its handle in `to`. */
#define CREATE(call, flags, to) \
	"{ .local .align 8 .b8 h[8]; .reg .b64 at; .param .b64 p; .param .b32 q; .param .b32 v; cvta.local.u64 at, h;\n" \
	"st.param.b64 [p], at; st.param.b32 [q], " flags "; call.uni (v), " call ", (p, q); ld.u64 " to ", [at]; }\n"
#define CREATE_STREAM(to) CREATE("__cudaCDP2StreamCreateWithFlags", "1", to)
#define CREATE_EVENT(to)  CREATE("__cudaCDP2EventCreateWithFlags", "2", to)
#define CALL_2(call, a, b) \
	"{ .param .b64 p; .param .b64 q; .param .b32 v; st.param.b64 [p], " a "; st.param.b64 [q], " b ";\n" \
	"call.uni (v), " call ", (p, q); ld.param.b32 %r8, [v]; }\n"
#define WAIT_EVENT(stream, event) \
	"{ .param .b64 p; .param .b64 q; .param .b32 f; .param .b32 v; st.param.b64 [p], " stream "; st.param.b64 [q], " event ";\n" \
	"st.param.b32 [f], 0; call.uni (v), __cudaCDP2StreamWaitEvent, (p, q, f); }\n"
#define LAST_ERROR(to) "{ .param .b32 v; call.uni (v), __cudaCDP2GetLastError, (); ld.param.b32 " to ", [v]; }\n"

/* out[0] = out[0] * 3 + x, so the result depends on the order of the launches. */
#define CHAIN \
	KERNEL_OUT("chain") "ld.global.u32 %r1, [%o]; cvt.u32.u64 %r2, %x; mad.lo.u32 %r1, %r1, 3, %r2; st.global.u32 [%o], %r1; ret; }\n"
#define COUNT   KERNEL_OUT("count") "atom.global.add.u32 %r1, [%o], 1; ret; }\n"
#define FOREVER KERNEL_OUT("forever") "$again: ld.volatile.global.u32 %r1, [%o+8]; setp.eq.u32 %p1, %r1, 0; @%p1 bra $again; ret; }\n"

static uint32_t chained(uint32_t value, uint32_t first, uint32_t n)
{
	for (uint32_t k = first; k < first + n; k++)
		value = value * 3 + k;
	return value;
}

static void a_launch_ends_after_its_children(void **state)
{
	struct rig *r = rig_open(HEAD COUNT KERNEL_OUT("parent") DEFAULT_STREAM LAUNCH("count", "4", "32", "%x") "ret; }\n");
	uint32_t *out = rig_memory(r, 64);

	(void)state;
	for (unsigned k = 1; k <= 20; k++) {
		rig_run(r, "parent", 2, 3, out, 0);
		assert_int_equal(r->fault.kind, GPUL_EXEC_OK);
		assert_int_equal(out[0], k * 2 * 3 * 4 * 32);
	}
	rig_close(r);
}

/* A parent kernel that launches chain(0), chain(1), ..., chain(x - 1). */
#define PARENT_OF_CHAIN \
	KERNEL_OUT("parent") \
	DEFAULT_STREAM "mov.u64 %d1, 0; $next:\n" LAUNCH("chain", "1", "1", \
							 "%d1") "add.u64 %d1, %d1, 1; setp.lt.u64 %p1, %d1, %x; @%p1 bra $next; ret; }\n"

static void children_of_a_block_run_in_order(void **state)
{
	struct rig *r = rig_open(HEAD CHAIN PARENT_OF_CHAIN);
	uint32_t *out = rig_memory(r, 64);

	(void)state;
	rig_run(r, "parent", 1, 1, out, 1000);
	assert_int_equal(r->fault.kind, GPUL_EXEC_OK);
	assert_int_equal(out[0], chained(0, 0, 1000));
	rig_close(r);
}

static void a_thousand_threads_launch_at_once(void **state)
{
	struct rig *r = rig_open(HEAD COUNT KERNEL_OUT("parent") FIRE_AND_FORGET LAUNCH("count", "2", "1", "%x") "ret; }\n");
	uint32_t *out = rig_memory(r, 64);

	(void)state;
	rig_run(r, "parent", 10, 100, out, 0);
	assert_int_equal(r->fault.kind, GPUL_EXEC_OK);
	assert_int_equal(out[0], 2000);
	rig_close(r);
}

static void a_tail_launch_begins_after_all_children(void **state)
{
	/* the parent requests tail launches `first` and `second`, which store what they read in out[1] and out[2], then starts `child` */
	struct rig *r = rig_open(HEAD COUNT KERNEL_OUT("first") "ld.global.u32 %r1, [%o]; st.global.u32 [%o+4], %r1; ret; }\n" KERNEL_OUT(
		"second") "ld.global.u32 %r1, [%o+4]; add.u32 %r1, %r1, 1; st.global.u32 [%o+8], %r1; ret; }\n" KERNEL_OUT("child")
					 DEFAULT_STREAM LAUNCH("count", "8", "32", "%x") "ret; }\n" KERNEL_OUT("parent")
						 TAIL LAUNCH("first", "1", "1", "%x") LAUNCH("second", "1", "1", "%x")
							 FIRE_AND_FORGET LAUNCH("child", "3", "1", "%x") "ret; }\n");
	uint32_t *out = rig_memory(r, 64);

	(void)state;
	for (unsigned k = 0; k < 20; k++) {
		out[0] = out[1] = out[2] = 0;
		rig_run(r, "parent", 1, 1, out, 0);
		assert_int_equal(r->fault.kind, GPUL_EXEC_OK);
		assert_int_equal(out[1], 3 * 8 * 32);
		assert_int_equal(out[2], 3 * 8 * 32 + 1);
	}
	rig_close(r);
}

static void an_event_orders_two_streams(void **state)
{
	/* stream %d2: chain(0), chain(1), record; stream %d3: wait, chain(2); then both are destroyed while they work */
	struct rig *r = rig_open(
		HEAD CHAIN KERNEL_OUT("parent") CREATE_STREAM("%d2") CREATE_STREAM("%d3") CREATE_EVENT(
			"%d4") "mov.u64 %d8, %d2;" LAUNCH("chain", "1", "1", "0") LAUNCH("chain", "1", "1", "1")
			CALL_2("__cudaCDP2EventRecord", "%d4", "%d2") WAIT_EVENT("%d3", "%d4") "mov.u64 %d8, %d3; " LAUNCH(
				"chain", "1", "1",
				"2") "{ .param .b64 p; .param .b32 v; st.param.b64 [p], %d2; call.uni (v), __cudaCDP2StreamDestroy, (p); }\n"
				     "{ .param .b64 p; .param .b32 v; st.param.b64 [p], %d3; call.uni (v), __cudaCDP2StreamDestroy, (p); ld.param.b32 %r1, [v]; }\n"
				     "st.global.u32 [%o+4], %r1;\n"
				     "{ .param .b64 p; .param .b32 v; st.param.b64 [p], %d3; call.uni (v), __cudaCDP2StreamDestroy, (p); ld.param.b32 %r1, [v]; }\n"
				     "st.global.u32 [%o+8], %r1; ret; }\n");
	uint32_t *out = rig_memory(r, 64);

	(void)state;
	for (unsigned k = 0; k < 20; k++) {
		out[0] = 5;
		rig_run(r, "parent", 1, 1, out, 0);
		assert_int_equal(r->fault.kind, GPUL_EXEC_OK);
		assert_int_equal(out[0], chained(5, 0, 3));
		assert_int_equal(out[1], 0);
		assert_int_equal(out[2], 400); /* cudaErrorInvalidResourceHandle: the event was already destroyed */
	}
	rig_close(r);
}

static void a_fault_of_a_child_is_one_of_the_launch(void **state)
{
	struct rig *r = rig_open(HEAD COUNT KERNEL_OUT("faulty") "st.global.u32 [%x], %t; ret; }\n" KERNEL_OUT("child")
					 DEFAULT_STREAM LAUNCH("faulty", "1", "1", "%x") "ret; }\n" KERNEL_OUT("parent")
						 TAIL LAUNCH("count", "1", "1", "%x")
							 DEFAULT_STREAM LAUNCH("child", "1", "1", "%x") "ret; }\n");
	uint32_t *out = rig_memory(r, 64);

	(void)state;
	for (unsigned k = 0; k < 20; k++) {
		rig_run(r, "parent", 1, 1, out, 64);
		assert_int_equal(r->fault.kind, GPUL_EXEC_ILLEGAL_ADDRESS);
		assert_non_null(strstr(r->fault.text, "faulty, block 0, thread 0"));
		assert_int_equal(out[0], 0); /* the tail launch has not started */
	}
	rig_run(r, "count", 1, 1, out, 0);
	assert_int_equal(r->fault.kind, GPUL_EXEC_OK);
	assert_int_equal(out[0], 1);
	rig_close(r);
}

static void an_abort_ends_children_that_run_for_ever(void **state)
{
	struct rig *r = rig_open(HEAD FOREVER KERNEL_OUT(
		"child") "mov.u32 %r1, 1; st.volatile.global.u32 [%o], %r1;\n" DEFAULT_STREAM LAUNCH("forever", "500", "64", "%x")
					 LAUNCH("forever", "1", "1", "%x") "ret; }\n" KERNEL_OUT("parent")
						 DEFAULT_STREAM LAUNCH("child", "1", "1", "%x") "ret; }\n");
	uint32_t *out = rig_memory(r, 64);

	(void)state;
	for (unsigned k = 0; k < 5; k++) {
		gpul_exec_launch *l;
		gpul_exec_fault fault;

		out[0] = 0;
		l = rig_start(r, "parent", 3, 1, 0, out, 0);
		if (k % 2)
			while (!__atomic_load_n(&out[0], __ATOMIC_ACQUIRE))
				;
		gpul_exec_launch_abort(l);
		assert_true(gpul_exec_launch_wait(l, -1, &fault));
		assert_int_equal(fault.kind, GPUL_EXEC_ABORTED);
		gpul_exec_launch_release(l);
	}
	rig_close(r);
}

static void destroying_the_machine_ends_children(void **state)
{
	struct rig *r = rig_open(HEAD FOREVER KERNEL_OUT("parent") DEFAULT_STREAM LAUNCH("forever", "2", "1", "%x") "ret; }\n");
	uint32_t *out = rig_memory(r, 64);
	gpul_exec_launch *l = rig_start(r, "parent", 2, 2, 0, out, 0);

	(void)state;
	gpul_exec_machine_destroy(r->machine);
	r->machine = NULL;
	assert_true(gpul_exec_launch_wait(l, 0, &r->fault));
	assert_int_equal(r->fault.kind, GPUL_EXEC_ABORTED);
	gpul_exec_launch_release(l);
	rig_close(r);
}

static void launches_nest_24_deep(void **state)
{
	/* the kernel increments out[0] and launches itself; the kernel whose launch fails stores the error */
	struct rig *r = rig_open(
		HEAD KERNEL_OUT("level") "atom.global.add.u32 %r1, [%o], 1;\n" DEFAULT_STREAM LAUNCH("level", "1", "1", "%x")
			LAST_ERROR("%r2") "setp.ne.u32 %p1, %r2, 0; @%p1 st.global.u32 [%o+4], %r2;\n" LAST_ERROR(
				"%r2") "@%p1 st.global.u32 [%o+8], %r2; ret; }\n");
	uint32_t *out = rig_memory(r, 64);

	(void)state;
	out[2] = 7;
	rig_run(r, "level", 1, 1, out, 0);
	assert_int_equal(r->fault.kind, GPUL_EXEC_OK);
	assert_int_equal(out[0], 25);
	assert_int_equal(out[1], 65); /* cudaErrorLaunchMaxDepthExceeded */
	assert_int_equal(out[2], 0);  /* the first cudaGetLastError() has reset the error */
	rig_close(r);
}

static void a_wrong_launch_is_an_error_of_its_thread(void **state)
{
	static const struct {
		const char *grid, *block, *stream;
		uint32_t error;
	} rows[] = {
		{ "0", "1", "0", 9 },
		{ "1", "1025", "0", 9 },
		{ "1", "1", "5", 400 },
		{ "1", "1", "0", 0 },
	};
	char text[8192];

	(void)state;
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		struct rig *r;
		uint32_t *out;

		/* only thread 1 launches a child */
		snprintf(
			text, sizeof text,
			"%s.extern .func (.param .b64 v) __cudaCDP2GetErrorName (.param .b32 e);\n%smov.u64 %%d8, %s; mov.u32 %%r5, %s; mov.u32 %%r6, %s; setp.ne.u32 %%p2, %%t, 1; @%%p2 bra $end;\n%s%s%s",
			HEAD COUNT, KERNEL_OUT("parent"), rows[k].stream, rows[k].grid, rows[k].block, LAUNCH("count", "%r5", "%r6", "%x"),
			"$end: " LAST_ERROR("%r1") "st.global.u32 [%mine+16], %r1;\n",
			"{ .param .b32 e; .param .b64 v; st.param.b32 [e], %r1; call.uni (v), __cudaCDP2GetErrorName, (e); ld.param.b64 %d1, [v]; }\n"
			"ld.u8 %r1, [%d1+9]; @!%p2 st.global.u32 [%o+4], %r1; ret; }\n");
		r = rig_open(text);
		out = rig_memory(r, 64);
		rig_run(r, "parent", 1, 3, out, 0);
		if (r->fault.kind)
			fail_msg("%s", r->fault.text);
		assert_int_equal(out[4], 0);
		assert_int_equal(out[5], rows[k].error);
		assert_int_equal(out[6], 0);
		assert_int_equal(out[1], rows[k].error ? 'I' : 's'); /* character 9 of the error's name, cudaErrorI... or cudaSuccess */
		assert_int_equal(out[0], !rows[k].error);
		rig_close(r);
	}
}

static void launches_that_wait_are_limited(void **state)
{
	/* the first child runs until out[2] is not 0; the limit permits 4 more launches; the parent stores the error, then ends the child */
	struct rig *r = rig_open_options(
		HEAD CHAIN FOREVER KERNEL_OUT("parent") DEFAULT_STREAM LAUNCH("forever", "1", "1", "%x") "mov.u64 %d1, 0; $next:\n" LAUNCH(
			"chain", "1", "1",
			"%d1") "add.u64 %d1, %d1, 1; setp.lt.u64 %p1, %d1, %x; @%p1 bra $next;\n" LAST_ERROR("%r1") "st.global.u32 [%o+4], %r1; mov.u32 %r1, 1; st.volatile.global.u32 [%o+8], %r1; ret; }\n",
		(gpul_exec_machine_options){ .n_workers = 2, .pending_launches = 4 });
	uint32_t *out = rig_memory(r, 64);

	(void)state;
	rig_run(r, "parent", 1, 1, out, 10);
	assert_int_equal(r->fault.kind, GPUL_EXEC_OK);
	assert_int_equal(out[1], 701); /* cudaErrorLaunchOutOfResources */
	assert_int_equal(out[0], chained(0, 0, 4));
	assert_false(gpul_exec_machine_set_pending_launches(r->machine, 8));
	rig_close(r);
}

static void copies_and_fills_run_in_their_stream(void **state)
{
	/* the parent launches a kernel that increments out[0], a copy of 3,000 rows from out to x, a fill of x, and a copy past the end of x */
	static const char externs[] =
		".extern .func (.param .b32 v) __cudaCDP2Memcpy2DAsync (.param .b64 a, .param .b64 b, .param .b64 c, .param .b64 d, .param .b64 e, "
		".param .b64 f, .param .b32 g, .param .b64 h);\n"
		".extern .func (.param .b32 v) __cudaCDP2MemsetAsync (.param .b64 a, .param .b32 b, .param .b64 c, .param .b64 d);\n"
		".extern .func (.param .b32 v) __cudaCDP2MemcpyAsync (.param .b64 a, .param .b64 b, .param .b64 c, .param .b32 d, .param .b64 e);\n";
	static const char kernels[] = COUNT KERNEL_OUT("parent") DEFAULT_STREAM LAUNCH(
		"count", "1", "32",
		"%x") "mov.b64 %d1, 64; mov.b64 %d2, 16; mov.b64 %d3, 10; mov.b64 %d4, 3000; mov.b32 %r1, 3; mov.b32 %r2, 0x1a5; mov.b64 %d5, 0;\n"
		      "call (%r8), __cudaCDP2Memcpy2DAsync, (%x, %d2, %o, %d1, %d3, %d4, %r1, %d5); st.global.u32 [%o+16], %r8;\n"
		      "mov.b64 %d6, 5; add.u64 %d7, %x, 16; call (%r8), __cudaCDP2MemsetAsync, (%d7, %r2, %d6, %d5); st.global.u32 [%o+20], %r8;\n"
		      "call (%r8), __cudaCDP2Memcpy2DAsync, (%x, %d6, %o, %d1, %d3, %d4, %r1, %d5); st.global.u32 [%o+24], %r8; ret; }\n" KERNEL_OUT(
			      "beyond") "mov.b64 %d1, 1000000; mov.b64 %d2, 0; mov.b32 %r1, 3;\n"
					"call (%r8), __cudaCDP2MemcpyAsync, (%x, %o, %d1, %r1, %d2); ret; }\n";
	char text[8192];
	struct rig *r;
	uint8_t *from, *to;

	(void)state;
	snprintf(text, sizeof text, "%s%s%s", HEAD, externs, kernels);
	r = rig_open(text);
	from = rig_memory(r, 64 * 3000);
	to = rig_memory(r, 16 * 3000);
	for (unsigned k = 4; k < 64 * 3000; k++)
		from[k] = (uint8_t)(k * 7 + k / 251);
	rig_run(r, "parent", 1, 1, from, (uintptr_t)to);
	if (r->fault.kind)
		fail_msg("%s", r->fault.text);
	assert_int_equal(from[16] | from[20], 0);
	assert_int_equal(from[24], 12); /* cudaErrorInvalidPitchValue */
	assert_int_equal(to[0], 32);    /* the copy ran after the kernel */
	for (unsigned y = 1; y < 3000; y++)
		for (unsigned x = 0; x < 16; x++)
			assert_int_equal(to[16 * y + x], y == 1 && x < 5 ? 0xa5 : x < 10 ? from[64 * y + x] : 0);
	assert_int_equal(rig_run(r, "beyond", 1, 1, from, (uintptr_t)to), GPUL_EXEC_ILLEGAL_ADDRESS);
	assert_non_null(strstr(r->fault.text, "cudaMemcpyAsync, block"));
	rig_close(r);
}

static void a_call_that_is_not_supported_refuses_only_its_kernel(void **state)
{
	char *why = rig_refusal(PTX_HEADER ".extern .func (.param .b32 v) cudaDeviceSynchronize ();\n" KERNEL_OUT(
					"old") "{ .param .b32 v; call.uni (v), cudaDeviceSynchronize, (); } ret; }\n" COUNT,
				"old");

	(void)state;
	assert_non_null(strstr(why, "cudaDeviceSynchronize of the device runtime is not supported"));
	free(why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_launch_ends_after_its_children),
		cmocka_unit_test(children_of_a_block_run_in_order),
		cmocka_unit_test(a_thousand_threads_launch_at_once),
		cmocka_unit_test(a_tail_launch_begins_after_all_children),
		cmocka_unit_test(an_event_orders_two_streams),
		cmocka_unit_test(a_fault_of_a_child_is_one_of_the_launch),
		cmocka_unit_test(an_abort_ends_children_that_run_for_ever),
		cmocka_unit_test(destroying_the_machine_ends_children),
		cmocka_unit_test(launches_nest_24_deep),
		cmocka_unit_test(a_wrong_launch_is_an_error_of_its_thread),
		cmocka_unit_test(launches_that_wait_are_limited),
		cmocka_unit_test(copies_and_fills_run_in_their_stream),
		cmocka_unit_test(a_call_that_is_not_supported_refuses_only_its_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
