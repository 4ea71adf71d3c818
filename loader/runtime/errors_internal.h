/* errors_internal.h — the errors of the runtime API: number, name, and text for cudaGetErrorString.
 *
 * Numbers instead of enumerators, because the headers of older toolkits lack some.  Common texts are the same as
 * NVIDIA's. */
#ifndef GPULOAD_LOADER_RUNTIME_ERRORS_INTERNAL_H
#define GPULOAD_LOADER_RUNTIME_ERRORS_INTERNAL_H

#define GPUL_RT_ERRORS(ROW) \
	ROW(1, InvalidValue, "invalid argument") \
	ROW(2, MemoryAllocation, "out of memory") \
	ROW(3, InitializationError, "initialization error") \
	ROW(4, CudartUnloading, "driver shutting down") \
	ROW(5, ProfilerDisabled, "another profiler is active") \
	ROW(6, ProfilerNotInitialized, "the profiler was not initialized") \
	ROW(7, ProfilerAlreadyStarted, "the profiler is already running") \
	ROW(8, ProfilerAlreadyStopped, "the profiler is not running") \
	ROW(9, InvalidConfiguration, "invalid configuration argument") \
	ROW(12, InvalidPitchValue, "invalid pitch argument") \
	ROW(13, InvalidSymbol, "invalid device symbol") \
	ROW(16, InvalidHostPointer, "invalid host pointer") \
	ROW(17, InvalidDevicePointer, "invalid device pointer") \
	ROW(18, InvalidTexture, "invalid texture") \
	ROW(19, InvalidTextureBinding, "the texture is not bound") \
	ROW(20, InvalidChannelDescriptor, "invalid channel descriptor") \
	ROW(21, InvalidMemcpyDirection, "invalid copy direction for memcpy") \
	ROW(22, AddressOfConstant, "the address of a constant variable cannot be used here") \
	ROW(23, TextureFetchFailed, "a texture fetch failed") \
	ROW(24, TextureNotBound, "a fetch from a texture that is not bound") \
	ROW(25, SynchronizationError, "invalid use of a barrier") \
	ROW(26, InvalidFilterSetting, "this type cannot be filtered") \
	ROW(27, InvalidNormSetting, "this type cannot be read with normalization") \
	ROW(28, MixedDeviceExecution, "emulated and real devices cannot be mixed") \
	ROW(31, NotYetImplemented, "not implemented") \
	ROW(32, MemoryValueTooLarge, "a size or an address needs more than 32 bits") \
	ROW(34, StubLibrary, "the CUDA driver is a stub library for linking") \
	ROW(35, InsufficientDriver, \
		"CUDA driver version is insufficient for CUDA runtime version") \
	ROW(36, CallRequiresNewerDriver, \
		"API call is not supported in the installed CUDA driver") \
	ROW(37, InvalidSurface, "invalid surface") \
	ROW(43, DuplicateVariableName, "several variables have this name") \
	ROW(44, DuplicateTextureName, "several textures have this name") \
	ROW(45, DuplicateSurfaceName, "several surfaces have this name") \
	ROW(46, DevicesUnavailable, "every device is busy or unavailable") \
	ROW(49, IncompatibleDriverContext, \
		"the driver's current context cannot be used by the runtime") \
	ROW(52, MissingConfiguration, "__global__ function call is not configured") \
	ROW(53, PriorLaunchFailure, "an earlier kernel launch failed") \
	ROW(65, LaunchMaxDepthExceeded, "launches are nested too deep") \
	ROW(66, LaunchFileScopedTex, "the kernel uses a file-scoped texture") \
	ROW(67, LaunchFileScopedSurf, "the kernel uses a file-scoped surface") \
	ROW(68, SyncDepthExceeded, "nested kernels synchronize too deep") \
	ROW(69, LaunchPendingCountExceeded, "too many launches are pending") \
	ROW(98, InvalidDeviceFunction, "invalid device function") \
	ROW(100, NoDevice, "no CUDA-capable device is detected") \
	ROW(101, InvalidDevice, "invalid device ordinal") \
	ROW(102, DeviceNotLicensed, "the device has no license") \
	ROW(103, SoftwareValidityNotEstablished, "the integrity check of the driver failed") \
	ROW(127, StartupFailure, "the runtime could not start") \
	ROW(200, InvalidKernelImage, "device kernel image is invalid") \
	ROW(201, DeviceUninitialized, "invalid device context") \
	ROW(205, MapBufferObjectFailed, "mapping a buffer object failed") \
	ROW(206, UnmapBufferObjectFailed, "unmapping a buffer object failed") \
	ROW(207, ArrayIsMapped, "array is mapped") \
	ROW(208, AlreadyMapped, "the resource is already mapped") \
	ROW(209, NoKernelImageForDevice, \
		"no kernel image is available for execution on the device") \
	ROW(210, AlreadyAcquired, "the resource is already acquired") \
	ROW(211, NotMapped, "the resource is not mapped") \
	ROW(212, NotMappedAsArray, "the resource is not mapped as an array") \
	ROW(213, NotMappedAsPointer, "the resource is not mapped as a pointer") \
	ROW(214, ECCUncorrectable, "uncorrectable ECC error encountered") \
	ROW(215, UnsupportedLimit, "limit is not supported on this architecture") \
	ROW(216, DeviceAlreadyInUse, "another thread uses this device exclusively") \
	ROW(217, PeerAccessUnsupported, \
		"peer access is not supported between these two devices") \
	ROW(218, InvalidPtx, "a PTX JIT compilation failed") \
	ROW(219, InvalidGraphicsContext, "invalid graphics context") \
	ROW(220, NvlinkUncorrectable, "uncorrectable NVLink error") \
	ROW(221, JitCompilerNotFound, "PTX JIT compiler library not found") \
	ROW(222, UnsupportedPtxVersion, \
		"the provided PTX was compiled with an unsupported toolchain.") \
	ROW(223, JitCompilationDisabled, "PTX JIT compilation is disabled") \
	ROW(224, UnsupportedExecAffinity, "this execution affinity is not supported") \
	ROW(225, UnsupportedDevSideSync, "the PTX synchronizes with the device inside of a kernel") \
	ROW(226, Contained, "a contained error of another GPU or of NVLink") \
	ROW(300, InvalidSource, "device kernel image is invalid") \
	ROW(301, FileNotFound, "file not found") \
	ROW(302, SharedObjectSymbolNotFound, "shared object symbol not found") \
	ROW(303, SharedObjectInitFailed, "a shared object could not be initialized") \
	ROW(304, OperatingSystem, "OS call failed or operation not supported on this OS") \
	ROW(400, InvalidResourceHandle, "invalid resource handle") \
	ROW(401, IllegalState, "the operation is not possible in the current state") \
	ROW(402, LossyQuery, "the result of the query would be incomplete") \
	ROW(500, SymbolNotFound, "named symbol not found") \
	ROW(600, NotReady, "device not ready") \
	ROW(700, IllegalAddress, "an illegal memory access was encountered") \
	ROW(701, LaunchOutOfResources, "too many resources requested for launch") \
	ROW(702, LaunchTimeout, "the launch timed out and was terminated") \
	ROW(703, LaunchIncompatibleTexturing, "the launch mixes texturing modes") \
	ROW(704, PeerAccessAlreadyEnabled, "peer access is already enabled") \
	ROW(705, PeerAccessNotEnabled, "peer access has not been enabled") \
	ROW(708, SetOnActiveProcess, "cannot set while device is active in this process") \
	ROW(709, ContextIsDestroyed, "context is destroyed") \
	ROW(710, Assert, "device-side assert triggered") \
	ROW(711, TooManyPeers, "no more peers can be mapped") \
	ROW(712, HostMemoryAlreadyRegistered, \
		"part or all of the requested memory range is already mapped") \
	ROW(713, HostMemoryNotRegistered, \
		"pointer does not correspond to a registered memory region") \
	ROW(714, HardwareStackError, "hardware stack error") \
	ROW(715, IllegalInstruction, "an illegal instruction was encountered") \
	ROW(716, MisalignedAddress, "misaligned address") \
	ROW(717, InvalidAddressSpace, \
		"operation not supported on global/shared address space") \
	ROW(718, InvalidPc, "invalid program counter") \
	ROW(719, LaunchFailure, "unspecified launch failure") \
	ROW(720, CooperativeLaunchTooLarge, "too many blocks in cooperative launch") \
	ROW(721, TensorMemoryLeak, "a kernel did not free its tensor memory") \
	ROW(800, NotPermitted, "operation not permitted") \
	ROW(801, NotSupported, "operation not supported") \
	ROW(802, SystemNotReady, "system not yet initialized") \
	ROW(803, SystemDriverMismatch, \
		"system has unsupported display driver / cuda driver combination") \
	ROW(804, CompatNotSupportedOnDevice, \
		"forward compatibility is not supported on this device") \
	ROW(805, MpsConnectionFailed, "no connection to the MPS server") \
	ROW(806, MpsRpcFailure, "a call to the MPS server failed") \
	ROW(807, MpsServerNotReady, "the MPS server does not accept clients yet") \
	ROW(808, MpsMaxClientsReached, "the MPS server has reached its maximum number of clients") \
	ROW(809, MpsMaxConnectionsReached, \
		"the MPS server has reached its maximum number of connections") \
	ROW(810, MpsClientTerminated, "the MPS server terminated this client") \
	ROW(811, CdpNotSupported, "kernels cannot launch kernels on this device") \
	ROW(812, CdpVersionMismatch, "incompatible versions of the device runtime") \
	ROW(900, StreamCaptureUnsupported, "not permitted while a stream is captured") \
	ROW(901, StreamCaptureInvalidated, "an earlier error ended the capture") \
	ROW(902, StreamCaptureMerge, "the operation would merge two captures") \
	ROW(903, StreamCaptureUnmatched, "the capture began in another stream") \
	ROW(904, StreamCaptureUnjoined, "the captured stream has work that was not joined") \
	ROW(905, StreamCaptureIsolation, "captured work would depend on work outside of the capture") \
	ROW(906, StreamCaptureImplicit, "the operation would make the legacy stream depend on a capture") \
	ROW(907, CapturedEvent, "the event was recorded in a captured stream") \
	ROW(908, StreamCaptureWrongThread, "another thread began the capture") \
	ROW(909, Timeout, "the operation timed out") \
	ROW(910, GraphExecUpdateFailure, "the graph update is not possible") \
	ROW(911, ExternalDevice, "an external device failed") \
	ROW(912, InvalidClusterSize, "misconfigured cluster or not enough resources for it") \
	ROW(913, FunctionNotLoaded, "the function is not loaded") \
	ROW(914, InvalidResourceType, "the resource has the wrong type") \
	ROW(915, InvalidResourceConfiguration, "the resource configuration is not sufficient") \
	ROW(999, Unknown, "unknown error") \
	ROW(10000, ApiFailureBase, "failure of an older runtime")

#endif
