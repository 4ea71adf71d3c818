/* fake_verbs.c — the objects of the fake libibverbs, and the table of its functions. */
#if GPUL_HAVE_LIBIBVERBS
#include "tests/fake/fake_verbs_internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pthread_mutex_t fake_verbs_lock = PTHREAD_MUTEX_INITIALIZER;
struct fake_mr *fake_mrs;

static fake_verbs_behaviour behaviour;
static atomic_int calls, alive;
static int fail_at, fail_with, plan_at;
static enum ibv_wc_status plan_status;
static uint32_t plan_vendor;
static _Atomic uint32_t last_number;
static unsigned doorbells;

struct fake_context {
	struct ibv_context ctx;
	int events[2]; /* pipe of struct ibv_async_event */
	struct fake_context *next;
};

static struct fake_context *contexts;

int fake_verbs_step(void)
{
	return ++calls == fail_at ? fail_with : 0;
}

uint32_t fake_verbs_number(void)
{
	return ++last_number;
}

/* Count a call that returns an object, and allocate the object; NULL, with errno, if the call must fail. */
void *fake_new_object(size_t bytes)
{
	const int r = fake_verbs_step();
	void *object = r ? NULL : calloc(1, bytes);

	if (object)
		alive++;
	else
		errno = r ? r : ENOMEM;
	return object;
}

int fake_free_object(void *object)
{
	alive--;
	free(object);
	return 0;
}

enum ibv_wc_status fake_verbs_planned(enum ibv_wc_status status, uint32_t *vendor)
{
	if (!plan_at || --plan_at)
		return status;
	*vendor = plan_vendor;
	return plan_status;
}

void fake_verbs_count_doorbell(void)
{
	doorbells++;
}

static struct ibv_device **get_device_list(int *n)
{
	struct ibv_device **list = fake_new_object((size_t)(behaviour.n_devices + 1) * sizeof *list);

	if (!list)
		return NULL;
	for (int i = 0; i < behaviour.n_devices; i++) {
		static struct ibv_device devices[8];

		devices[i].transport_type = behaviour.transport;
		snprintf(devices[i].name, sizeof devices[i].name, "fake%d", i);
		list[i] = &devices[i];
	}
	if (n)
		*n = behaviour.n_devices;
	return list;
}

static void free_device_list(struct ibv_device **list)
{
	fake_free_object(list);
}

static const char *get_device_name(struct ibv_device *d)
{
	return d->name;
}

static __be64 get_device_guid(struct ibv_device *d)
{
	return (void)d, 0x0100;
}

static struct ibv_context *open_device(struct ibv_device *d)
{
	struct fake_context *c = fake_new_object(sizeof *c);

	if (!c)
		return NULL;
	if (pipe(c->events) != 0)
		abort();
	c->ctx.device = d;
	c->ctx.async_fd = c->events[0];
	c->next = contexts;
	contexts = c;
	return &c->ctx;
}

static int close_device(struct ibv_context *ctx)
{
	struct fake_context *c = (struct fake_context *)ctx, **at = &contexts;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	close(c->events[0]);
	close(c->events[1]);
	return fake_free_object(c);
}

static int query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	(void)ctx;
	*attr = behaviour.attr;
	return fake_verbs_step();
}

static int query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr)
{
	(void)input;
	memset(attr, 0, sizeof *attr);
	return query_device(ctx, &attr->orig_attr);
}

static int query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
	(void)ctx;
	if (port < 1 || port > behaviour.attr.phys_port_cnt)
		return EINVAL;
	*attr = behaviour.ports[port - 1];
	return fake_verbs_step();
}

static int query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	(void)ctx;
	for (unsigned i = 0; i < behaviour.n_gids; i++)
		if (behaviour.gids[i].port_num == port && behaviour.gids[i].gid_index == (uint32_t)index)
			*gid = behaviour.gids[i].gid;
	return fake_verbs_step();
}

static int query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	(void)ctx, (void)port, (void)index;
	*pkey = 0xffff;
	return fake_verbs_step();
}

static ssize_t query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max_entries, uint32_t flags)
{
	const int r = fake_verbs_step();

	(void)ctx, (void)flags;
	if (r || max_entries < behaviour.n_gids)
		return r ? -r : -EINVAL;
	memcpy(entries, behaviour.gids, behaviour.n_gids * sizeof *entries);
	return (ssize_t)behaviour.n_gids;
}

/* ---- events ---------------------------------------------------------------------------------------------------------- */

void fake_verbs_event(enum ibv_event_type type, struct fake_qp *q, struct ibv_cq *cq, int port)
{
	struct ibv_async_event event = { .event_type = type };

	if (q)
		event.element.qp = &q->qp;
	else if (cq)
		event.element.cq = cq;
	else
		event.element.port_num = port;
	for (struct fake_context *c = contexts; c; c = c->next)
		if ((!q || q->qp.context == &c->ctx) && (!cq || cq->context == &c->ctx) &&
		    write(c->events[1], &event, sizeof event) != (ssize_t)sizeof event)
			abort();
}

void fake_verbs_raise(enum ibv_event_type type, uint32_t qp_num, int port)
{
	fake_verbs_event(type, qp_num ? fake_qp_find(qp_num) : NULL, NULL, port);
}

static int get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	return read(ctx->async_fd, event, sizeof *event) == (ssize_t)sizeof *event ? 0 : -1;
}

static void ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

static struct ibv_pd *alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd = fake_new_object(sizeof *pd);

	if (pd)
		pd->context = ctx;
	return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
	return fake_free_object(pd);
}

static struct ibv_mr *reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t n_bytes, uint64_t iova, unsigned access)
{
	struct fake_mr *m = fake_new_object(sizeof *m);

	if (!m)
		return NULL;
	m->mr = (struct ibv_mr){ .context = pd->context, .pd = pd, .addr = (void *)(uintptr_t)iova, .length = n_bytes };
	(void)addr;
	m->access = access;
	pthread_mutex_lock(&fake_verbs_lock);
	m->mr.lkey = m->mr.rkey = fake_verbs_number() << 8;
	m->next = fake_mrs;
	fake_mrs = m;
	pthread_mutex_unlock(&fake_verbs_lock);
	return &m->mr;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t n_bytes, int access)
{
	return reg_mr_iova2(pd, addr, n_bytes, (uintptr_t)addr, (unsigned)access);
}

static struct ibv_mr *reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t n_bytes, uint64_t iova, int fd, int access)
{
	(void)offset;
	if (behaviour.no_dmabuf || fd < 0) {
		errno = behaviour.no_dmabuf ? EOPNOTSUPP : EBADF;
		return NULL;
	}
	return reg_mr_iova2(pd, NULL, n_bytes, iova, (unsigned)access);
}

static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
	struct ibv_mr *mr;

	if (behaviour.no_null_mr) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mr = reg_mr_iova2(pd, NULL, 0, 0, IBV_ACCESS_LOCAL_WRITE);
	if (mr)
		((struct fake_mr *)mr)->null = true;
	return mr;
}

static int dereg_mr(struct ibv_mr *mr)
{
	struct fake_mr **at = &fake_mrs;

	pthread_mutex_lock(&fake_verbs_lock);
	while (*at != (struct fake_mr *)mr)
		at = &(*at)->next;
	*at = (*at)->next;
	pthread_mutex_unlock(&fake_verbs_lock);
	return fake_free_object(mr);
}

/* ---- names ----------------------------------------------------------------------------------------------------------- */

static const char *wc_status_str(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
		return "transport retry counter exceeded";
	case IBV_WC_WR_FLUSH_ERR:
		return "Work Request Flushed Error";
	default:
		return "some status";
	}
}

static const char *event_type_str(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_QP_ACCESS_ERR:
		return "local access violation work queue error";
	case IBV_EVENT_PORT_ERR:
		return "port error";
	default:
		return "some event";
	}
}

static const char *port_state_str(enum ibv_port_state state)
{
	return state == IBV_PORT_ACTIVE ? "active (4)" : state == IBV_PORT_DOWN ? "down (1)" : "invalid state";
}

static const char *node_type_str(enum ibv_node_type type)
{
	return (void)type, "InfiniBand channel adapter";
}

static const struct gpul_verbs table = {
	.path = "the fake libibverbs",
#define OWN(name) .name = name,
	OWN(get_device_list) OWN(free_device_list) OWN(get_device_name) OWN(get_device_guid) OWN(open_device) OWN(close_device) OWN(
		query_device) OWN(query_gid) OWN(query_pkey) OWN(get_async_event) OWN(ack_async_event) OWN(alloc_pd) OWN(dealloc_pd)
		OWN(reg_mr) OWN(reg_mr_iova2) OWN(dereg_mr) OWN(wc_status_str) OWN(event_type_str) OWN(port_state_str) OWN(node_type_str)
#undef OWN
#define QUEUE(name) .name = fake_##name,
			QUEUE(create_comp_channel) QUEUE(destroy_comp_channel) QUEUE(get_cq_event) QUEUE(ack_cq_events) QUEUE(create_cq)
				QUEUE(destroy_cq) QUEUE(create_qp) QUEUE(modify_qp) QUEUE(query_qp) QUEUE(destroy_qp) QUEUE(create_ah)
					QUEUE(destroy_ah) QUEUE(post_send) QUEUE(post_recv) QUEUE(poll_cq) QUEUE(req_notify_cq)
#undef QUEUE
						.reg_dmabuf_mr = reg_dmabuf_mr,
	.query_gid_table = query_gid_table,
	.query_port = query_port,
	.query_device_ex = query_device_ex,
	.alloc_null_mr = alloc_null_mr,
};

/* ---- for tests -------------------------------------------------------------------------------------------------------- */

static void set_defaults(void)
{
	static const unsigned char local[16] = { 0xfe, 0x80, [15] = 1 }, ipv4[16] = { [10] = 0xff, [11] = 0xff, 10, 9, 0, 1 };

	behaviour = (fake_verbs_behaviour){
		.n_devices = 1,
		.transport = IBV_TRANSPORT_IB,
		.max_inline = 64,
		.no_dmabuf = true,
		.n_gids = 4,
		.attr = { .phys_port_cnt = 1, .max_qp_wr = 8192, .max_cqe = 1 << 17, .max_qp = 64, .atomic_cap = IBV_ATOMIC_HCA },
	};
	for (int i = 0; i < FAKE_VERBS_PORTS; i++)
		behaviour.ports[i] = (struct ibv_port_attr){
			.state = IBV_PORT_ACTIVE, .max_mtu = IBV_MTU_4096, .active_mtu = IBV_MTU_1024, .link_layer = IBV_LINK_LAYER_ETHERNET
		};
	for (unsigned i = 0; i < 4; i++) {
		behaviour.gids[i] = (struct ibv_gid_entry){ .gid_index = i,
							    .port_num = 1,
							    .gid_type = i % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1 };
		memcpy(behaviour.gids[i].gid.raw, i < 2 ? ipv4 : local, 16);
	}
}

const struct gpul_verbs *fake_verbs(int n)
{
	set_defaults();
	calls = 0;
	alive = 0;
	doorbells = 0;
	plan_at = 0;
	fail_at = n;
	fail_with = ENOMEM;
	return &table;
}

fake_verbs_behaviour *fake_verbs_behave(void)
{
	return &behaviour;
}

void fake_verbs_fail(int n, int with_errno)
{
	fail_at = n ? calls + n : 0;
	fail_with = with_errno;
}

int fake_verbs_calls(void)
{
	return calls;
}

int fake_verbs_alive(void)
{
	return alive;
}

void fake_verbs_complete(int n, enum ibv_wc_status status, uint32_t vendor)
{
	plan_at = n;
	plan_status = status;
	plan_vendor = vendor;
}

unsigned fake_verbs_doorbells(void)
{
	return doorbells;
}

unsigned fake_verbs_receives(void)
{
	unsigned n = 0;

	for (struct fake_qp *q = fake_qps; q; q = q->next)
		n += q->recvs_head - q->recvs_tail;
	return n;
}

unsigned fake_verbs_access(uint32_t lkey)
{
	struct fake_mr *m = fake_mrs;

	while (m && m->mr.lkey != lkey)
		m = m->next;
	return m ? m->access : 0;
}

const struct ibv_qp_attr *fake_verbs_attributes(uint32_t qp_num)
{
	struct fake_qp *q = fake_qp_find(qp_num);

	return q ? &q->attr : NULL;
}

#else
typedef int no_libibverbs; /* ISO C forbids an empty translation unit */
#endif
