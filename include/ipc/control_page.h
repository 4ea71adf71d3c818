/* control_page.h — the layout of the first page of a shared buffer; for C, C++, nvcc and NVRTC, so it includes nothing.
 *
 *        0       4       8            16                64              128
 *     ┌───────┬───────┬────────────┬─────────────────┬───────────────┬───────────────┬─ ─
 *     │ magic │ abort │ generation │ 0               │ step[0] ┊  0  │ step[1] ┊  0  │   63 of them
 *     └───────┴───────┴────────────┴─────────────────┴───────────────┴───────────────┴─ ─ */
#ifndef GPULOAD_IPC_CONTROL_PAGE_H
#define GPULOAD_IPC_CONTROL_PAGE_H

/* GPUL_IPC_CONTROL_MAGIC is the bytes "GUPL" as a little-endian number. */
enum { GPUL_IPC_N_STEPS = 63, GPUL_IPC_CONTROL_MAGIC = 0x4c505547 };

struct gpul_ipc_step { /* each counter has its own cache line, so that threads that poll one counter do not
			 * slow down the writer of another one */
	unsigned long long value, zero[7];
};

struct gpul_ipc_control {
	unsigned int magic, abort;
	unsigned long long generation, zero[6];
	struct gpul_ipc_step step[GPUL_IPC_N_STEPS];
};

#endif
