/* elsewhere.c — scenarios: processes of other users, which must be refused, and processes in other namespaces, which
 * must be accepted. */
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fault/actors.h"
#include "tests/fault/hostile/raw.h"

enum { NOBODY = 65534 };

/* ---- other users ---------------------------------------------------------------------------- */

static bool is_refused(struct fault *f, const struct actor *how, const char *what)
{
	struct child c;
	struct note n;
	bool good;

	if (!attacher_start(f, how, &c))
		return false;
	if (!child_do(&c, 'a', FAULT_WAIT_MS, &n))
		good = fault_failed(f, "%s: no answer", what);
	else if (n.command != 'a')
		good = fault_failed(f, "%s: %s", what, n.text);
	else if (n.good || n.native == ETIMEDOUT || !n.text[0])
		good = fault_failed(f, "%s: %s", what, n.good ? "attached" : n.text);
	else
		good = actor_end(f, &c);
	child_kill(&c);
	return good;
}

/* Connect by system calls, because the library would not connect.  Returns 0 if the connection is refused with a reason. */
static int stranger_role(const struct fault *f, int line, const void *arg)
{
	struct wire_refused why;
	int s;

	(void)line;
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		return 2;
	s = raw_connect(f);
	if (s < 0)
		return 3;
	raw_send(s, arg, sizeof(struct wire_hello), NULL, 0); /* fails if the connection was already refused */
	return raw_dropped(s, &why) && why.status && why.text[0] ? 0 : 4;
}

static bool owner_refuses(struct fault *f, const struct child *owner, const struct wire_hello *hello)
{
	struct child stranger;
	struct note n;
	int status;

	if (!child_start(f, stranger_role, hello, &stranger))
		return false;
	status = child_end(&stranger, FAULT_WAIT_MS);
	if (status)
		return fault_failed(f, "another user's connection was not refused: wait status %#x", status);
	if (!note_receive(owner->line, FAULT_WAIT_MS, &n) || n.command != 'v' || n.event != GPUL_IPC_REFUSED)
		return fault_failed(f, "the owner did not report that it refused another user");
	return strstr(n.text, "65534") || fault_failed(f, "the reason does not name the user: %.300s", n.text);
}

/* Make the folder and the socket accessible to all users, so that only the owning process, which checks the user id, refuses others. */
static bool open_to_all(const struct fault *f, const char *path)
{
	return chmod(f->folder, 0777) == 0 && chmod(path, 0777) == 0;
}

static bool try_users(struct fault *f, const struct wire_hello *hello)
{
	char path[108];
	struct actor ours = { 0 }, theirs = { .uid = NOBODY }, theirs_by_path = { .uid = NOBODY, .name = path },
		     ours_by_path = { .name = path };
	struct child owner = { 0 };
	bool good = owner_start(f, &ours, &owner) && is_refused(f, &theirs, "another user attached by name");

	raw_path(f, path);
	good = good && open_to_all(f, path) && is_refused(f, &theirs_by_path, "another user attached by path") &&
	       owner_refuses(f, &owner, hello) && is_refused(f, &ours, "a folder open to all") && chmod(f->folder, 0700) == 0 &&
	       actor_end(f, &owner);
	child_kill(&owner);
	if (!good || chown(f->folder, NOBODY, NOBODY))
		return false;
	good = owner_start(f, &theirs, &owner) && is_refused(f, &ours, "another user's folder") &&
	       is_refused(f, &ours_by_path, "another user's memory") && actor_end(f, &owner);
	child_kill(&owner);
	return chown(f->folder, 0, 0) == 0 && good;
}

enum fault_verdict other_user(struct fault *f)
{
	struct wire_hello hello;
	struct wire_offer offer;
	bool good;

	if (geteuid() != 0) {
		fault_failed(f, "needs root, to act as two users");
		return FAULT_SKIPPED;
	}
	good = raw_record(f, &hello, &offer);
	for (unsigned i = 0; good && i < f->times; i++)
		good = try_users(f, &hello);
	return good ? FAULT_OK : FAULT_FAILED;
}

/* ---- other namespaces ----------------------------------------------------------------------- */

static const struct {
	const char *what;
	int owner, attacher;
} places[] = {
	{ "separate network namespaces", 0, CLONE_NEWNET }, /* must be the first, the only one that is tested with device-ipc memory */
	{ "the attacher in a new pid namespace", 0, CLONE_NEWPID },
	{ "the owner in a new pid namespace", CLONE_NEWPID, 0 },
	{ "each in new pid and network namespaces", CLONE_NEWPID | CLONE_NEWNET, CLONE_NEWPID | CLONE_NEWNET },
};
enum { N_PLACES = sizeof places / sizeof places[0] };

static bool permitted(int namespaces)
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		_exit(unshare(namespaces) != 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* The attacher attaches, sums and detaches; then it attaches and is killed.  The owner must report all events. */
static bool attach_across(struct fault *f, int index)
{
	struct actor o = { .namespaces = places[index].owner }, a = { .namespaces = places[index].attacher };
	struct child owner = { 0 }, attacher = { 0 };
	bool good = owner_start(f, &o, &owner) && attacher_start(f, &a, &attacher) && must(f, &attacher, 'a', FAULT_WAIT_MS) &&
		    must(f, &attacher, 's', 0) && must(f, &attacher, 'x', 0) && owner_event(f, &owner, GPUL_IPC_ATTACHED) &&
		    owner_event(f, &owner, GPUL_IPC_DETACHED) && must(f, &attacher, 'a', FAULT_WAIT_MS) &&
		    owner_event(f, &owner, GPUL_IPC_ATTACHED);

	child_kill(&attacher); /* the process that the victim forked is killed, too */
	good = good && owner_event(f, &owner, GPUL_IPC_PEER_DIED) && must(f, &owner, 's', 0) && must(f, &owner, 'c', 0) &&
	       actor_end(f, &owner);
	child_kill(&owner);
	return good;
}

enum fault_verdict other_namespaces(struct fault *f)
{
	/* A cuIpc handle can contain its owner's pid, which belongs to another process in another pid namespace. */
	unsigned n_places = f->kind == GPUL_MEM_DEVICE_IPC ? 1 : N_PLACES;
	char why[FAULT_TEXT];

	if (!permitted(CLONE_NEWPID | CLONE_NEWNET)) {
		fault_failed(f, "unshare is not permitted here");
		return FAULT_SKIPPED;
	}
	for (unsigned i = 0; i < f->times * n_places; i++)
		if (!attach_across(f, (int)(i % n_places))) {
			memcpy(why, f->text, sizeof why);
			fault_failed(f, "%s: %.400s", places[i % n_places].what, why);
			return FAULT_FAILED;
		}
	return FAULT_OK;
}
