/* test_capture_queries.c — queries of a stream's properties during a capture: which succeed, and which invalidate the capture.
 *
 * The expected results are those of an H200 (driver of CUDA 13.0). */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>

enum query { FLAGS, PRIORITY, ID, CONTEXT, DEVICE, N_QUERIES };

static const CUstreamCaptureMode modes[] = { CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
					     CU_STREAM_CAPTURE_MODE_RELAXED };

static CUresult ask(enum query q, CUstream s)
{
	unsigned long long id;
	unsigned flags;
	CUcontext ctx;
	int number;

	switch (q) {
	case FLAGS:
		return cuStreamGetFlags(s, &flags);
	case PRIORITY:
		return cuStreamGetPriority(s, &number);
	case ID:
		return cuStreamGetId(s, &id);
	case CONTEXT:
		return cuStreamGetCtx(s, &ctx);
	default:
#if CUDA_VERSION >= 12080
		return cuStreamGetDevice(s, &number);
#else
		return cuStreamGetFlags(s, &flags);
#endif
	}
}

/* During captures of each mode, make each query of stream `which`, or of the capturing stream if `of_itself`; expected: the results. */
static void check_queries(unsigned flags, CUstream which, bool of_itself, const CUresult expected[N_QUERIES])
{
	CUgraph graph;
	CUstream s;

	ok(cuStreamCreate(&s, flags));
	for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
		for (enum query q = FLAGS; q < N_QUERIES; q++) {
			ok(cuStreamBeginCapture(s, modes[m]));
			fails(ask(q, of_itself ? s : which), expected[q]);
			fails(cuStreamEndCapture(s, &graph), expected[q] ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
			if (!expected[q])
				ok(cuGraphDestroy(graph));
			ok(ask(q, of_itself ? s : which));
		}
	}
	ok(cuStreamDestroy(s));
}

static void a_query_of_the_legacy_stream_ends_the_capture_of_a_blocking_stream(void **state)
{
	static const CUresult refused[N_QUERIES] = { CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
						     CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
						     CUDA_ERROR_STREAM_CAPTURE_IMPLICIT };
	static const CUresult answered[N_QUERIES] = { 0 };

	(void)state;
	check_queries(CU_STREAM_DEFAULT, NULL, false, refused);
	check_queries(CU_STREAM_DEFAULT, CU_STREAM_LEGACY, false, refused);
	check_queries(CU_STREAM_NON_BLOCKING, NULL, false, answered);
}

static void some_queries_of_the_capturing_stream_end_its_capture(void **state)
{
	static const CUresult expected[N_QUERIES] = { [FLAGS] = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
						      [ID] = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
						      [DEVICE] = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED };

	(void)state;
	check_queries(CU_STREAM_DEFAULT, NULL, true, expected);
	check_queries(CU_STREAM_NON_BLOCKING, NULL, true, expected);
}

static void queries_of_other_streams_leave_the_capture_valid(void **state)
{
	static const CUresult answered[N_QUERIES] = { 0 };
	CUstream other;

	(void)state;
	ok(cuStreamCreate(&other, CU_STREAM_DEFAULT));
	check_queries(CU_STREAM_DEFAULT, other, false, answered);
	check_queries(CU_STREAM_DEFAULT, CU_STREAM_PER_THREAD, false, answered);
	ok(cuStreamDestroy(other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_query_of_the_legacy_stream_ends_the_capture_of_a_blocking_stream),
		cmocka_unit_test(some_queries_of_the_capturing_stream_end_its_capture),
		cmocka_unit_test(queries_of_other_streams_leave_the_capture_valid),
	};

	return cmocka_run_group_tests(tests, make_context, destroy_context);
}
