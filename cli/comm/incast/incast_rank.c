/* incast_rank.c — opens a rank of gpuload comm incast; writes and checks the content of messages. */
#include "cli/comm/incast/incast_rank.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/comm/incast/incast_net.h"
#include "comm/bootstrap/roster.h"
#include "core/clock.h"

enum { PAGE = 4096, LINE = 64, SPIN_NS = 30000, NAP_NS = 20000, CHECK_NS = 5000000, MOST_SLOTS = 128, MOST_PIECES = 768 };

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

unsigned char *incast_slot(const struct incast_rank *r, int rank, uint64_t message)
{
	const size_t first = r->job.rank == 0 ? (size_t)rank * r->n_slots : 0;

	return r->data + (first + message % r->n_slots) * r->slot_bytes;
}

_Atomic uint64_t *incast_handed(const struct incast_rank *r, int rank, uint64_t message)
{
	return r->handed_ns + (size_t)rank * (size_t)r->q->n_messages + message;
}

/* ---- content ------------------------------------------------------------------------------------------------- */

/* Return the first word of a message; word number w is the first word plus w * step. */
static uint64_t first_word(int rank, uint64_t message)
{
	uint64_t z = ((uint64_t)rank << 40 ^ message) * 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9; /* the mixer of splitmix64, so that each bit of rank and message affects all bytes */
	return z ^ z >> 27;
}

static const uint64_t step = 0xbf58476d1ce4e5b9;

void incast_fill(unsigned char *at, size_t n_bytes, int rank, uint64_t message)
{
	uint64_t word = first_word(rank, message);

	for (size_t i = 0; i < n_bytes; i += sizeof word, word += step)
		memcpy(at + i, &word, n_bytes - i < sizeof word ? n_bytes - i : sizeof word);
}

uint64_t incast_count_wrong(const unsigned char *at, size_t n_bytes, int rank, uint64_t message)
{
	uint64_t word = first_word(rank, message), n = 0;

	for (size_t i = 0; i < n_bytes; i += sizeof word, word += step)
		for (size_t k = 0; k < sizeof word && i + k < n_bytes; k++)
			n += at[i + k] != (unsigned char)(word >> 8 * k);
	return n;
}

/* ---- pauses of polling loops ---------------------------------------------------------------------------------- */

gpul_status incast_pace_turn(struct incast_pace *p, bool busy, gpul_error *err)
{
	static const struct timespec nap = { .tv_nsec = NAP_NS };
	const uint64_t now = gpul_clock_ns();

	if (busy)
		p->busy_ns = now;
	else if (now - p->busy_ns > SPIN_NS)
		(void)nanosleep(&nap, NULL);
	if (now - p->checked_ns < CHECK_NS)
		return GPUL_OK;
	p->checked_ns = now;
	if (now - p->busy_ns > (uint64_t)INCAST_WAIT_MS * 1000000)
		return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "no data was received or sent for %d s", INCAST_WAIT_MS / 1000);
	return gpul_boot_failed(p->r->boot, err);
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

static gpul_status check_hosts(const struct incast_rank *r, gpul_error *err)
{
	for (int k = 1; k < r->job.size; k++)
		if (gpul_boot_host(r->boot, k) != gpul_boot_host(r->boot, 0))
			return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
					 "ranks 0 and %d are on different hosts: incast measures with one clock, so all ranks must be "
					 "on one host",
					 k);
	return GPUL_OK;
}

/* Connect rank 0 with all other ranks.  Probes use a separate connection. */
static gpul_status connect_ranks(struct incast_rank *r, gpul_error *err)
{
	bool all[GPUL_COMM_MAX_RANKS] = { false }, first[GPUL_COMM_MAX_RANKS] = { false };
	gpul_comm_mesh_desc desc = { .rdma = { .backend = r->q->backend,
					       .device = { .provider = r->q->provider, .gpu = -1, .gid_index = -1 } },
				     .wanted = all,
				     .address = r->queue_fd >= 0 || incast_net_exists() ? incast_net_address(r->job.rank) : NULL };
	gpul_rdma_device_info info = { 0 };
	gpul_status st;

	for (int k = 1; r->job.rank == 0 && k < r->job.size; k++)
		all[k] = true;
	first[1] = r->job.rank == 0;
	st = gpul_comm_mesh_create(r->boot, &desc, INCAST_MEET_MS, &r->mesh, err);
	if (!st)
		gpul_rdma_about(gpul_comm_mesh_rdma(r->mesh), &info);
	desc.rdma.backend = info.backend; /* the backend that was chosen above, and reported by a notice */
	desc.wanted = first;
	return st ? st : gpul_comm_mesh_create(r->boot, &desc, INCAST_MEET_MS, &r->probe_mesh, err);
}

/* Allocate memory for the messages and for struct incast_mail: rank 0 has a part for each rank. */
static gpul_status allocate(struct incast_rank *r, gpul_error *err)
{
	const size_t n_parts = r->job.rank == 0 ? (size_t)r->job.size : 1, wanted = r->q->sender_window_bytes / r->q->bytes;
	const size_t pieces = (r->q->bytes + r->q->grant_bytes - 1) / r->q->grant_bytes;
	const size_t most = pieces * MOST_SLOTS > MOST_PIECES ? (pieces < MOST_PIECES ? MOST_PIECES / pieces : 1) : MOST_SLOTS;
	size_t data_bytes, mail_bytes = round_up(n_parts * sizeof *r->mail, PAGE);
	gpul_rdma *rdma = gpul_comm_mesh_rdma(r->mesh);
	gpul_status st;

	r->n_slots = (unsigned)(wanted < 1 ? 1 : wanted > most ? most : wanted);
	r->slot_bytes = round_up(r->q->bytes, LINE);
	data_bytes = round_up(n_parts * r->n_slots * r->slot_bytes, PAGE);
	r->data = aligned_alloc(PAGE, data_bytes);
	r->mail = aligned_alloc(PAGE, mail_bytes);
	if (!r->data || !r->mail)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %zu bytes of messages", data_bytes);
	memset(r->data, 0, data_bytes);
	memset(r->mail, 0, mail_bytes);
	st = gpul_rdma_register(rdma, r->data, data_bytes, GPUL_RDMA_DATA, &r->data_region, err);
	st = st ? st : gpul_rdma_register(rdma, r->mail, mail_bytes, GPUL_RDMA_STEPS, &r->mail_region, err);
	if (!st && r->job.rank < 2)
		st = gpul_rdma_register(gpul_comm_mesh_rdma(r->probe_mesh), r->mail, mail_bytes, GPUL_RDMA_STEPS, &r->probe_region, err);
	return st;
}

/* The memory that rank 0 offers to another rank for puts. */
struct offer {
	gpul_rdma_remote data, mail, probe;
};

static gpul_status offer_memory(const struct incast_rank *r, struct offer offers[GPUL_COMM_MAX_RANKS], gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (int k = 1; !st && k < r->job.size; k++) {
		const uint64_t mail = (uint64_t)(uintptr_t)&r->mail[k];

		st = gpul_rdma_offer(r->data_region, (uint64_t)(uintptr_t)incast_slot(r, k, 0), r->n_slots * r->slot_bytes, &offers[k].data,
				     err);
		st = st ? st : gpul_rdma_offer(r->mail_region, mail, sizeof *r->mail, &offers[k].mail, err);
		if (!st && k == 1)
			st = gpul_rdma_offer(r->probe_region, mail, sizeof *r->mail, &offers[k].probe, err);
	}
	return st;
}

static gpul_status exchange_offers(struct incast_rank *r, gpul_error *err)
{
	struct offer mine[GPUL_COMM_MAX_RANKS] = { 0 }, *all = calloc((size_t)r->job.size, sizeof mine);
	gpul_status st = all ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory to exchange addresses");

	if (!st && r->job.rank == 0)
		st = offer_memory(r, mine, err);
	st = st ? st : gpul_boot_allgather(r->boot, mine, sizeof mine, all, INCAST_MEET_MS, err);
	if (!st) {
		r->to_data = all[r->job.rank].data;
		r->to_mail = all[r->job.rank].mail;
		r->to_probe = all[r->job.rank].probe;
	}
	free(all);
	return st;
}

/* Map the page of counters, which all ranks share and rank 0 creates. */
static gpul_status share_page(struct incast_rank *r, gpul_error *err)
{
	int mine = -1, all[GPUL_COMM_MAX_RANKS];
	void *at = MAP_FAILED;
	gpul_status st = GPUL_OK;

	r->shared_bytes = round_up((size_t)r->job.size * (sizeof *r->counters + (size_t)r->q->n_messages * sizeof *r->handed_ns), PAGE);
	if (r->job.rank == 0) {
		mine = memfd_create("gpuload-incast", MFD_CLOEXEC);
		if (mine < 0 || ftruncate(mine, (off_t)r->shared_bytes))
			st = gpul_fail(err, GPUL_ESYS, errno, "no shared memory of %zu bytes: %s", r->shared_bytes, strerror(errno));
	}
	if (!st)
		st = gpul_boot_exchange_fds(r->boot, &mine, 1, all, INCAST_MEET_MS, err);
	if (!st) {
		at = mmap(NULL, r->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, all[0], 0);
		if (at == MAP_FAILED)
			st = gpul_fail(err, GPUL_ESYS, errno, "cannot map %zu bytes of shared memory: %s", r->shared_bytes,
				       strerror(errno));
		for (int k = 0; k < r->job.size; k++)
			if (all[k] >= 0)
				(void)close(all[k]);
	}
	if (mine >= 0)
		(void)close(mine);
	if (st)
		return st;
	r->counters = at;
	r->handed_ns = (_Atomic uint64_t *)(void *)(r->counters + r->job.size);
	return GPUL_OK;
}

gpul_status incast_rank_open(const struct incast_request *q, const gpul_comm_job *job, struct incast_rank *out, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	*out = (struct incast_rank){ .q = q, .job = *job, .queue_fd = -1 };
	(void)prctl(PR_SET_TIMERSLACK, 1000); /* reduce the timer slack to 1 us, so that sleeps are about as short as requested */
	if (incast_net_exists())
		st = incast_net_enter(job->rank, &out->queue_fd, &out->queue_device, err);
	st = st ? st : gpul_boot_open(job, INCAST_MEET_MS, &out->boot, err);
	st = st ? st : check_hosts(out, err);
	st = st ? st : connect_ranks(out, err);
	st = st ? st : allocate(out, err);
	st = st ? st : share_page(out, err);
	st = st ? st : exchange_offers(out, err);
	if (st && out->boot)
		gpul_boot_fail(out->boot, err, job->rank);
	return st;
}

void incast_rank_close(struct incast_rank *r)
{
	if (r->boot && !gpul_boot_failure(r->boot, NULL))
		(void)gpul_boot_barrier(r->boot, INCAST_MEET_MS, NULL); /* no rank closes a connection that another one still uses */
	gpul_rdma_unregister(r->data_region);
	gpul_rdma_unregister(r->mail_region);
	gpul_rdma_unregister(r->probe_region);
	gpul_comm_mesh_destroy(r->probe_mesh);
	gpul_comm_mesh_destroy(r->mesh);
	if (r->counters)
		(void)munmap(r->counters, r->shared_bytes);
	free(r->data);
	free(r->mail);
	if (r->queue_fd >= 0)
		(void)close(r->queue_fd);
	gpul_boot_close(r->boot);
}
