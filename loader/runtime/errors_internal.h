/* errors_internal.h — the runtime's errors: number, name, and what cudaGetErrorString says.
 *
 * Numbers, not enumerators: an older toolkit's header has not all of them.  The sentences that programs
 * and search engines know are kept. */
#ifndef GPULOAD_LOADER_RUNTIME_ERRORS_INTERNAL_H
#define GPULOAD_LOADER_RUNTIME_ERRORS_INTERNAL_H

#define GPUL_RT_ERRORS(ROW) \
	ROW(1, InvalidValue, "invalid argument") \
	ROW(2, MemoryAllocation, "out of memory") \
	ROW(3, InitializationError, "initialization error") \
	ROW(4, CudartUnloading, "driver shutting down") \
	ROW(5, ProfilerDisabled, "profiler disabled") \
	ROW(6, ProfilerNotInitialized, "profiler not initialized") \
	ROW(7, ProfilerAlreadyStarted, "profiler already started") \
	ROW(8, ProfilerAlreadyStopped, "profiler already stopped") \
	ROW(9, InvalidConfiguration, "invalid configuration argument") \
	ROW(12, InvalidPitchValue, "invalid pitch argument") \
	ROW(13, InvalidSymbol, "invalid device symbol") \
	ROW(16, InvalidHostPointer, "invalid host pointer") \
	ROW(17, InvalidDevicePointer, "invalid device pointer") \
	ROW(18, InvalidTexture, "invalid texture") \
	ROW(19, InvalidTextureBinding, "invalid texture binding") \
	ROW(20, InvalidChannelDescriptor, "invalid channel descriptor") \
	ROW(21, InvalidMemcpyDirection, "invalid copy direction for memcpy") \
	ROW(22, AddressOfConstant, "address of constant") \
	ROW(23, TextureFetchFailed, "texture fetch failed") \
	ROW(24, TextureNotBound, "texture not bound") \
	ROW(25, SynchronizationError, "synchronization error") \
	ROW(26, InvalidFilterSetting, "invalid filter setting") \
	ROW(27, InvalidNormSetting, "invalid norm setting") \
	ROW(28, MixedDeviceExecution, "mixed device execution") \
	ROW(31, NotYetImplemented, "not yet implemented") \
	ROW(32, MemoryValueTooLarge, "memory value too large") \
	ROW(34, StubLibrary, "stub library") \
	ROW(35, InsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version") \
	ROW(36, CallRequiresNewerDriver, "API call is not supported in the installed CUDA driver") \
	ROW(37, InvalidSurface, "invalid surface") \
	ROW(43, DuplicateVariableName, "duplicate variable name") \
	ROW(44, DuplicateTextureName, "duplicate texture name") \
	ROW(45, DuplicateSurfaceName, "duplicate surface name") \
	ROW(46, DevicesUnavailable, "devices unavailable") \
	ROW(49, IncompatibleDriverContext, "incompatible driver context") \
	ROW(52, MissingConfiguration, "__global__ function call is not configured") \
	ROW(53, PriorLaunchFailure, "a kernel that was launched before failed") \
	ROW(65, LaunchMaxDepthExceeded, "launch max depth exceeded") \
	ROW(66, LaunchFileScopedTex, "launch file scoped tex") \
	ROW(67, LaunchFileScopedSurf, "launch file scoped surf") \
	ROW(68, SyncDepthExceeded, "sync depth exceeded") \
	ROW(69, LaunchPendingCountExceeded, "launch pending count exceeded") \
	ROW(98, InvalidDeviceFunction, "invalid device function") \
	ROW(100, NoDevice, "no CUDA-capable device is detected") \
	ROW(101, InvalidDevice, "invalid device ordinal") \
	ROW(102, DeviceNotLicensed, "device not licensed") \
	ROW(103, SoftwareValidityNotEstablished, "software validity not established") \
	ROW(127, StartupFailure, "startup failure") \
	ROW(200, InvalidKernelImage, "device kernel image is invalid") \
	ROW(201, DeviceUninitialized, "invalid device context") \
	ROW(205, MapBufferObjectFailed, "map buffer object failed") \
	ROW(206, UnmapBufferObjectFailed, "unmap buffer object failed") \
	ROW(207, ArrayIsMapped, "array is mapped") \
	ROW(208, AlreadyMapped, "already mapped") \
	ROW(209, NoKernelImageForDevice, "no kernel image is available for execution on the device") \
	ROW(210, AlreadyAcquired, "already acquired") \
	ROW(211, NotMapped, "not mapped") \
	ROW(212, NotMappedAsArray, "not mapped as array") \
	ROW(213, NotMappedAsPointer, "not mapped as pointer") \
	ROW(214, ECCUncorrectable, "uncorrectable ECC error encountered") \
	ROW(215, UnsupportedLimit, "limit is not supported on this architecture") \
	ROW(216, DeviceAlreadyInUse, "device already in use") \
	ROW(217, PeerAccessUnsupported, "peer access is not supported between these two devices") \
	ROW(218, InvalidPtx, "a PTX JIT compilation failed") \
	ROW(219, InvalidGraphicsContext, "invalid graphics context") \
	ROW(220, NvlinkUncorrectable, "nvlink uncorrectable") \
	ROW(221, JitCompilerNotFound, "PTX JIT compiler library not found") \
	ROW(222, UnsupportedPtxVersion, "the provided PTX was compiled with an unsupported toolchain.") \
	ROW(223, JitCompilationDisabled, "jit compilation disabled") \
	ROW(224, UnsupportedExecAffinity, "unsupported exec affinity") \
	ROW(225, UnsupportedDevSideSync, "unsupported dev side sync") \
	ROW(226, Contained, "contained") \
	ROW(300, InvalidSource, "device kernel image is invalid") \
	ROW(301, FileNotFound, "file not found") \
	ROW(302, SharedObjectSymbolNotFound, "shared object symbol not found") \
	ROW(303, SharedObjectInitFailed, "shared object init failed") \
	ROW(304, OperatingSystem, "OS call failed or operation not supported on this OS") \
	ROW(400, InvalidResourceHandle, "invalid resource handle") \
	ROW(401, IllegalState, "the operation cannot be performed in the present state") \
	ROW(402, LossyQuery, "lossy query") \
	ROW(500, SymbolNotFound, "named symbol not found") \
	ROW(600, NotReady, "device not ready") \
	ROW(700, IllegalAddress, "an illegal memory access was encountered") \
	ROW(701, LaunchOutOfResources, "too many resources requested for launch") \
	ROW(702, LaunchTimeout, "the launch timed out and was terminated") \
	ROW(703, LaunchIncompatibleTexturing, "launch incompatible texturing") \
	ROW(704, PeerAccessAlreadyEnabled, "peer access is already enabled") \
	ROW(705, PeerAccessNotEnabled, "peer access has not been enabled") \
	ROW(708, SetOnActiveProcess, "cannot set while device is active in this process") \
	ROW(709, ContextIsDestroyed, "context is destroyed") \
	ROW(710, Assert, "device-side assert triggered") \
	ROW(711, TooManyPeers, "too many peers") \
	ROW(712, HostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped") \
	ROW(713, HostMemoryNotRegistered, "pointer does not correspond to a registered memory region") \
	ROW(714, HardwareStackError, "hardware stack error") \
	ROW(715, IllegalInstruction, "an illegal instruction was encountered") \
	ROW(716, MisalignedAddress, "misaligned address") \
	ROW(717, InvalidAddressSpace, "operation not supported on global/shared address space") \
	ROW(718, InvalidPc, "invalid program counter") \
	ROW(719, LaunchFailure, "unspecified launch failure") \
	ROW(720, CooperativeLaunchTooLarge, "too many blocks in cooperative launch") \
	ROW(721, TensorMemoryLeak, "tensor memory leak") \
	ROW(800, NotPermitted, "operation not permitted") \
	ROW(801, NotSupported, "operation not supported") \
	ROW(802, SystemNotReady, "system not yet initialized") \
	ROW(803, SystemDriverMismatch, "system has unsupported display driver / cuda driver combination") \
	ROW(804, CompatNotSupportedOnDevice, "compat not supported on device") \
	ROW(805, MpsConnectionFailed, "mps connection failed") \
	ROW(806, MpsRpcFailure, "mps rpc failure") \
	ROW(807, MpsServerNotReady, "mps server not ready") \
	ROW(808, MpsMaxClientsReached, "mps max clients reached") \
	ROW(809, MpsMaxConnectionsReached, "mps max connections reached") \
	ROW(810, MpsClientTerminated, "mps client terminated") \
	ROW(811, CdpNotSupported, "cdp not supported") \
	ROW(812, CdpVersionMismatch, "cdp version mismatch") \
	ROW(900, StreamCaptureUnsupported, "stream capture unsupported") \
	ROW(901, StreamCaptureInvalidated, "stream capture invalidated") \
	ROW(902, StreamCaptureMerge, "stream capture merge") \
	ROW(903, StreamCaptureUnmatched, "stream capture unmatched") \
	ROW(904, StreamCaptureUnjoined, "stream capture unjoined") \
	ROW(905, StreamCaptureIsolation, "stream capture isolation") \
	ROW(906, StreamCaptureImplicit, "stream capture implicit") \
	ROW(907, CapturedEvent, "captured event") \
	ROW(908, StreamCaptureWrongThread, "stream capture wrong thread") \
	ROW(909, Timeout, "timeout") \
	ROW(910, GraphExecUpdateFailure, "graph exec update failure") \
	ROW(911, ExternalDevice, "external device") \
	ROW(912, InvalidClusterSize, "misconfigured cluster or not enough resources for it") \
	ROW(913, FunctionNotLoaded, "function not loaded") \
	ROW(914, InvalidResourceType, "invalid resource type") \
	ROW(915, InvalidResourceConfiguration, "invalid resource configuration") \
	ROW(999, Unknown, "unknown error") \
	ROW(10000, ApiFailureBase, "api failure base")

#endif
