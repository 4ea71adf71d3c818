/* connect.c — the connecting side: a thread for each attempt, and the table of attempts.
 *
 *     running ── the thread ends ──> ended ── connect() takes the result
 *        └── abandoned by gpul_net_connects_abandon(): the thread frees it */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/thread/thread.h"
#include "nccl/net/ends.h"

struct attempt {
	struct attempt *next;
	gpul_net_context *context; /* reference to the context, released with the attempt */
	int device, connect_ms;
	unsigned char handle[GPUL_NCCL_HANDLE_BYTES]; /* identifies the attempt, together with the device */
	char address[GPUL_NET_ADDRESS_BYTES], secret[GPUL_NET_SECRET_TEXT_BYTES];
	gpul_rdma *r;
	bool ended, abandoned; /* protected by attempts_lock, like the list of attempts */
	gpul_rdma_conn *conn;  /* the result; valid when `ended` is set */
	gpul_error err;
};

static pthread_mutex_t attempts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct attempt *attempts;

static void free_attempt(struct attempt *a)
{
	gpul_rdma_conn_close(a->conn);
	gpul_net_context_release(a->context);
	free(a);
}

static void *run_attempt(void *argument)
{
	struct attempt *a = argument;
	bool abandoned;

	(void)gpul_rdma_connect_secret(a->r, a->address, a->secret, NULL, a->connect_ms, &a->conn, &a->err);
	pthread_mutex_lock(&attempts_lock);
	a->ended = true;
	abandoned = a->abandoned;
	pthread_mutex_unlock(&attempts_lock);
	if (abandoned)
		free_attempt(a);
	return NULL;
}

/* Find the attempt for a handle, and remove it from the list if it has ended. */
static struct attempt *find_attempt(const gpul_net_context *context, int device, const unsigned char *handle, bool *ended)
{
	struct attempt *a, **at;

	pthread_mutex_lock(&attempts_lock);
	for (at = &attempts; (a = *at) != NULL; at = &a->next)
		if (a->context == context && a->device == device && !memcmp(a->handle, handle, sizeof a->handle))
			break;
	*ended = a && a->ended;
	if (*ended)
		*at = a->next;
	pthread_mutex_unlock(&attempts_lock);
	return a;
}

static gpul_status check_handle(const gpul_net_process *process, int device, const unsigned char *bytes, gpul_net_handle *out,
				gpul_error *err)
{
	static const char *const names[] = { "", "verbs", "libfabric" };
	const gpul_status st = gpul_net_handle_read(bytes, out, err);
	gpul_net_backend mine;

	if (st || device < 0 || (unsigned)device >= process->devices.n)
		return st;
	mine = process->devices.at[device].backend;
	return out->backend == mine
		       ? GPUL_OK
		       : gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				   "%s uses %s, but this side uses %s: set GPULOAD_NET_PROVIDER to the same value on all hosts",
				   out->address, names[out->backend], names[mine]);
}

static gpul_status start_attempt(gpul_net_context *context, int device, const unsigned char *handle, gpul_error *err)
{
	const gpul_net_process *process;
	gpul_status st = gpul_net_process_get(&process, err);
	gpul_net_handle h;
	struct attempt *a;
	pthread_t thread;
	gpul_rdma *r = NULL;
	int error;

	st = st ? st : check_handle(process, device, handle, &h, err);
	st = st ? st : gpul_net_context_device(context, device, &r, err);
	if (st)
		return st;
	a = calloc(1, sizeof *a);
	if (!a)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a connection");
	a->context = context;
	a->device = device;
	a->r = r;
	a->connect_ms = process->options.connect_ms;
	memcpy(a->handle, handle, sizeof a->handle);
	memcpy(a->address, h.address, sizeof a->address);
	gpul_net_secret_text(&h, &process->options, a->secret);
	gpul_net_context_hold(context);
	pthread_mutex_lock(&attempts_lock);
	a->next = attempts;
	attempts = a;
	error = gpul_thread_start(&thread, NULL, "connect", run_attempt, a);
	if (error)
		attempts = a->next;
	pthread_mutex_unlock(&attempts_lock);
	if (error) {
		free_attempt(a);
		return gpul_fail(err, GPUL_ESYS, error, "cannot start a thread for a connection: %s", strerror(error));
	}
	(void)pthread_detach(thread);
	return GPUL_OK;
}

gpul_status gpul_net_connect(gpul_net_context *context, int device, const unsigned char handle[GPUL_NCCL_HANDLE_BYTES], gpul_net_end **out,
			     gpul_error *err)
{
	bool ended;
	struct attempt *a = find_attempt(context, device, handle, &ended);
	gpul_status st;

	*out = NULL;
	if (!a)
		return start_attempt(context, device, handle, err);
	if (!ended)
		return GPUL_OK;
	st = a->err.status ? gpul_fail(err, a->err.status, a->err.native, "%s", a->err.text)
			   : gpul_net_end_create(context, a->r, a->conn, true, out, err);
	a->conn = a->err.status ? a->conn : NULL;
	free_attempt(a);
	return st;
}

void gpul_net_connects_abandon(const gpul_net_context *context)
{
	struct attempt *a, **at = &attempts, *ended = NULL;

	pthread_mutex_lock(&attempts_lock);
	while ((a = *at) != NULL) {
		if (a->context != context) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		a->abandoned = true;
		if (a->ended) {
			a->next = ended;
			ended = a;
		}
	}
	pthread_mutex_unlock(&attempts_lock);
	while ((a = ended) != NULL) {
		ended = a->next;
		free_attempt(a);
	}
}
