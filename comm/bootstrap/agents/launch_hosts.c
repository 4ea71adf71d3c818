/* launch_hosts.c — the launcher over several hosts: connects to all of them, sends them the job, and waits until all ranks have ended. */
#include "comm/bootstrap/agents/launch_hosts_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "comm/bootstrap/job_internal.h"
#include "core/clock.h"

/* Time, after the grace period, in which the host launchers must report that they have killed their ranks. */
enum { REPORT_MS = 5000 };

static bool is_open(const struct host_part *p)
{
	return p->agent.pid && !p->done && !p->lost;
}

/* ---- events ------------------------------------------------------------------------------------------------------- */

static void send_all(struct hosts_launch *h, enum frame_type type, int number)
{
	for (int i = 0; i < h->n_parts; i++)
		if (is_open(&h->parts[i]))
			(void)gpul_frame_write(h->parts[i].agent.to, type, number, NULL, 0, false);
}

/* End all host launchers.  A host launcher on another host kills its ranks when its input is closed; the host launcher on this
 * machine and all agents are killed. */
static void end_all(struct hosts_launch *h)
{
	for (int i = 0; i < h->n_parts; i++) {
		struct host_part *p = &h->parts[i];

		for (int r = p->first; is_open(p) && r < p->first + p->n; r++)
			if (h->l.ranks[r].started && !h->l.ranks[r].ended) {
				h->l.ranks[r].forced = true;
				gpul_launch_note_end(&h->l, r, SIGKILL, "");
			}
		p->lost |= !p->done;
		gpul_agent_end(&p->agent);
	}
}

static void hear_signals(struct hosts_launch *h)
{
	struct signalfd_siginfo s;

	while (read(h->l.signals, &s, sizeof s) == sizeof s) {
		if (s.ssi_signo == SIGCHLD)
			continue;
		if (h->l.stage >= STAGE_GRACE)
			end_all(h);
		else
			send_all(h, FRAME_SIGNAL, (int)s.ssi_signo);
		gpul_launch_pass_signal(&h->l, (int)s.ssi_signo, true);
	}
}

static void hear_agent(struct host_part *p)
{
	char bytes[HELD_BYTES];
	const ssize_t n = read(p->agent.err, bytes, sizeof bytes);

	if (n > 0) {
		gpul_relay_agent(p, bytes, (size_t)n);
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		close(p->agent.err);
		p->agent.err = -1;
	}
}

static void keep_time(struct hosts_launch *h)
{
	const uint64_t now = gpul_clock_ns();

	for (int i = 0; i < h->n_parts; i++)
		if (is_open(&h->parts[i]) && h->parts[i].ready && now - h->parts[i].received_ns > (uint64_t)LAUNCH_SILENCE_MS * 1000000)
			gpul_hosts_lose(h, &h->parts[i], "gpuload on this host no longer answers");
	if (now - h->beat_ns < (uint64_t)LAUNCH_BEAT_MS * 1000000)
		return;
	h->beat_ns = now;
	send_all(h, FRAME_BEAT, 0);
}

/* Wait for the next event, at most most_ms, and handle all pending events. */
static void wait_and_handle(struct hosts_launch *h, int most_ms)
{
	struct pollfd fds[1 + 2 * GPUL_COMM_MAX_RANKS];
	nfds_t n = 1;

	fds[0] = (struct pollfd){ .fd = h->l.signals, .events = POLLIN };
	for (int i = 0; i < h->n_parts; i++) {
		const bool open = is_open(&h->parts[i]);

		fds[n++] = (struct pollfd){ .fd = open ? h->parts[i].agent.from : -1, .events = POLLIN };
		fds[n++] = (struct pollfd){ .fd = open ? h->parts[i].agent.err : -1, .events = POLLIN };
	}
	if (poll(fds, n, most_ms) > 0) {
		const uint64_t before = gpul_clock_ns();

		for (int i = 0; i < h->n_parts; i++) {
			if (fds[2 + 2 * i].revents)
				hear_agent(&h->parts[i]);
			if (fds[1 + 2 * i].revents && is_open(&h->parts[i]))
				gpul_hosts_receive(h, &h->parts[i]);
		}
		/* Time during which this launcher's own output was blocked does not count as silence of a host. */
		for (int i = 0; i < h->n_parts; i++)
			if (h->parts[i].received_ns < before)
				h->parts[i].received_ns += gpul_clock_ns() - before;
		if (fds[0].revents)
			hear_signals(h);
	}
	keep_time(h);
}

/* ---- the stages of a launch --------------------------------------------------------------------------------------- */

static gpul_status start_parts(struct hosts_launch *h, gpul_error *err)
{
	const gpul_comm_launch_hosts_options *o = h->o;
	const char *interface = o->interface ? o->interface : "";
	gpul_status st = GPUL_OK;
	int first = 0;

	for (int i = 0; !st && i < h->n_parts; i++) {
		struct host_part *p = &h->parts[i];

		p->name = o->hosts.at[i].name;
		p->first = first;
		p->n = o->hosts.at[i].n_ranks;
		first += p->n;
		p->here = gpul_agent_is_here(p->name);
		st = gpul_agent_start(o, p->name, p->here, &h->l.mask_before, &p->agent, err);
		p->in.fd = p->agent.from;
		p->received_ns = gpul_clock_ns();
		if (!st)
			(void)gpul_frame_write(p->agent.to, FRAME_ASK, 0, interface, strlen(interface), false);
	}
	return st;
}

static gpul_status await_ready(struct hosts_launch *h, gpul_error *err)
{
	const int limit_ms = h->o->start_ms > 0 ? h->o->start_ms : GPUL_COMM_START_MS;
	const uint64_t deadline = gpul_clock_ns() + (uint64_t)limit_ms * 1000000;

	for (;;) {
		const struct host_part *slow = NULL;
		const uint64_t now = gpul_clock_ns();
		char last[120];

		for (int i = 0; i < h->n_parts && !slow; i++)
			slow = h->parts[i].ready ? NULL : &h->parts[i];
		if (h->why.status)
			return gpul_fail(err, h->why.status, h->why.native, "%s", h->why.text);
		if (h->l.stage != STAGE_RUNNING)
			return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "interrupted by a signal before all hosts had answered");
		if (!slow)
			return GPUL_OK;
		gpul_relay_last_line(slow, last, sizeof last);
		if (now >= deadline)
			return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "host %.60s: %s%s%s has not answered within %d ms%s%s", slow->name,
					 slow->here ? "gpuload" : "the agent '",
					 slow->here    ? ""
					 : h->o->agent ? h->o->agent
						       : GPUL_COMM_AGENT,
					 slow->here ? "" : "'", limit_ms, last[0] ? ": " : "", last);
		wait_and_handle(h, (int)((deadline - now) / 1000000 + 1) < LAUNCH_BEAT_MS ? (int)((deadline - now) / 1000000 + 1)
											  : LAUNCH_BEAT_MS);
	}
}

/* True for a variable of this process that is passed to every host. */
static bool is_common(const char *variable)
{
	static const char *const own[] = { "GPULOAD_COMM_RANK=",   "GPULOAD_COMM_SIZE=",        "GPULOAD_COMM_JOB=",
					   "GPULOAD_COMM_NOTICE=", "GPULOAD_COMM_HOST=",        "GPULOAD_COMM_ADDRESS=",
					   "GPULOAD_COMM_SECRET=", "GPULOAD_COMM_NET_ADDRESS=", "GPULOAD_RUNTIME_DIR=" };

	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (!strncmp(variable, own[i], strlen(own[i])))
			return false;
	return !strncmp(variable, "GPULOAD_", 8);
}

/* Send the JOB frame to a host launcher. take_job() in part.c reads the fields in this order. */
static gpul_status send_job(struct hosts_launch *h, struct host_part *p, const char *address, const char *secret, gpul_error *err)
{
	struct frame_texts t = { .at = NULL };
	char folder[4096] = "";
	int n_variables = 0, n_arguments = 0;
	gpul_status st = GPUL_OK;

	for (char **v = environ; *v; v++)
		n_variables += is_common(*v);
	while (h->o->argv[n_arguments])
		n_arguments++;
	gpul_frame_add_number(&t, h->l.job.size);
	gpul_frame_add_number(&t, p->first);
	gpul_frame_add_number(&t, p->n);
	gpul_frame_add_number(&t, h->l.grace_ms);
	gpul_frame_add_text(&t, h->l.job.name);
	gpul_frame_add_text(&t, address);
	gpul_frame_add_text(&t, secret);
	gpul_frame_add_text(&t, getcwd(folder, sizeof folder) ? folder : "/");
	gpul_frame_add_number(&t, n_variables);
	for (char **v = environ; *v; v++)
		if (is_common(*v))
			gpul_frame_add_text(&t, *v);
	gpul_frame_add_number(&t, n_arguments);
	for (int i = 0; i < n_arguments; i++)
		gpul_frame_add_text(&t, h->o->argv[i]);
	if (t.failed)
		st = gpul_fail(err, GPUL_EINVAL, 0, "the arguments and the variables GPULOAD_* have more than %d bytes", FRAME_BYTES);
	else if (!gpul_frame_write(p->agent.to, FRAME_JOB, 0, t.at, t.n, false))
		gpul_hosts_lose(h, p, "cannot send the job to the agent: it has closed its input");
	for (int r = p->first; !st && r < p->first + p->n && !p->lost; r++)
		h->l.ranks[r].started = true;
	free(t.at);
	return st;
}

static gpul_status send_jobs(struct hosts_launch *h, gpul_error *err)
{
	const char *address = h->n_parts < 2 ? "" : h->o->address ? h->o->address : h->parts[0].address;
	char secret[GPUL_COMM_SECRET_BYTES] = "";
	gpul_status st = GPUL_OK;

	if (h->n_parts > 1 && !*address)
		return gpul_fail(err, GPUL_ESYS, 0, "host %.60s has no address at which other hosts can reach rank 0: %.150s",
				 h->parts[0].name, h->parts[0].no_address);
	if (h->n_parts > 1)
		st = gpul_comm_make_secret(secret, err);
	for (int i = 0; !st && i < h->n_parts; i++)
		st = send_job(h, &h->parts[i], address, secret, err);
	return st;
}

static void await_end(struct hosts_launch *h)
{
	for (;;) {
		const int next = gpul_launch_next_stage(&h->l);
		bool open = false;

		if (h->l.stage >= STAGE_TERMINATED)
			end_all(h); /* a host launcher has not reported in time */
		/* a host is lost, or cannot start the program: the ranks of the other hosts get the grace period */
		if (h->why.status && h->l.stage == STAGE_RUNNING)
			gpul_launch_pass_signal(&h->l, SIGTERM, true);
		for (int i = 0; i < h->n_parts; i++)
			open |= is_open(&h->parts[i]);
		if (!open)
			return;
		wait_and_handle(h, next >= 0 && next < LAUNCH_BEAT_MS ? next : LAUNCH_BEAT_MS);
	}
}

static gpul_status run_launch(struct hosts_launch *h, gpul_error *err)
{
	gpul_status st = start_parts(h, err);

	st = st ? st : await_ready(h, err);
	st = st ? st : send_jobs(h, err);
	if (!st)
		await_end(h);
	end_all(h);
	if (st)
		return st;
	if (h->why.status)
		return gpul_fail(err, h->why.status, h->why.native, "%s", h->why.text);
	return gpul_launch_result(&h->l, &h->exit_status, err);
}

static gpul_status prepare(struct hosts_launch *h, gpul_error *err)
{
	const gpul_comm_launch_hosts_options *o = h->o;
	uint64_t random;

	if (!o->argv || !o->argv[0] || o->hosts.n < 1)
		return gpul_fail(err, GPUL_EINVAL, 0, "the program to start is missing, or the list of hosts is empty");
	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return gpul_fail(err, GPUL_ESYS, errno, "getrandom: %s", strerror(errno));
	h->l.job = (gpul_comm_job){ .size = o->hosts.n_ranks, .source = "gpuload" };
	snprintf(h->l.job.name, sizeof h->l.job.name, "comm-%016llx", (unsigned long long)random);
	h->l.failed = -1;
	h->l.grace_ms = o->grace_ms > 0 ? o->grace_ms : GPUL_COMM_GRACE_MS;
	h->l.report_ms = REPORT_MS;
	h->exit_status = 1;
	for (int i = 0, r = 0; i < o->hosts.n; i++)
		for (int k = 0; k < o->hosts.at[i].n_ranks; k++, r++) {
			h->l.ranks[r].elsewhere = true;
			h->l.ranks[r].host = o->hosts.n > 1 ? o->hosts.at[i].name : NULL;
		}
	h->n_parts = o->hosts.n;
	h->parts = calloc((size_t)h->n_parts, sizeof *h->parts);
	return h->parts ? GPUL_OK : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %d hosts", h->n_parts);
}

gpul_status gpul_comm_launch_hosts(const gpul_comm_launch_hosts_options *o, int *exit_status, gpul_error *err)
{
	struct hosts_launch *h = calloc(1, sizeof *h);
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	gpul_status st;

	*exit_status = 1;
	if (!h)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a launch");
	h->o = o;
	st = prepare(h, err);
	st = st ? st : gpul_launch_take_signals(&h->l, err);
	if (!st) {
		sigaction(SIGPIPE, &ignore, &before);
		gpul_launch_adopt(&h->l.orphans);
		st = run_launch(h, err);
		gpul_launch_end_orphans(&h->l.orphans);
		gpul_launch_restore_signals(&h->l);
		sigaction(SIGPIPE, &before, NULL);
		*exit_status = h->exit_status;
	}
	free(h->parts);
	free(h);
	return st;
}
