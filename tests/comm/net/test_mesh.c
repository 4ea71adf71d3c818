/* test_mesh.c — connections between ranks that are threads of one process, over libfabric's tcp on this machine. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/net/mesh.h"
#include "rdma/oob/oob_wire.h"
#include "tests/comm/bootstrap/ranks.h"

enum { LONG_MS = 60000 }; /* a time-out that only a failing test reaches */

static gpul_comm_mesh_desc over_tcp(void)
{
	return (gpul_comm_mesh_desc){ .rdma = { .backend = "libfabric", .device = { .gpu = -1, .gid_index = -1, .provider = "tcp" } } };
}

struct work {
	int size;
	bool only_neighbours;
};

static bool connected(const struct work *w, int a, int b)
{
	return a != b && (!w->only_neighbours || a == b + 1 || b == a + 1);
}

static gpul_status start_put(const gpul_comm_mesh *m, int rank, int to, const gpul_rdma_region *region, uint64_t from,
			     const gpul_rdma_remote *there, gpul_rdma_request *out, gpul_error *err)
{
	const gpul_rdma_put_desc put = {
		.from = { .area = gpul_rdma_region_area(region), .at = from },
		.to = *there,
		.signal = { .address = there->address + (unsigned)rank * 8, .key = there->key, .bytes = 8 },
		.signal_value = (uint64_t)rank + 1,
	};

	return gpul_rdma_put(gpul_comm_mesh_conn(m, to), &put, LONG_MS, out, err);
}

/* Wait until the numbers of the peers have arrived, and the puts have ended.  A provider may acknowledge a write only when the
 * receiving rank makes progress, so a rank makes progress on all connections. */
static gpul_status await_all(const gpul_comm_mesh *m, int rank, const struct work *w, const volatile uint64_t *inbox,
			     gpul_rdma_request *requests, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (int left = 1; !st && left;) {
		left = 0;
		for (int r = 0; !st && r < w->size; r++) {
			bool done = false;

			if (!connected(w, rank, r))
				continue;
			if (requests[r])
				st = gpul_rdma_test(gpul_comm_mesh_conn(m, r), requests[r], &done, NULL, err);
			else
				st = gpul_rdma_progress(gpul_comm_mesh_conn(m, r), NULL, err);
			requests[r] = done ? 0 : requests[r];
			left += requests[r] || inbox[r] != (uint64_t)r + 1;
		}
	}
	return st;
}

/* Each rank puts its number into the memory of each rank that it is connected with. */
static gpul_status put_numbers(gpul_boot *b, const gpul_comm_mesh *m, const struct work *w, gpul_error *err)
{
	volatile uint64_t inbox[GPUL_COMM_MAX_RANKS] = { 0 };
	gpul_rdma_remote mine, theirs[GPUL_COMM_MAX_RANKS];
	gpul_rdma_request requests[GPUL_COMM_MAX_RANKS] = { 0 };
	gpul_rdma_region *region = NULL;
	const int rank = gpul_boot_rank(b);
	gpul_status st = gpul_rdma_register(gpul_comm_mesh_rdma(m), (void *)(uintptr_t)inbox, sizeof inbox, GPUL_RDMA_STEPS, &region, err);

	st = st ? st : gpul_rdma_offer(region, (uintptr_t)inbox, sizeof inbox, &mine, err);
	st = st ? st : gpul_boot_allgather(b, &mine, sizeof mine, theirs, LONG_MS, err);
	for (int r = 0; !st && r < w->size; r++) {
		if ((gpul_comm_mesh_conn(m, r) != NULL) != connected(w, rank, r))
			st = gpul_fail(err, GPUL_EFORMAT, 0, "rank %d: wrong: a connection with rank %d, or none", rank, r);
		else if (connected(w, rank, r))
			st = start_put(m, rank, r, region, (uintptr_t)inbox, &theirs[r], &requests[r], err);
	}
	st = st ? st : await_all(m, rank, w, inbox, requests, err);
	st = st ? st : gpul_boot_barrier(b, LONG_MS, err);
	gpul_rdma_unregister(region);
	return st;
}

static gpul_status meet_and_put(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	const struct work *w = arg;
	gpul_comm_mesh_desc desc = over_tcp();
	bool wanted[GPUL_COMM_MAX_RANKS] = { false };
	gpul_comm_mesh *m = NULL;
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, LONG_MS, &b, err);

	if (w->only_neighbours) { /* only the lower rank of a pair requests the connection */
		if (job->rank + 1 < w->size)
			wanted[job->rank + 1] = true;
		desc.wanted = wanted;
	}
	st = st ? st : gpul_comm_mesh_create(b, &desc, LONG_MS, &m, err);
	st = st ? st : put_numbers(b, m, w, err);
	gpul_comm_mesh_destroy(m);
	gpul_boot_close(b);
	return st;
}

static void all_pairs_are_connected(void **state)
{
	struct rank_end ends[GPUL_COMM_MAX_RANKS];

	(void)state;
	for (int size = 1; size <= 4; size++) {
		struct work w = { .size = size };

		ranks_as_threads(size, meet_and_put, &w, ends);
		for (int r = 0; r < size; r++)
			if (ends[r].status)
				fail_msg("%d ranks, rank %d: %s", size, r, ends[r].err.text);
	}
}

static void a_pair_is_connected_if_one_of_its_ranks_wants_it(void **state)
{
	struct rank_end ends[GPUL_COMM_MAX_RANKS];
	struct work w = { .size = 4, .only_neighbours = true };

	(void)state;
	ranks_as_threads(w.size, meet_and_put, &w, ends);
	for (int r = 0; r < w.size; r++)
		if (ends[r].status)
			fail_msg("rank %d: %s", r, ends[r].err.text);
}

/* ---- strangers ------------------------------------------------------------------------------------------------------ */

enum { N_STRANGERS = 80, MOST_FDS = 1024 };

/* Return the port of a TCP listener of this process; 0: no listener yet. */
static uint16_t find_listener(void)
{
	for (int fd = 0; fd < MOST_FDS; fd++) {
		struct sockaddr_in at = { 0 };
		socklen_t n = sizeof at, n_on = sizeof(int);
		int on = 0;

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &n_on) == 0 && on && getsockname(fd, (struct sockaddr *)&at, &n) == 0 &&
		    at.sin_family == AF_INET)
			return ntohs(at.sin_port);
	}
	return 0;
}

/* Connect to a port, and send nothing, half a frame, or a frame of a client without a secret or with a wrong secret. */
static int connect_stranger(uint16_t port, int kind)
{
	static const gpul_rdma_frame_type types[] = { GPUL_RDMA_HELLO, GPUL_RDMA_IDENTIFY, GPUL_RDMA_PROOF };
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unsigned char bytes[2 * GPUL_RDMA_FRAME_BYTES];
	gpul_rdma_frame frame = { .hello = { .version = GPUL_RDMA_WIRE_VERSION,
					     .n_qps = 1,
					     .depth = 64,
					     .segment_bytes = 4096,
					     .stripe_bytes = 128,
					     .lease_ms = 5000,
					     .pid = (uint32_t)getpid(),
					     .backend = "libfabric",
					     .slots.bytes = GPUL_RDMA_SLOTS * sizeof(gpul_rdma_slot) } };
	size_t n = 0;

	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
	if (kind < 3) {
		frame.type = types[kind];
		if (frame.type != GPUL_RDMA_HELLO)
			frame.credentials = (gpul_rdma_credentials){ .identity = { .purpose = 1, .from = 1 } };
		n = gpul_rdma_frame_encode(&frame, bytes);
	}
	if (kind == 1) { /* a client that sends its proof without waiting for the challenge */
		frame.type = GPUL_RDMA_PROOF;
		n += gpul_rdma_frame_encode(&frame, bytes + n);
	}
	if (kind == 3)
		n = gpul_rdma_frame_encode(&(gpul_rdma_frame){ .type = GPUL_RDMA_IDENTIFY }, bytes) / 2;
	assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
	return fd;
}

/* Rank 1 connects after strangers have filled the pending connections of rank 0's listener. */
static gpul_status meet_among_strangers(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	const struct work *w = arg;
	gpul_comm_mesh_desc desc = over_tcp();
	int strangers[N_STRANGERS];
	gpul_comm_mesh *m = NULL;
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, LONG_MS, &b, err);
	uint16_t port = 0;

	for (int ms = 0; !st && job->rank == 1 && !port && ms < LONG_MS; ms++) {
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000 * 1000 }, NULL);
		port = find_listener();
	}
	for (int i = 0; i < N_STRANGERS; i++)
		strangers[i] = port ? connect_stranger(port, i % 5) : -1;
	if (!st && job->rank == 1 && !port)
		st = gpul_fail(err, GPUL_ESYS, 0, "rank 0 has no listener");
	st = st ? st : gpul_comm_mesh_create(b, &desc, LONG_MS, &m, err);
	st = st ? st : put_numbers(b, m, w, err);
	gpul_comm_mesh_destroy(m);
	gpul_boot_close(b);
	for (int i = 0; i < N_STRANGERS; i++)
		if (strangers[i] >= 0)
			close(strangers[i]);
	return st;
}

static void strangers_do_not_keep_a_rank_out(void **state)
{
	struct rank_end ends[GPUL_COMM_MAX_RANKS];
	struct work w = { .size = 2 };

	(void)state;
	ranks_as_threads(w.size, meet_among_strangers, &w, ends);
	for (int r = 0; r < w.size; r++)
		if (ends[r].status)
			fail_msg("rank %d: %s", r, ends[r].err.text);
}

static gpul_status cannot_listen(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	gpul_comm_mesh_desc desc = over_tcp();
	gpul_comm_mesh *m = NULL;
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, LONG_MS, &b, err);

	(void)arg;
	desc.address = job->rank == 1 ? "192.0.2.1" : NULL; /* an address that no machine has (RFC 5737) */
	st = st ? st : gpul_comm_mesh_create(b, &desc, LONG_MS, &m, err);
	assert_null(m);
	gpul_boot_close(b);
	return st;
}

static void a_rank_that_cannot_listen_is_named_by_all_ranks(void **state)
{
	struct rank_end ends[GPUL_COMM_MAX_RANKS];

	(void)state;
	ranks_as_threads(3, cannot_listen, NULL, ends);
	for (int r = 0; r < 3; r++) {
		assert_int_equal(ends[r].status, GPUL_ESYS);
		assert_non_null(strstr(ends[r].err.text, r == 1 ? "cannot listen on 192.0.2.1" : "rank 1: cannot listen on 192.0.2.1"));
	}
}

struct refusal {
	const char *nics, *address, *expected;
};

static gpul_status cannot_open(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	const struct refusal *what = arg;
	gpul_comm_mesh_desc desc = over_tcp();
	gpul_comm_mesh *m = NULL;
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, LONG_MS, &b, err);

	desc.rdma.device.device = job->rank ? what->nics : NULL;
	desc.address = job->rank ? what->address : NULL;
	st = st ? st : gpul_comm_mesh_create(b, &desc, LONG_MS, &m, err);
	assert_null(m);
	gpul_boot_close(b);
	return st;
}

static void wrong_lists_of_nics_are_refused_by_name(void **state)
{
	static const struct refusal all[] = {
		{ "lo,lo", NULL, "'lo,lo' lists the NIC lo twice" },
		{ "lo,", NULL, "invalid list of NICs 'lo,': expected one name or several" },
		{ ",lo", NULL, "invalid list of NICs ',lo': expected one name or several" },
		{ "a,b,c,d,e,f,g,h,i", NULL, "lists more than 8 NICs" },
		{ "carrier-pigeon", NULL, "NIC 'carrier-pigeon': " },
		{ "carrier-pigeon,lo", "127.0.0.1", "NIC 'carrier-pigeon': " },
		{ NULL, "127.0.0.1,127.0.0.1", "'127.0.0.1,127.0.0.1': expected one address of this host, or one for each of its 1 NICs" },
	};
	struct rank_end ends[GPUL_COMM_MAX_RANKS];

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct refusal what = all[i];

		ranks_as_threads(2, cannot_open, &what, ends);
		for (int r = 0; r < 2; r++)
			if (!ends[r].status || !strstr(ends[r].err.text, what.expected))
				fail_msg("%s, rank %d: %s", what.nics ? what.nics : what.address, r, ends[r].err.text);
	}
}

/* Rank 0 fails before the others have connected. */
static gpul_status fail_first(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	gpul_comm_mesh_desc desc = over_tcp();
	gpul_comm_mesh *m = NULL;
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, LONG_MS, &b, err);

	(void)arg;
	if (!st && job->rank == 0)
		gpul_boot_fail(b, &(gpul_error){ .status = GPUL_EUNSUPPORTED, .text = "rank 0 has failed" }, 0);
	st = st ? st : gpul_comm_mesh_create(b, &desc, LONG_MS, &m, err);
	assert_null(m);
	gpul_boot_close(b);
	return st;
}

static void a_failure_of_the_job_ends_the_wait(void **state)
{
	struct rank_end ends[GPUL_COMM_MAX_RANKS];

	(void)state;
	ranks_as_threads(3, fail_first, NULL, ends);
	for (int r = 0; r < 3; r++)
		assert_non_null(strstr(ends[r].err.text, "rank 0 has failed"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_pairs_are_connected),
		cmocka_unit_test(a_pair_is_connected_if_one_of_its_ranks_wants_it),
		cmocka_unit_test(strangers_do_not_keep_a_rank_out),
		cmocka_unit_test(a_rank_that_cannot_listen_is_named_by_all_ranks),
		cmocka_unit_test(wrong_lists_of_nics_are_refused_by_name),
		cmocka_unit_test(a_failure_of_the_job_ends_the_wait),
	};

	return cmocka_run_group_tests(tests, ranks_make_folder, ranks_remove_folder);
}
