/* owner.c — the actor that owns the memory: offers it, serves peers and executes commands. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/log.h"
#include "tests/fault/actors.h"
#include "tests/fault/count.h"
#include "tests/fault/process.h"

struct owner {
	const struct actor *how;
	int line;
	struct process process;
	gpul_mem *mem;
	gpul_ipc_server *server;
	unsigned n_refused, n_unexplained, n_logged;
	struct counts nothing; /* counts before the first offer */
	struct counts alone;   /* counts with a server and without peers */
};

static gpul_status begin_process(const struct fault *f, struct owner *o, gpul_error *err)
{
	gpul_status st = process_open(f, &o->process, err);

	if (!st && !actor_become(o->how))
		st = gpul_fail(err, GPUL_ESYS, errno, "cannot become user %u", o->how->uid);
	if (!st)
		step_reached("open");
	return st;
}

static gpul_status offer(const struct fault *f, struct owner *o, gpul_error *err)
{
	int device = 0;
	size_t bytes = o->how->bytes ? o->how->bytes : SHARED_BYTES;
	gpul_mem_desc desc = { .kind = f->kind,
			       .bytes = GPUL_IPC_CONTROL_BYTES + bytes,
			       .node = GPUL_MEM_NODE_OF_GPU,
			       .devices = &device,
			       .n_devices = 1,
			       .exportable = true };
	gpul_ipc_server_options options = { .name = o->how->name ? o->how->name : SHARE_NAME,
					    .control = true,
					    .bytes = bytes,
					    .step_timeout_ms = o->how->step_timeout_ms };
	gpul_status st = gpul_mem_create(&o->process.drv, &desc, &o->mem, err);

	if (st)
		return st;
	step_reached("created");
	st = gpul_ipc_server_create(&o->process.drv, o->mem, &options, &o->server, err);
	return st ? st : process_fill(&o->process, gpul_ipc_server_view(o->server), err);
}

static void end_lease(struct owner *o)
{
	gpul_ipc_server_destroy(o->server);
	o->server = NULL;
	step_reached("destroyed");
	gpul_mem_destroy(o->mem);
	o->mem = NULL;
}

static void count_line(void *user, gpul_log_level level, const char *module, const char *line)
{
	struct owner *o = user;

	(void)level;
	o->n_logged += strcmp(module, "ipc") == 0 && strchr(line, ':') != NULL;
}

static const char *point_of(gpul_ipc_event_kind kind)
{
	return kind == GPUL_IPC_ATTACHED ? "attached" : kind == GPUL_IPC_DETACHED ? "detach seen" : "other event";
}

/* Offer memory, sum it and end the lease, so that the driver has allocated all memory that it keeps; then count. */
static gpul_status rehearse(const struct fault *f, struct owner *o, gpul_error *err)
{
	gpul_status st = offer(f, o, err);

	if (!st)
		st = process_sums_right(&o->process, gpul_ipc_server_view(o->server), err);
	end_lease(o);
	counts_take(&o->nothing);
	return st;
}

/* Report all pending events of the server.  False: the server has failed. */
static bool serve(struct owner *o)
{
	gpul_ipc_event event;
	gpul_error err = { 0 };
	struct note n = { .command = 'v' };

	for (int rounds = 0; rounds < 100; rounds++) {
		if (gpul_ipc_server_next(o->server, 0, &event, &err))
			return false;
		if (event.kind == GPUL_IPC_NONE)
			return true;
		step_reached(point_of(event.kind));
		o->n_refused += event.kind == GPUL_IPC_REFUSED;
		o->n_unexplained += (event.kind == GPUL_IPC_REFUSED || event.kind == GPUL_IPC_PEER_DIED) && !event.why.text[0];
		if (o->how->gone_quiet)
			continue;
		n.event = (int)event.kind;
		n.value = event.pid;
		memcpy(n.text, event.why.text, sizeof event.why.text);
		note_send(o->line, &n);
	}
	return true;
}

/* Wait until all peers have detached, then check that none of their descriptors and mappings is left. */
static bool count_alone(struct owner *o, struct note *n)
{
	for (int tries = 0; tries < 1000 && gpul_ipc_server_peers(o->server, NULL, 0); tries++) {
		struct pollfd p = { .fd = gpul_ipc_server_fd(o->server), .events = POLLIN };

		poll(&p, 1, 10);
		if (!serve(o))
			break;
	}
	if (gpul_ipc_server_peers(o->server, NULL, 0))
		snprintf(n->text, sizeof n->text, "a peer is still attached");
	else if (o->n_unexplained || o->n_logged < o->n_refused)
		snprintf(n->text, sizeof n->text, "%u refused, %u log lines about refusals, %u events without a reason", o->n_refused,
			 o->n_logged, o->n_unexplained);
	else
		return counts_same(&o->alone, n->text);
	return false;
}

static bool sums(struct owner *o, struct note *n)
{
	gpul_error err = { 0 };
	gpul_status st = process_sums_right(&o->process, gpul_ipc_server_view(o->server), &err);

	memcpy(n->text, err.text, sizeof err.text);
	return st == GPUL_OK;
}

/* Execute one command; false: the command was to exit. */
static bool execute_command(struct owner *o)
{
	struct note n;

	if (!note_receive(o->line, 0, &n))
		return false;
	n.text[0] = '\0';
	n.good = true;
	switch (n.command) {
	case 'c':
		n.good = count_alone(o, &n);
		break;
	case 's':
		n.good = sums(o, &n);
		break;
	case 'k':
		step_reached("a reader runs");
		break;
	case 'l':
		n.good = actor_limit(n.value);
		break;
	case 'd':
		end_lease(o);
		break;
	default:
		return false;
	}
	return note_send(o->line, &n);
}

static int run_owner(struct owner *o)
{
	for (bool going = true; going;) {
		struct pollfd p[] = { { .fd = o->line, .events = POLLIN },
				      { .fd = o->server ? gpul_ipc_server_fd(o->server) : -1, .events = POLLIN } };

		if (poll(p, 2, -1) < 0)
			return 1;
		if (p[1].revents && !serve(o))
			return 1;
		if (p[0].revents)
			going = execute_command(o);
	}
	return 0;
}

/* Add the memory's file to the note, for holders_of(); inode 0: no file. */
static void add_file(struct owner *o, struct note *n)
{
	struct stat s;
	gpul_error err;
	int fd;

	if (gpul_mem_export_fd(o->mem, &fd, &err) == GPUL_OK && fstat(fd, &s) == 0 && S_ISREG(s.st_mode)) {
		n->value = (int64_t)s.st_ino;
		n->native = (int)s.st_dev;
	}
}

int owner_role(const struct fault *f, int line, const void *arg)
{
	struct owner o = { .how = arg, .line = line };
	struct note n = { .command = 'f' };
	gpul_error err = { 0 };
	gpul_status st;
	int status = actor_begin(arg);

	if (status >= 0)
		return status;
	status = 1;
	gpul_log_set_level(GPUL_LOG_INFO);
	gpul_log_to(count_line, &o);
	st = begin_process(f, &o, &err);
	if (!st && !o.how->dies)
		st = rehearse(f, &o, &err);
	if (!st)
		st = offer(f, &o, &err);
	if (st) {
		/* If a driver other than NVIDIA's could not be opened, fail the test with GPUL_EINVAL. */
		n.status = o.process.context.drv || f->driver == GPUL_DRIVER_NVIDIA ? st : GPUL_EINVAL;
		n.native = err.native;
		memcpy(n.text, err.text, sizeof err.text);
		note_send(line, &n);
	} else {
		n.command = 'r';
		add_file(&o, &n);
		counts_take(&o.alone);
		note_send(line, &n);
		status = run_owner(&o);
	}
	end_lease(&o);
	if (!st) {
		n = (struct note){ .command = 'e' };
		n.good = counts_same(&o.nothing, n.text);
		note_send(line, &n);
	}
	process_close(&o.process);
	return status;
}
