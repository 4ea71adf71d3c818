/* fake_ofi.c — the objects of the fake libfabric, and the tables of their functions. */
#if GPUL_HAVE_LIBFABRIC
#include "tests/fake/fake_ofi_internal.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t fake_ofi_lock = PTHREAD_MUTEX_INITIALIZER;
struct fake_ep *fake_ofi_eps;
struct fake_mr *fake_ofi_mrs;

static fake_ofi_behaviour behaviour;
static atomic_int calls, alive, fail_at;
static int fail_with;
static unsigned last_number;

int fake_ofi_step(void)
{
	return ++calls == fail_at ? fail_with : 0;
}

void *fake_ofi_new(size_t n_bytes)
{
	void *object = calloc(1, n_bytes);

	if (!object)
		abort();
	alive++;
	return object;
}

void fake_ofi_free(void *object)
{
	alive--;
	free(object);
}

/* ---- entries --------------------------------------------------------------------------------------------------------- */

static char *copy_text(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* All attributes are one allocation; names and address are separate allocations, because callers replace them. */
struct fake_info {
	struct fi_info info;
	struct fi_tx_attr tx;
	struct fi_rx_attr rx;
	struct fi_ep_attr ep;
	struct fi_domain_attr domain;
	struct fi_fabric_attr fabric;
};

static struct fi_info *copy_info(const struct fi_info *from)
{
	struct fake_info *i = fake_ofi_new(sizeof *i);

	if (from) {
		i->info = *from;
		i->tx = *from->tx_attr;
		i->rx = *from->rx_attr;
		i->ep = *from->ep_attr;
		i->domain = *from->domain_attr;
		i->fabric = *from->fabric_attr;
		i->domain.name = copy_text(from->domain_attr->name);
		i->fabric.name = copy_text(from->fabric_attr->name);
		i->fabric.prov_name = copy_text(from->fabric_attr->prov_name);
		if (from->src_addr)
			i->info.src_addr = memcpy(malloc(from->src_addrlen), from->src_addr, from->src_addrlen);
	}
	i->info.next = NULL;
	i->info.tx_attr = &i->tx;
	i->info.rx_attr = &i->rx;
	i->info.ep_attr = &i->ep;
	i->info.domain_attr = &i->domain;
	i->info.fabric_attr = &i->fabric;
	return &i->info;
}

static struct fi_info *dupinfo(const struct fi_info *from)
{
	return fake_ofi_step() ? NULL : copy_info(from);
}

static void freeinfo(struct fi_info *i)
{
	while (i) {
		struct fi_info *next = i->next;

		free(i->src_addr);
		free(i->domain_attr->name);
		free(i->fabric_attr->name);
		free(i->fabric_attr->prov_name);
		fake_ofi_free(i);
		i = next;
	}
}

static void fill_address(struct fi_info *i, const char *text)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	const bool is_v4 = inet_pton(AF_INET, text, &v4.sin_addr) == 1;

	if (!is_v4 && inet_pton(AF_INET6, text, &v6.sin6_addr) != 1)
		abort();
	i->addr_format = is_v4 ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
	i->src_addrlen = is_v4 ? sizeof v4 : sizeof v6;
	i->src_addr = memcpy(malloc(i->src_addrlen), is_v4 ? (void *)&v4 : (void *)&v6, i->src_addrlen);
}

static struct fi_info *make_info(const fake_ofi_entry *e)
{
	struct fi_info *i = copy_info(NULL);

	i->caps = FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
	i->mode = e->mode;
	i->addr_format = FI_ADDR_STR;
	i->ep_attr->type = FI_EP_RDM;
	i->ep_attr->max_msg_size = i->ep_attr->max_order_waw_size = SIZE_MAX;
	i->tx_attr->inject_size = 64;
	i->tx_attr->size = 2048;
	i->tx_attr->iov_limit = i->tx_attr->rma_iov_limit = 2;
	i->tx_attr->msg_order = e->msg_order;
	i->tx_attr->comp_order = e->comp_order;
	i->domain_attr->mr_mode = e->mr_mode;
	i->domain_attr->cq_data_size = e->data_bytes;
	i->domain_attr->name = copy_text(e->domain);
	i->fabric_attr->prov_name = copy_text(e->provider);
	if (e->address)
		fill_address(i, e->address);
	return i;
}

/* True if an entry matches the hints; the provider "tcp" also matches "tcp;ofi_rxm". */
static bool is_wanted(const fake_ofi_entry *e, const struct fi_info *hints)
{
	const char *provider = hints ? hints->fabric_attr->prov_name : NULL, *domain = hints ? hints->domain_attr->name : NULL;
	const size_t n = provider ? strlen(provider) : 0;

	return !hints ||
	       ((!provider || (!strncmp(e->provider, provider, n) && (!e->provider[n] || e->provider[n] == ';'))) &&
		(!domain || behaviour.ignores_domains || !strcmp(domain, e->domain)) && (hints->tx_attr->msg_order & ~e->msg_order) == 0);
}

static int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		   struct fi_info **out)
{
	const int failed = fake_ofi_step();
	struct fi_info **end = out;

	(void)version, (void)node, (void)service, (void)flags;
	*out = NULL;
	if (failed)
		return -failed;
	for (unsigned i = 0; i < behaviour.n_entries; i++) {
		if (!is_wanted(&behaviour.entries[i], hints))
			continue;
		*end = make_info(&behaviour.entries[i]);
		end = &(*end)->next;
	}
	return *out ? 0 : -FI_ENODATA;
}

/* ---- memory ------------------------------------------------------------------------------------------------------------ */

static int close_mr(struct fid *fid)
{
	struct fake_mr **at = &fake_ofi_mrs;

	pthread_mutex_lock(&fake_ofi_lock);
	while (&(*at)->mr.fid != fid)
		at = &(*at)->next;
	*at = (*at)->next;
	fake_ofi_free(fid);
	pthread_mutex_unlock(&fake_ofi_lock);
	return 0;
}

static int reg_mr(struct fid *fid, const void *at, size_t n_bytes, uint64_t access, uint64_t offset, uint64_t wanted_key, uint64_t flags,
		  struct fid_mr **out, void *context)
{
	static struct fi_ops ops = { .size = sizeof ops, .close = close_mr };
	struct fake_domain *d = (struct fake_domain *)fid;
	const int failed = fake_ofi_step();
	struct fake_mr *m;

	(void)offset, (void)flags;
	if (failed)
		return -failed;
	pthread_mutex_lock(&fake_ofi_lock);
	m = fake_ofi_new(sizeof *m);
	*m = (struct fake_mr){
		.mr = { .fid = { .fclass = FI_CLASS_MR, .context = context, .ops = &ops } },
		.domain = d,
		.begin = (uintptr_t)at,
		.bytes = n_bytes,
		.access = access,
		.base = d->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)at : 0,
		.next = fake_ofi_mrs,
	};
	m->mr.key = d->mr_mode & FI_MR_PROV_KEY ? 0x1000 + ++last_number : wanted_key;
	m->mr.mem_desc = d->mr_mode & FI_MR_LOCAL ? m : NULL;
	fake_ofi_mrs = m;
	pthread_mutex_unlock(&fake_ofi_lock);
	*out = &m->mr;
	return 0;
}

/* ---- queues and addresses ---------------------------------------------------------------------------------------------- */

static int close_cq(struct fid *fid)
{
	pthread_mutex_lock(&fake_ofi_lock);
	for (const struct fake_ep *e = fake_ofi_eps; e; e = e->next)
		if (&e->cq->cq.fid == fid) {
			pthread_mutex_unlock(&fake_ofi_lock);
			return -FI_EBUSY;
		}
	fake_ofi_forget((struct fake_cq *)fid);
	fake_ofi_free(fid);
	pthread_mutex_unlock(&fake_ofi_lock);
	return 0;
}

static int open_cq(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out, void *context)
{
	static struct fi_ops_cq calls_of_cq = {
		.size = sizeof calls_of_cq, .read = fake_ofi_cq_read, .readerr = fake_ofi_cq_readerr, .strerror = fake_ofi_cq_strerror
	};
	static struct fi_ops ops = { .size = sizeof ops, .close = close_cq };
	const int failed = fake_ofi_step();
	struct fake_cq *q;

	(void)domain;
	if (failed || attr->format != FI_CQ_FORMAT_DATA)
		return failed ? -failed : -FI_EINVAL;
	q = fake_ofi_new(sizeof *q);
	q->cq = (struct fid_cq){ .fid = { .fclass = FI_CLASS_CQ, .context = context, .ops = &ops }, .ops = &calls_of_cq };
	*out = &q->cq;
	return 0;
}

static int close_plain(struct fid *fid)
{
	fake_ofi_free(fid);
	return 0;
}

/* Like libfabric, take the size of the address from its family, not from an argument. */
static int insert_address(struct fid_av *av, const void *address, size_t n, fi_addr_t *out, uint64_t flags, void *context)
{
	struct fake_av *a = (struct fake_av *)av;
	struct fake_address *peer = &a->peers[a->n_peers];
	const int failed = fake_ofi_step();
	sa_family_t family;

	(void)flags, (void)context;
	if (failed)
		return -failed;
	if (n != 1 || a->n_peers == FAKE_OFI_PEERS)
		return -FI_EINVAL;
	memcpy(&family, address, sizeof family);
	peer->n_bytes = family == AF_INET ? sizeof(struct sockaddr_in) : family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
	if (!peer->n_bytes && !memcmp(address, "fi_fake://", 10))
		peer->n_bytes = strlen(address) + 1;
	if (!peer->n_bytes || peer->n_bytes > FAKE_OFI_ADDRESS) {
		*out = FI_ADDR_NOTAVAIL;
		return 0;
	}
	memcpy(peer->at, address, peer->n_bytes);
	*out = a->n_peers++;
	return 1;
}

static int open_av(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **out, void *context)
{
	static struct fi_ops_av calls_of_av = { .size = sizeof calls_of_av, .insert = insert_address };
	static struct fi_ops ops = { .size = sizeof ops, .close = close_plain };
	const int failed = fake_ofi_step();
	struct fake_av *a;

	(void)domain, (void)attr;
	if (failed)
		return -failed;
	a = fake_ofi_new(sizeof *a);
	a->av = (struct fid_av){ .fid = { .fclass = FI_CLASS_AV, .context = context, .ops = &ops }, .ops = &calls_of_av };
	*out = &a->av;
	return 0;
}

/* ---- endpoints ----------------------------------------------------------------------------------------------------------- */

static int close_ep(struct fid *fid)
{
	struct fake_ep **at = &fake_ofi_eps, *e;

	pthread_mutex_lock(&fake_ofi_lock);
	while (&(*at)->ep.fid != fid)
		at = &(*at)->next;
	e = *at;
	*at = e->next;
	fake_ofi_drop(e, FI_ENOTCONN);
	fake_ofi_free(e);
	pthread_mutex_unlock(&fake_ofi_lock);
	return 0;
}

static int bind_ep(struct fid *fid, struct fid *to, uint64_t flags)
{
	struct fake_ep *e = (struct fake_ep *)fid;
	const int failed = fake_ofi_step();

	(void)flags;
	if (failed)
		return -failed;
	if (to->fclass == FI_CLASS_CQ)
		e->cq = (struct fake_cq *)to;
	else
		e->av = (struct fake_av *)to;
	return 0;
}

static int control_ep(struct fid *fid, int command, void *arg)
{
	struct fake_ep *e = (struct fake_ep *)fid;
	const int failed = fake_ofi_step();

	(void)arg;
	if (failed || command != FI_ENABLE || !e->cq || !e->av)
		return failed ? -failed : -FI_EINVAL;
	pthread_mutex_lock(&fake_ofi_lock);
	e->enabled = true;
	pthread_mutex_unlock(&fake_ofi_lock);
	return 0;
}

static int get_name(fid_t fid, void *address, size_t *n_bytes)
{
	const struct fake_ep *e = (const struct fake_ep *)fid;
	const size_t room = *n_bytes;
	const int failed = fake_ofi_step();

	if (failed)
		return -failed;
	*n_bytes = e->address.n_bytes;
	if (room < e->address.n_bytes)
		return -FI_ETOOSMALL;
	memcpy(address, e->address.at, e->address.n_bytes);
	return 0;
}

/* Give the endpoint a unique port or name. */
static void name_endpoint(struct fake_ep *e, const struct fi_info *info)
{
	const uint16_t port = htons((uint16_t)(20000 + e->number));

	if (!info->src_addr) {
		e->address.n_bytes = (size_t)snprintf((char *)e->address.at, sizeof e->address.at, "fi_fake://%06u", e->number) + 1;
		return;
	}
	e->address.n_bytes = info->src_addrlen;
	memcpy(e->address.at, info->src_addr, info->src_addrlen);
	memcpy(e->address.at + offsetof(struct sockaddr_in, sin_port), &port, sizeof port);
}

static int open_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context)
{
	static struct fi_ops_rma rma = { .size = sizeof rma,
					 .write = fake_ofi_write,
					 .writemsg = fake_ofi_writemsg,
					 .writedata = fake_ofi_writedata,
					 .inject = fake_ofi_inject,
					 .injectdata = fake_ofi_injectdata };
	static struct fi_ops ops = { .size = sizeof ops, .close = close_ep, .bind = bind_ep, .control = control_ep };
	static struct fi_ops_cm cm = { .size = sizeof cm, .getname = get_name };
	const int failed = fake_ofi_step();
	struct fake_ep *e;

	if (failed)
		return -failed;
	pthread_mutex_lock(&fake_ofi_lock);
	e = fake_ofi_new(sizeof *e);
	*e = (struct fake_ep){
		.ep = { .fid = { .fclass = FI_CLASS_EP, .context = context, .ops = &ops }, .cm = &cm, .rma = &rma },
		.domain = (struct fake_domain *)domain,
		.number = ++last_number,
		.connect_posts = behaviour.connect_posts,
		.inject_bytes = info->tx_attr->inject_size,
		.next = fake_ofi_eps,
	};
	name_endpoint(e, info);
	fake_ofi_eps = e;
	pthread_mutex_unlock(&fake_ofi_lock);
	*out = &e->ep;
	return 0;
}

/* ---- fabric and domain --------------------------------------------------------------------------------------------------- */

static int open_domain(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out, void *context)
{
	static struct fi_ops_domain calls_of_domain = {
		.size = sizeof calls_of_domain, .av_open = open_av, .cq_open = open_cq, .endpoint = open_ep
	};
	static struct fi_ops_mr memory = { .size = sizeof memory, .reg = reg_mr };
	static struct fi_ops ops = { .size = sizeof ops, .close = close_plain };
	const int failed = fake_ofi_step();
	struct fake_domain *d;

	(void)fabric;
	if (failed)
		return -failed;
	d = fake_ofi_new(sizeof *d);
	d->domain = (struct fid_domain){ .fid = { .fclass = FI_CLASS_DOMAIN, .context = context, .ops = &ops },
					 .ops = &calls_of_domain,
					 .mr = &memory };
	d->mr_mode = info->domain_attr->mr_mode;
	*out = &d->domain;
	return 0;
}

static int open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
	static struct fi_ops_fabric calls_of_fabric = { .size = sizeof calls_of_fabric, .domain = open_domain };
	static struct fi_ops ops = { .size = sizeof ops, .close = close_plain };
	const int failed = fake_ofi_step();
	struct fid_fabric *f;

	(void)attr;
	if (failed)
		return -failed;
	f = fake_ofi_new(sizeof *f);
	*f = (struct fid_fabric){ .fid = { .fclass = FI_CLASS_FABRIC, .context = context, .ops = &ops }, .ops = &calls_of_fabric };
	*out = f;
	return 0;
}

static const char *text_of(int number)
{
	return strerror(number);
}

static uint32_t version(void)
{
	return FI_VERSION(1, 17);
}

static const struct gpul_ofi table = {
	.fi_getinfo = getinfo,
	.fi_freeinfo = freeinfo,
	.fi_dupinfo = dupinfo,
	.fi_fabric = open_fabric,
	.fi_strerror = text_of,
	.fi_version = version,
};

/* ---- for tests -------------------------------------------------------------------------------------------------------------- */

static void set_defaults(void)
{
	static const fake_ofi_entry tcp = { .provider = "tcp;ofi_rxm", .data_bytes = 8, .msg_order = FI_ORDER_WAW | FI_ORDER_RMA_WAW };

	behaviour = (fake_ofi_behaviour){ .entries = { tcp, tcp, tcp, tcp, tcp }, .n_entries = 5, .room = 64, .connect_posts = 1 };
	behaviour.entries[0].domain = "lo";
	behaviour.entries[0].address = "127.0.0.1";
	behaviour.entries[1].domain = behaviour.entries[2].domain = "eth0";
	behaviour.entries[1].address = "fe80::1";
	behaviour.entries[2].address = "10.9.0.1";
	behaviour.entries[3].domain = "eth1";
	behaviour.entries[3].address = "10.9.1.1";
	behaviour.entries[4].provider = behaviour.entries[4].domain = "shm";
	behaviour.entries[4].mr_mode = FI_MR_VIRT_ADDR;
}

const struct gpul_ofi *fake_ofi(int n)
{
	set_defaults();
	fake_ofi_reset_queue();
	calls = 0;
	alive = 0;
	fail_with = FI_ENOMEM;
	fail_at = n;
	return &table;
}

fake_ofi_behaviour *fake_ofi_behave(void)
{
	return &behaviour;
}

void fake_ofi_fail(int n, int code)
{
	fail_with = code;
	fail_at = n ? calls + n : 0;
}

int fake_ofi_calls(void)
{
	return calls;
}

int fake_ofi_alive(void)
{
	return alive;
}

#else
typedef int no_libfabric; /* ISO C forbids an empty translation unit */
#endif
