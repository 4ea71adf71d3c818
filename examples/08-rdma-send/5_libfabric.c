/* 5_libfabric.c — the write with an immediate again, over libfabric: any network, here TCP.
 *
 *     5_libfabric                                both processes on this machine
 *     5_libfabric --listen                       the receiver
 *     5_libfabric HOST                           the sender, on another machine
 *
 * Read open_endpoint(), then receiver() and sender(). */
#include <inttypes.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdlib.h>
#include <string.h>

#include "lesson.h"

/* The objects of verbs under other names: a domain is a device and a protection domain, an endpoint
 * replaces queue pairs; mr and cq are the same. */
struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;       /* table of peers' addresses */
	struct fid_ep *endpoint; /* reliable datagrams (RDM): one endpoint reaches any number of peers */
	struct fid_mr *mr;
};

/* The peer's memory: corresponds to rkey and address in steps 2 to 4. */
struct remote {
	fi_addr_t peer;
	uint64_t address, key;
};

static void need_fi(long code, const char *call)
{
	if (code < 0) {
		fprintf(stderr, "lesson: %s: %s\n", call, fi_strerror((int)-code));
		exit(1);
	}
}

static void open_endpoint(struct end *e, const struct lesson_peer *peer)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA };
	struct fi_av_attr av = { .type = FI_AV_UNSPEC };
	int r;

	hints->caps = FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup("tcp");
	/* Bind to the address of the socket, because the peer can reach it; the default would
	 * be the first interface. */
	r = fi_getinfo(FI_VERSION(1, 10), peer->own_host, NULL, FI_SOURCE, hints, &e->info);
	fi_freeinfo(hints);
	if (r)
		lesson_skip("libfabric has no provider tcp");
	need_fi(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), "fi_fabric");
	need_fi(fi_domain(e->fabric, e->info, &e->domain, NULL), "fi_domain");
	need_fi(fi_cq_open(e->domain, &cq, &e->cq, NULL), "fi_cq_open");
	need_fi(fi_av_open(e->domain, &av, &e->av, NULL), "fi_av_open");
	need_fi(fi_endpoint(e->domain, e->info, &e->endpoint, NULL), "fi_endpoint");
	need_fi(fi_ep_bind(e->endpoint, &e->av->fid, 0), "fi_ep_bind");
	need_fi(fi_ep_bind(e->endpoint, &e->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	need_fi(fi_enable(e->endpoint), "fi_enable");
	if (peer->receives)
		printf("provider %s\n", e->info->fabric_attr->prov_name);
}

static void close_endpoint(struct end *e)
{
	fi_close(&e->mr->fid);
	fi_close(&e->endpoint->fid);
	fi_close(&e->av->fid);
	fi_close(&e->cq->fid);
	fi_close(&e->domain->fid);
	fi_close(&e->fabric->fid);
	fi_freeinfo(e->info);
}

static void register_memory(struct end *e, void *memory, size_t bytes)
{
	need_fi(fi_mr_reg(e->domain, memory, bytes, FI_WRITE | FI_REMOTE_WRITE, 0, 1, 0, &e->mr, NULL), "fi_mr_reg");
}

/* Some providers count remote addresses from the start of a registration, others as the peer's pointers. */
static uint64_t remote_address(const struct end *e, const void *memory)
{
	return e->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)memory : 0;
}

static void wait_completion(struct end *e, struct fi_cq_data_entry *entry, const char *for_what)
{
	ssize_t n;

	for (uint64_t since = 0; (n = fi_cq_read(e->cq, entry, 1)) == -FI_EAGAIN; lesson_wait(&since, for_what))
		;
	need_fi(n, for_what);
}

static void receiver(const struct lesson_peer *peer)
{
	char buffer[64] = "", hex[2 * 64 + 1];
	unsigned char name[64];
	size_t name_bytes = sizeof name;
	struct fi_cq_data_entry entry;
	struct end e;

	open_endpoint(&e, peer);
	register_memory(&e, buffer, sizeof buffer);
	need_fi(fi_getname(&e.endpoint->fid, name, &name_bytes), "fi_getname");
	for (size_t i = 0; i < name_bytes; i++)
		sprintf(&hex[2 * i], "%02x", name[i]);
	lesson_tell(peer, "%" PRIx64 " %" PRIx64 " %s", remote_address(&e, buffer), fi_mr_key(e.mr), hex);

	wait_completion(&e, &entry, "a message"); /* polls, because with the tcp provider the CPU, not a NIC, receives the data */
	printf("receiver: %s, immediate %" PRIu64 ", length in the completion %zu: \"%s\"\n",
	       entry.flags & FI_REMOTE_CQ_DATA ? "a write with immediate" : "?", entry.data, entry.len, buffer);
	lesson_meet(peer);
	close_endpoint(&e);
}

static void sender(const struct lesson_peer *peer)
{
	char message[64] = "a message over libfabric", line[256], hex[129];
	unsigned char name[64] = { 0 };
	struct fi_cq_data_entry entry;
	struct remote to;
	struct end e;
	ssize_t r;

	open_endpoint(&e, peer);
	register_memory(&e, message, sizeof message);
	lesson_hear(peer, line);
	lesson_need(sscanf(line, "%" SCNx64 " %" SCNx64 " %128s", &to.address, &to.key, hex) == 3, "the receiver's line");
	for (size_t i = 0; i < strlen(hex) / 2; i++)
		sscanf(&hex[2 * i], "%2hhx", &name[i]);
	lesson_need(fi_av_insert(e.av, name, 1, &to.peer, 0, NULL) == 1, "fi_av_insert");

	for (uint64_t since = 0;; lesson_wait(&since, "a connection")) {
		r = fi_writedata(e.endpoint, message, sizeof message, fi_mr_desc(e.mr), 7, to.peer, to.address, to.key, NULL);
		if (r != -FI_EAGAIN) /* the first write connects; "again" means "not connected
				       * yet" */
			break;
		(void)fi_cq_read(e.cq, &entry, 0);
	}
	need_fi(r, "fi_writedata");
	wait_completion(&e, &entry, "the end of the write");
	printf("sender:   completed\n");
	lesson_meet(peer);
	close_endpoint(&e);
}

int main(int argc, char **argv)
{
	struct lesson_peer peer;

	lesson_two_processes(argc, argv, &peer);
	(peer.receives ? receiver : sender)(&peer);
	return lesson_end(&peer);
}
