/* support.h — what the tests of leases share: the software driver, memory to offer, counts of
 * what is open. */
#ifndef GPULOAD_TESTS_IPC_SUPPORT_H
#define GPULOAD_TESTS_IPC_SUPPORT_H

#include "driver/context.h"
#include "ipc/client.h"
#include "ipc/server.h"

enum { PATIENCE_MS = 20000 };  /* for what must happen, on a busy machine */

/* The software driver with the context of device 0 current; opened once a process. */
const gpul_driver *the_driver(void);
void close_the_driver(void);

/* A folder of this program's own for its sockets, in GPULOAD_RUNTIME_DIR; removed by
 * remove_runtime_folder(). */
void make_runtime_folder(void);
void remove_runtime_folder(void);

gpul_mem *make_memory(gpul_mem_kind kind, size_t bytes);
/* Offer mem under a name, with a control page. */
gpul_ipc_server *offer(gpul_mem *mem, const char *name);
gpul_ipc_client *begin_attach(const char *name);
/* Let the server and a client in this process talk until the client is attached. */
gpul_ipc_client *attach_here(gpul_ipc_server *s, const char *name);

/* The next event must be of that kind. */
gpul_ipc_event expect_event(gpul_ipc_server *s, gpul_ipc_event_kind kind);
gpul_ipc_event expect_client_event(gpul_ipc_client *c, gpul_ipc_event_kind kind);

/* How many descriptors this process has open, and how many mappings of files: others are an
 * allocator's, too. */
unsigned n_open_fds(void);
unsigned n_maps(void);

#endif
