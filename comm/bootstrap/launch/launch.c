/* launch.c — the launcher: starts all ranks, forwards signals, and ends all ranks when one fails. */
#include "comm/bootstrap/launch/launch_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void run_until_all_ended(struct launch *l)
{
	while (gpul_launch_reap(l) > 0) {
		struct pollfd ready = { .fd = l->signals, .events = POLLIN };
		struct signalfd_siginfo s;

		/* A signal from the terminal has already reached the ranks, because they are in the same process group. */
		if (poll(&ready, 1, gpul_launch_next_stage(l)) > 0 && read(l->signals, &s, sizeof s) == sizeof s && s.ssi_signo != SIGCHLD)
			gpul_launch_pass_signal(l, (int)s.ssi_signo, s.ssi_code == SI_KERNEL);
	}
}

static gpul_status make_job(const gpul_comm_launch_options *o, gpul_comm_job *out, gpul_error *err)
{
	uint64_t random;

	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return gpul_fail(err, GPUL_ESYS, errno, "getrandom: %s", strerror(errno));
	*out = (gpul_comm_job){ .size = o->n, .source = "gpuload" };
	snprintf(out->name, sizeof out->name, "comm-%016llx", (unsigned long long)random);
	return gpul_comm_job_check(out, err);
}

gpul_status gpul_comm_launch(const gpul_comm_launch_options *o, int *exit_status, gpul_error *err)
{
	struct launch l = { .failed = -1, .grace_ms = o->grace_ms > 0 ? o->grace_ms : GPUL_COMM_GRACE_MS };
	const struct rank_files same = { -1, -1, -1 };
	int n_started = 0;
	gpul_error why = { 0 };
	gpul_status st;

	*exit_status = 1;
	if (!o->argv || !o->argv[0])
		return gpul_fail(err, GPUL_EINVAL, 0, "the program to start is missing");
	st = make_job(o, &l.job, err);
	if (!st)
		st = gpul_notice_create(&l.notice_fd, &l.notice, err);
	if (st)
		return st;
	st = gpul_launch_take_signals(&l, err);
	if (st)
		goto free_notice;
	gpul_launch_adopt(&l.orphans);
	while (!st && n_started < o->n) {
		l.job.rank = n_started;
		st = gpul_launch_start(o->argv, &same, &l.job, l.notice_fd, &l.mask_before, &l.ranks[n_started], exit_status, &why);
		n_started += !st;
	}
	if (st)
		gpul_launch_kill(&l);
	run_until_all_ended(&l);
	gpul_launch_end_orphans(&l.orphans);
	gpul_launch_restore_signals(&l);
	gpul_launch_remove_files(l.job.name);
	st = st ? gpul_fail(err, st, why.native, "%s", why.text) : gpul_launch_result(&l, exit_status, err);
free_notice:
	gpul_notice_unmap(l.notice);
	close(l.notice_fd);
	return st;
}
