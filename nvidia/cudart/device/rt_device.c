/* rt_device.c — finds devices, and gets and sets the device of the calling thread.
 *
 * Source: CUDA Runtime API, Device, Version, and Peer Device Memory Access Management. */
#include "nvidia/cudart/memory/rt_memory_internal.h"

/* Get the driver's handle of a device; if there is no such device, the error is cudaErrorInvalidDevice. */
static cudaError_t device_of(const gpul_driver **drv, int ordinal, CUdevice *out)
{
	cudaError_t e = gpul_rt_driver(drv);

	return e ? e : gpul_rt_cu(*drv, cuDeviceGet(out, ordinal));
}

cudaError_t cudaGetDeviceCount(int *count)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_driver(&drv);

	if (e == cudaErrorNoDevice)
		*count = 0;
	return e ? e : gpul_rt_cu(drv, cuDeviceGetCount(count));
}

cudaError_t cudaGetDevice(int *ordinal)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_driver(&drv);

	if (!ordinal)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the device number is NULL");
	return e ? e : gpul_rt_device(drv, ordinal);
}

cudaError_t cudaSetDevice(int ordinal)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_driver(&drv);

	return e ? e : gpul_rt_set_device(drv, ordinal);
}

cudaError_t cudaInitDevice(int ordinal, unsigned int device_flags, unsigned int flags)
{
	const gpul_driver *drv;
	CUcontext context;
	CUdevice device;
	cudaError_t e = device_of(&drv, ordinal, &device);

	if (e)
		return e;
	if (flags & cudaInitDeviceFlagsAreValid)
		e = gpul_rt_cu(drv, cuDevicePrimaryCtxSetFlags(device, device_flags));
	return e ? e : gpul_rt_context(drv, ordinal, &context);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
	const gpul_driver *drv;
	CUdevice device;
	int ordinal = 0;
	cudaError_t e = cudaGetDevice(&ordinal);

	if (!e)
		e = device_of(&drv, ordinal, &device);
	return e ? e : gpul_rt_cu(drv, cuDevicePrimaryCtxSetFlags(device, flags));
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
	const gpul_driver *drv;
	CUdevice device;
	int ordinal = 0, active;
	cudaError_t e = cudaGetDevice(&ordinal);

	if (!e)
		e = device_of(&drv, ordinal, &device);
	return e ? e : gpul_rt_cu(drv, cuDevicePrimaryCtxGetState(device, flags, &active));
}

/* The runtime's and the driver's enumeration of attributes have the same numbers. */
_Static_assert((int)cudaDevAttrWarpSize == (int)CU_DEVICE_ATTRIBUTE_WARP_SIZE &&
		       (int)cudaDevAttrComputeCapabilityMajor == (int)CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
		       (int)cudaDevAttrCooperativeLaunch == (int)CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH,
	       "a cudaDeviceAttr has the number of its CUdevice_attribute");

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int ordinal)
{
	const gpul_driver *drv;
	CUdevice device;
	cudaError_t e = device_of(&drv, ordinal, &device);

	if (e)
		return e;
	return gpul_rt_cu(drv, cuDeviceGetAttribute(value, (CUdevice_attribute)which, device));
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int text_bytes, int ordinal)
{
	const gpul_driver *drv;
	CUdevice device;
	cudaError_t e = device_of(&drv, ordinal, &device);

	return e ? e : gpul_rt_cu(drv, cuDeviceGetPCIBusId(text, text_bytes, device));
}

cudaError_t cudaDeviceGetByPCIBusId(int *ordinal, const char *text)
{
	const gpul_driver *drv;
	CUdevice device = 0;
	cudaError_t e = gpul_rt_driver(&drv);

	if (e || (e = gpul_rt_cu(drv, cuDeviceGetByPCIBusId(&device, text))))
		return e;
	*ordinal = device;
	return cudaSuccess;
}

/* Convert the channel descriptor, because the driver's function expects a format and a number of channels. */
cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *out, const struct cudaChannelFormatDesc *desc, int ordinal)
{
	const gpul_driver *drv;
	CUarray_format format;
	CUdevice device;
	unsigned n = 0;
	cudaError_t e = device_of(&drv, ordinal, &device);

	if (e || (e = gpul_rt_array_format(desc, &format, &n)))
		return e;
	return gpul_rt_cu(drv, cuDeviceGetTexture1DLinearMaxWidth(out, format, n, device));
}

/* NVIDIA's runtime tries the listed devices in turn when a thread first needs a device; this function selects the first one immediately. */
cudaError_t cudaSetValidDevices(int *ordinals, int n)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_driver(&drv);

	for (int i = 0; !e && i < n; i++) {
		CUdevice device;

		e = gpul_rt_cu(drv, cuDeviceGet(&device, ordinals[i]));
	}
	return e || n <= 0 ? e : gpul_rt_set_device(drv, ordinals[0]);
}

GPUL_RT_FORWARD(cudaDeviceSynchronize, (void), cuCtxSynchronize())
GPUL_RT_FORWARD(cudaDeviceGetCacheConfig, (enum cudaFuncCache * out), cuCtxGetCacheConfig((CUfunc_cache *)(void *)out))
GPUL_RT_FORWARD(cudaDeviceSetCacheConfig, (enum cudaFuncCache config), cuCtxSetCacheConfig((CUfunc_cache)config))
GPUL_RT_FORWARD(cudaDeviceFlushGPUDirectRDMAWrites,
		(enum cudaFlushGPUDirectRDMAWritesTarget target, enum cudaFlushGPUDirectRDMAWritesScope scope),
		cuFlushGPUDirectRDMAWrites((CUflushGPUDirectRDMAWritesTarget)target, (CUflushGPUDirectRDMAWritesScope)scope))

/* Get the bank size of shared memory, which is fixed on all devices that CUDA 12 or later supports. */
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *out);
cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *out)
{
	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the configuration is NULL");
	*out = cudaSharedMemBankSizeFourByte;
	return cudaSuccess;
}

cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config);
cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
	(void)config;
	return cudaSuccess;
}

cudaError_t cudaDeviceReset(void)
{
	const gpul_driver *drv;
	int ordinal = 0;
	cudaError_t e = gpul_rt_driver(&drv);

	if (!e)
		e = gpul_rt_device(drv, &ordinal);
	return e ? e : gpul_rt_reset_device(drv, ordinal);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit which, size_t value)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuCtxSetLimit((CUlimit)which, value));
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit which)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuCtxGetLimit(value, (CUlimit)which));
}

/* ---- versions ---------------------------------------------------------------------------- */

cudaError_t cudaDriverGetVersion(int *version)
{
	const gpul_driver *drv = gpul_rt_driver_if_any();

	if (!version)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the version is NULL");
	*version = drv ? drv->version : 0; /* 0 means no driver (CUDA Runtime API, cudaDriverGetVersion) */
	return cudaSuccess;
}

/* ---- properties of pairs of devices, and atomic operations ------------------------------------- */

_Static_assert((int)cudaDevP2PAttrCudaArrayAccessSupported == (int)CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED,
	       "the attributes of both interfaces have the same numbers");

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr which, int from, int to)
{
	const gpul_driver *drv;
	CUdevice source, target = 0;
	cudaError_t e = device_of(&drv, from, &source);

	if (!e)
		e = gpul_rt_cu(drv, cuDeviceGet(&target, to));
	return e ? e : gpul_rt_cu(drv, cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)which, source, target));
}

#if CUDART_VERSION >= 13000
GPUL_RT_FORWARD(cudaDeviceGetHostAtomicCapabilities,
		(unsigned int *out, const enum cudaAtomicOperation *operations, unsigned int n, int ordinal),
		cuDeviceGetHostAtomicCapabilities(out, (const CUatomicOperation *)(const void *)operations, n, ordinal))
GPUL_RT_FORWARD(cudaDeviceGetP2PAtomicCapabilities,
		(unsigned int *out, const enum cudaAtomicOperation *operations, unsigned int n, int from, int to),
		cuDeviceGetP2PAtomicCapabilities(out, (const CUatomicOperation *)(const void *)operations, n, from, to))
#endif

/* ---- access to the memory of another device ---------------------------------------------- */

cudaError_t cudaDeviceCanAccessPeer(int *can, int ordinal, int peer)
{
	const gpul_driver *drv;
	CUdevice device, other = 0;
	cudaError_t e = can ? device_of(&drv, ordinal, &device) : gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the result is NULL");

	if (!can)
		return e;
	if (!e)
		e = gpul_rt_cu(drv, cuDeviceGet(&other, peer));
	*can = 0;
	if (e || !gpul_driver_has(drv, "cuDeviceCanAccessPeer"))
		return e; /* the driver lacks the call: no peer access */
	return gpul_rt_cu(drv, cuDeviceCanAccessPeer(can, device, other));
}

static cudaError_t peer_context(const gpul_driver **drv, int peer, CUcontext *out)
{
	cudaError_t e = gpul_rt_enter(drv);

	return e ? e : gpul_rt_context(*drv, peer, out);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
	const gpul_driver *drv;
	CUcontext context;
	cudaError_t e = peer_context(&drv, peer, &context);

	if (e)
		return e;
	if (!gpul_driver_has(drv, "cuCtxEnablePeerAccess"))
		return gpul_rt_fail(cudaErrorPeerAccessUnsupported, "device %d: this driver does not support peer access", peer);
	return gpul_rt_cu(drv, cuCtxEnablePeerAccess(context, flags));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	const gpul_driver *drv;
	CUcontext context;
	cudaError_t e = peer_context(&drv, peer, &context);

	if (e)
		return e;
	if (!gpul_driver_has(drv, "cuCtxDisablePeerAccess"))
		return gpul_rt_fail(cudaErrorPeerAccessNotEnabled, "device %d: this driver does not support peer access", peer);
	return gpul_rt_cu(drv, cuCtxDisablePeerAccess(context));
}
