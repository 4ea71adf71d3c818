/* gpuload.h — everything of libgpuload that most programs need.
 *
 *     driver     gpul_driver, gpul_context    the driver, NVIDIA's or the software driver, and a context
 *     loader     gpul_module, gpul_kernel     kernels from files: load, find, launch
 *     memalloc   gpul_mem                     memory that GPUs, CPUs and other processes can map; ipc shares it
 *     proxy      gpul_fifo, gpul_proxy        requests from a kernel to a CPU thread
 *     rdma       gpul_rdma                    messages to another machine
 *     comm       gpul_comm                    collectives between GPUs */
#ifndef GPULOAD_GPULOAD_H
#define GPULOAD_GPULOAD_H

#include "comm/comm.h"
#include "core/error.h"
#include "driver/context.h"
#include "driver/driver.h"
#include "ipc/client.h"
#include "ipc/server.h"
#include "loader/loader.h"
#include "loader/symbol/symbol.h"
#include "memalloc/mem.h"
#include "proxy/fifo.h"
#include "proxy/proxy.h"
#include "rdma/rdma.h"

#endif
