/* mesh.c — connects the pairs of ranks that need the network. */
#include "comm/net/mesh.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/bootstrap/hosts/hosts_internal.h"
#include "core/clock.h"
#include "core/log.h"
#include "rdma/oob/address.h"

/* A rank waits for a peer in time slices, and checks after each slice whether the job has failed.  If the end of a slice interrupts
 * a connect, the connect is repeated, and the listening rank drops the first attempt. */
enum { ACCEPT_SLICE_MS = 50, CONNECT_SLICE_MS = 2000 };

/* The job's watch threads detect and name a dead rank immediately, and a silent host after gpul_boot_lost_ms().  The lease of a connection
 * is longer, so that the watch threads report first, and so that suspending a machine for a few seconds does not end the job. */
enum { LEASE_BEYOND_MS = 7000, NIC_BYTES = 64, SECRET_BYTES = GPUL_COMM_SECRET_BYTES + GPUL_COMM_JOB_BYTES };

/* The purpose of these connections, which both ends prove together with their ranks: rdma/oob/proof.h. */
enum { PURPOSE_MESH = 1 };

/* What each rank sends to the other ranks about its network: NICs, addresses and ports. */
struct card {
	uint8_t wanted[GPUL_COMM_MAX_RANKS];
	uint32_t n_nics;
	uint16_t port[GPUL_COMM_MAX_NICS][GPUL_COMM_MAX_RANKS]; /* port of this rank's listener for each rank; 0: none */
	char address[GPUL_COMM_MAX_NICS][GPUL_RDMA_ADDRESS_BYTES], nic[GPUL_COMM_MAX_NICS][NIC_BYTES];
	gpul_error failure; /* set if the send path could not be opened */
};

struct gpul_comm_mesh {
	gpul_boot *boot;
	int rank, size;
	char secret[SECRET_BYTES];
	unsigned n_nics;
	gpul_rdma *nics[GPUL_COMM_MAX_NICS];
	gpul_rdma_conn *conns[GPUL_COMM_MAX_RANKS][GPUL_COMM_MAX_NICS];
	/* listeners for ranks with a higher number; only during create */
	gpul_rdma_listener *listeners[GPUL_COMM_MAX_NICS][GPUL_COMM_MAX_RANKS];
	struct card cards[GPUL_COMM_MAX_RANKS];
	uint64_t deadline_ns; /* deadline of the whole call; UINT64_MAX: none */
};

static void close_listeners(gpul_comm_mesh *m)
{
	for (int k = 0; k < GPUL_COMM_MAX_NICS; k++)
		for (int r = 0; r < m->size; r++) {
			gpul_rdma_listener_close(m->listeners[k][r]);
			m->listeners[k][r] = NULL;
		}
}

void gpul_comm_mesh_disconnect(gpul_comm_mesh *m)
{
	for (int r = 0; m && r < m->size; r++)
		for (int i = 0; i < GPUL_COMM_MAX_NICS; i++) {
			gpul_rdma_conn_close(m->conns[r][i]);
			m->conns[r][i] = NULL;
		}
}

void gpul_comm_mesh_destroy(gpul_comm_mesh *m)
{
	if (!m)
		return;
	close_listeners(m);
	gpul_comm_mesh_disconnect(m);
	for (int k = 0; k < GPUL_COMM_MAX_NICS; k++)
		gpul_rdma_close(m->nics[k]);
	free(m);
}

unsigned gpul_comm_mesh_n_nics(const gpul_comm_mesh *m)
{
	return m->n_nics;
}

gpul_rdma *gpul_comm_mesh_nic(const gpul_comm_mesh *m, unsigned nic)
{
	return m->nics[nic];
}

const char *gpul_comm_mesh_nic_name(const gpul_comm_mesh *m, int rank, unsigned nic)
{
	return m->cards[rank].nic[nic];
}

unsigned gpul_comm_mesh_n_conns(const gpul_comm_mesh *m, int rank)
{
	const unsigned theirs = m->cards[rank].n_nics;

	return !m->conns[rank][0] ? 0 : theirs > m->n_nics ? theirs : m->n_nics;
}

unsigned gpul_comm_mesh_nic_of(const gpul_comm_mesh *m, int rank, unsigned i)
{
	return i % m->cards[rank].n_nics;
}

gpul_rdma_conn *gpul_comm_mesh_conn_at(const gpul_comm_mesh *m, int rank, unsigned i)
{
	return m->conns[rank][i];
}

gpul_rdma *gpul_comm_mesh_rdma(const gpul_comm_mesh *m)
{
	return m->nics[0];
}

gpul_rdma_conn *gpul_comm_mesh_conn(const gpul_comm_mesh *m, int rank)
{
	return m->conns[rank][0];
}

/* ---- listen -------------------------------------------------------------------------------------------------- */

/* Find this host's address on the route to rank 0.  Connecting a UDP socket sends nothing, but makes the system choose the local
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
		st = gpul_fail(err, GPUL_ESYS, errno, "this host has no network route to rank 0's address %.100s: %s", there,
			       strerror(errno));
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

/* Find the address of a network interface, preferably IPv4.  Returns false if there is no such interface, or it has no address. */
static bool address_of_interface(const char *name, char out[GPUL_RDMA_ADDRESS_BYTES])
{
	const sa_family_t families[] = { AF_INET, AF_INET6 };
	struct ifaddrs *all;
	bool found = false;
	char *end;

	if (!*name || getifaddrs(&all))
		return false;
	for (int i = 0; i < 2 && !found; i++)
		for (const struct ifaddrs *a = all; a && !found; a = a->ifa_next) {
			const struct sockaddr_in6 *v6 = (const void *)a->ifa_addr;

			found = a->ifa_addr && a->ifa_addr->sa_family == families[i] && !strcmp(a->ifa_name, name) &&
				!(i == 1 && IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr));
			if (found)
				gpul_rdma_sockaddr_print(a->ifa_addr, i ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in), out);
		}
	freeifaddrs(all);
	end = found ? strrchr(out, ':') : NULL;
	if (end)
		*end = '\0';
	return found;
}

/* Copy part k of a list "a,b" of n parts, or the only part if the list has one.  Returns false if the list has another number of
 * parts, or the part is too long. */
static bool part_of(const char *list, unsigned k, unsigned n, char *out, size_t out_bytes)
{
	size_t n_bytes = strcspn(list, ",");

	if (list[n_bytes])
		for (unsigned i = 0; i < n; i++) {
			list += i ? n_bytes + 1 : 0;
			n_bytes = strcspn(list, ",");
			if ((list[n_bytes] == ',') != (i + 1 < n))
				return false;
			if (i == k)
				break;
		}
	(void)snprintf(out, out_bytes, "%.*s", (int)n_bytes, list);
	return n_bytes < out_bytes;
}

/* Find the address at which other ranks reach one NIC of this host. */
static gpul_status own_address(const gpul_comm_mesh *m, const gpul_comm_mesh_desc *desc, unsigned nic, char out[GPUL_RDMA_ADDRESS_BYTES],
			       gpul_error *err)
{
	const char *set = desc->address ? desc->address : secure_getenv("GPULOAD_COMM_NET_ADDRESS");

	if (set && *set)
		return part_of(set, nic, m->n_nics, out, GPUL_RDMA_ADDRESS_BYTES)
			       ? GPUL_OK
			       : gpul_fail(err, GPUL_EINVAL, 0,
					   "invalid list of addresses '%.60s': expected one address of this host, or one for each of its "
					   "%u NICs",
					   set, m->n_nics);
	if (desc->rdma.device.device && address_of_interface(m->cards[m->rank].nic[nic], out))
		return GPUL_OK;
	if (m->boot->job.address[0])
		return address_towards(m->boot->job.address, out, err);
	strcpy(out, "127.0.0.1");
	return GPUL_OK;
}

static uint16_t port_of(const gpul_rdma_listener *l)
{
	const char *colon = strrchr(gpul_rdma_listener_address(l), ':');

	return colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
}

/* Open a listener, with a port of its own, for each rank with a higher number, so that the port identifies the connecting rank.
 * All of them get one, because it is not known yet which pairs need a connection. */
static gpul_status listen_all(gpul_comm_mesh *m, const gpul_comm_mesh_desc *desc, unsigned nic, struct card *card, gpul_error *err)
{
	gpul_rdma_address at = { 0 };
	char own[GPUL_RDMA_ADDRESS_BYTES] = "";
	gpul_status st = own_address(m, desc, nic, own, err);

	st = st ? st : gpul_rdma_address_parse(own, &at, err);
	if (!st && (at.path[0] || at.port != GPUL_RDMA_DEFAULT_PORT || !at.host[0]))
		st = gpul_fail(err, GPUL_EINVAL, 0, "invalid address '%.60s': expected an address of this host, without a port", own);
	(void)snprintf(card->address[nic], sizeof card->address[nic], "%.60s", at.host);
	for (int r = m->rank + 1; !st && r < m->size; r++) {
		char here[GPUL_RDMA_ADDRESS_BYTES + 4];

		(void)snprintf(here, sizeof here, strchr(at.host, ':') ? "[%s]:0" : "%s:0", card->address[nic]);
		st = gpul_rdma_listen(m->nics[nic], here, &m->listeners[nic][r], err);
		if (!st)
			card->port[nic][r] = port_of(m->listeners[nic][r]);
	}
	return st;
}

static int lease_ms_of(const gpul_comm_mesh_desc *desc)
{
	return desc->rdma.lease_ms ? desc->rdma.lease_ms : gpul_boot_lost_ms() + LEASE_BEYOND_MS;
}

/* Open the NIC whose name is in *card; without a name, a NIC that the send path chooses, and store its name. */
static gpul_status open_nic(gpul_comm_mesh *m, const gpul_comm_mesh_desc *desc, unsigned nic, struct card *card, gpul_error *err)
{
	gpul_rdma_desc rdma = desc->rdma;
	gpul_rdma_device_info info;
	gpul_error why = { 0 };
	gpul_status st;

	rdma.lease_ms = lease_ms_of(desc);
	rdma.secret = m->secret;
	rdma.device.device = rdma.device.device ? card->nic[nic] : NULL;
	st = gpul_rdma_open(&rdma, &m->nics[nic], &why);
	if (st && rdma.device.device)
		return gpul_fail(err, st, why.native, "NIC '%s': %.200s", rdma.device.device, why.text);
	if (st)
		return gpul_fail(err, st, why.native, "%s", why.text);
	gpul_rdma_about(m->nics[nic], &info);
	if (!rdma.device.device) { /* use the first word of "mlx5_0 port 1", or the word after "on" in "tcp on eth0 (10.9.0.1)" */
		const char *on = strstr(info.name, " on "), *name = on ? on + 4 : info.name;

		(void)snprintf(card->nic[nic], NIC_BYTES, "%.*s", (int)strcspn(name, " "), name);
	}
	return GPUL_OK;
}

/* Count the NICs in the list, and copy their names to *card. */
static gpul_status name_nics(gpul_comm_mesh *m, const char *list, struct card *card, gpul_error *err)
{
	m->n_nics = 1;
	for (const char *c = list; c && *c; c++)
		m->n_nics += *c == ',';
	card->n_nics = m->n_nics;
	if (m->n_nics > GPUL_COMM_MAX_NICS) {
		m->n_nics = card->n_nics = 1;
		return gpul_fail(err, GPUL_EINVAL, 0, "'%.60s' lists more than %d NICs", list, GPUL_COMM_MAX_NICS);
	}
	for (unsigned k = 0; list && k < m->n_nics; k++) {
		if (!part_of(list, k, m->n_nics, card->nic[k], NIC_BYTES) || !card->nic[k][0])
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "invalid list of NICs '%.100s': expected one name or several, such as mlx5_0,mlx5_1", list);
		for (unsigned other = 0; other < k; other++)
			if (strcmp(card->nic[other], card->nic[k]) == 0)
				return gpul_fail(err, GPUL_EINVAL, 0, "'%.100s' lists the NIC %s twice", list, card->nic[k]);
	}
	return GPUL_OK;
}

/* Open this rank's NICs and listeners.  A failure is stored in the card, so that the other ranks receive it. */
static void open_own(gpul_comm_mesh *m, const gpul_comm_mesh_desc *desc, struct card *card)
{
	gpul_error why = { 0 };
	gpul_status st;

	for (int r = 0; r < m->size; r++)
		card->wanted[r] = r != m->rank && (!desc->wanted || desc->wanted[r]);
	st = name_nics(m, desc->rdma.device.device, card, &why);
	memcpy(m->cards[m->rank].nic, card->nic, sizeof card->nic);
	for (unsigned k = 0; !st && k < m->n_nics; k++) {
		st = open_nic(m, desc, k, card, &why);
		st = st ? st : listen_all(m, desc, k, card, &why);
	}
	if (st)
		card->failure = why;
}

/* ---- connect --------------------------------------------------------------------------------------------------- */

static bool is_wanted(const gpul_comm_mesh *m, int r)
{
	return r != m->rank && (m->cards[m->rank].wanted[r] || m->cards[r].wanted[m->rank]);
}

/* Return the length of the next slice of a wait; 0: the deadline has passed. */
static int slice_ms(const gpul_comm_mesh *m, int most_ms)
{
	const uint64_t now = gpul_clock_ns(), left_ms = m->deadline_ns > now ? (m->deadline_ns - now + 999999) / 1000000 : 0;

	return left_ms < (unsigned)most_ms ? (int)left_ms : most_ms;
}

/* True if a connection attempt may succeed when it is repeated: a listener with too many pending connections of other programs may
 * close a rank's connection to make room. */
static bool is_passing(const gpul_error *why)
{
	return why->status == GPUL_ESYS &&
	       (why->native == ETIMEDOUT || why->native == ECONNREFUSED || why->native == ECONNRESET || why->native == EPIPE);
}

/* Wait one slice for the connection with a rank.  Both ends prove that they know the job's secret, their ranks and the number of the
 * connection.  So a program that has found the port, or a wrong rank, is refused. */
static gpul_status try_pair(gpul_comm_mesh *m, int r, unsigned i, int limit_ms, gpul_error *err)
{
	const struct card *card = &m->cards[r];
	const unsigned here = gpul_comm_mesh_nic_of(m, m->rank, i), there = gpul_comm_mesh_nic_of(m, r, i);
	const gpul_rdma_identity as = {
		.purpose = PURPOSE_MESH,
		.channel = i,
		.from = (uint32_t)(r < m->rank ? m->rank : r),
		.to = (uint32_t)(r < m->rank ? r : m->rank),
	};
	gpul_rdma_conn *conn;
	gpul_status st;

	if (r < m->rank) {
		char at[GPUL_RDMA_ADDRESS_BYTES + 16];

		(void)snprintf(at, sizeof at, strchr(card->address[there], ':') ? "[%s]:%u" : "%s:%u", card->address[there],
			       card->port[there][m->rank]);
		st = gpul_rdma_connect_as(m->nics[here], at, &as, limit_ms < CONNECT_SLICE_MS ? limit_ms : CONNECT_SLICE_MS, &conn, err);
	} else {
		st = gpul_rdma_accept_as(m->listeners[here][r], &as, limit_ms < ACCEPT_SLICE_MS ? limit_ms : ACCEPT_SLICE_MS, &conn, err);
	}
	if (!st)
		m->conns[r][i] = conn;
	return st;
}

/* Explain why a pair of ranks is not connected. last: the error of the last slice.  If its text contains a time, that is the length
 * of the slice, so the message begins with the time of the whole wait. */
static gpul_status fail_late(const gpul_comm_mesh *m, int r, uint64_t begun_ns, const gpul_error *last, gpul_error *why)
{
	const char *refused = strstr(last->text, "; refused ");
	const double seconds = (double)(gpul_clock_ns() - begun_ns) * 1e-9;

	if (r > m->rank)
		return gpul_fail(why, GPUL_ESYS, ETIMEDOUT, "rank %d has not connected within %.1f s%.110s", r, seconds,
				 refused ? refused : "");
	return gpul_fail(why, GPUL_ESYS, ETIMEDOUT, "no connection was established within %.1f s: %.110s", seconds, last->text);
}

static gpul_status connect_pair(gpul_comm_mesh *m, int r, unsigned i, gpul_error *err)
{
	const uint64_t begun_ns = gpul_clock_ns();
	gpul_error last = { 0 };

	for (;;) {
		const int left_ms = slice_ms(m, CONNECT_SLICE_MS);
		gpul_error why = { 0 };
		gpul_status st = gpul_boot_failed(m->boot, err);

		if (st)
			return st;
		st = left_ms ? try_pair(m, r, i, left_ms, &why) : fail_late(m, r, begun_ns, &last, &why);
		if (!st)
			return GPUL_OK;
		if (left_ms && is_passing(&why)) {
			last = why;
			continue;
		}
		return gpul_fail(err, why.status, why.native, "rank %d (NIC %.30s) and rank %d (NIC %.30s at %.60s) cannot connect: %.150s",
				 m->rank, m->cards[m->rank].nic[gpul_comm_mesh_nic_of(m, m->rank, i)], r,
				 m->cards[r].nic[gpul_comm_mesh_nic_of(m, r, i)], m->cards[r].address[gpul_comm_mesh_nic_of(m, r, i)],
				 why.text);
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
		for (unsigned i = 0; !st && (i < m->n_nics || i < m->cards[r].n_nics); i++)
			st = connect_pair(m, r, i, &why);
		if (!st)
			continue;
		gpul_boot_fail(m->boot, &why, m->rank); /* the failure makes the other ranks stop waiting */
		st = gpul_fail(err, st, why.native, "%s", why.text);
	}
	return st;
}

/* Derive the secret of the connections from the job's secret, or, on one machine, from the random bytes of the roster.  The secret
 * includes the name of the job, because several jobs may have the same secret. */
static void find_secret(const gpul_boot *boot, char out[SECRET_BYTES])
{
	const struct roster *r = boot->roster;
	size_t used = 0;

	if (boot->job.secret[0])
		used = (size_t)snprintf(out, SECRET_BYTES, "%s", boot->job.secret);
	else
		for (size_t i = 0; i < sizeof r->session; i++)
			used += (size_t)snprintf(out + used, SECRET_BYTES - used, "%02x", r->session[i]);
	(void)snprintf(out + used, SECRET_BYTES - used, " %s", boot->job.name);
}

gpul_status gpul_comm_mesh_create(gpul_boot *boot, const gpul_comm_mesh_desc *desc, int timeout_ms, gpul_comm_mesh **out, gpul_error *err)
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
	find_secret(boot, m->secret);
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
	for (unsigned k = 0; k < m->n_nics; k++) {
		gpul_rdma_about(m->nics[k], &info);
		gpul_log(GPUL_LOG_INFO, "comm",
			 "rank %d: connections over %s, %s; a host counts as failed after %.1f s without messages, a "
			 "broken path between two ranks after %.1f s",
			 m->rank, info.backend, info.name, gpul_boot_lost_ms() * 1e-3, lease_ms_of(desc) * 1e-3);
	}
	*out = m;
	return GPUL_OK;
}
