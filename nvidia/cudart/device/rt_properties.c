/* rt_properties.c — cudaGetDeviceProperties: every attribute of a device in one structure.
 *
 * Compiled for the interfaces of CUDA 12 and of CUDA 13 (rt_abi_internal.h).
 * Source: CUDA Runtime API, cudaDeviceProp; CUDA Driver API, CUdevice_attribute. */
#include <stddef.h>
#include <string.h>

#include "nvidia/cudart/rt_abi_internal.h"
#include "nvidia/cudart/device/rt_properties12_internal.h"

#if GPUL_RT_ABI < 13
typedef struct gpul_rt_properties_12 properties;
#else
typedef struct cudaDeviceProp properties;
#endif

static const struct row {
	size_t offset, bytes; /* position and size of the field, which is an int or a size_t */
	CUdevice_attribute from;
} rows[] = {
#define ROW(field, attribute)  { offsetof(properties, field), sizeof((properties *)0)->field, CU_DEVICE_ATTRIBUTE_##attribute },
#define ROW3(field, attribute) ROW(field[0], attribute##_X) ROW(field[1], attribute##_Y) ROW(field[2], attribute##_Z)
	ROW(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK) ROW(regsPerBlock, MAX_REGISTERS_PER_BLOCK) ROW(warpSize, WARP_SIZE) ROW(
		memPitch, MAX_PITCH) ROW(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK) ROW3(maxThreadsDim, MAX_BLOCK_DIM) ROW3(maxGridSize,
															    MAX_GRID_DIM)
		ROW(totalConstMem, TOTAL_CONSTANT_MEMORY) ROW(major, COMPUTE_CAPABILITY_MAJOR) ROW(minor, COMPUTE_CAPABILITY_MINOR) ROW(
			textureAlignment,
			TEXTURE_ALIGNMENT) ROW(texturePitchAlignment,
					       TEXTURE_PITCH_ALIGNMENT) ROW(multiProcessorCount,
									    MULTIPROCESSOR_COUNT) ROW(integrated,
												      INTEGRATED) ROW(canMapHostMemory,
														      CAN_MAP_HOST_MEMORY)
			ROW(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH) ROW(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH) ROW(
				maxTexture2D[0],
				MAXIMUM_TEXTURE2D_WIDTH) ROW(maxTexture2D[1],
							     MAXIMUM_TEXTURE2D_HEIGHT) ROW(maxTexture2DMipmap[0],
											   MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH)
				ROW(maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT) ROW(maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH) ROW(
					maxTexture2DLinear[1],
					MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) ROW(maxTexture2DLinear[2],
									     MAXIMUM_TEXTURE2D_LINEAR_PITCH) ROW(maxTexture2DGather[0],
														 MAXIMUM_TEXTURE2D_GATHER_WIDTH)
					ROW(maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT) ROW(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH) ROW(
						maxTexture3D
							[1],
						MAXIMUM_TEXTURE3D_HEIGHT) ROW(maxTexture3D[2],
									      MAXIMUM_TEXTURE3D_DEPTH) ROW(maxTexture3DAlt[0],
													   MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE)
						ROW(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE) ROW(
							maxTexture3DAlt[2],
							MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE) ROW(maxTextureCubemap,
											       MAXIMUM_TEXTURECUBEMAP_WIDTH)
							ROW(maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH) ROW(
								maxTexture1DLayered[1],
								MAXIMUM_TEXTURE1D_LAYERED_LAYERS) ROW(maxTexture2DLayered[0],
												      MAXIMUM_TEXTURE2D_LAYERED_WIDTH)
								ROW(maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT) ROW(
									maxTexture2DLayered[2],
									MAXIMUM_TEXTURE2D_LAYERED_LAYERS) ROW(maxTextureCubemapLayered[0],
													      MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH)
									ROW(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS) ROW(
										maxSurface1D,
										MAXIMUM_SURFACE1D_WIDTH) ROW(maxSurface2D[0],
													     MAXIMUM_SURFACE2D_WIDTH)
										ROW(maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT) ROW(
											maxSurface3D
												[0],
											MAXIMUM_SURFACE3D_WIDTH) ROW(maxSurface3D[1],
														     MAXIMUM_SURFACE3D_HEIGHT)
											ROW(maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH) ROW(
												maxSurface1DLayered[0],
												MAXIMUM_SURFACE1D_LAYERED_WIDTH) ROW(maxSurface1DLayered
																	     [1],
																     MAXIMUM_SURFACE1D_LAYERED_LAYERS)
												ROW(maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH) ROW(
													maxSurface2DLayered[1],
													MAXIMUM_SURFACE2D_LAYERED_HEIGHT) ROW(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS) ROW(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH) ROW(maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH) ROW(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS) ROW(surfaceAlignment,
																																																		SURFACE_ALIGNMENT) ROW(concurrentKernels,
																																																				       CONCURRENT_KERNELS) ROW(ECCEnabled,
																																																							       ECC_ENABLED) ROW(pciBusID,
																																																										PCI_BUS_ID) ROW(pciDeviceID, PCI_DEVICE_ID) ROW(pciDomainID, PCI_DOMAIN_ID) ROW(tccDriver,
																																																																				TCC_DRIVER) ROW(asyncEngineCount, ASYNC_ENGINE_COUNT) ROW(unifiedAddressing,
																																																																											  UNIFIED_ADDRESSING) ROW(memoryBusWidth,
																																																																														  GLOBAL_MEMORY_BUS_WIDTH) ROW(l2CacheSize, L2_CACHE_SIZE) ROW(persistingL2CacheMaxSize,
																																																																																					       MAX_PERSISTING_L2_CACHE_SIZE) ROW(maxThreadsPerMultiProcessor,
																																																																																										 MAX_THREADS_PER_MULTIPROCESSOR) ROW(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED) ROW(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED) ROW(localL1CacheSupported,
																																																																																																													LOCAL_L1_CACHE_SUPPORTED) ROW(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) ROW(regsPerMultiprocessor,
																																																																																																																									    MAX_REGISTERS_PER_MULTIPROCESSOR) ROW(managedMemory, MANAGED_MEMORY) ROW(isMultiGpuBoard, MULTI_GPU_BOARD) ROW(multiGpuBoardGroupID,
																																																																																																																																							   MULTI_GPU_BOARD_GROUP_ID) ROW(hostNativeAtomicSupported,
																																																																																																																																											 HOST_NATIVE_ATOMIC_SUPPORTED) ROW(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS) ROW(concurrentManagedAccess,
																																																																																																																																																					     CONCURRENT_MANAGED_ACCESS) ROW(computePreemptionSupported,
																																																																																																																																																									    COMPUTE_PREEMPTION_SUPPORTED) ROW(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM) ROW(cooperativeLaunch,
																																																																																																																																																																							      COOPERATIVE_LAUNCH) ROW(sharedMemPerBlockOptin,
																																																																																																																																																																										      MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) ROW(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES) ROW(directManagedMemAccessFromHost,
																																																																																																																																																																																										       DIRECT_MANAGED_MEM_ACCESS_FROM_HOST) ROW(maxBlocksPerMultiProcessor,
																																																																																																																																																																																																MAX_BLOCKS_PER_MULTIPROCESSOR) ROW(accessPolicyMaxWindowSize,
																																																																																																																																																																																																				   MAX_ACCESS_POLICY_WINDOW_SIZE) ROW(reservedSharedMemPerBlock,
																																																																																																																																																																																																								      RESERVED_SHARED_MEMORY_PER_BLOCK) ROW(hostRegisterSupported,
																																																																																																																																																																																																													    HOST_REGISTER_SUPPORTED) ROW(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED) ROW(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED)
													ROW(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED) ROW(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED) ROW(
														gpuDirectRDMASupported,
														GPU_DIRECT_RDMA_SUPPORTED) ROW(gpuDirectRDMAFlushWritesOptions,
																	       GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS) ROW(gpuDirectRDMAWritesOrdering,
																							 GPU_DIRECT_RDMA_WRITES_ORDERING)
														ROW(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES) ROW(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED) ROW(
															ipcEventSupported,
															IPC_EVENT_SUPPORTED) ROW(clusterLaunch,
																		 CLUSTER_LAUNCH) ROW(unifiedFunctionPointers,
																				     UNIFIED_FUNCTION_POINTERS)
#if GPUL_RT_ABI < 13 /* CUDA 13 lacks these fields */
															ROW(clockRate, CLOCK_RATE) ROW(memoryClockRate, MEMORY_CLOCK_RATE) ROW(
																deviceOverlap,
																GPU_OVERLAP) ROW(kernelExecTimeoutEnabled,
																		 KERNEL_EXEC_TIMEOUT)
																ROW(computeMode, COMPUTE_MODE) ROW(
																	singleToDoublePrecisionPerfRatio,
																	SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)
																	ROW(cooperativeMultiDeviceLaunch,
																	    COOPERATIVE_MULTI_DEVICE_LAUNCH)
#else
															ROW(deviceNumaConfig,
															    NUMA_CONFIG) ROW(deviceNumaId,
																	     NUMA_ID)
																ROW(mpsEnabled,
																    MPS_ENABLED)
																	ROW(hostNumaId,
																	    HOST_NUMA_ID)
#endif
#undef ROW
};

static void set_field(void *field, size_t field_bytes, int value)
{
	size_t wide = (size_t)(unsigned)value;

	if (field_bytes == sizeof value)
		memcpy(field, &value, sizeof value);
	else
		memcpy(field, &wide, sizeof wide);
}

/* Fill in the first out_bytes of a structure. */
static cudaError_t fill(properties *out, size_t out_bytes, int ordinal)
{
	properties p;
	const gpul_driver *drv;
	CUuuid uuid = { { 0 } };
	CUdevice device;
	cudaError_t e = gpul_rt_driver(&drv);

	if (e || (e = gpul_rt_cu(drv, cuDeviceGet(&device, ordinal))))
		return e;
	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the properties is NULL");
	memset(&p, 0, sizeof p);
	if ((e = gpul_rt_cu(drv, cuDeviceGetName(p.name, sizeof p.name, device))) ||
	    (e = gpul_rt_cu(drv, cuDeviceTotalMem(&p.totalGlobalMem, device))) || (e = gpul_rt_cu(drv, cuDeviceGetUuid(&uuid, device))))
		return e;
	memcpy(&p.uuid, &uuid, sizeof p.uuid);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int value = 0; /* remains 0 if the driver does not support the attribute */

		(void)drv->cuDeviceGetAttribute(&value, rows[i].from, device);
		set_field((char *)&p + rows[i].offset, rows[i].bytes, value);
	}
	memcpy(out, &p, out_bytes);
	return cudaSuccess;
}

GPUL_RT_DECLARE(GPUL_RT_NEW("cudaGetDeviceProperties"), gpul_rt_properties, (properties * out, int ordinal))
cudaError_t gpul_rt_properties(properties *out, int ordinal)
{
	return fill(out, sizeof *out, ordinal);
}

#if GPUL_RT_ABI < 13
GPUL_RT_DECLARE(GPUL_RT_OLD("cudaGetDeviceProperties"), gpul_rt_properties_11, (properties * out, int ordinal))
cudaError_t gpul_rt_properties_11(properties *out, int ordinal)
{
	return fill(out, offsetof(properties, hostRegisterSupported), ordinal);
}
#endif

/* Rank a device by how well it matches: first by compute capability, then by name, then by memory size. */
static int match(const properties *has, const properties *wanted)
{
	return 4 * (wanted->major == has->major && wanted->minor == has->minor) +
	       2 * (wanted->name[0] && !strncmp(wanted->name, has->name, sizeof has->name)) +
	       (has->totalGlobalMem >= wanted->totalGlobalMem);
}

GPUL_RT_DECLARE("cudaChooseDevice", gpul_rt_choose_device, (int *out, const properties *wanted))
cudaError_t gpul_rt_choose_device(int *out, const properties *wanted)
{
	int n = 0, best = -1;
	cudaError_t e = cudaGetDeviceCount(&n);

	if (!e && (!out || !wanted))
		return gpul_rt_fail(cudaErrorInvalidValue, "a pointer argument is NULL");
	for (int i = 0; !e && i < n; i++) {
		properties has;

		e = fill(&has, sizeof has, i);
		if (!e && match(&has, wanted) > best) {
			best = match(&has, wanted);
			*out = i;
		}
	}
	return e;
}

/* ---- versions ---------------------------------------------------------------------------- */

/* The CUDA version of the headers that were used; 12.9 if this is the interface of CUDA 12, but the headers are of CUDA 13. */
GPUL_RT_DECLARE("cudaRuntimeGetVersion", gpul_rt_get_version, (int *version))
cudaError_t gpul_rt_get_version(int *version)
{
	if (!version)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the version is NULL");
	*version = GPUL_RT_VERSION;
	return cudaSuccess;
}
