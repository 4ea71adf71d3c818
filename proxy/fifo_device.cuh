/* fifo_device.cuh — the proxy FIFO for kernels: push, poll, sync.  For nvcc and NVRTC, sm_70 and later.
 *
 *     __global__ void send(gpul_fifo_device fifo, ...)
 *     {
 *             gpul_fifo_port port;                                    this thread's access to a lane
 *
 *             if (gpul_fifo_own(&fifo, blockIdx.x, &port) != GPUL_FIFO_OK)      no other thread uses the lane
 *                     return;
 *             gpul_fifo_push_release(&port, what, where, timeout_ns);           earlier writes are visible
 *             gpul_fifo_sync(&port, port.next, timeout_ns);                     wait until the proxy has handled it
 *             gpul_fifo_disown(&port);
 *     }
 *
 * A lane is a ring.  An owner keeps the lane's next position in a register; threads that share a lane draw positions, their
 * tickets, from a counter in device memory.  A lane's triggers are handled in the order of their positions: those of an owner in
 * the order of its pushes, those of threads that share the lane in the order of the tickets.  There is no order between lanes.
 *
 * A push stores 16 bytes; it reads the proxy's tail only when the ring seems full.  That read (a poll) takes a round trip of
 * about 1.2 us over the bus, and polls of the same address wait for each other.  So threads that share a lane elect one
 * poller, by the lane's word shared_tail in device memory, in which the poller also publishes the tail for the others. */
#ifndef GPULOAD_PROXY_FIFO_DEVICE_CUH
#define GPULOAD_PROXY_FIFO_DEVICE_CUH

#include "proxy/fifo_layout.h"

/* A port: the state of a thread's access to a lane, kept in registers.  Callers need only the member next. */
struct gpul_fifo_port {
	gpul_trigger *slots; /* address of the lane's slots */
	const gpul_fifo_line *line;
	gpul_fifo_lane *lane;
	unsigned long long *raised;
	unsigned long long next; /* one past the last position that this thread (in an owned lane: any owner) has pushed */
	unsigned long long tail; /* the tail that this thread has read last: the positions below it have been handled */
	unsigned int shift;
	unsigned int delay; /* clocks from a push until the first poll; in owned lanes adapted after each poll */
	bool owned;
};

enum {
	GPUL_FIFO_POLLS_PER_TIME_READ = 32, /* number of polls of the tail for each reading of the timer */
	GPUL_FIFO_DELAY_CLOCKS = 600,       /* initial delay: a poll that arrives before the CPU has handled the trigger is wasted,
					     * and costs a round trip */
	GPUL_FIFO_DELAY_DOWN_CLOCKS = 4,    /* decrease of an owner's delay after a poll that was not too early */
	/* increase of an owner's delay after a poll that was too early; with the decrease above, about one poll in 16 is too early */
	GPUL_FIFO_DELAY_UP_CLOCKS = 64,
	GPUL_FIFO_MAX_DELAY_CLOCKS = 2000,
	GPUL_FIFO_AHEAD_SLOTS = 32, /* in a shared lane of at least this size, a push into the first slot of each
					      * quarter polls in advance */
};

static __device__ __forceinline__ unsigned long long gpul_fifo_globaltimer_ns(void)
{
	unsigned long long ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* Read the clock: all 64 bits, because reading the 32-bit clock takes 20 ns longer. */
static __device__ __forceinline__ unsigned long long gpul_fifo_clock(void)
{
	unsigned long long ticks;

	asm volatile("mov.u64 %0, %%clock64;" : "=l"(ticks));
	return ticks;
}

/* Wait for the port's delay, from a push until the first poll that is likely to find the trigger handled. */
static __device__ __forceinline__ void gpul_fifo_delay_poll(const gpul_fifo_port *port)
{
	const unsigned long long start = gpul_fifo_clock();

	while (gpul_fifo_clock() - start < port->delay)
		;
}

/* True if the time-out has passed.  The timer is read only at every 32nd poll, because reading it takes as long as a short wait;
 * the time-out starts at the first reading. */
static __device__ __forceinline__ bool gpul_fifo_timed_out(unsigned polls, unsigned long long *start_ns, unsigned long long timeout_ns)
{
	if (polls % GPUL_FIFO_POLLS_PER_TIME_READ != 0)
		return false;
	const unsigned long long now = gpul_fifo_globaltimer_ns();

	if (*start_ns == 0)
		*start_ns = now;
	return now - *start_ns > timeout_ns;
}

static __device__ __forceinline__ void gpul_fifo_store(gpul_trigger *slot, unsigned long long a, unsigned long long b)
{
	asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(slot), "l"(a), "l"(b) : "memory");
}

/* A program that counts or traces the polls over the bus defines this macro before it includes this file. */
#ifndef GPUL_FIFO_ON_POLL
#define GPUL_FIFO_ON_POLL(line) ((void)(line))
#endif

/* Read the tail and the abort word of a lane over the bus. */
static __device__ __forceinline__ void gpul_fifo_read_line(const gpul_fifo_line *line, unsigned long long *tail, unsigned long long *abort)
{
	GPUL_FIFO_ON_POLL(line);
	asm volatile("ld.acquire.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(*tail), "=l"(*abort) : "l"(line) : "memory");
}

static __device__ __forceinline__ void gpul_fifo_read_line_relaxed(const gpul_fifo_line *line, unsigned long long *tail,
								   unsigned long long *abort)
{
	GPUL_FIFO_ON_POLL(line);
	asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(*tail), "=l"(*abort) : "l"(line) : "memory");
}

/* Read the word that the elected poller of a shared lane publishes in device memory (fifo_layout.h). */
static __device__ __forceinline__ unsigned long long gpul_fifo_read_shared_tail(const gpul_fifo_lane *lane)
{
	unsigned long long shared_tail;

	asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(shared_tail) : "l"(&lane->shared_tail) : "memory");
	return shared_tail;
}

static __device__ __forceinline__ void gpul_fifo_publish_tail(gpul_fifo_lane *lane, unsigned long long tail, unsigned state)
{
	asm volatile("st.release.gpu.global.u64 [%0], %1;"
		     :
		     : "l"(&lane->shared_tail), "l"(tail << GPUL_FIFO_POLLER_BITS | state)
		     : "memory");
}

/* Try to become the lane's poller; shared_tail is the word that was read last, with state NO_POLLER. */
static __device__ __forceinline__ bool gpul_fifo_become_poller(gpul_fifo_lane *lane, unsigned long long shared_tail)
{
	unsigned long long was;

	asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
		     : "=l"(was)
		     : "l"(&lane->shared_tail), "l"(shared_tail), "l"(shared_tail | GPUL_FIFO_POLLED)
		     : "memory");
	return was == shared_tail;
}

static __device__ __forceinline__ unsigned long long gpul_fifo_draw_tickets(gpul_fifo_lane *lane, unsigned n)
{
	unsigned long long ticket;

	asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;"
		     : "=l"(ticket)
		     : "l"(&lane->head), "l"((unsigned long long)n)
		     : "memory");
	return ticket;
}

/* Abort the FIFO with a code other than 0.  The proxy copies the code to all lanes, which ends every wait. */
static __device__ __forceinline__ void gpul_fifo_raise(const gpul_fifo_port *port, unsigned code)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(port->raised), "l"((unsigned long long)code) : "memory");
}

/* Poll over the bus until the tail is at least upto.  publish: write each new tail to device memory, for the threads that share the
 * lane. */
static __device__ inline gpul_fifo_result gpul_fifo_poll_until(gpul_fifo_port *port, unsigned long long upto, unsigned long long timeout_ns,
							       bool publish)
{
	unsigned long long start = 0, tail, abort;

	for (unsigned polls = 1;; polls++) {
		gpul_fifo_read_line(port->line, &tail, &abort);
		const bool there = tail >= upto, late = !there && gpul_fifo_timed_out(polls, &start, timeout_ns);

		if (publish && (tail > port->tail || abort || late || there))
			gpul_fifo_publish_tail(port->lane, tail,
					       abort           ? GPUL_FIFO_BROKEN
					       : there || late ? GPUL_FIFO_NO_POLLER
							       : GPUL_FIFO_POLLED);
		port->tail = tail;
		if (there)
			return GPUL_FIFO_OK;
		if (abort)
			return GPUL_FIFO_ABORTED;
		if (late)
			return GPUL_FIFO_TIMED_OUT;
	}
}

/* Wait on a shared lane: read the tail that the poller publishes, or become the poller if there is none. */
static __device__ inline gpul_fifo_result gpul_fifo_await_poller(gpul_fifo_port *port, unsigned long long upto,
								 unsigned long long timeout_ns)
{
	unsigned long long start = 0;

	for (unsigned polls = 1;; polls++) {
		const unsigned long long shared_tail = gpul_fifo_read_shared_tail(port->lane);
		const unsigned state = shared_tail & ((1u << GPUL_FIFO_POLLER_BITS) - 1);

		port->tail = shared_tail >> GPUL_FIFO_POLLER_BITS;
		if (port->tail >= upto)
			return GPUL_FIFO_OK;
		if (state == GPUL_FIFO_BROKEN)
			return GPUL_FIFO_ABORTED;
		if (state == GPUL_FIFO_NO_POLLER && gpul_fifo_become_poller(port->lane, shared_tail))
			return gpul_fifo_poll_until(port, upto, timeout_ns, true);
		if (gpul_fifo_timed_out(polls, &start, timeout_ns))
			return GPUL_FIFO_TIMED_OUT;
	}
}

/* Poll once for all threads that share the lane, before one of them has to wait.  Does nothing if another thread is polling. */
static __device__ inline void gpul_fifo_poll_ahead(gpul_fifo_port *port)
{
	const unsigned long long shared_tail = gpul_fifo_read_shared_tail(port->lane);
	unsigned long long abort;

	if ((shared_tail & ((1u << GPUL_FIFO_POLLER_BITS) - 1)) != GPUL_FIFO_NO_POLLER || !gpul_fifo_become_poller(port->lane, shared_tail))
		return;
	gpul_fifo_read_line(port->line, &port->tail, &abort);
	gpul_fifo_publish_tail(port->lane, port->tail, abort ? GPUL_FIFO_BROKEN : GPUL_FIFO_NO_POLLER);
}

static __device__ __forceinline__ gpul_fifo_result gpul_fifo_wait(gpul_fifo_port *port, unsigned long long upto,
								  unsigned long long timeout_ns)
{
	return port->owned ? gpul_fifo_poll_until(port, upto, timeout_ns, false) : gpul_fifo_await_poller(port, upto, timeout_ns);
}

/* Make an owner's first poll after a push, and adapt the port's delay.  Returns true if the tail has reached upto. */
static __device__ __forceinline__ bool gpul_fifo_first_poll(gpul_fifo_port *port, unsigned long long upto)
{
	unsigned long long abort;

	gpul_fifo_delay_poll(port);
	gpul_fifo_read_line(port->line, &port->tail, &abort);
	if (port->tail >= upto)
		port->delay -= port->delay > GPUL_FIFO_DELAY_DOWN_CLOCKS ? GPUL_FIFO_DELAY_DOWN_CLOCKS : 0;
	else if (port->delay < GPUL_FIFO_MAX_DELAY_CLOCKS)
		port->delay += GPUL_FIFO_DELAY_UP_CLOCKS;
	return port->tail >= upto;
}

/* Wait until the proxy has handled all positions below upto (port->next: all pushes of this thread).  After OK, this thread
 * sees what the proxy and its handlers wrote before.  The wait may last up to 32 polls longer than timeout_ns; ~0ull: no
 * time-out, only an abort ends it. */
static __device__ inline gpul_fifo_result gpul_fifo_sync(gpul_fifo_port *port, unsigned long long upto, unsigned long long timeout_ns)
{
	if (port->tail >= upto)
		return GPUL_FIFO_OK;
	if (upto == port->next && port->owned && gpul_fifo_first_poll(port, upto))
		return GPUL_FIFO_OK;
	if (upto == port->next && !port->owned)
		gpul_fifo_delay_poll(port);
	return gpul_fifo_wait(port, upto, timeout_ns);
}

/* Check, with at most one poll, whether the proxy has handled all positions below upto.  OK: it has; TIMED_OUT: not yet; or ABORTED. */
static __device__ inline gpul_fifo_result gpul_fifo_poll(gpul_fifo_port *port, unsigned long long upto)
{
	unsigned long long abort;

	if (port->tail >= upto)
		return GPUL_FIFO_OK;
	gpul_fifo_read_line(port->line, &port->tail, &abort);
	return port->tail >= upto ? GPUL_FIFO_OK : abort ? GPUL_FIFO_ABORTED : GPUL_FIFO_TIMED_OUT;
}

static __device__ __forceinline__ void gpul_fifo_port_open(const gpul_fifo_device *fifo, unsigned lane, bool owned, gpul_fifo_port *port)
{
	lane &= fifo->n_lanes - 1;
	port->slots = fifo->slots + ((unsigned long long)lane << fifo->lane_shift);
	port->line = fifo->lines + lane;
	port->lane = fifo->lanes + lane;
	port->raised = fifo->raised;
	port->shift = fifo->lane_shift;
	port->delay = GPUL_FIFO_DELAY_CLOCKS;
	port->owned = owned;
	port->next = port->tail = 0;
}

/* Open lane `lane` modulo the number of lanes, and share it with all other threads that call this function. */
static __device__ inline void gpul_fifo_share(const gpul_fifo_device *fifo, unsigned lane, gpul_fifo_port *port)
{
	gpul_fifo_port_open(fifo, lane, false, port);
}

/* Become the owner of a lane.  The acquire makes the head that the previous owner wrote visible.  False: another thread owns the lane. */
static __device__ __forceinline__ bool gpul_fifo_take_lane(gpul_fifo_lane *lane)
{
	unsigned long long was;

	asm volatile("atom.acquire.gpu.global.exch.b64 %0, [%1], 1;" : "=l"(was) : "l"(&lane->owner) : "memory");
	return was == 0;
}

/* Open lane `lane` modulo the number of lanes for use by this thread only.  BUSY: another thread owns it.  No thread may share a lane
 * while it is owned. */
static __device__ inline gpul_fifo_result gpul_fifo_own(const gpul_fifo_device *fifo, unsigned lane, gpul_fifo_port *port)
{
	gpul_fifo_port_open(fifo, lane, true, port);
	if (!gpul_fifo_take_lane(port->lane))
		return GPUL_FIFO_BUSY;
	port->next = port->lane->head;
	return GPUL_FIFO_OK;
}

/* Open lane `lane` modulo the number of lanes for use by this warp only, with gpul_fifo_warp_push(); all 32 threads call it. */
static __device__ inline gpul_fifo_result gpul_fifo_warp_own(const gpul_fifo_device *fifo, unsigned lane, gpul_fifo_port *port)
{
	unsigned taken = 0;

	gpul_fifo_port_open(fifo, lane, true, port);
	if ((threadIdx.x & 31) == 0 && gpul_fifo_take_lane(port->lane)) {
		taken = 1;
		port->next = port->lane->head;
	}
	port->next = __shfl_sync(0xffffffffu, port->next, 0);
	return __shfl_sync(0xffffffffu, taken, 0) ? GPUL_FIFO_OK : GPUL_FIFO_BUSY;
}

/* Release the lane for its next owner.  Called by the thread that got OK from gpul_fifo_own(); the port becomes invalid. */
static __device__ inline void gpul_fifo_disown(gpul_fifo_port *port)
{
	port->lane->head = port->next;
	asm volatile("st.release.gpu.global.u64 [%0], 0;" : : "l"(&port->lane->owner) : "memory");
}

/* Release the lane for its next owner.  Called by all threads of the warp that got OK from gpul_fifo_warp_own(). */
static __device__ inline void gpul_fifo_warp_disown(gpul_fifo_port *port)
{
	__syncwarp();
	if ((threadIdx.x & 31) == 0)
		gpul_fifo_disown(port);
}

/* Get the lap bit of a position, in bit 63. */
static __device__ __forceinline__ unsigned long long gpul_fifo_lap(unsigned long long at, unsigned shift)
{
	return (unsigned long long)((~(unsigned)at << (31 - shift)) & 0x80000000u) << 32;
}

/* Wait for a free slot.  In a shared lane, the slot of a thread that times out would stay empty forever, so a time-out aborts the FIFO. */
template <bool RELEASE>
static __device__ __forceinline__ gpul_fifo_result gpul_fifo_wait_for_slot(gpul_fifo_port *port, unsigned long long upto,
									   unsigned long long timeout_ns)
{
	unsigned long long abort;
	gpul_fifo_result result;

	if (port->owned && port->shift == 0 && !RELEASE) { /* with RELEASE the fence already takes as long as the delay */
		if (gpul_fifo_first_poll(port, upto))
			return GPUL_FIFO_OK;
	} else if (port->owned) {
		gpul_fifo_read_line(port->line, &port->tail, &abort);
		if (port->tail >= upto)
			return GPUL_FIFO_OK;
	}
	result = gpul_fifo_wait(port, upto, timeout_ns);
	if (result == GPUL_FIFO_TIMED_OUT && !port->owned)
		gpul_fifo_raise(port, GPUL_FIFO_CODE_TIMED_OUT);
	return result;
}

/* Push one trigger: get a position, execute the fence, wait for a free slot, and store the trigger. */
template <bool RELEASE>
static __device__ __forceinline__ gpul_fifo_result gpul_fifo_push_as(gpul_fifo_port *port, unsigned long long a, unsigned long long b,
								     unsigned long long timeout_ns)
{
	const unsigned size = 1u << port->shift;
	const unsigned long long at = port->owned ? port->next : gpul_fifo_draw_tickets(port->lane, 1);
	const unsigned long long lap = gpul_fifo_lap(at, port->shift);

	if (RELEASE)
		asm volatile("fence.acq_rel.sys;" ::: "memory");
	if (at - port->tail >= size) {
		const gpul_fifo_result result = gpul_fifo_wait_for_slot<RELEASE>(port, at + 1 - size, timeout_ns);

		if (result != GPUL_FIFO_OK)
			return result;
	}
	gpul_fifo_store(port->slots + ((unsigned)at & (size - 1)), a | lap, b | lap);
	port->next = at + 1;
	if (!port->owned && size >= GPUL_FIFO_AHEAD_SLOTS && ((unsigned)at & (size / 4 - 1)) == 0)
		gpul_fifo_poll_ahead(port);
	return GPUL_FIFO_OK;
}

/* Push without a fence: earlier writes of this thread may become visible after the trigger.  Bit 63 of each word must be 0.
 * timeout_ns as for gpul_fifo_sync().  TIMED_OUT: nothing was pushed.  An owner may try again; in a shared lane the slot of
 * the thread's ticket stays empty, so the FIFO is aborted. */
static __device__ __forceinline__ gpul_fifo_result gpul_fifo_push(gpul_fifo_port *port, unsigned long long a, unsigned long long b,
								  unsigned long long timeout_ns)
{
	return gpul_fifo_push_as<false>(port, a, b, timeout_ns);
}

/* Push with release: a CPU thread that reads the trigger also sees everything that this thread wrote before, or observed
 * through a barrier. */
static __device__ __forceinline__ gpul_fifo_result gpul_fifo_push_release(gpul_fifo_port *port, unsigned long long a, unsigned long long b,
									  unsigned long long timeout_ns)
{
	return gpul_fifo_push_as<true>(port, a, b, timeout_ns);
}

/* Push 32 consecutive triggers, in the order of the threads.  All 32 threads of a warp call it, with ports of the same lane,
 * which they use only for warp pushes.  TIMED_OUT: nothing was pushed.  A warp that owns a lane of at least 32 slots may try
 * again; otherwise the FIFO is aborted. */
static __device__ inline gpul_fifo_result gpul_fifo_warp_push(gpul_fifo_port *port, unsigned long long a, unsigned long long b,
							      unsigned long long timeout_ns)
{
	const unsigned lane = threadIdx.x & 31;
	const unsigned long long size = 1ull << port->shift;
	const unsigned group = size < 32 ? (unsigned)size : 32;
	unsigned long long first = port->next;
	unsigned result = GPUL_FIFO_OK;

	if (!port->owned) {
		if (lane == 0)
			first = gpul_fifo_draw_tickets(port->lane, 32);
		first = __shfl_sync(0xffffffffu, first, 0);
	}
	for (unsigned g = 0; g < 32; g += group) {
		const unsigned long long last = first + g + group - 1, at = first + lane;

		/* the threads' tails differ after a sync by one thread, so the warp votes, and all threads take the same branch */
		if (__any_sync(0xffffffffu, last - port->tail >= size)) {
			if (lane == 0)
				result = gpul_fifo_sync(port, last + 1 - size, timeout_ns);
			result = __shfl_sync(0xffffffffu, result, 0);
			port->tail = __shfl_sync(0xffffffffu, port->tail, 0);
			if (result != GPUL_FIFO_OK) {
				if (result == GPUL_FIFO_TIMED_OUT && lane == 0 && !(port->owned && g == 0 && group == 32))
					gpul_fifo_raise(port, GPUL_FIFO_CODE_TIMED_OUT);
				return (gpul_fifo_result)result;
			}
		}
		if (lane - g < group) {
			const unsigned long long lap = gpul_fifo_lap(at, port->shift);

			gpul_fifo_store(port->slots + (at & (size - 1)), a | lap, b | lap);
		}
		port->next = first + g + group;
	}
	return GPUL_FIFO_OK;
}

#endif
