/* campaign.c — runs netqueue with many random entries, streams and invalid entries; started by hand.
 *
 *     campaign [--pieces N] [--hostile N] [--seed N]
 *
 * Prints what it has done, and exits with 1 after the first error. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/netqueue/hostile.h"
#include "tests/lab/netqueue/stream.h"

enum { ROUND_ENTRIES = 2048, MOST_BYTES = 65536, DESTINATION = 8 << 20 };

static void random_shape(uint64_t seed, gpul_netqueue_desc *d)
{
	d->shape.n_blocks = 1 + (uint32_t)(seed % 4);
	d->shape.chunk_entries = 1u << seed / 4 % 6;
	d->n_threads = 64 + 32 * (uint32_t)(seed / 24 % 4);
}

static bool run_pieces(uint64_t n_wanted, uint64_t seed)
{
	static gpul_netqueue_entry entries[ROUND_ENTRIES];
	uint64_t n_done = 0, n_bytes = 0;

	for (uint64_t round = 0; n_done < n_wanted; round++) {
		gpul_netqueue_desc desc = { .shape = { .n_slots = 32, .slot_bytes = MOST_BYTES, .n_entries = ROUND_ENTRIES } };
		gpul_netqueue_result result = { .n_reports = 0 };
		gpul_error err = { 0 };
		struct rig r;
		uint64_t n, wrong;

		random_shape(seed + round, &desc);
		rig_open(&r, &desc, DESTINATION, (unsigned)(round % 16));
		r.seed = seed + round;
		rig_fill_bounce(&r);
		n = rig_random_entries(&r, entries, ROUND_ENTRIES, round % 3 ? MOST_BYTES : 4000, round % 2 ? 50 : 0);
		rig_must(rig_run(&r, entries, n, &result, &err), &err, "run");
		wrong = rig_first_wrong(&r, entries, n);
		n_done += n;
		n_bytes += result.counts.n_bytes;
		rig_close(&r);
		if (wrong != UINT64_MAX || result.counts.n_pieces != n)
			return printf("round %llu: byte %lld is wrong, %llu of %llu pieces\n", (unsigned long long)round,
				      (long long)wrong - GUARD_BYTES, (unsigned long long)result.counts.n_pieces,
				      (unsigned long long)n) < 0;
	}
	return printf("pieces: %llu, %llu bytes, 0 wrong\n", (unsigned long long)n_done, (unsigned long long)n_bytes) > 0;
}

static bool run_streams(uint64_t n_wanted, uint64_t seed)
{
	uint64_t n_done = 0;

	for (uint64_t round = 0; n_done < n_wanted; round++) {
		gpul_netqueue_desc desc = {
			.shape = { .n_slots = 4u << round % 4, .slot_bytes = 4096u << round % 5, .n_entries = 128u << round % 5 }
		};
		gpul_netqueue_received_stream got;
		gpul_error err = { 0 };
		struct stream s;
		struct rig r;
		bool right;

		random_shape(seed + round, &desc);
		rig_open(&r, &desc, 1 << 20, (unsigned)(round % 16));
		stream_make(&s, seed + round, 1 << 20, round % 3 ? MOST_BYTES : 500, round % 2);
		gpul_netqueue_memory memory = {
			.bytes = s.bytes, .n_bytes = s.n_bytes, .packet_bytes = 1 + seed * round % 20000, .seed = round
		};

		rig_must(gpul_netqueue_receive(r.queue, r.destination, r.destination_bytes,
					       &(gpul_netqueue_receiver){ .source = gpul_netqueue_from_memory(&memory) }, &got, &err),
			 &err, "receive");
		rig_read(&r);
		right = !memcmp(r.was + GUARD_BYTES, s.right, s.destination_bytes) && got.result.counts.n_pieces == got.n_entries;
		n_done += got.n_entries;
		stream_free(&s);
		rig_close(&r);
		if (!right)
			return printf("stream %llu is wrong\n", (unsigned long long)round) < 0;
	}
	return printf("streams: %llu pieces, 0 wrong\n", (unsigned long long)n_done) > 0;
}

static bool run_hostile(uint64_t n_wanted, uint64_t seed)
{
	uint64_t refused[GPUL_NETQUEUE_N_FIELDS] = { 0 }, n_done = 0, n_refused = 0;

	for (uint64_t round = 0; n_done < n_wanted; round++) {
		gpul_netqueue_desc desc = { .shape = { .n_slots = 512, .slot_bytes = 4096, .n_entries = ROUND_ENTRIES } };
		struct rig r;
		bool right;

		random_shape(seed + round, &desc);
		rig_open(&r, &desc, 20000 + round, (unsigned)(round % 16));
		r.seed = seed + round;
		rig_fill_bounce(&r);
		right = hostile_round(&r, refused);
		n_done += r.shape.n_entries;
		rig_close(&r);
		if (!right)
			return false;
	}
	for (unsigned field = 1; field < GPUL_NETQUEUE_N_FIELDS; field++) {
		printf("refused for its %s: %llu\n", gpul_netqueue_field_name(field), (unsigned long long)refused[field]);
		n_refused += refused[field];
	}
	return printf("hostile entries: %llu, of which %llu were refused; 0 bytes written outside\n", (unsigned long long)n_done,
		      (unsigned long long)n_refused) > 0;
}

int main(int argc, char **argv)
{
	static const struct option known[] = { { "pieces", required_argument, NULL, 'p' },
					       { "hostile", required_argument, NULL, 'h' },
					       { "seed", required_argument, NULL, 's' },
					       { NULL, 0, NULL, 0 } };
	uint64_t pieces = 10000, hostile = 100000, seed = 1;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (opt == '?') {
			(void)fprintf(stderr, "usage: campaign [--pieces N] [--hostile N] [--seed N]\n");
			return 2;
		}
		*(opt == 'p' ? &pieces : opt == 'h' ? &hostile : &seed) = strtoull(optarg, NULL, 10);
	}
	return run_pieces(pieces, seed) && run_streams(pieces, seed) && run_hostile(hostile, seed) ? 0 : 1;
}
