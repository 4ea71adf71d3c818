/* outlive.c — scenarios: a killed owner leaves its memory to the processes that map it, and a socket file to the next owner. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fault/actors.h"
#include "tests/fault/count.h"
#include "tests/fault/hostile/raw.h"

enum { N_READERS = 3, ORPHAN_BYTES = 4 << 20, ROUNDS = 4 };

static bool gets_owner_died(struct fault *f, const struct child *reader)
{
	struct note n;

	if (!child_do(reader, 'v', FAULT_WAIT_MS, &n) || !n.good || n.event != GPUL_IPC_OWNER_DIED)
		return fault_failed(f, "a reader did not get OWNER_DIED: %s", n.text);
	return true;
}

/* The owner is killed while the readers' kernels run: their sums must be right, and then they get OWNER_DIED. */
static bool read_on(struct fault *f, struct child *owner, const struct child readers[N_READERS])
{
	for (int i = 0; i < N_READERS; i++)
		if (!must(f, &readers[i], 'a', FAULT_WAIT_MS) || !must(f, &readers[i], 'r', ROUNDS))
			return false;
	child_kill(owner);
	for (int i = 0; i < N_READERS; i++)
		if (!must(f, &readers[i], 'w', 0) || !gets_owner_died(f, &readers[i]) || !must(f, &readers[i], 's', 0))
			return false;
	return true;
}

/* The memory must exist as long as a process has it mapped, and no longer. */
static bool detach_all(struct fault *f, const struct child readers[N_READERS], dev_t device, ino_t inode)
{
	for (int i = 0; i < N_READERS; i++) {
		if (inode && holders_of(device, inode) != N_READERS - i)
			return fault_failed(f, "%d processes hold the memory instead of %d", holders_of(device, inode), N_READERS - i);
		if (!must(f, &readers[i], 'x', 0) || !must(f, &readers[i], 'c', 0))
			return false;
	}
	if (inode && holders_of(device, inode))
		return fault_failed(f, "a process still holds the memory");
	return names_clean(f->folder, f->text);
}

/* Run one round with an owner.  In the first round the owner is not killed, and the readers count their baseline. */
static bool orphan(struct fault *f, const struct child readers[N_READERS], bool first)
{
	struct actor how = { .bytes = ORPHAN_BYTES, .gone_quiet = true };
	struct child owner;
	struct note n;
	bool good = true;

	if (!child_start(f, owner_role, &how, &owner))
		return false;
	if (!note_receive(owner.line, FAULT_WAIT_MS, &n) || n.command != 'r') {
		f->not_here = n.status == GPUL_EUNSUPPORTED || n.native == CUDA_ERROR_NOT_SUPPORTED;
		good = fault_failed(f, "the owner is not ready: %s", n.text);
	}
	for (int i = 0; good && first && i < N_READERS; i++)
		good = must(f, &readers[i], 'a', FAULT_WAIT_MS) && must(f, &readers[i], 's', 0) && must(f, &readers[i], 'x', 0) &&
		       must(f, &readers[i], 'b', 0);
	good = good && read_on(f, &owner, readers) && detach_all(f, readers, (dev_t)n.native, (ino_t)n.value);
	child_kill(&owner);
	return good;
}

enum fault_verdict orphans(struct fault *f)
{
	struct actor lives = { 0 };
	struct child readers[N_READERS] = { 0 };
	bool good = true;

	for (int i = 0; i < N_READERS; i++)
		good = good && attacher_start(f, &lives, &readers[i]);
	for (unsigned i = 0; good && i < f->times; i++)
		good = orphan(f, readers, i == 0);
	for (int i = 0; i < N_READERS; i++) {
		good = good && actor_end(f, &readers[i]);
		child_kill(&readers[i]);
	}
	return good ? FAULT_OK : FAULT_FAILED;
}

/* ---- restarts ------------------------------------------------------------------------------- */

/* A stale socket file must be replaced; the name of a running owner must be refused. */
static bool restart(struct fault *f, bool stale)
{
	struct actor lives = { .gone_quiet = true };
	struct child owner, second;
	struct stat s;
	char path[108];
	bool good;

	raw_path(f, path);
	if (stale && stat(path, &s))
		return fault_failed(f, "there is no stale socket: %s", strerror(errno));
	if (!owner_start(f, &lives, &owner))
		return false;
	good = !owner_start(f, &lives, &second);
	if (good && !strstr(f->text, "already shares"))
		good = false; /* the second owner has failed for another reason */
	else if (!good)
		fault_failed(f, "two owners of one name");
	f->not_here = false;
	child_kill(good ? &owner : &second);
	child_kill(&owner);
	return good;
}

enum fault_verdict restarts(struct fault *f)
{
	for (unsigned i = 0; i < f->times; i++)
		if (!restart(f, i > 0))
			return FAULT_FAILED;
	f->text[0] = '\0';
	return names_clean(f->folder, f->text) ? FAULT_OK : FAULT_FAILED;
}
