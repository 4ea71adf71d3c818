/* outlive.c — what a dead owner leaves: memory for who has it, a socket file for who comes next, and nothing else. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fault/actors.h"
#include "tests/fault/count.h"
#include "tests/fault/raw.h"

enum { N_READERS = 3, ORPHAN_BYTES = 4 << 20, ROUNDS = 4 };

static bool hears_of_death(struct fault *f, const struct child *reader)
{
	struct note n;

	if (!child_do(reader, 'v', FAULT_WAIT_MS, &n) || !n.good || n.event != GPUL_IPC_OWNER_DIED)
		return fault_failed(f, "a reader did not hear of the owner's death: %s", n.text);
	return true;
}

/* The readers' kernels run; the owner dies; their sums are right, and then they hear of it. */
static bool read_on(struct fault *f, struct child *owner, const struct child readers[N_READERS])
{
	for (int i = 0; i < N_READERS; i++)
		if (!must(f, &readers[i], 'a', FAULT_WAIT_MS) || !must(f, &readers[i], 'r', ROUNDS))
			return false;
	child_kill(owner);
	for (int i = 0; i < N_READERS; i++)
		if (!must(f, &readers[i], 'w', 0) || !hears_of_death(f, &readers[i]) || !must(f, &readers[i], 's', 0))
			return false;
	return true;
}

/* The memory is there as long as somebody has it, and not a moment longer. */
static bool let_go(struct fault *f, const struct child readers[N_READERS], dev_t device, ino_t inode)
{
	for (int i = 0; i < N_READERS; i++) {
		if (inode && holders_of(device, inode) != N_READERS - i)
			return fault_failed(f, "%d processes hold the memory instead of %d", holders_of(device, inode),
					    N_READERS - i);
		if (!must(f, &readers[i], 'x', 0) || !must(f, &readers[i], 'c', 0))
			return false;
	}
	if (inode && holders_of(device, inode))
		return fault_failed(f, "somebody still holds the memory");
	return names_clean(f->folder, f->text);
}

/* One owner.  Its first life is an honest one, for the readers' baseline. */
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
	good = good && read_on(f, &owner, readers) && let_go(f, readers, (dev_t)n.native, (ino_t)n.value);
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

/* A dead socket is in the way, and is not; a living one is. */
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
	if (good && !strstr(f->text, "offers"))
		good = false;  /* another reason than that the first one lives */
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
