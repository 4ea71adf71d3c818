/* walk.c — two processes that use the network plug-in as NCCL does: listen, connect, grouped receives, sends with tags, test, close.
 *
 *     walk [--version 10|11|12] [--groups N] [--comms N] [--seed N] [--most BYTES] [--end kill|stop|cut:sender|receiver] [--show]
 *     walk --role receiver|sender --meet ADDRESS:PORT ...        only one of the two processes, to run them on two machines
 *
 *     main ── fork ──> receiver: listens, receives, compares every byte         both have a thread for each connection
 *          └─ fork ──> sender: connects, sends each tag's messages in order
 *
 * With --end kill or stop, one process kills or stops itself in the middle; the other must get an error from the plug-in, and main prints
 * how long that took.  With --end cut, for virtual machines, it disconnects its network, and both must get an error.  Exit status 0: as
 * expected. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/nccl/net/plugin_of.h"
#include "tests/nccl/net/walk_meet.h"
#include "tests/nccl/net/walk_plan.h"

enum { MAX_COMMS = 16, DEPTH = 4, MAX_SENDS = 64, GOT_ERROR = 3, LIMIT_S = 300 };

static struct {
	int version, groups, comms, show;
	unsigned long seed;
	size_t most;
	const char *end; /* value of --end, such as "kill:sender"; NULL: none */
	const char *role, *meet;
} opt = { .version = 12, .groups = 60, .comms = 2, .seed = 1, .most = BIG_BYTES };

static struct plugin plugin;
static unsigned char *noise;
static int to_sender[2]; /* pipe through which the receiver sends its handles */

struct comm {
	int index;
	void *end;
	const struct group *plan;
	pthread_t thread;
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Ends the process if the plug-in has returned an error, with status GOT_ERROR if --end makes an error the expected result. */
static void check(gpul_nccl_result r, const char *call)
{
	if (r == GPUL_NCCL_SUCCESS)
		return;
	const bool expected = opt.end && (r == GPUL_NCCL_REMOTE_ERROR || r == GPUL_NCCL_SYSTEM_ERROR);

	if (!expected)
		fprintf(stderr, "walk: %s: result %d: %s\n", call, (int)r, plugin_warning());
	_exit(expected ? GOT_ERROR : 1);
}

static void die(const char *what, int group, int part)
{
	fprintf(stderr, "walk: group %d, message %d: %s\n", group, part, what);
	_exit(1);
}

/* Kill or stop this process or cut its network, if --end names it, half-way through the groups of connection 0: at that time all
 * connections are open and messages are in flight, however slow the machine is. */
static void maybe_end(const char *who, int index, int group)
{
	static bool is_cut;
	const char *colon = opt.end ? strchr(opt.end, ':') : NULL;

	if (!colon || strcmp(colon + 1, who) || index || group < opt.groups / 2 || is_cut)
		return;
	if (opt.end[0] == 'c') {
		is_cut = true;
		if (system("netem loss 100%")) /* a command of the virtual machines (tests/vm/init) */
			die("cannot cut the network", group, 0);
		return;
	}
	kill(getpid(), opt.end[0] == 'k' ? SIGKILL : SIGSTOP);
	for (;;)
		pause(); /* the kernel may deliver the signal to another thread first */
}

/* ---- receiver -------------------------------------------------------------------------------------------------- */

struct slot {
	int group; /* -1: free */
	void *request;
	unsigned char *memory;
	void *region;
};

static bool post_group(struct comm *c, struct slot *s, int group)
{
	const struct group *g = &c->plan[group];
	void *at[MAX_GROUP], *regions[MAX_GROUP], *profiles[MAX_GROUP] = { NULL };
	size_t bytes[MAX_GROUP];
	int tags[MAX_GROUP];

	for (int i = 0; i < g->n; i++) {
		const struct message *m = &g->at[i];

		at[i] = s->memory + m->slot_at;
		bytes[i] = m->room;
		tags[i] = m->tag;
		regions[i] = s->region;
		memset((unsigned char *)at[i] + m->bytes, UNTOUCHED, GUARD_BYTES);
	}
	check(PLUGIN_CALL(&plugin, irecv)(c->end, g->n, at, bytes, tags, regions, profiles, &s->request), "irecv");
	s->group = s->request ? group : -1;
	return s->request != NULL;
}

/* Test the receive of a slot's group; when it is complete, compare the received bytes and return true. */
static bool finish_group(struct comm *c, struct slot *s)
{
	const struct group *g = &c->plan[s->group];
	int done = 0, sizes[MAX_GROUP];
	void *flush = s, *at[1] = { s->memory };

	check(PLUGIN_CALL(&plugin, test)(s->request, &done, sizes), "test");
	if (!done)
		return false;
	check(PLUGIN_CALL(&plugin, iflush)(c->end, 1, at, sizes, &s->region, &flush), "iflush");
	if (flush)
		die("a flush of host memory has a request", s->group, 0);
	for (int i = 0; i < g->n; i++) {
		const struct message *m = &g->at[i];

		if ((size_t)sizes[i] != m->bytes)
			die("wrong size", s->group, i);
		if (memcmp(s->memory + m->slot_at, noise + m->noise_at, m->bytes))
			die("wrong content", s->group, i);
		for (int k = 0; k < GUARD_BYTES; k++)
			if (s->memory[m->slot_at + m->bytes + (size_t)k] != UNTOUCHED)
				die("bytes after the message have changed", s->group, i);
	}
	s->group = -1;
	return true;
}

static void *receive_all(void *argument)
{
	struct comm *c = argument;
	struct slot slots[DEPTH];
	struct rng r = { opt.seed + 77 };
	int posted = 0, finished = 0;

	for (int i = 0; i < DEPTH; i++) {
		slots[i] = (struct slot){ .group = -1, .memory = malloc(SLOT_BYTES) };
		if (!slots[i].memory)
			die("no memory", 0, 0);
		check(PLUGIN_CALL(&plugin, register_memory)(c->end, slots[i].memory, SLOT_BYTES, GPUL_NCCL_HOST, &slots[i].region),
		      "register");
	}
	while (finished < opt.groups) {
		struct slot *s = &slots[random_below(&r, DEPTH)];

		if (s->group >= 0)
			finished += finish_group(c, s);
		else if (posted < opt.groups && post_group(c, s, posted))
			posted++;
		maybe_end("receiver", c->index, finished);
	}
	for (int i = 0; i < DEPTH; i++) {
		check(PLUGIN_CALL(&plugin, unregister)(c->end, slots[i].region), "unregister");
		free(slots[i].memory);
	}
	return NULL;
}

/* ---- sender ---------------------------------------------------------------------------------------------------- */

/* Advance (*group, *part) to the next message with this tag, starting at the current one.  Returns false if there is none. */
static bool next_of_tag(const struct group *plan, int tag, int *group, int *part)
{
	for (; *group < opt.groups; ++*group, *part = 0)
		for (; *part < plan[*group].n; ++*part)
			if (plan[*group].at[*part].tag == tag)
				return true;
	return false;
}

static void *send_all(void *argument)
{
	struct comm *c = argument;
	int group[N_TAGS] = { 0 }, part[N_TAGS] = { 0 }, left = 0, n = 0, highest = 0;
	void *requests[MAX_SENDS], *region = NULL;
	struct rng r = { opt.seed + 99 };

	check(PLUGIN_CALL(&plugin, register_memory)(c->end, noise, NOISE_BYTES, GPUL_NCCL_HOST, &region), "register");
	for (int i = 0; i < opt.groups; i++)
		left += c->plan[i].n;
	while (left || n) {
		const int tag = (int)random_below(&r, N_TAGS), k = n ? (int)random_below(&r, (uint32_t)n) : 0;
		int done = 0, bytes = -1;

		if (n < MAX_SENDS && next_of_tag(c->plan, tag, &group[tag], &part[tag])) {
			const struct message *m = &c->plan[group[tag]].at[part[tag]];

			check(PLUGIN_CALL(&plugin, isend)(c->end, noise + m->noise_at, m->bytes, tag, region, NULL, &requests[n]), "isend");
			if (requests[n]) {
				highest = group[tag] > highest ? group[tag] : highest;
				part[tag]++;
				left--;
				n++;
			}
		}
		if (n) {
			check(PLUGIN_CALL(&plugin, test)(requests[k], &done, &bytes), "test");
			if (done)
				requests[k] = requests[--n];
		}
		maybe_end("sender", c->index, highest);
	}
	check(PLUGIN_CALL(&plugin, unregister)(c->end, region), "unregister");
	return NULL;
}

/* ---- processes ------------------------------------------------------------------------------------------------- */

static void run_threads(struct comm *comms, void *(*run)(void *))
{
	for (int i = 0; i < opt.comms; i++)
		if (pthread_create(&comms[i].thread, NULL, run, &comms[i]))
			die("no thread", 0, 0);
	for (int i = 0; i < opt.comms; i++)
		(void)pthread_join(comms[i].thread, NULL);
}

static void start(struct comm *comms)
{
	int n = 0;

	alarm(LIMIT_S);
	noise = make_noise();
	for (int i = 0; i < opt.comms; i++) {
		comms[i] = (struct comm){ .index = i, .plan = make_plan(opt.seed * 1000 + (unsigned)i, opt.groups, opt.most) };
		if (!comms[i].plan || !noise)
			die("no memory", 0, 0);
	}
	check(plugin_open(opt.version, opt.show, &plugin), "init");
	check(PLUGIN_CALL(&plugin, devices)(&n), "devices");
	if (n < 1)
		die("no device", 0, 0);
}

static int receiver(void)
{
	void *listeners[MAX_COMMS];
	static struct comm comms[MAX_COMMS];
	gpul_nccl_properties_v12 p;

	start(comms);
	check(plugin_properties(&plugin, 0, &p), "properties");
	if (opt.show)
		fprintf(stderr, "%s: %s, %d Mbit/s, memory %d, %d receives in a group\n", p.name, p.pci_path ? p.pci_path : "no PCI device",
			p.mbits, p.pointers, p.max_recvs);
	for (int i = 0; i < opt.comms; i++) {
		unsigned char handle[GPUL_NCCL_HANDLE_BYTES];

		check(plugin_listen(&plugin, 0, handle, &listeners[i]), "listen");
		if (write(to_sender[1], handle, sizeof handle) != sizeof handle)
			die("pipe", 0, 0);
	}
	for (int left = opt.comms; left;)
		for (int i = 0; i < opt.comms; i++) {
			if (comms[i].end)
				continue;
			check(PLUGIN_CALL(&plugin, accept)(listeners[i], &comms[i].end, NULL), "accept");
			left -= comms[i].end != NULL;
		}
	for (int i = 0; i < opt.comms; i++)
		check(PLUGIN_CALL(&plugin, close_listener)(listeners[i]), "close");
	run_threads(comms, receive_all);
	for (int i = 0; i < opt.comms; i++)
		check(PLUGIN_CALL(&plugin, close_receiver)(comms[i].end), "close");
	plugin_close(&plugin);
	return 0;
}

static int recv_all(void *at, size_t n_bytes)
{
	for (size_t n = 0; n < n_bytes;) {
		const ssize_t k = read(to_sender[0], (char *)at + n, n_bytes - n);

		if (k <= 0)
			return -1;
		n += (size_t)k;
	}
	return 0;
}

static int sender(void)
{
	unsigned char handles[MAX_COMMS][GPUL_NCCL_HANDLE_BYTES];
	static struct comm comms[MAX_COMMS];

	start(comms);
	for (int i = 0; i < opt.comms; i++)
		if (recv_all(handles[i], sizeof handles[i]))
			die("no handle", 0, 0);
	for (int left = opt.comms; left;)
		for (int i = 0; i < opt.comms; i++) {
			if (comms[i].end)
				continue;
			check(plugin_connect(&plugin, 0, handles[i], &comms[i].end), "connect");
			left -= comms[i].end != NULL;
			usleep(1000);
		}
	run_threads(comms, send_all);
	for (int i = 0; i < opt.comms; i++)
		check(PLUGIN_CALL(&plugin, close_sender)(comms[i].end), "close");
	plugin_close(&plugin);
	return 0;
}

static bool is_victim(int status)
{
	return WIFSTOPPED(status) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* With --end kill or stop: wait until one process has ended or stopped, then until the other one ends because of an error. */
static int judge_end(pid_t receiving, pid_t sending)
{
	int status[2];
	const pid_t first = waitpid(-1, &status[0], WUNTRACED), other = first == receiving ? sending : receiving;
	const double since = seconds();
	int survivor;

	if (waitpid(other, &status[1], 0) != other)
		return 1;
	printf("error after %.0f ms\n", (seconds() - since) * 1000);
	kill(first, SIGKILL);
	survivor = status[is_victim(status[0]) ? 1 : 0]; /* if both had ended before the first wait, either may come first */
	if (is_victim(status[0]) + is_victim(status[1]) == 1 && WIFEXITED(survivor) && WEXITSTATUS(survivor) == GOT_ERROR)
		return 0;
	fprintf(stderr, "walk: status 0x%x, then 0x%x\n", (unsigned)status[0], (unsigned)status[1]);
	return 1;
}

static int judge(pid_t receiving, pid_t sending)
{
	int failed = 0, status;

	for (int i = 0; i < 2; i++)
		failed |= wait(&status) < 0 || status;
	(void)receiving, (void)sending;
	return failed;
}

static void parse(int n, char **args)
{
	for (int i = 1; i < n; i++) {
		const char *value = i + 1 < n ? args[i + 1] : "";

		if (!strcmp(args[i], "--show")) {
			opt.show = 1;
			continue;
		}
		if (!strcmp(args[i], "--version"))
			opt.version = atoi(value);
		else if (!strcmp(args[i], "--groups"))
			opt.groups = atoi(value);
		else if (!strcmp(args[i], "--comms"))
			opt.comms = atoi(value);
		else if (!strcmp(args[i], "--seed"))
			opt.seed = strtoul(value, NULL, 10);
		else if (!strcmp(args[i], "--most"))
			opt.most = strtoul(value, NULL, 10);
		else if (!strcmp(args[i], "--end"))
			opt.end = value;
		else if (!strcmp(args[i], "--role"))
			opt.role = value;
		else if (!strcmp(args[i], "--meet"))
			opt.meet = value;
		else
			exit(2);
		i++;
	}
	if (opt.comms < 1 || opt.comms > MAX_COMMS || opt.groups < 1)
		exit(2);
}

int main(int n, char **args)
{
	pid_t pids[2];
	double since;
	int failed;

	parse(n, args);
	since = seconds();
	if (opt.role) {
		const bool sends = !strcmp(opt.role, "sender");
		const int fd = meet(opt.meet ? opt.meet : "", sends);

		if (fd < 0)
			die("cannot meet the other process", 0, 0);
		to_sender[sends ? 0 : 1] = fd;
		(sends ? sender : receiver)();
		printf("%s: right, %.1f s\n", opt.role, seconds() - since);
		return 0;
	}
	if (pipe(to_sender))
		return 2;
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			close(to_sender[i == 0 ? 0 : 1]);
			exit(i == 0 ? receiver() : sender()); /* not _exit(): a sanitizer looks for leaks */
		}
	}
	close(to_sender[0]), close(to_sender[1]);
	failed = (opt.end ? judge_end : judge)(pids[0], pids[1]);
	if (!failed && !opt.end)
		printf("version %d: %d connections, %d groups each: right, %.1f s\n", opt.version, opt.comms, opt.groups,
		       seconds() - since);
	return failed;
}
