/* cu_calls_internal.h — every call that this driver exports: the CUDA version that introduced it, its symbol, and
 * its symbol for per-thread default streams.
 *
 * Used by cu_proc.c (cuGetProcAddress) and scripts/per_thread.py; a test compares it with the exported symbols.
 * Source: cudaTypedefs.h (version numbers).
 *
 *	CALL(name, since, symbol)         PTDS(name, since, symbol, per_thread_symbol) */
#ifndef GPULOAD_SOFTCUDA_API_CU_CALLS_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_CU_CALLS_INTERNAL_H

#define SOFT_CALLS(CALL, PTDS) \
	CALL(cuArray3DCreate, 3020, cuArray3DCreate_v2) \
	CALL(cuArray3DGetDescriptor, 3020, cuArray3DGetDescriptor_v2) \
	CALL(cuArrayCreate, 3020, cuArrayCreate_v2) \
	CALL(cuArrayDestroy, 2000, cuArrayDestroy) \
	CALL(cuArrayGetDescriptor, 3020, cuArrayGetDescriptor_v2) \
	CALL(cuArrayGetMemoryRequirements, 11060, cuArrayGetMemoryRequirements) \
	CALL(cuArrayGetPlane, 11020, cuArrayGetPlane) \
	CALL(cuArrayGetSparseProperties, 11010, cuArrayGetSparseProperties) \
	CALL(cuCoredumpGetAttribute, 12010, cuCoredumpGetAttribute) \
	CALL(cuCoredumpGetAttributeGlobal, 12010, cuCoredumpGetAttributeGlobal) \
	CALL(cuCoredumpSetAttribute, 12010, cuCoredumpSetAttribute) \
	CALL(cuCoredumpSetAttributeGlobal, 12010, cuCoredumpSetAttributeGlobal) \
	CALL(cuCtxAttach, 2000, cuCtxAttach) \
	CALL(cuCtxCreate, 2000, cuCtxCreate) \
	CALL(cuCtxCreate, 3020, cuCtxCreate_v2) \
	CALL(cuCtxCreate, 11040, cuCtxCreate_v3) \
	CALL(cuCtxCreate, 12050, cuCtxCreate_v4) \
	CALL(cuCtxDestroy, 2000, cuCtxDestroy) \
	CALL(cuCtxDestroy, 4000, cuCtxDestroy_v2) \
	CALL(cuCtxDetach, 2000, cuCtxDetach) \
	CALL(cuCtxDisablePeerAccess, 4000, cuCtxDisablePeerAccess) \
	CALL(cuCtxEnablePeerAccess, 4000, cuCtxEnablePeerAccess) \
	CALL(cuCtxGetApiVersion, 3020, cuCtxGetApiVersion) \
	CALL(cuCtxGetCacheConfig, 3020, cuCtxGetCacheConfig) \
	CALL(cuCtxGetCurrent, 4000, cuCtxGetCurrent) \
	CALL(cuCtxGetDevice, 2000, cuCtxGetDevice) \
	CALL(cuCtxGetDevice, 13000, cuCtxGetDevice_v2) \
	CALL(cuCtxGetFlags, 7000, cuCtxGetFlags) \
	CALL(cuCtxGetId, 12000, cuCtxGetId) \
	CALL(cuCtxGetLimit, 3010, cuCtxGetLimit) \
	CALL(cuCtxGetSharedMemConfig, 4020, cuCtxGetSharedMemConfig) \
	CALL(cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange) \
	CALL(cuCtxPopCurrent, 2000, cuCtxPopCurrent) \
	CALL(cuCtxPopCurrent, 4000, cuCtxPopCurrent_v2) \
	CALL(cuCtxPushCurrent, 2000, cuCtxPushCurrent) \
	CALL(cuCtxPushCurrent, 4000, cuCtxPushCurrent_v2) \
	CALL(cuCtxRecordEvent, 12050, cuCtxRecordEvent) \
	CALL(cuCtxResetPersistingL2Cache, 11000, cuCtxResetPersistingL2Cache) \
	CALL(cuCtxSetCacheConfig, 3020, cuCtxSetCacheConfig) \
	CALL(cuCtxSetCurrent, 4000, cuCtxSetCurrent) \
	CALL(cuCtxSetFlags, 12010, cuCtxSetFlags) \
	CALL(cuCtxSetLimit, 3010, cuCtxSetLimit) \
	CALL(cuCtxSetSharedMemConfig, 4020, cuCtxSetSharedMemConfig) \
	CALL(cuCtxSynchronize, 2000, cuCtxSynchronize) \
	CALL(cuCtxSynchronize, 13000, cuCtxSynchronize_v2) \
	CALL(cuCtxWaitEvent, 12050, cuCtxWaitEvent) \
	CALL(cuDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer) \
	CALL(cuDeviceComputeCapability, 2000, cuDeviceComputeCapability) \
	CALL(cuDeviceGet, 2000, cuDeviceGet) \
	CALL(cuDeviceGetAttribute, 2000, cuDeviceGetAttribute) \
	CALL(cuDeviceGetByPCIBusId, 4010, cuDeviceGetByPCIBusId) \
	CALL(cuDeviceGetCount, 2000, cuDeviceGetCount) \
	CALL(cuDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool) \
	CALL(cuDeviceGetExecAffinitySupport, 11040, cuDeviceGetExecAffinitySupport) \
	CALL(cuDeviceGetGraphMemAttribute, 11040, cuDeviceGetGraphMemAttribute) \
	CALL(cuDeviceGetMemPool, 11020, cuDeviceGetMemPool) \
	CALL(cuDeviceGetName, 2000, cuDeviceGetName) \
	CALL(cuDeviceGetP2PAttribute, 8000, cuDeviceGetP2PAttribute) \
	CALL(cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId) \
	CALL(cuDeviceGetProperties, 2000, cuDeviceGetProperties) \
	CALL(cuDeviceGetTexture1DLinearMaxWidth, 11010, cuDeviceGetTexture1DLinearMaxWidth) \
	CALL(cuDeviceGetUuid, 9020, cuDeviceGetUuid) \
	CALL(cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2) \
	CALL(cuDeviceGraphMemTrim, 11040, cuDeviceGraphMemTrim) \
	CALL(cuDevicePrimaryCtxGetState, 7000, cuDevicePrimaryCtxGetState) \
	CALL(cuDevicePrimaryCtxRelease, 7000, cuDevicePrimaryCtxRelease) \
	CALL(cuDevicePrimaryCtxRelease, 11000, cuDevicePrimaryCtxRelease_v2) \
	CALL(cuDevicePrimaryCtxReset, 7000, cuDevicePrimaryCtxReset) \
	CALL(cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2) \
	CALL(cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain) \
	CALL(cuDevicePrimaryCtxSetFlags, 7000, cuDevicePrimaryCtxSetFlags) \
	CALL(cuDevicePrimaryCtxSetFlags, 11000, cuDevicePrimaryCtxSetFlags_v2) \
	CALL(cuDeviceSetGraphMemAttribute, 11040, cuDeviceSetGraphMemAttribute) \
	CALL(cuDeviceSetMemPool, 11020, cuDeviceSetMemPool) \
	CALL(cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2) \
	CALL(cuDriverGetVersion, 2020, cuDriverGetVersion) \
	CALL(cuEventCreate, 2000, cuEventCreate) \
	CALL(cuEventDestroy, 2000, cuEventDestroy) \
	CALL(cuEventDestroy, 4000, cuEventDestroy_v2) \
	CALL(cuEventElapsedTime, 2000, cuEventElapsedTime) \
	CALL(cuEventElapsedTime, 12080, cuEventElapsedTime_v2) \
	CALL(cuEventQuery, 2000, cuEventQuery) \
	PTDS(cuEventRecord, 2000, cuEventRecord, cuEventRecord_ptsz) \
	PTDS(cuEventRecordWithFlags, 11010, cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz) \
	CALL(cuEventSynchronize, 2000, cuEventSynchronize) \
	CALL(cuFuncGetAttribute, 2020, cuFuncGetAttribute) \
	CALL(cuFuncGetModule, 11000, cuFuncGetModule) \
	CALL(cuFuncGetName, 12030, cuFuncGetName) \
	CALL(cuFuncGetParamInfo, 12040, cuFuncGetParamInfo) \
	CALL(cuFuncIsLoaded, 12040, cuFuncIsLoaded) \
	CALL(cuFuncLoad, 12040, cuFuncLoad) \
	CALL(cuFuncSetAttribute, 9000, cuFuncSetAttribute) \
	CALL(cuFuncSetBlockShape, 2000, cuFuncSetBlockShape) \
	CALL(cuFuncSetCacheConfig, 3000, cuFuncSetCacheConfig) \
	CALL(cuFuncSetSharedMemConfig, 4020, cuFuncSetSharedMemConfig) \
	CALL(cuFuncSetSharedSize, 2000, cuFuncSetSharedSize) \
	CALL(cuGetErrorName, 6000, cuGetErrorName) \
	CALL(cuGetErrorString, 6000, cuGetErrorString) \
	CALL(cuGetExportTable, 3000, cuGetExportTable) \
	PTDS(cuGetProcAddress, 11030, cuGetProcAddress, cuGetProcAddress_ptsz) \
	PTDS(cuGetProcAddress, 12000, cuGetProcAddress_v2, cuGetProcAddress_v2_ptsz) \
	CALL(cuGraphAddBatchMemOpNode, 11070, cuGraphAddBatchMemOpNode) \
	CALL(cuGraphAddChildGraphNode, 10000, cuGraphAddChildGraphNode) \
	CALL(cuGraphAddDependencies, 10000, cuGraphAddDependencies) \
	CALL(cuGraphAddDependencies, 12030, cuGraphAddDependencies_v2) \
	CALL(cuGraphAddEmptyNode, 10000, cuGraphAddEmptyNode) \
	CALL(cuGraphAddEventRecordNode, 11010, cuGraphAddEventRecordNode) \
	CALL(cuGraphAddEventWaitNode, 11010, cuGraphAddEventWaitNode) \
	CALL(cuGraphAddHostNode, 10000, cuGraphAddHostNode) \
	CALL(cuGraphAddKernelNode, 10000, cuGraphAddKernelNode) \
	CALL(cuGraphAddKernelNode, 12000, cuGraphAddKernelNode_v2) \
	CALL(cuGraphAddMemAllocNode, 11040, cuGraphAddMemAllocNode) \
	CALL(cuGraphAddMemFreeNode, 11040, cuGraphAddMemFreeNode) \
	CALL(cuGraphAddMemcpyNode, 10000, cuGraphAddMemcpyNode) \
	CALL(cuGraphAddMemsetNode, 10000, cuGraphAddMemsetNode) \
	CALL(cuGraphAddNode, 12020, cuGraphAddNode) \
	CALL(cuGraphAddNode, 12030, cuGraphAddNode_v2) \
	CALL(cuGraphBatchMemOpNodeGetParams, 11070, cuGraphBatchMemOpNodeGetParams) \
	CALL(cuGraphBatchMemOpNodeSetParams, 11070, cuGraphBatchMemOpNodeSetParams) \
	CALL(cuGraphChildGraphNodeGetGraph, 10000, cuGraphChildGraphNodeGetGraph) \
	CALL(cuGraphClone, 10000, cuGraphClone) \
	CALL(cuGraphConditionalHandleCreate, 12030, cuGraphConditionalHandleCreate) \
	CALL(cuGraphCreate, 10000, cuGraphCreate) \
	CALL(cuGraphDebugDotPrint, 11030, cuGraphDebugDotPrint) \
	CALL(cuGraphDestroy, 10000, cuGraphDestroy) \
	CALL(cuGraphDestroyNode, 10000, cuGraphDestroyNode) \
	CALL(cuGraphEventRecordNodeGetEvent, 11010, cuGraphEventRecordNodeGetEvent) \
	CALL(cuGraphEventRecordNodeSetEvent, 11010, cuGraphEventRecordNodeSetEvent) \
	CALL(cuGraphEventWaitNodeGetEvent, 11010, cuGraphEventWaitNodeGetEvent) \
	CALL(cuGraphEventWaitNodeSetEvent, 11010, cuGraphEventWaitNodeSetEvent) \
	CALL(cuGraphExecBatchMemOpNodeSetParams, 11070, cuGraphExecBatchMemOpNodeSetParams) \
	CALL(cuGraphExecChildGraphNodeSetParams, 11010, cuGraphExecChildGraphNodeSetParams) \
	CALL(cuGraphExecDestroy, 10000, cuGraphExecDestroy) \
	CALL(cuGraphExecEventRecordNodeSetEvent, 11010, cuGraphExecEventRecordNodeSetEvent) \
	CALL(cuGraphExecEventWaitNodeSetEvent, 11010, cuGraphExecEventWaitNodeSetEvent) \
	CALL(cuGraphExecGetFlags, 12000, cuGraphExecGetFlags) \
	CALL(cuGraphExecHostNodeSetParams, 10020, cuGraphExecHostNodeSetParams) \
	CALL(cuGraphExecKernelNodeSetParams, 10010, cuGraphExecKernelNodeSetParams) \
	CALL(cuGraphExecKernelNodeSetParams, 12000, cuGraphExecKernelNodeSetParams_v2) \
	CALL(cuGraphExecMemcpyNodeSetParams, 10020, cuGraphExecMemcpyNodeSetParams) \
	CALL(cuGraphExecMemsetNodeSetParams, 10020, cuGraphExecMemsetNodeSetParams) \
	CALL(cuGraphExecNodeSetParams, 12020, cuGraphExecNodeSetParams) \
	CALL(cuGraphExecUpdate, 10020, cuGraphExecUpdate) \
	CALL(cuGraphExecUpdate, 12000, cuGraphExecUpdate_v2) \
	CALL(cuGraphGetEdges, 10000, cuGraphGetEdges) \
	CALL(cuGraphGetEdges, 12030, cuGraphGetEdges_v2) \
	CALL(cuGraphGetNodes, 10000, cuGraphGetNodes) \
	CALL(cuGraphGetRootNodes, 10000, cuGraphGetRootNodes) \
	CALL(cuGraphHostNodeGetParams, 10000, cuGraphHostNodeGetParams) \
	CALL(cuGraphHostNodeSetParams, 10000, cuGraphHostNodeSetParams) \
	CALL(cuGraphInstantiate, 10000, cuGraphInstantiate) \
	CALL(cuGraphInstantiate, 11000, cuGraphInstantiate_v2) \
	CALL(cuGraphInstantiateWithFlags, 11040, cuGraphInstantiateWithFlags) \
	PTDS(cuGraphInstantiateWithParams, 12000, cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz) \
	CALL(cuGraphKernelNodeCopyAttributes, 11000, cuGraphKernelNodeCopyAttributes) \
	CALL(cuGraphKernelNodeGetAttribute, 11000, cuGraphKernelNodeGetAttribute) \
	CALL(cuGraphKernelNodeGetParams, 10000, cuGraphKernelNodeGetParams) \
	CALL(cuGraphKernelNodeGetParams, 12000, cuGraphKernelNodeGetParams_v2) \
	CALL(cuGraphKernelNodeSetAttribute, 11000, cuGraphKernelNodeSetAttribute) \
	CALL(cuGraphKernelNodeSetParams, 10000, cuGraphKernelNodeSetParams) \
	CALL(cuGraphKernelNodeSetParams, 12000, cuGraphKernelNodeSetParams_v2) \
	PTDS(cuGraphLaunch, 10000, cuGraphLaunch, cuGraphLaunch_ptsz) \
	CALL(cuGraphMemAllocNodeGetParams, 11040, cuGraphMemAllocNodeGetParams) \
	CALL(cuGraphMemFreeNodeGetParams, 11040, cuGraphMemFreeNodeGetParams) \
	CALL(cuGraphMemcpyNodeGetParams, 10000, cuGraphMemcpyNodeGetParams) \
	CALL(cuGraphMemcpyNodeSetParams, 10000, cuGraphMemcpyNodeSetParams) \
	CALL(cuGraphMemsetNodeGetParams, 10000, cuGraphMemsetNodeGetParams) \
	CALL(cuGraphMemsetNodeSetParams, 10000, cuGraphMemsetNodeSetParams) \
	CALL(cuGraphNodeFindInClone, 10000, cuGraphNodeFindInClone) \
	CALL(cuGraphNodeGetDependencies, 10000, cuGraphNodeGetDependencies) \
	CALL(cuGraphNodeGetDependencies, 12030, cuGraphNodeGetDependencies_v2) \
	CALL(cuGraphNodeGetDependentNodes, 10000, cuGraphNodeGetDependentNodes) \
	CALL(cuGraphNodeGetDependentNodes, 12030, cuGraphNodeGetDependentNodes_v2) \
	CALL(cuGraphNodeGetEnabled, 11060, cuGraphNodeGetEnabled) \
	CALL(cuGraphNodeGetType, 10000, cuGraphNodeGetType) \
	CALL(cuGraphNodeSetEnabled, 11060, cuGraphNodeSetEnabled) \
	CALL(cuGraphNodeSetParams, 12020, cuGraphNodeSetParams) \
	CALL(cuGraphReleaseUserObject, 11030, cuGraphReleaseUserObject) \
	CALL(cuGraphRemoveDependencies, 10000, cuGraphRemoveDependencies) \
	CALL(cuGraphRemoveDependencies, 12030, cuGraphRemoveDependencies_v2) \
	CALL(cuGraphRetainUserObject, 11030, cuGraphRetainUserObject) \
	PTDS(cuGraphUpload, 11010, cuGraphUpload, cuGraphUpload_ptsz) \
	CALL(cuInit, 2000, cuInit) \
	CALL(cuIpcCloseMemHandle, 4010, cuIpcCloseMemHandle) \
	CALL(cuIpcGetEventHandle, 4010, cuIpcGetEventHandle) \
	CALL(cuIpcGetMemHandle, 4010, cuIpcGetMemHandle) \
	CALL(cuIpcOpenEventHandle, 4010, cuIpcOpenEventHandle) \
	CALL(cuIpcOpenMemHandle, 4010, cuIpcOpenMemHandle) \
	CALL(cuIpcOpenMemHandle, 11000, cuIpcOpenMemHandle_v2) \
	CALL(cuKernelGetAttribute, 12000, cuKernelGetAttribute) \
	CALL(cuKernelGetFunction, 12000, cuKernelGetFunction) \
	CALL(cuKernelGetLibrary, 12050, cuKernelGetLibrary) \
	CALL(cuKernelGetName, 12030, cuKernelGetName) \
	CALL(cuKernelGetParamInfo, 12040, cuKernelGetParamInfo) \
	CALL(cuKernelSetAttribute, 12000, cuKernelSetAttribute) \
	CALL(cuKernelSetCacheConfig, 12000, cuKernelSetCacheConfig) \
	CALL(cuLaunch, 2000, cuLaunch) \
	PTDS(cuLaunchCooperativeKernel, 9000, cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz) \
	CALL(cuLaunchGrid, 2000, cuLaunchGrid) \
	CALL(cuLaunchGridAsync, 2000, cuLaunchGridAsync) \
	PTDS(cuLaunchHostFunc, 10000, cuLaunchHostFunc, cuLaunchHostFunc_ptsz) \
	PTDS(cuLaunchKernel, 4000, cuLaunchKernel, cuLaunchKernel_ptsz) \
	PTDS(cuLaunchKernelEx, 11060, cuLaunchKernelEx, cuLaunchKernelEx_ptsz) \
	CALL(cuLibraryEnumerateKernels, 12040, cuLibraryEnumerateKernels) \
	CALL(cuLibraryGetGlobal, 12000, cuLibraryGetGlobal) \
	CALL(cuLibraryGetKernel, 12000, cuLibraryGetKernel) \
	CALL(cuLibraryGetKernelCount, 12040, cuLibraryGetKernelCount) \
	CALL(cuLibraryGetManaged, 12000, cuLibraryGetManaged) \
	CALL(cuLibraryGetModule, 12000, cuLibraryGetModule) \
	CALL(cuLibraryLoadData, 12000, cuLibraryLoadData) \
	CALL(cuLibraryLoadFromFile, 12000, cuLibraryLoadFromFile) \
	CALL(cuLibraryUnload, 12000, cuLibraryUnload) \
	CALL(cuLinkAddData, 6050, cuLinkAddData_v2) \
	CALL(cuLinkAddFile, 6050, cuLinkAddFile_v2) \
	CALL(cuLinkComplete, 5050, cuLinkComplete) \
	CALL(cuLinkCreate, 6050, cuLinkCreate_v2) \
	CALL(cuLinkDestroy, 5050, cuLinkDestroy) \
	CALL(cuMemAddressFree, 10020, cuMemAddressFree) \
	CALL(cuMemAddressReserve, 10020, cuMemAddressReserve) \
	CALL(cuMemAdvise, 8000, cuMemAdvise) \
	CALL(cuMemAdvise, 12020, cuMemAdvise_v2) \
	CALL(cuMemAlloc, 3020, cuMemAlloc_v2) \
	PTDS(cuMemAllocAsync, 11020, cuMemAllocAsync, cuMemAllocAsync_ptsz) \
	PTDS(cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz) \
	CALL(cuMemAllocHost, 3020, cuMemAllocHost_v2) \
	CALL(cuMemAllocManaged, 6000, cuMemAllocManaged) \
	CALL(cuMemAllocPitch, 3020, cuMemAllocPitch_v2) \
	CALL(cuMemCreate, 10020, cuMemCreate) \
	PTDS(cuMemDiscardAndPrefetchBatchAsync, 13000, cuMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync_ptsz) \
	PTDS(cuMemDiscardBatchAsync, 13000, cuMemDiscardBatchAsync, cuMemDiscardBatchAsync_ptsz) \
	CALL(cuMemExportToShareableHandle, 10020, cuMemExportToShareableHandle) \
	CALL(cuMemFree, 3020, cuMemFree_v2) \
	PTDS(cuMemFreeAsync, 11020, cuMemFreeAsync, cuMemFreeAsync_ptsz) \
	CALL(cuMemFreeHost, 2000, cuMemFreeHost) \
	CALL(cuMemGetAccess, 10020, cuMemGetAccess) \
	CALL(cuMemGetAddressRange, 3020, cuMemGetAddressRange_v2) \
	CALL(cuMemGetAllocationGranularity, 10020, cuMemGetAllocationGranularity) \
	CALL(cuMemGetAllocationPropertiesFromHandle, 10020, cuMemGetAllocationPropertiesFromHandle) \
	CALL(cuMemGetDefaultMemPool, 13000, cuMemGetDefaultMemPool) \
	CALL(cuMemGetHandleForAddressRange, 11070, cuMemGetHandleForAddressRange) \
	CALL(cuMemGetInfo, 3020, cuMemGetInfo_v2) \
	CALL(cuMemGetMemPool, 13000, cuMemGetMemPool) \
	CALL(cuMemHostAlloc, 2020, cuMemHostAlloc) \
	CALL(cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2) \
	CALL(cuMemHostGetFlags, 2030, cuMemHostGetFlags) \
	CALL(cuMemHostRegister, 4000, cuMemHostRegister) \
	CALL(cuMemHostRegister, 6050, cuMemHostRegister_v2) \
	CALL(cuMemHostUnregister, 4000, cuMemHostUnregister) \
	CALL(cuMemImportFromShareableHandle, 10020, cuMemImportFromShareableHandle) \
	CALL(cuMemMap, 10020, cuMemMap) \
	CALL(cuMemPoolCreate, 11020, cuMemPoolCreate) \
	CALL(cuMemPoolDestroy, 11020, cuMemPoolDestroy) \
	CALL(cuMemPoolExportPointer, 11020, cuMemPoolExportPointer) \
	CALL(cuMemPoolExportToShareableHandle, 11020, cuMemPoolExportToShareableHandle) \
	CALL(cuMemPoolGetAccess, 11020, cuMemPoolGetAccess) \
	CALL(cuMemPoolGetAttribute, 11020, cuMemPoolGetAttribute) \
	CALL(cuMemPoolImportFromShareableHandle, 11020, cuMemPoolImportFromShareableHandle) \
	CALL(cuMemPoolImportPointer, 11020, cuMemPoolImportPointer) \
	CALL(cuMemPoolSetAccess, 11020, cuMemPoolSetAccess) \
	CALL(cuMemPoolSetAttribute, 11020, cuMemPoolSetAttribute) \
	CALL(cuMemPoolTrimTo, 11020, cuMemPoolTrimTo) \
	PTDS(cuMemPrefetchAsync, 8000, cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz) \
	PTDS(cuMemPrefetchAsync, 12020, cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz) \
	PTDS(cuMemPrefetchBatchAsync, 13000, cuMemPrefetchBatchAsync, cuMemPrefetchBatchAsync_ptsz) \
	CALL(cuMemRangeGetAttribute, 8000, cuMemRangeGetAttribute) \
	CALL(cuMemRangeGetAttributes, 8000, cuMemRangeGetAttributes) \
	CALL(cuMemRelease, 10020, cuMemRelease) \
	CALL(cuMemRetainAllocationHandle, 11000, cuMemRetainAllocationHandle) \
	CALL(cuMemSetAccess, 10020, cuMemSetAccess) \
	CALL(cuMemSetMemPool, 13000, cuMemSetMemPool) \
	CALL(cuMemUnmap, 10020, cuMemUnmap) \
	PTDS(cuMemcpy, 4000, cuMemcpy, cuMemcpy_ptds) \
	PTDS(cuMemcpy2D, 3020, cuMemcpy2D_v2, cuMemcpy2D_v2_ptds) \
	PTDS(cuMemcpy2DAsync, 3020, cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz) \
	PTDS(cuMemcpy2DUnaligned, 3020, cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds) \
	PTDS(cuMemcpy3D, 3020, cuMemcpy3D_v2, cuMemcpy3D_v2_ptds) \
	PTDS(cuMemcpy3DAsync, 3020, cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz) \
	PTDS(cuMemcpy3DBatchAsync, 12080, cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_ptsz) \
	PTDS(cuMemcpy3DBatchAsync, 13000, cuMemcpy3DBatchAsync_v2, cuMemcpy3DBatchAsync_v2_ptsz) \
	PTDS(cuMemcpy3DPeer, 4000, cuMemcpy3DPeer, cuMemcpy3DPeer_ptds) \
	PTDS(cuMemcpy3DPeerAsync, 4000, cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz) \
	PTDS(cuMemcpyAsync, 4000, cuMemcpyAsync, cuMemcpyAsync_ptsz) \
	PTDS(cuMemcpyAtoA, 3020, cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds) \
	PTDS(cuMemcpyAtoD, 3020, cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds) \
	PTDS(cuMemcpyAtoH, 3020, cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds) \
	PTDS(cuMemcpyAtoHAsync, 3020, cuMemcpyAtoHAsync_v2, cuMemcpyAtoHAsync_v2_ptsz) \
	PTDS(cuMemcpyBatchAsync, 12080, cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz) \
	PTDS(cuMemcpyBatchAsync, 13000, cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz) \
	PTDS(cuMemcpyDtoA, 3020, cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds) \
	PTDS(cuMemcpyDtoD, 3020, cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds) \
	PTDS(cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz) \
	PTDS(cuMemcpyDtoH, 3020, cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds) \
	PTDS(cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz) \
	PTDS(cuMemcpyHtoA, 3020, cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds) \
	PTDS(cuMemcpyHtoAAsync, 3020, cuMemcpyHtoAAsync_v2, cuMemcpyHtoAAsync_v2_ptsz) \
	PTDS(cuMemcpyHtoD, 3020, cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds) \
	PTDS(cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz) \
	PTDS(cuMemcpyPeer, 4000, cuMemcpyPeer, cuMemcpyPeer_ptds) \
	PTDS(cuMemcpyPeerAsync, 4000, cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz) \
	PTDS(cuMemsetD16, 3020, cuMemsetD16_v2, cuMemsetD16_v2_ptds) \
	PTDS(cuMemsetD16Async, 3020, cuMemsetD16Async, cuMemsetD16Async_ptsz) \
	PTDS(cuMemsetD2D16, 3020, cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds) \
	PTDS(cuMemsetD2D16Async, 3020, cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz) \
	PTDS(cuMemsetD2D32, 3020, cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds) \
	PTDS(cuMemsetD2D32Async, 3020, cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz) \
	PTDS(cuMemsetD2D8, 3020, cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds) \
	PTDS(cuMemsetD2D8Async, 3020, cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz) \
	PTDS(cuMemsetD32, 3020, cuMemsetD32_v2, cuMemsetD32_v2_ptds) \
	PTDS(cuMemsetD32Async, 3020, cuMemsetD32Async, cuMemsetD32Async_ptsz) \
	PTDS(cuMemsetD8, 3020, cuMemsetD8_v2, cuMemsetD8_v2_ptds) \
	PTDS(cuMemsetD8Async, 3020, cuMemsetD8Async, cuMemsetD8Async_ptsz) \
	CALL(cuMipmappedArrayCreate, 5000, cuMipmappedArrayCreate) \
	CALL(cuMipmappedArrayDestroy, 5000, cuMipmappedArrayDestroy) \
	CALL(cuMipmappedArrayGetLevel, 5000, cuMipmappedArrayGetLevel) \
	CALL(cuMipmappedArrayGetMemoryRequirements, 11060, cuMipmappedArrayGetMemoryRequirements) \
	CALL(cuMipmappedArrayGetSparseProperties, 11010, cuMipmappedArrayGetSparseProperties) \
	CALL(cuModuleEnumerateFunctions, 12040, cuModuleEnumerateFunctions) \
	CALL(cuModuleGetFunction, 2000, cuModuleGetFunction) \
	CALL(cuModuleGetFunctionCount, 12040, cuModuleGetFunctionCount) \
	CALL(cuModuleGetGlobal, 3020, cuModuleGetGlobal_v2) \
	CALL(cuModuleGetLoadingMode, 11070, cuModuleGetLoadingMode) \
	CALL(cuModuleGetSurfRef, 3000, cuModuleGetSurfRef) \
	CALL(cuModuleGetTexRef, 2000, cuModuleGetTexRef) \
	CALL(cuModuleLoad, 2000, cuModuleLoad) \
	CALL(cuModuleLoadData, 2000, cuModuleLoadData) \
	CALL(cuModuleLoadDataEx, 2010, cuModuleLoadDataEx) \
	CALL(cuModuleLoadFatBinary, 2000, cuModuleLoadFatBinary) \
	CALL(cuModuleUnload, 2000, cuModuleUnload) \
	CALL(cuMulticastAddDevice, 12010, cuMulticastAddDevice) \
	CALL(cuMulticastBindAddr, 12010, cuMulticastBindAddr) \
	CALL(cuMulticastBindMem, 12010, cuMulticastBindMem) \
	CALL(cuMulticastCreate, 12010, cuMulticastCreate) \
	CALL(cuMulticastGetGranularity, 12010, cuMulticastGetGranularity) \
	CALL(cuMulticastUnbind, 12010, cuMulticastUnbind) \
	CALL(cuOccupancyAvailableDynamicSMemPerBlock, 10020, cuOccupancyAvailableDynamicSMemPerBlock) \
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, cuOccupancyMaxActiveBlocksPerMultiprocessor) \
	CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) \
	CALL(cuTensorMapEncodeIm2col, 12000, cuTensorMapEncodeIm2col) \
	CALL(cuTensorMapEncodeTiled, 12000, cuTensorMapEncodeTiled) \
	CALL(cuTensorMapReplaceAddress, 12000, cuTensorMapReplaceAddress) \
	CALL(cuOccupancyMaxActiveClusters, 11070, cuOccupancyMaxActiveClusters) \
	CALL(cuOccupancyMaxPotentialClusterSize, 11070, cuOccupancyMaxPotentialClusterSize) \
	CALL(cuOccupancyMaxPotentialBlockSize, 6050, cuOccupancyMaxPotentialBlockSize) \
	CALL(cuOccupancyMaxPotentialBlockSizeWithFlags, 7000, cuOccupancyMaxPotentialBlockSizeWithFlags) \
	CALL(cuParamSetSize, 2000, cuParamSetSize) \
	CALL(cuParamSetf, 2000, cuParamSetf) \
	CALL(cuParamSeti, 2000, cuParamSeti) \
	CALL(cuParamSetv, 2000, cuParamSetv) \
	CALL(cuPointerGetAttribute, 4000, cuPointerGetAttribute) \
	CALL(cuPointerGetAttributes, 7000, cuPointerGetAttributes) \
	CALL(cuPointerSetAttribute, 6000, cuPointerSetAttribute) \
	CALL(cuProfilerStart, 4000, cuProfilerStart) \
	CALL(cuProfilerStop, 4000, cuProfilerStop) \
	PTDS(cuStreamAddCallback, 5000, cuStreamAddCallback, cuStreamAddCallback_ptsz) \
	PTDS(cuStreamAttachMemAsync, 6000, cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz) \
	PTDS(cuStreamBatchMemOp, 8000, cuStreamBatchMemOp, cuStreamBatchMemOp_ptsz) \
	PTDS(cuStreamBatchMemOp, 11070, cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz) \
	PTDS(cuStreamBeginCapture, 10000, cuStreamBeginCapture, cuStreamBeginCapture_ptsz) \
	PTDS(cuStreamBeginCapture, 10010, cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz) \
	PTDS(cuStreamBeginCaptureToGraph, 12030, cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz) \
	PTDS(cuStreamCopyAttributes, 11000, cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz) \
	CALL(cuStreamCreate, 2000, cuStreamCreate) \
	CALL(cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority) \
	CALL(cuStreamDestroy, 2000, cuStreamDestroy) \
	CALL(cuStreamDestroy, 4000, cuStreamDestroy_v2) \
	PTDS(cuStreamEndCapture, 10000, cuStreamEndCapture, cuStreamEndCapture_ptsz) \
	PTDS(cuStreamGetAttribute, 11000, cuStreamGetAttribute, cuStreamGetAttribute_ptsz) \
	PTDS(cuStreamGetCaptureInfo, 10010, cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz) \
	PTDS(cuStreamGetCaptureInfo, 11030, cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz) \
	PTDS(cuStreamGetCaptureInfo, 12030, cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz) \
	PTDS(cuStreamGetCtx, 9020, cuStreamGetCtx, cuStreamGetCtx_ptsz) \
	PTDS(cuStreamGetCtx, 12050, cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz) \
	PTDS(cuStreamGetDevice, 12080, cuStreamGetDevice, cuStreamGetDevice_ptsz) \
	PTDS(cuStreamGetFlags, 5050, cuStreamGetFlags, cuStreamGetFlags_ptsz) \
	PTDS(cuStreamGetId, 12000, cuStreamGetId, cuStreamGetId_ptsz) \
	PTDS(cuStreamGetPriority, 5050, cuStreamGetPriority, cuStreamGetPriority_ptsz) \
	PTDS(cuStreamIsCapturing, 10000, cuStreamIsCapturing, cuStreamIsCapturing_ptsz) \
	PTDS(cuStreamQuery, 2000, cuStreamQuery, cuStreamQuery_ptsz) \
	PTDS(cuStreamSetAttribute, 11000, cuStreamSetAttribute, cuStreamSetAttribute_ptsz) \
	PTDS(cuStreamSynchronize, 2000, cuStreamSynchronize, cuStreamSynchronize_ptsz) \
	PTDS(cuStreamUpdateCaptureDependencies, 11030, cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz) \
	PTDS(cuStreamUpdateCaptureDependencies, 12030, cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz) \
	PTDS(cuStreamWaitEvent, 3020, cuStreamWaitEvent, cuStreamWaitEvent_ptsz) \
	PTDS(cuStreamWaitValue32, 8000, cuStreamWaitValue32, cuStreamWaitValue32_ptsz) \
	PTDS(cuStreamWaitValue32, 11070, cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz) \
	PTDS(cuStreamWaitValue64, 9000, cuStreamWaitValue64, cuStreamWaitValue64_ptsz) \
	PTDS(cuStreamWaitValue64, 11070, cuStreamWaitValue64_v2, cuStreamWaitValue64_v2_ptsz) \
	PTDS(cuStreamWriteValue32, 8000, cuStreamWriteValue32, cuStreamWriteValue32_ptsz) \
	PTDS(cuStreamWriteValue32, 11070, cuStreamWriteValue32_v2, cuStreamWriteValue32_v2_ptsz) \
	PTDS(cuStreamWriteValue64, 9000, cuStreamWriteValue64, cuStreamWriteValue64_ptsz) \
	PTDS(cuStreamWriteValue64, 11070, cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz) \
	CALL(cuSurfObjectCreate, 5000, cuSurfObjectCreate) \
	CALL(cuSurfObjectDestroy, 5000, cuSurfObjectDestroy) \
	CALL(cuSurfObjectGetResourceDesc, 5000, cuSurfObjectGetResourceDesc) \
	CALL(cuSurfRefGetArray, 3000, cuSurfRefGetArray) \
	CALL(cuSurfRefSetArray, 3000, cuSurfRefSetArray) \
	CALL(cuTexObjectCreate, 5000, cuTexObjectCreate) \
	CALL(cuTexObjectDestroy, 5000, cuTexObjectDestroy) \
	CALL(cuTexObjectGetResourceDesc, 5000, cuTexObjectGetResourceDesc) \
	CALL(cuTexObjectGetResourceViewDesc, 5000, cuTexObjectGetResourceViewDesc) \
	CALL(cuTexObjectGetTextureDesc, 5000, cuTexObjectGetTextureDesc) \
	CALL(cuTexRefGetAddressMode, 2000, cuTexRefGetAddressMode) \
	CALL(cuTexRefGetArray, 2000, cuTexRefGetArray) \
	CALL(cuTexRefGetFilterMode, 2000, cuTexRefGetFilterMode) \
	CALL(cuTexRefGetFlags, 2000, cuTexRefGetFlags) \
	CALL(cuTexRefGetFormat, 2000, cuTexRefGetFormat) \
	CALL(cuTexRefSetAddress, 3020, cuTexRefSetAddress_v2) \
	CALL(cuTexRefSetAddress2D, 3020, cuTexRefSetAddress2D_v2) \
	CALL(cuTexRefSetAddress2D, 4010, cuTexRefSetAddress2D_v3) \
	CALL(cuTexRefSetAddressMode, 2000, cuTexRefSetAddressMode) \
	CALL(cuTexRefSetArray, 2000, cuTexRefSetArray) \
	CALL(cuTexRefSetBorderColor, 8000, cuTexRefSetBorderColor) \
	CALL(cuTexRefSetFilterMode, 2000, cuTexRefSetFilterMode) \
	CALL(cuTexRefSetFlags, 2000, cuTexRefSetFlags) \
	CALL(cuTexRefSetFormat, 2000, cuTexRefSetFormat) \
	CALL(cuTexRefSetMipmappedArray, 5000, cuTexRefSetMipmappedArray) \
	CALL(cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode) \
	CALL(cuUserObjectCreate, 11030, cuUserObjectCreate) \
	CALL(cuUserObjectRelease, 11030, cuUserObjectRelease) \
	CALL(cuUserObjectRetain, 11030, cuUserObjectRetain)

#endif
