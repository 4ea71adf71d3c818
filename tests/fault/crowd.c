/* crowd.c — scenarios: many concurrent attachers, and processes that run out of descriptors. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tests/fault/actors.h"
#include "tests/fault/hostile/raw.h"

enum { N_CROWD = 64, MOST_MORE = 8 };

/* All attachers concurrently attach and detach f->times times. */
static bool all_attach_repeatedly(struct fault *f, const struct child crowd[N_CROWD])
{
	struct note n = { .command = 'm', .value = f->times };

	for (int i = 0; i < N_CROWD; i++)
		if (!note_send(crowd[i].line, &n))
			return fault_failed(f, "attacher %d has ended", i);
	for (int i = 0; i < N_CROWD; i++)
		if (!note_receive(crowd[i].line, -1, &n) || !n.good)
			return fault_failed(f, "attacher %d: %.400s", i, n.text);
	for (int i = 0; i < N_CROWD; i++)
		if (!must(f, &crowd[i], 'c', 0))
			return false;
	return true;
}

enum fault_verdict storm(struct fault *f)
{
	struct actor how = { .gone_quiet = true };
	struct child owner = { 0 }, crowd[N_CROWD] = { 0 };
	bool good = owner_start(f, &how, &owner);

	for (int i = 0; i < N_CROWD; i++)
		good = good && attacher_start(f, &how, &crowd[i]) && must(f, &crowd[i], 'm', 1) && must(f, &crowd[i], 'b', 0);
	good = good && all_attach_repeatedly(f, crowd) && must(f, &owner, 'c', 0) && must(f, &owner, 's', 0) && actor_end(f, &owner);
	for (int i = 0; i < N_CROWD; i++) {
		good = good && actor_end(f, &crowd[i]);
		child_kill(&crowd[i]);
	}
	child_kill(&owner);
	return good ? FAULT_OK : FAULT_FAILED;
}

/* ---- few descriptors ------------------------------------------------------------------------ */

/* True when c attaches and detaches, or reports the reason why it cannot. */
static bool attaches_or_reports_why(struct fault *f, const struct child *c)
{
	struct note n;

	if (!child_do(c, 'a', 200, &n))
		return fault_failed(f, "no answer");
	if (n.good)
		return must(f, c, 'x', 0);
	return n.text[0] || fault_failed(f, "refused without a reason");
}

static bool run_with_few_descriptors(struct fault *f, const struct child *who, int n_more, const struct child *attacher)
{
	if (!must(f, who, 'l', n_more) || !attaches_or_reports_why(f, attacher) || !must(f, who, 'l', -1))
		return false;
	return must_attach(f, attacher) && must(f, attacher, 's', 0) && must(f, attacher, 'x', 0) && must(f, attacher, 'c', 0);
}

/* Send an owner a message with more descriptors than it has room for: the message is truncated and refused. */
static bool send_too_many_fds(struct fault *f, const struct child *owner, int n_more, const struct wire_hello *hello)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), fds[20], s;
	struct wire_refused why;
	bool good;

	for (int i = 0; i < 20; i++)
		fds[i] = null;
	s = raw_connect(f);
	good = must(f, owner, 'l', n_more) && s >= 0 && raw_send(s, hello, sizeof *hello, fds, 20);
	good = good && must(f, owner, 'l', -1) && raw_dropped(s, &why);
	close(s);
	close(null);
	return good || fault_failed(f, "an owner with room for %d descriptors accepted a message with 20", n_more);
}

enum fault_verdict few_descriptors(struct fault *f)
{
	struct actor how = { .gone_quiet = true, .step_timeout_ms = fault_step_ms(f, 100) };
	struct child owner = { 0 }, attacher = { 0 };
	struct wire_hello hello;
	struct wire_offer offer;
	bool good = raw_record(f, &hello, &offer) && owner_start(f, &how, &owner) && attacher_start(f, &how, &attacher) &&
		    must_attach(f, &attacher) && must(f, &attacher, 's', 0) && must(f, &attacher, 'x', 0) && must(f, &attacher, 'b', 0);

	for (unsigned i = 0; good && i < f->times; i++)
		for (int n_more = 0; good && n_more < MOST_MORE; n_more++)
			good = run_with_few_descriptors(f, &attacher, n_more, &attacher) &&
			       run_with_few_descriptors(f, &owner, n_more, &attacher) && send_too_many_fds(f, &owner, n_more, &hello);
	good = good && must(f, &owner, 'c', 0) && actor_end(f, &owner) && actor_end(f, &attacher);
	child_kill(&owner);
	child_kill(&attacher);
	return good ? FAULT_OK : FAULT_FAILED;
}
