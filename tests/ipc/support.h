/* support.h — helpers for tests that share memory between processes: the software driver, and memory to offer. */
#ifndef GPULOAD_TESTS_IPC_SUPPORT_H
#define GPULOAD_TESTS_IPC_SUPPORT_H

#include "driver/context.h"
#include "ipc/client.h"
#include "ipc/server.h"
#include "tests/support/open_files.h"

enum { PATIENCE_MS = 20000 }; /* time-out for expected events, on a busy machine */

/* Return the software driver, opened once for each process, with the context of device 0 current. */
const gpul_driver *the_driver(void);
void close_the_driver(void);

/* Create a private folder for the sockets and set GPULOAD_RUNTIME_DIR to it; remove_runtime_folder() removes it. */
void make_runtime_folder(void);
void remove_runtime_folder(void);

/* The set-up and tear-down of a group of tests. */
int set_up_folder_and_driver(void **state);
int tear_down_folder_and_driver(void **state);

gpul_mem *make_memory(gpul_mem_kind kind, size_t bytes);
/* Create a server that offers mem under a name, with a control page. */
gpul_ipc_server *offer(gpul_mem *mem, const char *name);
gpul_ipc_client *begin_attach(const char *name);
/* Run a server and a client of this process in turn until the client is attached. */
gpul_ipc_client *attach_here(gpul_ipc_server *s, const char *name);

/* Wait for the next event, which must be of the given kind. */
gpul_ipc_event expect_event(gpul_ipc_server *s, gpul_ipc_event_kind kind);
gpul_ipc_event expect_client_event(gpul_ipc_client *c, gpul_ipc_event_kind kind);

#endif
