/* way.h — the complete path of a put between two processes: kernel, FIFO, proxy, connection, the peer's memory, the peer's kernel.
 * whole_way.c: options and processes; way_end.c: one of the two ends. */
#ifndef GPULOAD_TESTS_RDMA_PUT_WAY_H
#define GPULOAD_TESTS_RDMA_PUT_WAY_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"
#include "rdma/rdma.h"

enum way_break { BREAK_NOTHING, BREAK_DATA, BREAK_SENDER, BREAK_RECEIVER };

struct way_options {
	uint64_t puts, blocks, bytes, qps, window, timeout_s;
	const char *backend, *provider, *device, *ptx;
	gpul_driver_choice driver;
	enum way_break broken; /* the fault that the test causes after half of the rounds */
};

/* The results that an end reports. */
struct way_report {
	uint64_t rounds;     /* number of rounds of each block */
	uint64_t elapsed_ns; /* running time of its kernel */
	char fabric[120], driver[16], memory[16];
};

/** Run one end until all puts have been checked.
 *
 * @o       options, the same in both processes
 * @sender  which end
 * @socket  connected to the other end, for addresses and the end of the run
 * @out     the report
 * Errors  all of the layers below; GPUL_EFORMAT a wrong word
 * Threads the main thread */
gpul_status way_run_end(const struct way_options *o, bool sender, int socket, struct way_report *out, gpul_error *err);

#endif
