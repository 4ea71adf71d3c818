/* part.c — the host launcher: starts the ranks of one host, and exchanges messages with the launcher. */
#include "comm/bootstrap/agents/launch_hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "comm/bootstrap/agents/frames_internal.h"
#include "comm/bootstrap/job_internal.h"
#include "comm/bootstrap/launch/launch_internal.h"
#include "core/clock.h"
#include "core/file/io.h"

enum { OUTPUT_BYTES = 8192 };

struct part {
	struct launch l;
	struct frame_reader orders;
	unsigned char payload[FRAME_BYTES];
	int output;                        /* descriptor for frames to the launcher */
	int first, n;                      /* the ranks of this host: n ranks from `first` on */
	int pipes[GPUL_COMM_MAX_RANKS][2]; /* read ends of the ranks' standard output and error; -1: at end of file */
	bool reported[GPUL_COMM_MAX_RANKS];
	char **argv;
	struct frame_texts texts; /* the payload of the JOB frame; argv points into it */
	uint64_t received_ns, beat_ns;
	bool alone; /* the launcher has ended, so nobody reads the output of this process */
};

static void tell(struct part *p, enum frame_type type, int number, const void *payload, size_t n_bytes)
{
	p->alone |= !gpul_frame_write(p->output, type, number, payload, n_bytes, true);
}

/* ---- frames from the launcher ------------------------------------------------------------------------------------- */

/* Answer an ASK frame with an address of this host, at which rank 0 listens if it runs here. */
static void answer_ask(struct part *p, size_t n_interface)
{
	char interface[GPUL_COMM_HOST_BYTES] = "", address[GPUL_COMM_ADDRESS_BYTES] = "";
	struct frame_texts t = { .at = NULL };
	gpul_error why = { 0 };

	snprintf(interface, sizeof interface, "%.*s", (int)n_interface, (const char *)p->payload);
	(void)gpul_comm_reserve_address(interface, address, &why);
	gpul_frame_add_text(&t, address);
	gpul_frame_add_text(&t, why.text);
	tell(p, FRAME_READY, 0, t.at, t.n);
	free(t.at);
}

/* Handle a frame which reports that a rank on another host has ended. */
static void hear_end(struct part *p, int rank, size_t n_bytes)
{
	struct frame_end e;

	if (n_bytes != sizeof e || rank < 0 || rank >= p->l.job.size || !p->l.ranks[rank].elsewhere || p->l.ranks[rank].ended)
		return;
	memcpy(&e, p->payload, sizeof e);
	e.text[sizeof e.text - 1] = '\0';
	p->l.ranks[rank].pid = e.pid;
	p->l.ranks[rank].forced = e.forced;
	gpul_launch_note_end(&p->l, rank, e.status, e.text);
}

/* Read a JOB frame: numbers, names, variables, arguments. send_job() in launch_hosts.c writes the fields in this order. */
static bool take_job(struct part *p, size_t n_bytes)
{
	struct frame_texts *t = &p->texts;
	int n_variables, n_arguments;
	const char *address, *secret, *folder;

	t->at = malloc(n_bytes + 1);
	if (!t->at)
		return false;
	memcpy(t->at, p->payload, n_bytes);
	t->n = n_bytes;
	p->l.job.size = gpul_frame_next_number(t);
	p->first = gpul_frame_next_number(t);
	p->n = gpul_frame_next_number(t);
	p->l.grace_ms = gpul_frame_next_number(t);
	snprintf(p->l.job.name, sizeof p->l.job.name, "%s", gpul_frame_next_text(t));
	address = gpul_frame_next_text(t);
	secret = gpul_frame_next_text(t);
	folder = gpul_frame_next_text(t);
	if (t->failed || p->l.job.size < 1 || p->l.job.size > GPUL_COMM_MAX_RANKS || p->first < 0 || p->n < 1 ||
	    p->first > p->l.job.size - p->n)
		return false;
	if (chdir(folder))
		fprintf(stderr,
			"gpuload: folder %s does not exist on this host: the ranks start in the working directory of "
			"the agent\n",
			folder);
	for (n_variables = gpul_frame_next_number(t); n_variables > 0 && !t->failed; n_variables--)
		(void)putenv((char *)(uintptr_t)gpul_frame_next_text(t));
	if (*address) {
		setenv("GPULOAD_COMM_ADDRESS", address, 1);
		setenv("GPULOAD_COMM_SECRET", secret, 1);
	} else {
		unsetenv("GPULOAD_COMM_ADDRESS");
		unsetenv("GPULOAD_COMM_SECRET");
	}
	n_arguments = gpul_frame_next_number(t);
	if (t->failed || n_arguments < 1)
		return false;
	p->argv = calloc((size_t)n_arguments + 1, sizeof *p->argv);
	for (int i = 0; p->argv && i < n_arguments; i++)
		p->argv[i] = (char *)(uintptr_t)gpul_frame_next_text(t);
	return p->argv && !t->failed;
}

/* Handle the frames that have arrived from the launcher, at most up to a JOB, which sets *job.  Returns false if a frame is
 * malformed or the launcher has ended. */
static bool receive_from_launcher(struct part *p, bool *job)
{
	struct frame_head head;
	frame_got got;

	if (!gpul_frame_fill(&p->orders))
		return false;
	p->received_ns = gpul_clock_ns();
	while ((got = gpul_frame_take(&p->orders, &head, p->payload)) == FRAME_GOT_ONE) {
		switch (head.type) {
		case FRAME_ASK:
			answer_ask(p, head.n_bytes);
			break;
		case FRAME_JOB:
			if (p->argv || !take_job(p, head.n_bytes))
				return false;
			*job = true;
			return true;
		case FRAME_END:
			hear_end(p, head.number, head.n_bytes);
			break;
		case FRAME_SIGNAL:
			gpul_launch_pass_signal(&p->l, head.number, false);
			break;
		case FRAME_BEAT:
			break;
		default:
			return false;
		}
	}
	return got == FRAME_GOT_NOTHING;
}

/* ---- the ranks ---------------------------------------------------------------------------------------------------- */

/* Start one rank, whose standard output and error go to two pipes. */
static gpul_status start_rank(struct part *p, int rank, int null, int *exit_status, gpul_error *err)
{
	int out[2] = { -1, -1 }, errors[2] = { -1, -1 };
	gpul_status st = GPUL_OK;

	if (pipe2(out, O_CLOEXEC) || pipe2(errors, O_CLOEXEC))
		st = gpul_fail(err, GPUL_ESYS, errno, "cannot start rank %d: pipe() failed: %s", rank, strerror(errno));
	if (!st) {
		const struct rank_files files = { null, out[1], errors[1] };

		p->l.job.rank = rank;
		st = gpul_launch_start(p->argv, &files, &p->l.job, p->l.notice_fd, &p->l.mask_before, &p->l.ranks[rank], exit_status, err);
	}
	close(out[1]);
	close(errors[1]);
	if (st) {
		close(out[0]);
		close(errors[0]);
		return st;
	}
	p->pipes[rank][0] = out[0];
	p->pipes[rank][1] = errors[0];
	(void)fcntl(out[0], F_SETFL, O_NONBLOCK);
	(void)fcntl(errors[0], F_SETFL, O_NONBLOCK);
	return GPUL_OK;
}

static gpul_status start_ranks(struct part *p, int *exit_status, gpul_error *err)
{
	const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	gpul_status st = null < 0 ? gpul_fail(err, GPUL_ESYS, errno, "cannot open /dev/null: %s", strerror(errno)) : GPUL_OK;

	for (int r = 0; r < p->l.job.size; r++)
		p->l.ranks[r].elsewhere = r < p->first || r >= p->first + p->n;
	for (int r = p->first; !st && r < p->first + p->n; r++)
		st = start_rank(p, r, null, exit_status, err);
	close(null);
	return st;
}

/* Send output of a rank to the launcher.  Returns true as long as there may be more. */
static bool relay(struct part *p, int rank, int which)
{
	int *fd = &p->pipes[rank][which];
	char bytes[OUTPUT_BYTES];
	const ssize_t n = read(*fd, bytes, sizeof bytes);

	if (n > 0) {
		tell(p, which ? FRAME_ERR : FRAME_OUT, rank, bytes, (size_t)n);
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	close(*fd);
	*fd = -1;
	return false;
}

/* Report the ranks that have ended.  The output that a rank wrote before its end is sent first. */
static void report_ends(struct part *p)
{
	for (int r = p->first; r < p->first + p->n; r++) {
		const struct rank_process *process = &p->l.ranks[r];
		struct frame_end e = { .pid = (int32_t)process->pid, .status = process->status, .forced = process->forced };

		if (!process->ended || p->reported[r])
			continue;
		for (int which = 0; which < 2; which++)
			while (p->pipes[r][which] >= 0 && relay(p, r, which))
				;
		tell(p, FRAME_END, r, &e, sizeof e);
		p->reported[r] = true;
	}
}

/* Kill the ranks, because the launcher has ended or is silent. */
static void lose_launcher(struct part *p)
{
	p->alone = true;
	gpul_launch_kill(&p->l);
}

static void wait_and_handle(struct part *p)
{
	struct pollfd fds[2 + 2 * GPUL_COMM_MAX_RANKS];
	struct {
		int rank, which;
	} of[2 * GPUL_COMM_MAX_RANKS];
	struct signalfd_siginfo s;
	const int next = gpul_launch_next_stage(&p->l);
	bool job = false;
	nfds_t n = 2;

	fds[0] = (struct pollfd){ .fd = p->l.signals, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = p->alone ? -1 : p->orders.fd, .events = POLLIN };
	for (int r = p->first; r < p->first + p->n; r++)
		for (int which = 0; which < 2; which++)
			if (p->pipes[r][which] >= 0) {
				of[n - 2].rank = r;
				of[n - 2].which = which;
				fds[n++] = (struct pollfd){ .fd = p->pipes[r][which], .events = POLLIN };
			}
	if (poll(fds, n, next >= 0 && next < LAUNCH_BEAT_MS ? next : LAUNCH_BEAT_MS) > 0) {
		if (fds[0].revents && read(p->l.signals, &s, sizeof s) == sizeof s && s.ssi_signo != SIGCHLD)
			gpul_launch_pass_signal(&p->l, (int)s.ssi_signo, s.ssi_code == SI_KERNEL);
		for (nfds_t i = 2; i < n; i++)
			if (fds[i].revents)
				(void)relay(p, of[i - 2].rank, of[i - 2].which);
		if (fds[1].revents && !receive_from_launcher(p, &job))
			lose_launcher(p);
	} else if (!p->alone && gpul_clock_ns() - p->received_ns > (uint64_t)LAUNCH_SILENCE_MS * 1000000) {
		lose_launcher(p);
	}
	if (!p->alone && gpul_clock_ns() - p->beat_ns > (uint64_t)LAUNCH_BEAT_MS * 1000000) {
		p->beat_ns = gpul_clock_ns();
		tell(p, FRAME_BEAT, 0, NULL, 0);
	}
	if (p->alone && p->l.stage != STAGE_KILLED)
		lose_launcher(p);
}

static void run_ranks(struct part *p)
{
	gpul_error why = { 0 };
	int exit_status = 1;

	gpul_launch_adopt(&p->l.orphans);
	if (start_ranks(p, &exit_status, &why)) {
		tell(p, FRAME_FAILED, exit_status, why.text, strlen(why.text));
		gpul_launch_kill(&p->l);
	}
	while (gpul_launch_reap(&p->l) > 0) {
		report_ends(p);
		wait_and_handle(p);
	}
	gpul_launch_end_orphans(&p->l.orphans);
	report_ends(p);
	for (int r = p->first; r < p->first + p->n; r++)
		for (int which = 0; which < 2; which++)
			if (p->pipes[r][which] >= 0)
				close(p->pipes[r][which]);
	tell(p, FRAME_DONE, 0, NULL, 0);
	gpul_launch_remove_files(p->l.job.name);
}

/* Wait for the JOB frame.  Returns false if the launcher has ended, for example because another host cannot be reached. */
static bool await_job(struct part *p)
{
	bool job = false;

	while (!job) {
		struct pollfd ready = { .fd = p->orders.fd, .events = POLLIN };

		if (poll(&ready, 1, LAUNCH_SILENCE_MS) <= 0 || !receive_from_launcher(p, &job))
			return false;
	}
	return true;
}

/* Libraries may print to standard output, so frames are written to a duplicate of it, and standard output is redirected to
 * standard error. */
static gpul_status open_output(struct part *p, gpul_error *err)
{
	static const char greeting[] = LAUNCH_GREETING GPUL_VERSION "\n";

	p->output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	p->orders.fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	if (p->output < 0 || p->orders.fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return gpul_fail(err, GPUL_ESYS, errno, "cannot set up standard input and output: %s", strerror(errno));
	if (!gpul_write_all(p->output, greeting, sizeof greeting - 1))
		return gpul_fail(err, GPUL_ESYS, errno, "cannot write to standard output: %s", strerror(errno));
	return GPUL_OK;
}

gpul_status gpul_comm_launch_part(int *exit_status, gpul_error *err)
{
	struct part *p = calloc(1, sizeof *p);
	gpul_status st;

	*exit_status = 1;
	if (!p)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a launch");
	p->l.failed = p->output = p->orders.fd = -1;
	p->received_ns = gpul_clock_ns();
	(void)signal(SIGPIPE, SIG_IGN); /* start.c restores the default action in the ranks */
	for (int r = 0; r < GPUL_COMM_MAX_RANKS; r++)
		p->pipes[r][0] = p->pipes[r][1] = -1;
	st = open_output(p, err);
	if (!st && await_job(p)) {
		st = gpul_notice_create(&p->l.notice_fd, &p->l.notice, err);
		st = st ? st : gpul_launch_take_signals(&p->l, err);
		if (!st) {
			run_ranks(p);
			*exit_status = p->alone;
			gpul_launch_restore_signals(&p->l);
		}
		gpul_notice_unmap(p->l.notice);
	}
	close(p->output);
	close(p->orders.fd);
	free(p->argv);
	/* p->texts.at is not freed, because the environment points into it */
	free(p);
	return st;
}
