/* fifo_device.cuh — the proxy FIFO for kernels: push, poll, sync.  For nvcc and NVRTC, sm_70 and later.
 *
 *     __global__ void send(gpul_fifo_device fifo, ...)
 *     {
 *             gpul_fifo_port port;                                    one thread's way in
 *
 *             if (gpul_fifo_own(&fifo, blockIdx.x, &port) != GPUL_FIFO_OK)      this lane is mine alone
 *                     return;
 *             gpul_fifo_push_release(&port, what, where, timeout_ns);           what I wrote before is visible
 *             gpul_fifo_sync(&port, port.next, timeout_ns);                     the proxy has handled it
 *             gpul_fifo_disown(&port);
 *     }
 *
 * A lane is a ring.  Who owns one keeps its counter in a register; threads that share one draw tickets from a counter
 * in device memory.  A lane's triggers are handled in the order of their positions: an owner's in the order it pushed
 * them; of threads that share, each thread's own in the order it pushed them, and all in the order of the tickets.
 * Nothing is promised between lanes.
 *
 * A push stores 16 bytes and looks at the proxy's tail only when the ring seems full.  A look is a round trip over
 * the bus of about 1.2 us, and looks at one address queue: so only one thread of those that share a lane looks (who
 * is elected in the lane's word shared_tail), and tells the others there, in device memory. */
#ifndef GPULOAD_PROXY_FIFO_DEVICE_CUH
#define GPULOAD_PROXY_FIFO_DEVICE_CUH

#include "proxy/fifo_layout.h"

/* A thread's way into a lane; in registers.  Only next is of interest outside. */
struct gpul_fifo_port {
	gpul_trigger *slots;           /* of this lane */
	const gpul_fifo_line *line;
	gpul_fifo_lane *lane;
	unsigned long long *raised;
	unsigned long long next;       /* one past the last position that this thread pushed (owned: of the lane) */
	unsigned long long tail;       /* positions below it are known to be handled */
	unsigned int shift;
	unsigned int delay;            /* clocks from a push until a look is worth while, as far as this thread knows */
	bool owned;
};

enum {
	GPUL_FIFO_POLLS_PER_TIME_READ = 32,          /* looks at the tail for one at the time */
	GPUL_FIFO_DELAY_CLOCKS = 600,  /* a look that leaves sooner after its push comes before the CPU's answer,
					* and the next one arrives a whole round trip later; an owner learns: */
	GPUL_FIFO_DELAY_DOWN_CLOCKS = 4,  /* its look was not too early: the next may be earlier by this, */
	GPUL_FIFO_DELAY_UP_CLOCKS = 64,   /* it was: later by this.  So one in 16 is too early */
	GPUL_FIFO_MAX_DELAY_CLOCKS = 2000,
	GPUL_FIFO_AHEAD_SLOTS = 32,    /* who pushes the first of a quarter of a shared lane this large looks ahead */
};

static __device__ __forceinline__ unsigned long long gpul_fifo_globaltimer_ns(void)
{
	unsigned long long ns;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
	return ns;
}

/* 64 bits, since the GPU reads those without a detour; 32 take it 20 ns. */
static __device__ __forceinline__ unsigned long long gpul_fifo_clock(void)
{
	unsigned long long ticks;

	asm volatile("mov.u64 %0, %%clock64;" : "=l"(ticks));
	return ticks;
}

/* Between a push and the first look for what the proxy makes of it. */
static __device__ __forceinline__ void gpul_fifo_delay_poll(const gpul_fifo_port *port)
{
	const unsigned long long start = gpul_fifo_clock();

	while (gpul_fifo_clock() - start < port->delay)
		;
}

/* Is it too late?  Asked at every 32nd look, and the time counts from the first of these: reading the timer takes as
 * long as a short wait does. */
static __device__ __forceinline__ bool gpul_fifo_timed_out(unsigned polls, unsigned long long *start_ns,
						      unsigned long long timeout_ns)
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

/* A program that counts the looks over the bus, or shows them, defines this before it includes. */
#ifndef GPUL_FIFO_ON_POLL
#define GPUL_FIFO_ON_POLL(line) ((void)(line))
#endif

/* tail and abort of a line, over the bus. */
static __device__ __forceinline__ void gpul_fifo_read_line(const gpul_fifo_line *line, unsigned long long *tail,
						      unsigned long long *abort)
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

/* What the elected poller of a lane tells, in device memory: see fifo_layout.h. */
static __device__ __forceinline__ unsigned long long gpul_fifo_read_shared_tail(const gpul_fifo_lane *lane)
{
	unsigned long long shared_tail;

	asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(shared_tail) : "l"(&lane->shared_tail) : "memory");
	return shared_tail;
}

static __device__ __forceinline__ void gpul_fifo_share_tail(gpul_fifo_lane *lane, unsigned long long tail, unsigned state)
{
	asm volatile("st.release.gpu.global.u64 [%0], %1;"
		     :
		     : "l"(&lane->shared_tail), "l"(tail << GPUL_FIFO_POLLER_BITS | state)
		     : "memory");
}

/* shared_tail: what was shared_tail last, by which nobody polls. */
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

/* Give up, for everybody: the proxy sees it, and so does who waits.  code is not 0. */
static __device__ __forceinline__ void gpul_fifo_raise(const gpul_fifo_port *port, unsigned code)
{
	asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(port->raised), "l"((unsigned long long)code) : "memory");
}

/* Look over the bus until the tail is at least upto; tell the others of the lane what it is, if told to. */
static __device__ inline gpul_fifo_result gpul_fifo_poll_until(gpul_fifo_port *port, unsigned long long upto,
							       unsigned long long timeout_ns, bool tell)
{
	unsigned long long start = 0, tail, abort;

	for (unsigned polls = 1;; polls++) {
		gpul_fifo_read_line(port->line, &tail, &abort);
		const bool there = tail >= upto, late = !there && gpul_fifo_timed_out(polls, &start, timeout_ns);

		if (tell && (tail > port->tail || abort || late || there))
			gpul_fifo_share_tail(port->lane, tail,
				       abort ? GPUL_FIFO_BROKEN : there || late ? GPUL_FIFO_NO_POLLER : GPUL_FIFO_POLLED);
		port->tail = tail;
		if (there)
			return GPUL_FIFO_OK;
		if (abort)
			return GPUL_FIFO_ABORTED;
		if (late)
			return GPUL_FIFO_TIMED_OUT;
	}
}

/* The same for a lane that is shared: one looks, the others read what it saw. */
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

/* One look for all who share the lane, before anybody waits; none while somebody polls anyway. */
static __device__ inline void gpul_fifo_poll_ahead(gpul_fifo_port *port)
{
	const unsigned long long shared_tail = gpul_fifo_read_shared_tail(port->lane);
	unsigned long long abort;

	if ((shared_tail & ((1u << GPUL_FIFO_POLLER_BITS) - 1)) != GPUL_FIFO_NO_POLLER || !gpul_fifo_become_poller(port->lane, shared_tail))
		return;
	gpul_fifo_read_line(port->line, &port->tail, &abort);
	gpul_fifo_share_tail(port->lane, port->tail, abort ? GPUL_FIFO_BROKEN : GPUL_FIFO_NO_POLLER);
}

static __device__ __forceinline__ gpul_fifo_result gpul_fifo_wait(gpul_fifo_port *port, unsigned long long upto,
								  unsigned long long timeout_ns)
{
	return port->owned ? gpul_fifo_poll_until(port, upto, timeout_ns, false)
			   : gpul_fifo_await_poller(port, upto, timeout_ns);
}

/* An owner's first look at what its last push came to; was it there? */
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

/* Wait until the proxy has handled all positions below upto (port->next: all that this thread pushed).  What the
 * proxy and its handlers wrote before is then visible to this thread.  It may last 32 looks longer than timeout_ns;
 * ~0ull: for ever, or until aborted. */
static __device__ inline gpul_fifo_result gpul_fifo_sync(gpul_fifo_port *port, unsigned long long upto,
							 unsigned long long timeout_ns)
{
	if (port->tail >= upto)
		return GPUL_FIFO_OK;
	if (upto == port->next && port->owned && gpul_fifo_first_poll(port, upto))
		return GPUL_FIFO_OK;
	if (upto == port->next && !port->owned)
		gpul_fifo_delay_poll(port);
	return gpul_fifo_wait(port, upto, timeout_ns);
}

/* Has it?  One look, no wait: OK, ABORTED, or TIMED_OUT for not yet. */
static __device__ inline gpul_fifo_result gpul_fifo_poll(gpul_fifo_port *port, unsigned long long upto)
{
	unsigned long long abort;

	if (port->tail >= upto)
		return GPUL_FIFO_OK;
	gpul_fifo_read_line(port->line, &port->tail, &abort);
	return port->tail >= upto ? GPUL_FIFO_OK : abort ? GPUL_FIFO_ABORTED : GPUL_FIFO_TIMED_OUT;
}

static __device__ __forceinline__ void gpul_fifo_port_open(const gpul_fifo_device *fifo, unsigned lane, bool owned,
							   gpul_fifo_port *port)
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

/* Way into lane (mod the number of lanes), shared with any other thread that opens it so. */
static __device__ inline void gpul_fifo_share(const gpul_fifo_device *fifo, unsigned lane, gpul_fifo_port *port)
{
	gpul_fifo_port_open(fifo, lane, false, port);
}

/* Take a lane for oneself; what its last owner left is visible then.  False: somebody has it. */
static __device__ __forceinline__ bool gpul_fifo_take_lane(gpul_fifo_lane *lane)
{
	unsigned long long was;

	asm volatile("atom.acquire.gpu.global.exch.b64 %0, [%1], 1;" : "=l"(was) : "l"(&lane->owner) : "memory");
	return was == 0;
}

/* Way into lane (mod the number of lanes) for this thread alone.  BUSY: somebody owns it.  A lane is shared or owned:
 * nobody shares one while it is owned. */
static __device__ inline gpul_fifo_result gpul_fifo_own(const gpul_fifo_device *fifo, unsigned lane,
							gpul_fifo_port *port)
{
	gpul_fifo_port_open(fifo, lane, true, port);
	if (!gpul_fifo_take_lane(port->lane))
		return GPUL_FIFO_BUSY;
	port->next = port->lane->head;
	return GPUL_FIFO_OK;
}

/* The same for this warp alone, for warp_push: all 32 threads call. */
static __device__ inline gpul_fifo_result gpul_fifo_warp_own(const gpul_fifo_device *fifo, unsigned lane,
							     gpul_fifo_port *port)
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

/* Leave the lane to its next owner.  By who got OK from own; the port is of no more use. */
static __device__ inline void gpul_fifo_disown(gpul_fifo_port *port)
{
	port->lane->head = port->next;
	asm volatile("st.release.gpu.global.u64 [%0], 0;" : : "l"(&port->lane->owner) : "memory");
}

/* The same by the warp that got OK from warp_own. */
static __device__ inline void gpul_fifo_warp_disown(gpul_fifo_port *port)
{
	__syncwarp();
	if ((threadIdx.x & 31) == 0)
		gpul_fifo_disown(port);
}

/* The lap bit of a position, where it stands in a word. */
static __device__ __forceinline__ unsigned long long gpul_fifo_lap(unsigned long long at, unsigned shift)
{
	return (unsigned long long)((~(unsigned)at << (31 - shift)) & 0x80000000u) << 32;
}

/* Wait for the slot; a ticket that is given up leaves a gap that ends everything. */
template <bool RELEASE>
static __device__ __forceinline__ gpul_fifo_result gpul_fifo_wait_for_slot(gpul_fifo_port *port, unsigned long long upto,
								  unsigned long long timeout_ns)
{
	unsigned long long abort;
	gpul_fifo_result result;

	if (port->owned && port->shift == 0 && !RELEASE) {  /* a fence takes as long */
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

/* The part of a push that all have: position, fence, room, store. */
template <bool RELEASE>
static __device__ __forceinline__ gpul_fifo_result gpul_fifo_push_as(gpul_fifo_port *port, unsigned long long a,
								     unsigned long long b, unsigned long long timeout_ns)
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

/* Push; whatever this thread wrote before may become visible later (the caller orders, or does not care).  Bit 63 of
 * each word must be 0.  timeout_ns as for sync.  TIMED_OUT: an owner has not pushed, and may try again; a thread that
 * shares the lane has left a slot that stays empty, so the FIFO is aborted. */
static __device__ __forceinline__ gpul_fifo_result gpul_fifo_push(gpul_fifo_port *port, unsigned long long a,
								  unsigned long long b, unsigned long long timeout_ns)
{
	return gpul_fifo_push_as<false>(port, a, b, timeout_ns);
}

/* Push; everything that this thread wrote before, or saw through a barrier, is visible to who sees the trigger. */
static __device__ __forceinline__ gpul_fifo_result gpul_fifo_push_release(gpul_fifo_port *port, unsigned long long a,
									  unsigned long long b,
									  unsigned long long timeout_ns)
{
	return gpul_fifo_push_as<true>(port, a, b, timeout_ns);
}

/* The warp's 32 triggers at once, in the order of the threads.  All 32 call, with ports of one lane that no thread has
 * pushed through alone.  TIMED_OUT: a warp that owns a lane of 32 slots or more has not pushed, and may try again; else
 * the FIFO is aborted. */
static __device__ inline gpul_fifo_result gpul_fifo_warp_push(gpul_fifo_port *port, unsigned long long a,
							      unsigned long long b, unsigned long long timeout_ns)
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

		/* a thread that has synced alone knows more than the others: all go one way */
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
