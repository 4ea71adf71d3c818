/* scenarios.c — the required results of a round. */
#include "tests/comm/fault/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool complain(char text[TEXT_BYTES], const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, TEXT_BYTES, fmt, args);
	va_end(args);
	return false;
}

static bool contains(const char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool contains(const char *text, const char *fmt, ...)
{
	char part[200];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(part, sizeof part, fmt, args);
	va_end(args);
	return strstr(text, part) != NULL;
}

/* True if the text names the victim and, if the victim had connected to rank 0, its process. */
static bool names_victim(const struct shared *s, const char *text)
{
	return contains(text, "rank %d (pid %d)", s->victim, (int)s->ranks[s->victim].pid) ||
	       contains(text, "rank %d ended before all ranks had joined the job", s->victim);
}

static bool is_right(const struct shared *s, int r, bool right, char text[TEXT_BYTES])
{
	const struct outcome *o = &s->ranks[r];

	return right || complain(text, "rank %d: status %d, native %d, cause %d of rank %d: %.200s", r, (int)o->status, o->native,
				 (int)o->failure.cause, o->failure.rank, o->text);
}

/* A rank may still be in gpul_comm_create() when the failure occurs; then it has no communicator to query. */
static bool all_others_blame(const struct shared *s, enum gpul_comm_cause cause, const char *part, char text[TEXT_BYTES])
{
	for (int r = 0; r < s->n_ranks; r++) {
		const struct outcome *o = &s->ranks[r];
		const bool in_create = o->phase == PHASE_CREATE && o->failure.cause == GPUL_COMM_NO_FAILURE;
		const bool blames = in_create || (o->failure.cause == cause && o->failure.rank == s->victim);

		if (r != s->victim && !is_right(s, r,
						blames && o->status == GPUL_ECOMM && o->native == (int)cause &&
							contains(o->text, "rank %d ", s->victim) && strstr(o->text, part),
						text))
			return false;
	}
	return true;
}

static bool victim_died(const struct shared *s, char text[TEXT_BYTES])
{
	for (int r = 0; r < s->n_ranks; r++) {
		const struct outcome *o = &s->ranks[r];

		if (r == s->victim)
			continue;
		if (!is_right(s, r, o->status && names_victim(s, o->text), text) ||
		    (o->failure.cause && !is_right(s, r, o->failure.cause == GPUL_COMM_RANK_DIED && o->failure.rank == s->victim, text)))
			return false;
	}
	return true;
}

static bool victim_was_killed(const struct shared *s, char text[TEXT_BYTES])
{
	if (s->exit_status != 137 || !names_victim(s, s->launcher_text))
		return complain(text, "the launcher returns %d: %.200s", s->exit_status, s->launcher_text);
	return victim_died(s, text);
}

/* The other ranks wait for the victim in a kernel, or in a gpul_boot_* call.  The victim itself ends after SIGCONT. */
static bool victim_was_stopped(const struct shared *s, char text[TEXT_BYTES])
{
	for (int r = 0; r < s->n_ranks; r++) {
		const struct outcome *o = &s->ranks[r];

		if (r == s->victim) {
			if (!is_right(s, r, o->status != GPUL_OK, text))
				return false;
		} else if (o->failure.cause != GPUL_COMM_NO_FAILURE) {
			if (!is_right(s, r,
				      o->failure.cause == GPUL_COMM_RANK_STALLED && o->failure.rank == s->victim &&
					      names_victim(s, o->text),
				      text))
				return false;
		} else if (!is_right(s, r, o->status && contains(o->text, "rank %d ", s->victim), text)) {
			return false;
		}
	}
	return true;
}

static bool victim_aborted(const struct shared *s, char text[TEXT_BYTES])
{
	return all_others_blame(s, GPUL_COMM_ABORTED, "gpul_comm_abort()", text) &&
	       is_right(s, s->victim, s->ranks[s->victim].failure.cause == GPUL_COMM_ABORTED, text);
}

static bool victim_was_late(const struct shared *s, char text[TEXT_BYTES])
{
	return all_others_blame(s, GPUL_COMM_TIMED_OUT, "has not made the same call", text) &&
	       is_right(s, s->victim, s->ranks[s->victim].failure.rank == s->victim, text);
}

static bool all_waited_for_each_other(const struct shared *s, char text[TEXT_BYTES])
{
	for (int r = 0; r < s->n_ranks; r++)
		if (!is_right(s, r, s->ranks[r].failure.cause == GPUL_COMM_TIMED_OUT && contains(s->ranks[r].text, "one group"), text))
			return false;
	return true;
}

/* If the sizes of sender and receiver differ, the library cannot know which of the two ranks is wrong. */
static bool sizes_differed(const struct shared *s, char text[TEXT_BYTES])
{
	for (int r = 0; r < s->n_ranks; r++)
		if (!is_right(s, r,
			      s->ranks[r].failure.cause == GPUL_COMM_MISMATCH && contains(s->ranks[r].text, "2000") &&
				      contains(s->ranks[r].text, "1000"),
			      text))
			return false;
	return true;
}

/* Ranks that run different calls with the same algorithm notice the difference; with different algorithms they only wait. */
static bool calls_differed(const struct shared *s, char text[TEXT_BYTES])
{
	for (int r = 0; r < s->n_ranks; r++) {
		const struct outcome *o = &s->ranks[r];
		const bool mismatch = o->failure.cause == GPUL_COMM_MISMATCH && contains(o->text, "broadcast") &&
				      contains(o->text, "allreduce");
		const bool late = o->failure.cause == GPUL_COMM_TIMED_OUT &&
				  (contains(o->text, "the same call") || contains(o->text, "different calls"));

		if (!is_right(s, r, mismatch || late, text))
			return false;
	}
	return true;
}

static bool victim_faulted(const struct shared *s, char text[TEXT_BYTES])
{
	return all_others_blame(s, GPUL_COMM_RANK_FAILED, "CUDA_ERROR_", text) &&
	       is_right(s, s->victim, s->ranks[s->victim].status == GPUL_ECUDA, text);
}

static bool all_report(const struct shared *s, gpul_status status, const char *part, char text[TEXT_BYTES])
{
	for (int r = 0; r < s->n_ranks; r++)
		if (!is_right(s, r, s->ranks[r].status == status && strstr(s->ranks[r].text, part), text))
			return false;
	return true;
}

static bool victim_had_no_memory(const struct shared *s, char text[TEXT_BYTES])
{
	char rank[24];

	(void)snprintf(rank, sizeof rank, "rank %d", s->victim);
	return all_report(s, GPUL_ECUDA, rank, text) && all_report(s, GPUL_ECUDA, "CUDA_ERROR_OUT_OF_MEMORY", text);
}

static bool all_worked(const struct shared *s, char text[TEXT_BYTES])
{
	for (int r = 0; r < s->n_ranks; r++)
		if (!is_right(s, r, s->ranks[r].status == GPUL_OK, text))
			return false;
	return s->exit_status == 0 || complain(text, "the launcher returns %d: %.200s", s->exit_status, s->launcher_text);
}

/* The rank whose driver call failed may have used another kind of memory instead; then all ranks work. */
static bool all_worked_or_had_no_memory(const struct shared *s, char text[TEXT_BYTES])
{
	if (all_worked(s, text))
		return true;
	for (int r = 0; r < s->n_ranks; r++)
		if (!is_right(s, r,
			      contains(s->ranks[r].text, "CUDA_ERROR_OUT_OF_MEMORY") &&
				      (r == s->victim || contains(s->ranks[r].text, "rank %d", s->victim)),
			      text))
			return false;
	return true;
}

static bool victim_had_other_options(const struct shared *s, char text[TEXT_BYTES])
{
	return all_report(s, GPUL_EINVAL, "options.slot_bytes", text);
}

static bool victim_was_absent(const struct shared *s, char text[TEXT_BYTES])
{
	for (int r = 0; r < s->n_ranks; r++)
		if (r != s->victim && !is_right(s, r,
						s->ranks[r].status == GPUL_ESYS && s->ranks[r].native == ETIMEDOUT &&
							contains(s->ranks[r].text, "rank %d ", s->victim),
						text))
			return false;
	return true;
}

/* Either all ranks work, or all report which limit is too low. */
static bool files_suffice(const struct shared *s, char text[TEXT_BYTES])
{
	if (all_worked(s, text))
		return true;
	for (int r = 0; r < s->n_ranks; r++)
		if (!is_right(s, r, contains(s->ranks[r].text, "ulimit -n"), text))
			return false;
	return true;
}

/* Time-outs in ms: LONG is never reached on any machine; SHORT is for rounds that wait for a time-out. */
enum { LONG = 60000, SHORT = 3000 };

const struct scenario scenarios[] = {
	{ "kill", "SIGKILL of a rank at any moment", DEED_IS_KILLED, PLACE_HERE, 20, 1000, LONG, LONG, 2, victim_was_killed },
	{ "exit", "a rank exits without gpul_comm_destroy()", DEED_EXITS, PLACE_HERE, 3, 50, LONG, LONG, 2, victim_died },
	{ "abort", "gpul_comm_abort() from another thread", DEED_ABORTS, PLACE_HERE, 2, 50, LONG, LONG, 2, victim_aborted },
	{ "size", "a rank sends more than the other receives", DEED_OTHER_SIZE, PLACE_HERE, 2, 20, LONG, LONG, 2, sizes_differed },
	{ "call", "a rank calls another collective", DEED_OTHER_CALL, PLACE_HERE, 2, 20, SHORT, LONG, 2, calls_differed },
	{ "trap", "a kernel of a rank fails", DEED_FAULTS, PLACE_HERE, 2, 20, LONG, LONG, 2, victim_faulted },
	{ "no-memory", "a driver call in gpul_comm_create() of a rank fails", DEED_NO_MEMORY, PLACE_HERE, 4, 100, LONG, LONG, 2,
	  all_worked_or_had_no_memory },
	{ "no-window", "gpul_comm_alloc() of a rank gets no memory", DEED_NO_WINDOW, PLACE_HERE, 2, 20, LONG, LONG, 2,
	  victim_had_no_memory },
	{ "options", "a rank has other options", DEED_OTHER_OPTIONS, PLACE_HERE, 1, 10, LONG, LONG, 2, victim_had_other_options },
	{ "no-shm", "/dev/shm cannot be used", DEED_NOTHING, PLACE_NO_SHM, 1, 10, LONG, LONG, 2, all_worked },
	{ "pids", "a pid namespace; a rank is killed", DEED_KILLS_ITSELF, PLACE_PIDS, 2, 20, LONG, LONG, 2, victim_was_killed },
	{ "no-tmp", "a read-only /tmp", DEED_NOTHING, PLACE_NO_TMP, 1, 10, LONG, LONG, 2, all_worked },
	{ "few-files", "8 ranks with 64 open files each", DEED_NOTHING, PLACE_FEW_FILES, 1, 10, LONG, LONG, 8, files_suffice },
	{ "stop", "SIGSTOP of a rank at any moment", DEED_IS_STOPPED, PLACE_HERE, 1, 50, SHORT, SHORT, 2, victim_was_stopped },
	{ "late", "a rank makes no call, most others wait in turn", DEED_IS_LATE, PLACE_HERE, 1, 20, SHORT, LONG, 2, victim_was_late },
	{ "cycle", "ranks send before they receive", DEED_SENDS_FIRST, PLACE_HERE, 1, 20, SHORT, LONG, 2, all_waited_for_each_other },
	{ "absent", "a rank does not arrive", DEED_IS_ABSENT, PLACE_HERE, 1, 20, LONG, SHORT, 2, victim_was_absent },
};
const unsigned n_scenarios = sizeof scenarios / sizeof *scenarios;
