/* mesh.c — connects the pairs of ranks that want it. */
#include "comm/net/mesh.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/bootstrap/boot_internal.h"
#include "core/clock.h"
#include "core/log.h"
#include "rdma/oob/address.h"

/* A rank waits for a peer in slices, and looks after each whether the job has failed.  A connect that is cut off begins anew, and
 * the listening rank drops the first attempt. */
enum { ACCEPT_SLICE_MS = 50, CONNECT_SLICE_MS = 2000 };

/* The job's own watch notices a dead rank at once and a lost host within ten seconds, and names them.  The lease of a connection is longer,
 * so that this comes first, and so that a machine which stands still for some seconds does not end the job. */
enum { LEASE_MS = 15000 };

/* What a rank tells the others. */
struct card {
	int32_t pid;
	uint8_t wanted[GPUL_COMM_MAX_RANKS];
	uint16_t port[GPUL_COMM_MAX_RANKS];  /* of its listener for that rank; 0: none */
	char address[GPUL_RDMA_ADDRESS_BYTES];
	gpul_error failure;                  /* nothing could be opened */
};

struct gpul_comm_mesh {
	gpul_boot *boot;
	int rank, size;
	gpul_rdma *rdma;
	gpul_rdma_conn *conns[GPUL_COMM_MAX_RANKS];
	gpul_rdma_listener *listeners[GPUL_COMM_MAX_RANKS];  /* of higher ranks; only during create */
	struct card cards[GPUL_COMM_MAX_RANKS];
	uint64_t deadline_ns;                /* UINT64_MAX: none */
};

static void close_listeners(gpul_comm_mesh *m)
{
	for (int r = 0; r < m->size; r++) {
		gpul_rdma_listener_close(m->listeners[r]);
		m->listeners[r] = NULL;
	}
}

void gpul_comm_mesh_disconnect(gpul_comm_mesh *m)
{
	for (int r = 0; m && r < m->size; r++) {
		gpul_rdma_conn_close(m->conns[r]);
		m->conns[r] = NULL;
	}
}

void gpul_comm_mesh_destroy(gpul_comm_mesh *m)
{
	if (!m)
		return;
	close_listeners(m);
	gpul_comm_mesh_disconnect(m);
	gpul_rdma_close(m->rdma);
	free(m);
}

gpul_rdma *gpul_comm_mesh_rdma(const gpul_comm_mesh *m)
{
	return m->rdma;
}

gpul_rdma_conn *gpul_comm_mesh_conn(const gpul_comm_mesh *m, int rank)
{
	return m->conns[rank];
}

/* ---- listen -------------------------------------------------------------------------------------------------- */

/* The address of this host on the way to rank 0's.  A UDP socket that is connected sends nothing, but the system has chosen its
 * address. */
static gpul_status address_towards(const char *there, char out[GPUL_RDMA_ADDRESS_BYTES], gpul_error *err)
{
	struct sockaddr_storage here = { 0 };
	socklen_t bytes = sizeof here;
	gpul_rdma_address to = { 0 };
	gpul_rdma_resolved resolved;
	gpul_status st = gpul_rdma_address_parse(there, &to, err);
	char *colon;
	int fd;

	st = st ? st : gpul_rdma_address_resolve(&to, false, &resolved, err);
	if (st)
		return st;
	fd = socket(resolved.sockaddrs[0].at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&resolved.sockaddrs[0].at, resolved.sockaddrs[0].bytes) ||
	    getsockname(fd, (struct sockaddr *)&here, &bytes))
		st = gpul_fail(err, GPUL_ESYS, errno, "no route from this host to rank 0's address %.100s: %s", there, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (st)
		return st;
	gpul_rdma_sockaddr_print((const struct sockaddr *)&here, bytes, out);
	colon = strrchr(out, ':');
	if (colon)
		*colon = '\0';
	return GPUL_OK;
}

/* The address of this host for the other ranks. */
static gpul_status own_address(const gpul_comm_mesh *m, const gpul_comm_mesh_desc *desc, char out[GPUL_RDMA_ADDRESS_BYTES],
			       gpul_error *err)
{
	const char *set = desc->address ? desc->address : secure_getenv("GPULOAD_COMM_NET_ADDRESS");

	if ((!set || !*set) && m->boot->job.address[0])
		return address_towards(m->boot->job.address, out, err);
	if (set && strlen(set) >= GPUL_RDMA_ADDRESS_BYTES)
		return gpul_fail(err, GPUL_EINVAL, 0, "'%.60s...': the address of this host is too long", set);
	strcpy(out, set && *set ? set : "127.0.0.1");
	return GPUL_OK;
}

/* The port at the end of "ADDRESS:PORT". */
static uint16_t port_of(const gpul_rdma_listener *l)
{
	const char *colon = strrchr(gpul_rdma_listener_address(l), ':');

	return colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
}

/* Listen for each higher rank at a port of its own, so that the port tells who connects.  Whether the pair is wanted is known
 * only later. */
static gpul_status listen_all(gpul_comm_mesh *m, const gpul_comm_mesh_desc *desc, struct card *card, gpul_error *err)
{
	gpul_rdma_address at = { 0 };
	char own[GPUL_RDMA_ADDRESS_BYTES] = "";
	gpul_status st = own_address(m, desc, own, err);

	st = st ? st : gpul_rdma_address_parse(own, &at, err);
	if (!st && (at.path[0] || at.port != GPUL_RDMA_DEFAULT_PORT || !at.host[0]))
		st = gpul_fail(err, GPUL_EINVAL, 0, "'%.60s': expected the address of this host, without a port", own);
	(void)snprintf(card->address, sizeof card->address, "%.60s", at.host);
	for (int r = m->rank + 1; !st && r < m->size; r++) {
		char here[GPUL_RDMA_ADDRESS_BYTES + 4];

		(void)snprintf(here, sizeof here, strchr(at.host, ':') ? "[%s]:0" : "%s:0", card->address);
		st = gpul_rdma_listen(m->rdma, here, &m->listeners[r], err);
		if (!st)
			card->port[r] = port_of(m->listeners[r]);
	}
	return st;
}

/* Open the send path and the listeners.  A failure goes to the others with the card. */
static void open_own(gpul_comm_mesh *m, const gpul_comm_mesh_desc *desc, struct card *card)
{
	gpul_rdma_desc rdma = desc->rdma;
	gpul_error why = { 0 };
	gpul_status st;

	if (rdma.lease_ms == 0)
		rdma.lease_ms = LEASE_MS;
	card->pid = getpid();
	for (int r = 0; r < m->size; r++)
		card->wanted[r] = r != m->rank && (!desc->wanted || desc->wanted[r]);
	st = gpul_rdma_open(&rdma, &m->rdma, &why);
	st = st ? st : listen_all(m, desc, card, &why);
	if (st)
		card->failure = why;
}

/* ---- connect --------------------------------------------------------------------------------------------------- */

static bool is_wanted(const gpul_comm_mesh *m, int r)
{
	return r != m->rank && (m->cards[m->rank].wanted[r] || m->cards[r].wanted[m->rank]);
}

/* The time that a slice of a wait may take; 0: the deadline has passed. */
static int slice_ms(const gpul_comm_mesh *m, int most_ms)
{
	const uint64_t now = gpul_clock_ns(), left_ms = m->deadline_ns > now ? (m->deadline_ns - now + 999999) / 1000000 : 0;

	return left_ms < (unsigned)most_ms ? (int)left_ms : most_ms;
}

static bool is_timeout(const gpul_error *why)
{
	return why->status == GPUL_ESYS && (why->native == ETIMEDOUT || why->native == ECONNREFUSED);
}

/* One slice of the wait for the connection with a rank.  A stranger that has found the port is dropped. */
static gpul_status try_pair(gpul_comm_mesh *m, int r, int limit_ms, gpul_error *err)
{
	const struct card *card = &m->cards[r];
	gpul_rdma_conn_info info;
	gpul_rdma_conn *conn;
	gpul_status st;

	if (r < m->rank) {
		char at[GPUL_RDMA_ADDRESS_BYTES + 16];

		(void)snprintf(at, sizeof at, strchr(card->address, ':') ? "[%s]:%u" : "%s:%u", card->address,
			       card->port[m->rank]);
		st = gpul_rdma_connect(m->rdma, at, limit_ms < CONNECT_SLICE_MS ? limit_ms : CONNECT_SLICE_MS, &conn, err);
	} else {
		st = gpul_rdma_accept(m->listeners[r], limit_ms < ACCEPT_SLICE_MS ? limit_ms : ACCEPT_SLICE_MS, &conn, err);
	}
	if (st)
		return st;
	gpul_rdma_conn_about(conn, &info);
	if (info.peer_pid != card->pid) {
		gpul_rdma_conn_close(conn);
		return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "process %d at %.60s is not rank %d", info.peer_pid, info.peer, r);
	}
	m->conns[r] = conn;
	return GPUL_OK;
}

static gpul_status connect_pair(gpul_comm_mesh *m, int r, gpul_error *err)
{
	for (;;) {
		const int left_ms = slice_ms(m, CONNECT_SLICE_MS);
		gpul_error why = { 0 };
		gpul_status st = gpul_boot_failed(m->boot, err);

		if (st)
			return st;
		st = left_ms ? try_pair(m, r, left_ms, &why) : gpul_fail(&why, GPUL_ESYS, ETIMEDOUT, "the time is over");
		if (!st)
			return GPUL_OK;
		if (left_ms && is_timeout(&why))
			continue;
		return gpul_fail(err, why.status, why.native, "rank %d and rank %d (at %.60s) cannot connect: %.140s", m->rank, r,
				 m->cards[r].address, why.text);
	}
}

static gpul_status connect_all(gpul_comm_mesh *m, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (int r = 0; !st && r < m->size; r++) {
		const gpul_error *why = &m->cards[r].failure;

		if (why->status && r == m->rank)
			st = gpul_fail(err, why->status, why->native, "%s", why->text);
		else if (why->status)
			st = gpul_fail(err, why->status, why->native, "rank %d: %.200s", r, why->text);
	}
	for (int r = 0; !st && r < m->size; r++) {
		gpul_error why = { 0 };

		if (!is_wanted(m, r))
			continue;
		st = connect_pair(m, r, &why);
		if (!st)
			continue;
		gpul_boot_fail(m->boot, &why, m->rank);  /* the others stop to wait */
		st = gpul_fail(err, st, why.native, "%s", why.text);
	}
	return st;
}

gpul_status gpul_comm_mesh_create(gpul_boot *boot, const gpul_comm_mesh_desc *desc, int timeout_ms, gpul_comm_mesh **out,
				  gpul_error *err)
{
	const uint64_t begun_ns = gpul_clock_ns();
	gpul_comm_mesh *m = calloc(1, sizeof *m);
	struct card card = { 0 };
	gpul_rdma_device_info info;
	gpul_status st;

	if (!m) {
		gpul_fail(&card.failure, GPUL_ENOMEM, 0, "no memory for the connections of rank %d", gpul_boot_rank(boot));
		gpul_boot_fail(boot, &card.failure, gpul_boot_rank(boot));
		return gpul_fail(err, GPUL_ENOMEM, 0, "%s", card.failure.text);
	}
	m->boot = boot;
	m->rank = gpul_boot_rank(boot);
	m->size = gpul_boot_size(boot);
	m->deadline_ns = timeout_ms < 0 ? UINT64_MAX : begun_ns + (uint64_t)timeout_ms * 1000000;
	open_own(m, desc, &card);
	st = gpul_boot_allgather(boot, &card, sizeof card, m->cards, timeout_ms, err);
	st = st ? st : connect_all(m, err);
	close_listeners(m);
	st = st ? st : gpul_boot_barrier(boot, timeout_ms, err);
	if (st) {
		gpul_comm_mesh_destroy(m);
		return st;
	}
	gpul_rdma_about(m->rdma, &info);
	gpul_log(GPUL_LOG_INFO, "comm", "rank %d: connections over %s, %s", m->rank, info.backend, info.name);
	*out = m;
	return GPUL_OK;
}
