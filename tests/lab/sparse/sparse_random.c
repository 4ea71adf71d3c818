/* sparse_random.c — random sparse all-reduces, started by hand: sparse_random [CASES [SEED]].
 *
 * 2 to 5 ranks run 50 cases with each communicator, one after another in the same buffers.  A case has a random size of up to 100,000
 * elements, type, alignment, density, operation (sum or mean) and place of packing (device or host), and is in place or not; a communicator
 * has blocks of 16 to 1024 elements, and contributions of 1 to 64 blocks. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/comm/reference.h"
#include "tests/lab/sparse/calls.h"

enum { CASES_OF_ONE = 50 };

static uint64_t seed, n_cases;

static void run_cases(struct rank *r, gpul_comm_sparse *s, struct test *t)
{
	static const unsigned per_mille[] = { 0, 1, 10, 50, 200, 500, 1000 };

	for (uint64_t i = 0; i < n_cases; i++) {
		const uint64_t a = mix(seed, 2 * i), b = mix(seed, 2 * i + 1);
		const size_t most = a >> 62 ? 100000 : 2000;

		run_call(r, s,
			 &(struct call){ .dtype = (gpul_comm_dtype)(a % GPUL_COMM_N_DTYPES),
					 .op = a >> 8 & 1 ? GPUL_COMM_AVG : GPUL_COMM_SUM,
					 .count = 1 + (a >> 16) % most,
					 .send_offset = b % 17,
					 .recv_offset = (b >> 8) % 17,
					 .block = t->options.block,
					 .per_mille = per_mille[(b >> 16) % 7],
					 .in_place = b >> 24 & 1,
					 .seed = seed + i });
	}
}

int main(int argc, char **argv)
{
	static const uint32_t blocks[] = { 16, 64, 256, 1024 };
	const uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 200, first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	for (uint64_t done = 0; done < n; done += n_cases) {
		seed = first + done;
		n_cases = n - done < CASES_OF_ONE ? n - done : CASES_OF_ONE;
		run_sparse(2 + (int)(mix(seed, 1000) % 4), (struct test){ .run = run_cases,
									  .options = { .block = blocks[mix(seed, 1001) % 4] },
									  .direct = (uint32_t)mix(seed, 1002) });
	}
	printf("%llu cases: 0 wrong\n", (unsigned long long)n);
	return 0;
}
