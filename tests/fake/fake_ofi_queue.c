/* fake_ofi_queue.c — the data path of the fake libfabric: writes go from an endpoint to the inbox of another endpoint, and take effect
 * when the owner of the inbox reads its completion queue. */
#if GPUL_HAVE_LIBFABRIC
#include "tests/fake/fake_ofi_internal.h"

#include <stdlib.h>
#include <string.h>

static int refuse_at, plan_at, plan_error, plan_provider_error, read_at, read_code;
static unsigned n_writes, n_silent;

void fake_ofi_reset_queue(void)
{
	refuse_at = plan_at = read_at = 0;
	n_writes = n_silent = 0;
}

void fake_ofi_refuse(int n)
{
	refuse_at = n;
}

void fake_ofi_complete(int n, int error, int provider_error)
{
	plan_at = n;
	plan_error = error;
	plan_provider_error = provider_error;
}

void fake_ofi_fail_read(int n, int code)
{
	read_at = n;
	read_code = code;
}

unsigned fake_ofi_writes(void)
{
	return n_writes;
}

unsigned fake_ofi_silent_writes(void)
{
	return n_silent;
}

/* ---- completions ------------------------------------------------------------------------------------------------ */

static void complete(struct fake_cq *cq, const struct fi_cq_err_entry *entry)
{
	struct fake_completion *c = fake_ofi_new(sizeof *c), **end = &cq->first;

	c->entry = *entry;
	while (*end)
		end = &(*end)->next;
	*end = c;
}

static struct fi_cq_err_entry pop(struct fake_cq *cq, struct fake_completion **at)
{
	struct fake_completion *c = *at;
	const struct fi_cq_err_entry entry = c->entry;

	(void)cq;
	*at = c->next;
	fake_ofi_free(c);
	return entry;
}

void fake_ofi_forget(struct fake_cq *cq)
{
	while (cq->first)
		(void)pop(cq, &cq->first);
}

/* Complete a write at its sender. */
static void complete_write(struct fake_ep *from, const struct fake_write *w, int error, int provider_error)
{
	struct fi_cq_err_entry e = { .op_context = w->context, .flags = FI_RMA | FI_WRITE, .err = error, .prov_errno = provider_error };

	if (!error && !(w->flags & FI_COMPLETION))
		return;
	if (!error && plan_at && !--plan_at) {
		e.err = plan_error;
		e.prov_errno = plan_provider_error;
	}
	complete(from->cq, &e);
}

static struct fake_ep *find_ep(unsigned number)
{
	struct fake_ep *e = fake_ofi_eps;

	while (e && e->number != number)
		e = e->next;
	return e;
}

/* ---- the target --------------------------------------------------------------------------------------------------- */

static struct fake_write *take_write(struct fake_ep *target, struct fake_write **at, struct fake_ep **from)
{
	struct fake_write *w = *at;

	(void)target;
	*at = w->next;
	*from = find_ep(w->from);
	if (*from)
		(*from)->under_way--;
	return w;
}

void fake_ofi_drop(struct fake_ep *target, int provider_error)
{
	while (target->inbox) {
		struct fake_ep *from;
		struct fake_write *w = take_write(target, &target->inbox, &from);

		if (from && w->flags & FI_DELIVERY_COMPLETE)
			complete_write(from, w, FI_ECANCELED, provider_error);
		fake_ofi_free(w);
	}
}

/* Write the bytes of one target of a write; false: it is not registered memory. */
static bool write_target(struct fake_ep *target, const struct fi_rma_iov *to, const unsigned char *bytes)
{
	struct fake_mr *m = fake_ofi_mrs;

	while (m && (m->domain != target->domain || fi_mr_key(&m->mr) != to->key))
		m = m->next;
	if (to->len &&
	    (!m || !(m->access & FI_REMOTE_WRITE) || to->addr < m->base || to->len > m->bytes || to->addr - m->base > m->bytes - to->len))
		return false;
	if (to->len)
		memcpy((void *)(uintptr_t)(m->begin + (to->addr - m->base)), bytes, to->len);
	return true;
}

static bool take_effect(struct fake_ep *target, const struct fake_write *w)
{
	const unsigned char *bytes = w->bytes;

	for (unsigned i = 0; i < w->n_targets; bytes += w->targets[i++].len)
		if (!write_target(target, &w->targets[i], bytes))
			return false;
	if (w->flags & FI_REMOTE_CQ_DATA)
		complete(target->cq, &(struct fi_cq_err_entry){ .flags = FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, .data = w->data });
	return true;
}

static void receive(struct fake_ep *target)
{
	while (target->inbox) {
		struct fake_write **at = &target->inbox, *w;
		struct fake_ep *from;
		bool right;

		while (fake_ofi_behave()->reverse && (*at)->next)
			at = &(*at)->next;
		w = take_write(target, at, &from);
		right = take_effect(target, w);
		if (from && w->flags & FI_DELIVERY_COMPLETE && !fake_ofi_behave()->unacknowledged)
			complete_write(from, w, right ? 0 : FI_ECANCELED, right ? 0 : FI_ENOENT);
		fake_ofi_free(w);
		if (!right)
			fake_ofi_drop(target, FI_ENOENT);
	}
}

ssize_t fake_ofi_cq_read(struct fid_cq *queue, void *entries, size_t n)
{
	struct fake_cq *cq = (struct fake_cq *)queue;
	struct fi_cq_data_entry *out = entries;
	ssize_t i = 0;

	pthread_mutex_lock(&fake_ofi_lock);
	if (read_at && !--read_at) {
		pthread_mutex_unlock(&fake_ofi_lock);
		return -read_code;
	}
	for (struct fake_ep *e = fake_ofi_eps; e; e = e->next)
		if (e->cq == cq && !fake_ofi_behave()->deaf)
			receive(e);
	while (i < (ssize_t)n && cq->first) {
		struct fake_completion **at = &cq->first;

		while (fake_ofi_behave()->reverse && (*at)->next && !(*at)->entry.err)
			at = &(*at)->next;
		if ((*at)->entry.err)
			break;
		const struct fi_cq_err_entry e = pop(cq, at);

		out[i++] = (struct fi_cq_data_entry){ .op_context = e.op_context, .flags = e.flags, .data = e.data };
	}
	if (!i)
		i = cq->first ? -FI_EAVAIL : -FI_EAGAIN;
	pthread_mutex_unlock(&fake_ofi_lock);
	return i;
}

ssize_t fake_ofi_cq_readerr(struct fid_cq *queue, struct fi_cq_err_entry *entry, uint64_t flags)
{
	struct fake_cq *cq = (struct fake_cq *)queue;
	ssize_t r = -FI_EAGAIN;

	(void)flags;
	pthread_mutex_lock(&fake_ofi_lock);
	for (struct fake_completion **at = &cq->first; *at; at = &(*at)->next) {
		if (!(*at)->entry.err)
			continue;
		*entry = pop(cq, at);
		r = 1;
		break;
	}
	pthread_mutex_unlock(&fake_ofi_lock);
	return r;
}

const char *fake_ofi_cq_strerror(struct fid_cq *cq, int provider_error, const void *data, char *text, size_t room)
{
	(void)cq, (void)data;
	if (text && room) {
		strncpy(text, strerror(provider_error), room - 1);
		text[room - 1] = '\0';
	}
	return strerror(provider_error);
}

/* ---- the sender ----------------------------------------------------------------------------------------------------- */

static struct fake_ep *find_target(const struct fake_ep *from, fi_addr_t to)
{
	const struct fake_address *a = to < from->av->n_peers ? &from->av->peers[to] : NULL;

	for (struct fake_ep *e = a ? fake_ofi_eps : NULL; e; e = e->next)
		if (e->enabled && e->address.n_bytes == a->n_bytes && !memcmp(e->address.at, a->at, a->n_bytes))
			return e;
	return NULL;
}

/* True if the local memory is registered, where the provider requires this (FI_MR_LOCAL); injected writes do not need it. */
static bool has_local(const struct fake_ep *from, const struct fi_msg_rma *msg, uint64_t flags)
{
	for (size_t i = 0; i < msg->iov_count; i++) {
		const struct fake_mr *m = fake_ofi_mrs;
		const uint64_t at = (uintptr_t)msg->msg_iov[i].iov_base;

		if (!(from->domain->mr_mode & FI_MR_LOCAL) || flags & FI_INJECT || !msg->msg_iov[i].iov_len)
			continue;
		while (m && m != msg->desc[i])
			m = m->next;
		if (!m || at < m->begin || at + msg->msg_iov[i].iov_len > m->begin + m->bytes)
			return false;
	}
	return true;
}

static ssize_t check_post(struct fake_ep *from, const struct fi_msg_rma *msg, uint64_t flags)
{
	const int failed = fake_ofi_step();

	if (failed)
		return -failed;
	if (!from->enabled || msg->iov_count < 1 || msg->iov_count > 2 || msg->iov_count != msg->rma_iov_count ||
	    msg->msg_iov[0].iov_len != msg->rma_iov[0].len || (msg->iov_count > 1 && msg->msg_iov[1].iov_len != msg->rma_iov[1].len) ||
	    (flags & FI_INJECT && msg->msg_iov->iov_len > from->inject_bytes) || !has_local(from, msg, flags))
		return -FI_EINVAL;
	if (from->connect_posts) {
		from->connect_posts--;
		return -FI_EAGAIN;
	}
	return (refuse_at && !--refuse_at) || from->under_way >= fake_ofi_behave()->room ? -FI_EAGAIN : 0;
}

static void send_write(struct fake_ep *from, struct fake_ep *target, const struct fi_msg_rma *msg, uint64_t flags)
{
	const size_t n_bytes = msg->rma_iov[0].len + (msg->rma_iov_count > 1 ? msg->rma_iov[1].len : 0);
	struct fake_write *w = fake_ofi_new(sizeof *w + n_bytes), **end = &target->inbox;
	unsigned char *bytes = w->bytes;

	w->from = from->number;
	w->flags = flags;
	w->data = msg->data;
	w->context = msg->context;
	for (; w->n_targets < msg->rma_iov_count; bytes += w->targets[w->n_targets++].len) {
		w->targets[w->n_targets] = msg->rma_iov[w->n_targets];
		memcpy(bytes, msg->msg_iov[w->n_targets].iov_base, msg->rma_iov[w->n_targets].len);
	}
	while (*end)
		end = &(*end)->next;
	*end = w;
	from->under_way++;
	n_writes++;
	n_silent += !(flags & FI_COMPLETION);
	if (!(flags & FI_DELIVERY_COMPLETE) && !fake_ofi_behave()->deaf && !fake_ofi_behave()->unacknowledged)
		complete_write(from, w, 0, 0);
}

ssize_t fake_ofi_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fake_ep *from = (struct fake_ep *)ep, *target;
	ssize_t r;

	pthread_mutex_lock(&fake_ofi_lock);
	r = check_post(from, msg, flags);
	target = find_target(from, msg->addr);
	if (!r && !target)
		r = -FI_EAGAIN;
	if (!r)
		send_write(from, target, msg, flags);
	pthread_mutex_unlock(&fake_ofi_lock);
	return r;
}

static ssize_t write_plain(struct fid_ep *ep, const void *buf, size_t n_bytes, void *desc, uint64_t data, fi_addr_t to, uint64_t remote,
			   uint64_t key, void *context, uint64_t flags)
{
	struct iovec from = { .iov_base = (void *)(uintptr_t)buf, .iov_len = n_bytes };
	struct fi_rma_iov there = { .addr = remote, .len = n_bytes, .key = key };
	const struct fi_msg_rma msg = { .msg_iov = &from,
					.desc = &desc,
					.iov_count = 1,
					.addr = to,
					.rma_iov = &there,
					.rma_iov_count = 1,
					.context = context,
					.data = data };

	return fake_ofi_writemsg(ep, &msg, flags);
}

ssize_t fake_ofi_write(struct fid_ep *ep, const void *buf, size_t n_bytes, void *desc, fi_addr_t to, uint64_t remote, uint64_t key,
		       void *context)
{
	return write_plain(ep, buf, n_bytes, desc, 0, to, remote, key, context, 0);
}

ssize_t fake_ofi_writedata(struct fid_ep *ep, const void *buf, size_t n_bytes, void *desc, uint64_t data, fi_addr_t to, uint64_t remote,
			   uint64_t key, void *context)
{
	return write_plain(ep, buf, n_bytes, desc, data, to, remote, key, context, FI_REMOTE_CQ_DATA);
}

ssize_t fake_ofi_inject(struct fid_ep *ep, const void *buf, size_t n_bytes, fi_addr_t to, uint64_t remote, uint64_t key)
{
	return write_plain(ep, buf, n_bytes, NULL, 0, to, remote, key, NULL, FI_INJECT);
}

ssize_t fake_ofi_injectdata(struct fid_ep *ep, const void *buf, size_t n_bytes, uint64_t data, fi_addr_t to, uint64_t remote, uint64_t key)
{
	return write_plain(ep, buf, n_bytes, NULL, data, to, remote, key, NULL, FI_INJECT | FI_REMOTE_CQ_DATA);
}

#else
typedef int no_libfabric; /* ISO C forbids an empty translation unit */
#endif
