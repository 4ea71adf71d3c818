/* pump.c — the verbs backend on a real device (or rxe): two paths in one process, messages with immediates, checked byte for byte.
 *
 *     pump [--qps N] [--bytes N] [--count N] [--batch N] [--uc] [--flush none|read|atomic] [--datagrams] [--timeout N]
 *          [--slots N]   number of messages before memory is used again; 1: all use the same bytes, as in ib_write_bw
 *
 * Prints one line: what the device is, and MiB/s.  Exits 77 where there is no device. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "rdma/backend/backend.h"

enum { WINDOW = 64, RECVS = 320, DEPTH = 128 };

struct side {
	void *device, *path, *token;
	unsigned char *memory;
	gpul_rdma_piece piece;
};

static unsigned n_qps = 1, n_bytes = 65536, count = 1000, batch = 16, slots = WINDOW;
static gpul_rdma_device_desc desc = { .gpu = -1, .gid_index = -1 };

static void die(const gpul_error *err)
{
	fprintf(stderr, "pump: %s\n", err->text);
	exit(err->status == GPUL_EUNSUPPORTED ? 77 : 1);
}

static void die_of(const gpul_rdma_failure *why)
{
	gpul_error err = { 0 };

	gpul_rdma_failure_error(why, &err);
	fprintf(stderr, "pump: %s\n", err.text);
	exit(1);
}

static size_t area_bytes(void)
{
	return (size_t)(n_bytes ? n_bytes : 1) * slots;
}

static void open_side(struct side *s)
{
	gpul_error err = { 0 };

	s->memory = aligned_alloc(4096, (area_bytes() + 4095) & ~(size_t)4095);
	memset(s->memory, 0, area_bytes());
	if (gpul_rdma_verbs.open(&desc, &s->device, &err) ||
	    gpul_rdma_verbs.reg(
		    s->device,
		    &(gpul_rdma_memory){
			    .at = (uintptr_t)s->memory, .bytes = area_bytes(), .dmabuf_fd = -1, .flushed = true, .relaxed = true },
		    &s->piece, &s->token, &err) ||
	    gpul_rdma_verbs.create_path(s->device, n_qps, DEPTH, RECVS, NULL, &s->path, &err))
		die(&err);
}

static void close_side(struct side *s)
{
	gpul_rdma_verbs.break_path(s->path);
	gpul_rdma_verbs.destroy_path(s->path);
	gpul_rdma_verbs.dereg(s->device, s->token);
	gpul_rdma_verbs.close(s->device);
	free(s->memory);
}

static void connect_sides(struct side *a, struct side *b)
{
	unsigned char of_a[GPUL_RDMA_MAX_DESCRIPTION], of_b[GPUL_RDMA_MAX_DESCRIPTION];
	const size_t a_bytes = gpul_rdma_verbs.describe(a->path, of_a), b_bytes = gpul_rdma_verbs.describe(b->path, of_b);
	gpul_error err = { 0 };

	if (gpul_rdma_verbs.connect_path(a->path, of_b, b_bytes, &err) || gpul_rdma_verbs.connect_path(b->path, of_a, a_bytes, &err))
		die(&err);
}

static void post(struct side *s, gpul_rdma_op *ops, unsigned n)
{
	gpul_rdma_failure why = { 0 };
	unsigned done = 0, n_posted;

	while (done < n) {
		if (gpul_rdma_verbs.post(s->path, ops + done, n - done, &n_posted, &why))
			die_of(&why);
		done += n_posted;
	}
}

static unsigned poll_side(struct side *s, gpul_rdma_event *events, unsigned max)
{
	gpul_rdma_failure why = { 0 };
	unsigned n;

	if (gpul_rdma_verbs.poll(s->path, events, max, &n, &why))
		die_of(&why);
	return n;
}

static unsigned char *message(const struct side *s, unsigned i)
{
	return s->memory + (size_t)(i % slots) * n_bytes;
}

/* Write the number of message i to its first and last bytes, which the receiver checks; the rest is checked at the end. */
static void mark(struct side *s, unsigned i)
{
	if (n_bytes >= 8 && slots == WINDOW) {
		memcpy(message(s, i), &i, 4);
		memcpy(message(s, i) + n_bytes - 4, &i, 4);
	}
}

static void check_mark(const struct side *s, unsigned i)
{
	if (n_bytes >= 8 && slots == WINDOW && (memcmp(message(s, i), &i, 4) || memcmp(message(s, i) + n_bytes - 4, &i, 4))) {
		fprintf(stderr, "pump: message %u has wrong data\n", i);
		exit(1);
	}
}

/* Post messages sent .. sent + n - 1 as one batch. */
static void send_batch(struct side *a, const struct side *b, unsigned sent, unsigned n)
{
	gpul_rdma_op ops[WINDOW];

	for (unsigned i = 0; i < n; i++) {
		const unsigned m = sent + i;
		const uint64_t offset = (size_t)(m % slots) * n_bytes;

		mark(a, m);
		ops[i] = (gpul_rdma_op){
			.kind = GPUL_RDMA_OP_WRITE_IMM,
			.qp = (uint16_t)(m % n_qps),
			.bytes = n_bytes,
			.imm = m,
			.id = m,
			.local = a->piece.at + offset,
			.local_key = a->piece.local_key,
			.remote = b->piece.remote + offset,
			.remote_key = b->piece.remote_key,
			.flags = GPUL_RDMA_SIGNALED,
		};
	}
	post(a, ops, n);
}

static void pump(struct side *a, struct side *b)
{
	unsigned sent = 0, done = 0, arrived = 0, used[GPUL_RDMA_MAX_QPS] = { 0 };
	gpul_rdma_event events[WINDOW];

	while (done < count || arrived < count) {
		const unsigned oldest = done < arrived ? done : arrived;
		unsigned n = count - sent < batch ? count - sent : batch;

		if (n && sent + n - oldest <= WINDOW) {
			send_batch(a, b, sent, n);
			sent += n;
		}
		done += poll_side(a, events, WINDOW);
		n = poll_side(b, events, WINDOW);
		for (unsigned i = 0; i < n; i++) {
			if (n_qps == 1 && events[i].imm != arrived + i) {
				fprintf(stderr, "pump: message %u arrived, %u was expected\n", events[i].imm, arrived + i);
				exit(1);
			}
			check_mark(b, events[i].imm);
			if (++used[events[i].qp] == 32) {
				gpul_rdma_op op = { .kind = GPUL_RDMA_OP_RECV, .qp = (uint16_t)events[i].qp, .bytes = 32 };

				post(b, &op, 1);
				used[events[i].qp] = 0;
			}
		}
		arrived += n;
	}
}

static void flush_once(struct side *s)
{
	gpul_rdma_event events[4];
	gpul_rdma_op op = { .kind = GPUL_RDMA_OP_FLUSH,
			    .flags = GPUL_RDMA_SIGNALED,
			    .bytes = 8,
			    .id = 5,
			    .local = s->piece.at,
			    .local_key = s->piece.local_key,
			    .remote = s->piece.remote,
			    .remote_key = s->piece.remote_key };

	post(s, &op, 1);
	while (!poll_side(s, events, 4))
		;
}

static void send_datagram(struct side *a, struct side *b)
{
	gpul_rdma_op op = { .kind = GPUL_RDMA_OP_CONTROL, .bytes = 32, .local = a->piece.at };
	gpul_rdma_event event;

	post(a, &op, 1);
	while (!poll_side(b, &event, 1))
		;
	if (event.kind != GPUL_RDMA_EVENT_CONTROL || event.bytes != 32 || memcmp(event.data, a->memory, 32)) {
		fprintf(stderr, "pump: the datagram is wrong\n");
		exit(1);
	}
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "qps", 1, NULL, 'q' },       { "bytes", 1, NULL, 's' },
		{ "count", 1, NULL, 'n' },     { "batch", 1, NULL, 'b' },
		{ "uc", 0, NULL, 'u' },        { "flush", 1, NULL, 'f' },
		{ "datagrams", 0, NULL, 'd' }, { "timeout", 1, NULL, 't' },
		{ "slots", 1, NULL, 'w' },     { 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		const unsigned value = optarg ? (unsigned)strtoul(optarg, NULL, 10) : 0;

		switch (c) {
		case 'q':
			n_qps = value;
			break;
		case 's':
			n_bytes = value;
			break;
		case 'n':
			count = value;
			break;
		case 'b':
			batch = value;
			break;
		case 'u':
			desc.qp_type = GPUL_RDMA_UC;
			desc.lossless = true;
			break;
		case 'd':
			desc.control_datagrams = true;
			break;
		case 't':
			desc.timeout = (int)value;
			break;
		case 'w':
			slots = value;
			break;
		case 'f':
			desc.flush = strcmp(optarg, "read") == 0     ? GPUL_RDMA_FLUSH_READ
				     : strcmp(optarg, "atomic") == 0 ? GPUL_RDMA_FLUSH_ATOMIC
								     : GPUL_RDMA_FLUSH_NONE;
			break;
		default:
			exit(2);
		}
	}
	if (!n_qps || !batch || batch > WINDOW || !slots || slots > WINDOW)
		exit(2);
}

int main(int argc, char **argv)
{
	gpul_rdma_device_info info;
	struct side a, b;
	uint64_t begin, ns;

	parse(argc, argv);
	open_side(&a);
	open_side(&b);
	connect_sides(&a, &b);
	gpul_rdma_verbs.about(a.device, &info);
	for (size_t i = 0; i < area_bytes(); i++)
		a.memory[i] = (unsigned char)(i * 7 + i / 4096);
	pump(&a, &b); /* a warm-up run */
	begin = gpul_clock_ns();
	pump(&a, &b);
	ns = gpul_clock_ns() - begin;
	if (n_bytes && count >= WINDOW && memcmp(a.memory, b.memory, area_bytes())) {
		fprintf(stderr, "pump: the data differs\n");
		return 1;
	}
	flush_once(&b);
	if (desc.control_datagrams)
		send_datagram(&a, &b);
	printf("%s, %s, inline %u, flush %s: %u messages of %u bytes on %u queue pairs: %.1f MiB/s, %.2f us each\n", info.name, info.why,
	       info.inline_bytes, info.flush, count, n_bytes, n_qps, (double)n_bytes * count / 1048576 / ((double)ns / 1e9),
	       (double)ns / 1e3 / count);
	close_side(&a);
	close_side(&b);
	return 0;
}
