/* roster.c — creates and maps the roster, which is the state of all ranks in shared memory, and publishes in it the first failure of the
 * job. */
#include "comm/bootstrap/roster_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROSTER_MAGIC = 0x52545352, ROSTER_VERSION = 5 };
/* With these seals no process can change the size of the file, so reading the mapping never raises SIGBUS. */
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

static gpul_status map_memory(int fd, struct roster **out, gpul_error *err)
{
	void *at = mmap(NULL, sizeof(struct roster), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return gpul_fail(err, GPUL_ESYS, errno, "cannot map the shared memory with the list of ranks: %s", strerror(errno));
	*out = at;
	return GPUL_OK;
}

gpul_status gpul_roster_create(int size, int *fd, struct roster **out, gpul_error *err)
{
	int file = memfd_create("gpuload-roster", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct roster *r = NULL;
	unsigned char session[sizeof r->session];
	gpul_status st;

	if (file < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "cannot create the shared memory for the list of ranks: memfd_create: %s",
				 strerror(errno));
	if (ftruncate(file, sizeof *r) || fcntl(file, F_ADD_SEALS, SEALS) || getrandom(session, sizeof session, 0) != sizeof session)
		st = gpul_fail(err, GPUL_ESYS, errno, "cannot create the shared memory for the list of ranks: %s", strerror(errno));
	else
		st = map_memory(file, &r, err);
	if (st) {
		close(file);
		return st;
	}
	r->magic = ROSTER_MAGIC;
	r->version = ROSTER_VERSION;
	r->size = (uint32_t)size;
	memcpy(r->session, session, sizeof session);
	*fd = file;
	*out = r;
	return GPUL_OK;
}

gpul_status gpul_roster_map(int fd, int size, struct roster **out, gpul_error *err)
{
	struct stat s;
	struct roster *r;
	gpul_status st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (fstat(fd, &s))
		return gpul_fail(err, GPUL_ESYS, errno, "cannot read the size of the shared memory that rank 0 sent: %s", strerror(errno));
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || s.st_size != (off_t)sizeof *r)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "rank 0 sent an invalid file as the list of ranks: it has %lld bytes, expected %zu bytes and a "
				 "seal against shrinking",
				 (long long)s.st_size, sizeof *r);
	st = map_memory(fd, &r, err);
	if (st)
		return st;
	if (r->magic != ROSTER_MAGIC || r->version != ROSTER_VERSION || r->size != (uint32_t)size) {
		st = gpul_fail(err, GPUL_EFORMAT, 0,
			       "rank 0 sent a list of ranks of version %u for %u ranks, expected version %d for %d ranks", r->version,
			       r->size, ROSTER_VERSION, size);
		gpul_roster_unmap(r);
		return st;
	}
	*out = r;
	return GPUL_OK;
}

void gpul_roster_unmap(struct roster *r)
{
	if (r)
		munmap(r, sizeof *r);
}

void gpul_roster_publish(struct roster *r, int me, const struct roster_record *record)
{
	uint32_t none = 0;

	r->entry[me].record = *record;
	/* Release order makes the record visible before the number of the rank that published it. */
	atomic_compare_exchange_strong_explicit(&r->winner, &none, (uint32_t)me + 1, memory_order_acq_rel, memory_order_relaxed);
}

/* Other processes can write to the roster, so check the values and terminate the text. */
bool gpul_roster_first(const struct roster *r, gpul_roster_event *out)
{
	uint32_t winner = atomic_load_explicit(&r->winner, memory_order_acquire);
	const struct roster_record *from;

	if (winner == 0 || winner > GPUL_COMM_MAX_RANKS)
		return false;
	from = &r->entry[winner - 1].record;
	*out = (gpul_roster_event){
		.kind = from->kind == GPUL_RANK_DIED || from->kind == GPUL_RANK_STALLED ? (gpul_roster_kind)from->kind : GPUL_RANK_FAILED,
		.rank = from->rank,
		.pid = from->pid,
		.culprit = from->culprit,
		.status = from->status > GPUL_OK && from->status <= GPUL_ECOMM ? (gpul_status)from->status : GPUL_EUNSUPPORTED,
		.native = from->native,
	};
	memcpy(out->text, from->text, sizeof out->text - 1);
	return true;
}

void gpul_roster_ranks_text(uint32_t ranks, char *out, size_t out_bytes)
{
	size_t n = 0;

	n += (size_t)snprintf(out, out_bytes, ranks & (ranks - 1) ? "ranks" : "rank");
	for (int r = 0; r < GPUL_COMM_MAX_RANKS && n < out_bytes; r++)
		if (ranks & 1u << r) {
			n += (size_t)snprintf(out + n, out_bytes - n, " %d%s", r, ranks >> r > 1 ? "," : "");
		}
}
