/* exchange.c — two processes that send each other messages and puts, and check every byte.
 *
 *     exchange serve [OPTION]...           accept connections; the peer of each sends the plan
 *     exchange HOST[:PORT] [OPTION]...     connect
 *     exchange open [OPTION]...            open the device and register memory, nothing else
 *
 * Exit status: 0 if all data was right, or with --fault and --fails if the expected error occurred in time. */
#include "tests/rdma/exchange/exchange.h"

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

enum { MAX_CONNECTIONS = 64 };

static struct {
	gpul_rdma_desc desc;
	wishes wishes;
	const char *role, *listen, *disturb;
	unsigned connections; /* number of simultaneous connections; `serve` ends after this many */
	size_t bytes;         /* number of bytes that the command `open` registers */
	bool fails;           /* the connections must fail, at most notice_ns after the command of --disturb */
	int connect_ms;
} set = {
	.desc = { .device = { .gpu = -1, .gid_index = -1 } },
	.wishes = { .seed = 1, .max_bytes = (1 << 20) + 1, .n_items = 24, .n_puts = 24, .rounds = 1, .deadline_ms = 20000, .fault = -1 },
	.listen = "",
	.connections = 1,
	.bytes = 4096,
	.connect_ms = 20000,
};

static gpul_rdma *device;
static _Atomic uint64_t disturbed_ns; /* time at which the command of --disturb ended; 0: not yet */
static atomic_bool disturbing;        /* the command of --disturb has started */
static pthread_t disturber;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- command line ---------------------------------------------------------------------------------------------------- */

/* clang-format off */
enum option_number {
	BACKEND = 256, PROVIDER, DEVICE, GID, MTU, TIMEOUT, RETRY, UC, LOSSLESS, DATAGRAMS, LEASE, QPS, ROUND_ROBIN, DEPTH, SEGMENT, STRIPE,
	LISTEN, CONNECTIONS, MESSAGES, PUTS, MAX, ROUNDS, SECONDS, SEED, DEADLINE, FAULT, OUTSTANDING, DISTURB, FAILS, BYTES, CONNECT,
};
/* clang-format on */

/* clang-format off */
static const struct option options[] = {
	{ "backend", 1, 0, BACKEND }, { "provider", 1, 0, PROVIDER }, { "device", 1, 0, DEVICE }, { "gid", 1, 0, GID }, { "mtu", 1, 0, MTU },
	{ "timeout", 1, 0, TIMEOUT }, { "retry", 1, 0, RETRY }, { "uc", 0, 0, UC }, { "lossless", 0, 0, LOSSLESS },
	{ "datagrams", 0, 0, DATAGRAMS }, { "lease", 1, 0, LEASE }, { "qps", 1, 0, QPS }, { "round-robin", 0, 0, ROUND_ROBIN },
	{ "depth", 1, 0, DEPTH }, { "segment", 1, 0, SEGMENT }, { "stripe", 1, 0, STRIPE }, { "listen", 1, 0, LISTEN },
	{ "connections", 1, 0, CONNECTIONS }, { "messages", 1, 0, MESSAGES }, { "puts", 1, 0, PUTS }, { "max", 1, 0, MAX },
	{ "rounds", 1, 0, ROUNDS }, { "seconds", 1, 0, SECONDS }, { "seed", 1, 0, SEED }, { "deadline", 1, 0, DEADLINE },
	{ "fault", 1, 0, FAULT }, { "outstanding", 1, 0, OUTSTANDING }, { "disturb", 1, 0, DISTURB }, { "fails", 0, 0, FAILS },
	{ "bytes", 1, 0, BYTES }, { "connect", 1, 0, CONNECT }, { 0 },
};
/* clang-format on */

static int usage(void)
{
	char faults[200];

	fault_list(faults, sizeof faults);
	fprintf(stderr,
		"usage: exchange serve|HOST|open [OPTION]...\n"
		"  device: --backend verbs|libfabric --provider NAME --device NAME --gid N --mtu N --timeout N --retry N --uc --lossless\n"
		"          --datagrams --lease MS --qps N --round-robin --depth N --segment BYTES --stripe BYTES\n"
		"  serve:  --listen ADDRESS --connections N (before it ends; 0: no limit)\n"
		"  client: --connections N (at once) --messages N --puts N --max BYTES --rounds N --seconds S --seed N --deadline MS\n"
		"          --connect MS --fault NAME --outstanding none|send|receive|puts\n"
		"  both:   --disturb COMMAND (once, when data flows) --fails (an error is expected, in the announced time after it)\n"
		"  open:   --bytes N\n"
		"  faults: %s\n",
		faults);
	return 2;
}

/* Parse a size such as "100M" or "64K". */
static uint64_t size_of(const char *text)
{
	char *end;
	const uint64_t n = strtoull(text, &end, 0);

	return *end == 'M' ? n << 20 : *end == 'K' ? n << 10 : n;
}

static bool set_device_option(int option, const char *value)
{
	gpul_rdma_desc *d = &set.desc;

	switch (option) {
	case BACKEND:
		d->backend = value;
		break;
	case PROVIDER:
		d->device.provider = value;
		break;
	case DEVICE:
		d->device.device = value;
		break;
	case GID:
		d->device.gid_index = atoi(value);
		break;
	case MTU:
		d->device.mtu = atoi(value);
		break;
	case TIMEOUT:
		d->device.timeout = atoi(value);
		break;
	case RETRY:
		d->device.retry = atoi(value);
		break;
	case UC:
		d->device.qp_type = GPUL_RDMA_UC;
		break;
	case LOSSLESS:
		d->device.lossless = true;
		break;
	case DATAGRAMS:
		d->device.control_datagrams = true;
		break;
	case LEASE:
		d->lease_ms = atoi(value);
		break;
	case QPS:
		d->n_qps = (unsigned)atoi(value);
		break;
	case ROUND_ROBIN:
		d->striping = GPUL_RDMA_ROUND_ROBIN;
		break;
	case DEPTH:
		d->depth = (unsigned)atoi(value);
		break;
	case SEGMENT:
		d->segment_bytes = (uint32_t)size_of(value);
		break;
	case STRIPE:
		d->stripe_bytes = (uint32_t)size_of(value);
		break;
	default:
		return false;
	}
	return true;
}

static bool set_option(int option, const char *value)
{
	wishes *w = &set.wishes;
	int n = 0;

	switch (option) {
	case LISTEN:
		set.listen = value;
		break;
	case CONNECTIONS:
		set.connections = (unsigned)atoi(value);
		break;
	case MESSAGES:
		w->n_items = (uint32_t)atoi(value);
		break;
	case PUTS:
		w->n_puts = (uint32_t)atoi(value);
		break;
	case MAX:
		w->max_bytes = size_of(value);
		break;
	case ROUNDS:
		w->rounds = (uint32_t)atoi(value);
		break;
	case SECONDS:
		w->seconds = atof(value);
		break;
	case SEED:
		w->seed = size_of(value);
		break;
	case DEADLINE:
		w->deadline_ms = atoi(value);
		break;
	case FAULT:
		n = w->fault = fault_find(value);
		break;
	case OUTSTANDING:
		n = outstanding_find(value);
		w->outstanding = (unsigned)n;
		break;
	case DISTURB:
		set.disturb = value;
		break;
	case FAILS:
		set.fails = true;
		break;
	case BYTES:
		set.bytes = size_of(value);
		break;
	case CONNECT:
		set.connect_ms = atoi(value);
		break;
	default:
		return set_device_option(option, value);
	}
	return n >= 0;
}

static bool parse(int argc, char **argv)
{
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
		if (c == '?' || !set_option(c, optarg))
			return false;
	set.role = optind + 1 == argc ? argv[optind] : NULL;
	return set.role && set.connections <= MAX_CONNECTIONS;
}

/* ---- a disturbance --------------------------------------------------------------------------------------------------------- */

static void *disturb(void *unused)
{
	(void)unused;
	atomic_store(&disturbing, true);
	if (system(set.disturb))
		fprintf(stderr, "exchange: --disturb: the command has failed\n");
	atomic_store(&disturbed_ns, gpul_clock_ns());
	return NULL;
}

static void start_disturber(void)
{
	if (set.disturb && pthread_create(&disturber, NULL, disturb, NULL))
		abort();
}

static void begun(void)
{
	pthread_once(&once, start_disturber);
}

/* Check the result with --fails: the connection must have failed, at most twice the time notice_ns after the command of --disturb. */
static gpul_status judge_failure(const session *s, gpul_status st, const gpul_error *seen, gpul_error *err)
{
	const uint64_t now = gpul_clock_ns(), since = atomic_load(&disturbed_ns);
	gpul_rdma_failure why;

	gpul_rdma_conn_failed(s->conn, &why);
	if (!st)
		return gpul_fail(err, GPUL_EFORMAT, 0, "no error, but one was expected");
	/* On a busy machine the connection can fail before the --disturb command ends or, in the server, before its own command starts. */
	if (!why.status || (!since && !s->serving && !atomic_load(&disturbing)) || !strstr(seen->text, s->info.peer))
		return gpul_fail(err, st, seen->native, "not the expected error: %.200s", seen->text);
	if (!since) {
		printf("%s: noticed before the end of its own disturbance: %s\n", s->serving ? "server" : "client", seen->text);
		return GPUL_OK;
	}
	printf("%s: noticed %.0f ms after the disturbance (announced: %.0f ms): %s\n", s->serving ? "server" : "client",
	       (double)(now - since) * 1e-6, (double)s->info.notice_ns * 1e-6, seen->text);
	/* Allow twice the time, because this machine may be busy. */
	if (now - since > 2 * s->info.notice_ns)
		return gpul_fail(err, st, seen->native, "the error came later than announced");
	return GPUL_OK;
}

/* ---- connections -------------------------------------------------------------------------------------------------------- */

static bool finish(session *s, gpul_status st, gpul_error *err, uint64_t begun_ns)
{
	gpul_error seen = *err;

	if (set.fails && s->conn) {
		*err = (gpul_error){ 0 };
		st = judge_failure(s, st, &seen, err);
	}
	if (st)
		fprintf(stderr, "exchange: %s: connection %u: %s\n", s->serving ? "server" : "client", s->connection, err->text);
	else if (s->totals.messages)
		printf("%s: connection %u with %s: %llu messages, %llu puts, %.1f MB sent, the peer's checked, in %.2f s\n",
		       s->serving ? "server" : "client", s->connection, s->info.peer, (unsigned long long)s->totals.messages,
		       (unsigned long long)s->totals.puts, (double)s->totals.bytes * 1e-6, (double)(gpul_clock_ns() - begun_ns) * 1e-9);
	session_close(s);
	return st == GPUL_OK;
}

static void *client_main(void *argument)
{
	session s = { .r = device, .connection = (uint32_t)(uintptr_t)argument };
	const uint64_t begun_ns = gpul_clock_ns();
	gpul_error err = { 0 };
	gpul_status st = gpul_rdma_connect(device, set.role, set.connect_ms, &s.conn, &err);

	if (!st)
		st = session_client(&s, &set.wishes, &err);
	return finish(&s, st, &err, begun_ns) ? &set : NULL;
}

static void *server_main(void *argument)
{
	session s = { .r = device, .conn = argument };
	gpul_error err = { 0 };
	const uint64_t begun_ns = gpul_clock_ns();
	const gpul_status st = session_server(&s, &set.wishes, &err);

	return finish(&s, st, &err, begun_ns) ? &set : NULL;
}

static int join_all(const pthread_t *threads, unsigned n)
{
	int status = 0;

	for (unsigned i = 0; i < n; i++) {
		void *ok = NULL;

		pthread_join(threads[i], &ok);
		status |= !ok;
	}
	return status;
}

static int connect_all(void)
{
	pthread_t threads[MAX_CONNECTIONS];

	for (unsigned i = 0; i < set.connections; i++)
		if (pthread_create(&threads[i], NULL, client_main, (void *)(uintptr_t)i))
			abort();
	return join_all(threads, set.connections);
}

/* Serve the given number of connections simultaneously, or any number one after the other. */
static int serve_all(gpul_error *err)
{
	gpul_rdma_listener *listener = NULL;
	pthread_t threads[MAX_CONNECTIONS];
	unsigned n = 0;
	int status = 0;
	gpul_status st = gpul_rdma_listen(device, set.listen, &listener, err);

	if (!st)
		printf("listening on %s\n", gpul_rdma_listener_address(listener));
	while (!st && (n < set.connections || !set.connections)) {
		gpul_rdma_conn *c = NULL;

		st = gpul_rdma_accept(listener, set.connections ? 2 * set.connect_ms : -1, &c, err);
		if (!st && pthread_create(&threads[n++], NULL, server_main, c))
			abort();
		if (!st && !set.connections)
			status |= join_all(threads, n), n = 0;
	}
	status |= join_all(threads, n);
	gpul_rdma_listener_close(listener);
	return st ? 1 : status;
}

static int open_only(gpul_error *err)
{
	void *at = aligned_alloc(4096, (set.bytes + 4095) / 4096 * 4096);
	gpul_rdma_region *region = NULL;
	gpul_rdma_device_info info;
	gpul_status st;

	gpul_rdma_about(device, &info);
	printf("%s: %s\n", info.name, info.why);
	st = at ? gpul_rdma_register(device, at, set.bytes, GPUL_RDMA_STEPS, &region, err) : GPUL_ENOMEM;
	gpul_rdma_unregister(region);
	free(at);
	return st != GPUL_OK;
}

int main(int argc, char **argv)
{
	gpul_error err = { 0 };
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!parse(argc, argv))
		return usage();
	set.wishes.begun = begun;
	if (gpul_rdma_open(&set.desc, &device, &err)) {
		fprintf(stderr, "exchange: %s\n", err.text);
		return 1;
	}
	status = !strcmp(set.role, "serve") ? serve_all(&err) : !strcmp(set.role, "open") ? open_only(&err) : connect_all();
	if (err.status)
		fprintf(stderr, "exchange: %s\n", err.text);
	gpul_rdma_close(device);
	if (disturber)
		pthread_join(disturber, NULL);
	return status;
}
