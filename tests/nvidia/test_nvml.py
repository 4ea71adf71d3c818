#!/usr/bin/env python3
"""libnvidia-ml.so.1 describes the devices of the software driver, and refuses queries for what a CPU does not have."""
import ctypes, os, re, struct, subprocess, sys, threading, time, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from calls import ROOT, SOFT

UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, INSUFFICIENT_SIZE, TIMEOUT, VERSION_MISMATCH = 1, 2, 3, 4, 6, 7, 10, 25
XID_EVENT, XID_PAGE_FAULT, ILLEGAL_ADDRESS = 8, 31, 700
os.environ.update(GPULOAD_SOFT_DEVICES="3", GPULOAD_SOFT_SM="86", GPULOAD_SOFT_MEMORY="6G", CUDA_VISIBLE_DEVICES="1")


STORES_AT_4 = b""".version 7.0
.target sm_75
.address_size 64
.visible .entry k()
{
	.reg .b64 %rd<2>;
	mov.u64 %rd1, 4;
	st.global.u32 [%rd1], %clock;
	ret;
}
"""


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Nvml(unittest.TestCase):
    def setUp(self):
        self.ml = ctypes.CDLL(f"{SOFT}/libnvidia-ml.so.1")
        self.assertEqual(self.ml.nvmlInit_v2(), 0)

    def tearDown(self):
        self.assertEqual(self.ml.nvmlShutdown(), 0)

    def device(self, index):
        handle = ctypes.c_void_p()
        self.assertEqual(self.ml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)), 0)
        return handle

    def text(self, call, *args):
        buffer = ctypes.create_string_buffer(96)
        self.assertEqual(getattr(self.ml, call)(*args, buffer, len(buffer)), 0, call)
        return buffer.value.decode()

    def test_all_devices_of_the_machine_are_listed(self):
        n, handle = ctypes.c_uint(), ctypes.c_void_p()
        self.assertEqual((self.ml.nvmlDeviceGetCount_v2(ctypes.byref(n)), n.value), (0, 3))
        self.assertEqual(self.ml.nvmlDeviceGetHandleByIndex_v2(3, ctypes.byref(handle)), INVALID_ARGUMENT)
        uuids = [self.text("nvmlDeviceGetUUID", self.device(i)) for i in range(3)]
        self.assertEqual(len(set(uuids)), 3)
        self.assertEqual(self.ml.nvmlDeviceGetHandleByUUID(uuids[2].encode(), ctypes.byref(handle)), 0)
        self.assertEqual(handle.value, self.device(2).value)
        self.assertEqual((self.ml.nvmlDeviceGetHandleByUUID(uuids[1][4:].encode(), ctypes.byref(handle)), handle.value), (0, self.device(1).value))
        self.assertEqual(self.ml.nvmlDeviceGetHandleByUUID(b"GPU-0", ctypes.byref(handle)), NOT_FOUND)

    def test_name_uuid_and_pci_address_are_those_of_the_driver(self):
        cu, device, name, pci = ctypes.CDLL(f"{SOFT}/libcuda.so.1"), ctypes.c_int(), ctypes.create_string_buffer(96), ctypes.create_string_buffer(32)
        self.assertEqual((cu.cuInit(0), cu.cuDeviceGet(ctypes.byref(device), 0), cu.cuDeviceGetName(name, 96, device),
                          cu.cuDeviceGetPCIBusId(pci, 32, device)), (0, 0, 0, 0))
        handle = ctypes.c_void_p()
        self.assertEqual(self.ml.nvmlDeviceGetHandleByPciBusId_v2(pci.value, ctypes.byref(handle)), 0)
        self.assertEqual(self.text("nvmlDeviceGetName", handle), name.value.decode())
        self.assertEqual(handle.value, self.device(1).value)   # the device that CUDA_VISIBLE_DEVICES selects

    def test_memory_counts_allocations_of_this_process(self):
        cu, context, address, memory = ctypes.CDLL(f"{SOFT}/libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64(), Memory()
        self.assertEqual(self.ml.nvmlDeviceGetMemoryInfo(self.device(1), ctypes.byref(memory)), 0)
        self.assertEqual((memory.total, memory.free), (6 << 30, memory.total - memory.used))
        before = memory.used
        self.assertEqual((cu.cuInit(0), cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cu.cuCtxSetCurrent(context),
                          cu.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20))), (0, 0, 0, 0))
        self.assertEqual(self.ml.nvmlDeviceGetMemoryInfo(self.device(1), ctypes.byref(memory)), 0)
        self.assertGreaterEqual(memory.used, before + (1 << 20))
        n, process = ctypes.c_uint(1), (ctypes.c_ulonglong * 3)()
        self.assertEqual(self.ml.nvmlDeviceGetComputeRunningProcesses_v3(self.device(1), ctypes.byref(n), process), 0)
        self.assertEqual((n.value, process[0] & 0xffffffff, process[1]), (1, os.getpid(), memory.used))
        self.assertEqual(cu.cuMemFree_v2(address), 0)

    def test_compute_capability_versions_and_utilisation(self):
        a, b, use = ctypes.c_int(), ctypes.c_int(), (ctypes.c_uint * 2)(999, 999)
        self.assertEqual(self.ml.nvmlDeviceGetCudaComputeCapability(self.device(0), ctypes.byref(a), ctypes.byref(b)), 0)
        self.assertEqual((a.value, b.value), (8, 6))
        self.assertRegex(self.text("nvmlSystemGetDriverVersion"), r"^\d+\.\d+")
        self.assertEqual(self.ml.nvmlDeviceGetUtilizationRates(self.device(0), use), 0)
        self.assertTrue(use[0] <= 100 and use[1] <= 100)

    def test_driver_branch_fits_the_driver_version(self):
        branch = ctypes.create_string_buffer(84)
        self.assertEqual(self.ml.nvmlSystemGetDriverBranch(branch, 80), VERSION_MISMATCH)
        branch[:4] = (84 | 1 << 24).to_bytes(4, "little")
        self.assertEqual(self.ml.nvmlSystemGetDriverBranch(branch, 80), 0)
        self.assertEqual(branch[4:].partition(b"\0")[0].decode(), "r" + self.text("nvmlSystemGetDriverVersion").replace(".", "_"))
        self.assertEqual(self.ml.nvmlSystemGetDriverBranch(branch, 3), INSUFFICIENT_SIZE)

    def test_devices_are_found_by_binary_uuid_too(self):
        bytes_of_uuid, handle = bytes.fromhex(self.text("nvmlDeviceGetUUID", self.device(2))[4:].replace("-", "")), ctypes.c_void_p()
        uuid = struct.pack("=II41s3x", 52 | 1 << 24, 2, bytes_of_uuid)
        self.assertEqual((self.ml.nvmlDeviceGetHandleByUUIDV(uuid, ctypes.byref(handle)), handle.value), (0, self.device(2).value))

    def test_every_device_has_a_place_of_its_own(self):
        for call in ("nvmlDeviceGetIndex", "nvmlDeviceGetMinorNumber", "nvmlDeviceGetModuleId"):
            number, found = ctypes.c_uint(99), []
            for index in range(3):
                self.assertEqual(getattr(self.ml, call)(self.device(index), ctypes.byref(number)), 0)
                found.append(number.value)
            self.assertEqual(found, [0, 1, 2], call)

    def test_cpus_of_the_process_are_those_of_a_device(self):
        words = (ctypes.c_ulong * 16)()
        self.assertEqual(self.ml.nvmlDeviceGetCpuAffinityWithinScope(self.device(0), 16, words, 0), 0)
        self.assertEqual({i for i in range(1024) if words[i // 64] >> i % 64 & 1}, {i for i in os.sched_getaffinity(0) if i < 1024})
        self.assertEqual(self.ml.nvmlDeviceGetMemoryAffinity(self.device(0), 16, words, 1), 0)
        self.assertTrue(any(words))
        self.assertEqual(self.ml.nvmlDeviceGetCpuAffinityWithinScope(self.device(0), 16, words, 2), INVALID_ARGUMENT)

    def test_pairs_fields_and_settings(self):
        status, fields = ctypes.c_int(-1), (ctypes.c_ulonglong * 10)()
        for capability, expected in ((0, 0), (2, 5), (3, 0), (5, 6)):
            self.assertEqual((self.ml.nvmlDeviceGetP2PStatus(self.device(0), self.device(1), capability, ctypes.byref(status)), status.value), (0, expected))
        self.assertEqual(self.ml.nvmlDeviceGetP2PStatus(self.device(0), self.device(1), 6, ctypes.byref(status)), INVALID_ARGUMENT)
        self.assertEqual(self.ml.nvmlDeviceGetFieldValues(self.device(0), 2, fields), 0)
        self.assertEqual((fields[3] >> 32, fields[8] >> 32), (NOT_SUPPORTED, NOT_SUPPORTED))
        self.assertEqual(self.ml.nvmlDeviceSetComputeMode(self.device(0), 3), NO_PERMISSION)

    def devices_of(self, call, *args):
        """The handles that a call lists: the first call gets their number, the second one the list."""
        n, handles = ctypes.c_uint(0), (ctypes.c_void_p * 4)()
        self.assertEqual(getattr(self.ml, call)(*args, ctypes.byref(n), None), 0)
        capacity = ctypes.c_uint(n.value)
        self.assertEqual(getattr(self.ml, call)(*args, ctypes.byref(capacity), handles), 0)
        self.assertEqual(capacity.value, n.value)
        return handles[:n.value]

    def test_every_device_is_near_every_cpu_and_on_the_same_node_as_the_others(self):
        every = [self.device(i).value for i in range(3)]
        self.assertEqual(self.devices_of("nvmlSystemGetTopologyGpuSet", min(os.sched_getaffinity(0))), every)
        self.assertEqual(self.devices_of("nvmlSystemGetTopologyGpuSet", 100000), [])
        self.assertEqual(self.devices_of("nvmlDeviceGetTopologyNearestGpus", self.device(1), 40), [every[0], every[2]])
        self.assertEqual(self.devices_of("nvmlDeviceGetTopologyNearestGpus", self.device(1), 10), [])
        self.assertEqual(self.ml.nvmlSystemGetTopologyGpuSet(0, ctypes.byref(ctypes.c_uint(2)), (ctypes.c_void_p * 2)()), INSUFFICIENT_SIZE)

    def test_there_is_no_link_and_no_fan(self):
        for call in ("MaxPcieLinkWidth", "CurrPcieLinkGeneration", "PcieReplayCounter", "NumFans"):
            n = ctypes.c_uint(99)
            self.assertEqual((getattr(self.ml, f"nvmlDeviceGet{call}")(self.device(0), ctypes.byref(n)), n.value), (0, 0), call)
        n = ctypes.c_uint(99)
        self.assertEqual((self.ml.nvmlDeviceGetPcieThroughput(self.device(0), 1, ctypes.byref(n)), n.value), (0, 0))
        self.assertEqual(self.ml.nvmlDeviceSetPersistenceMode(self.device(0), 1), NO_PERMISSION)

    def fault(self):
        """Run a kernel that stores to address 4, in a context of its own on the device that CUDA_VISIBLE_DEVICES selects."""
        cu, context, module, kernel = ctypes.CDLL(f"{SOFT}/libcuda.so.1"), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.assertEqual((cu.cuInit(0), cu.cuCtxCreate_v2(ctypes.byref(context), 0, 0), cu.cuModuleLoadData(ctypes.byref(module), STORES_AT_4),
                          cu.cuModuleGetFunction(ctypes.byref(kernel), module, b"k"), cu.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, None, None),
                          cu.cuCtxSynchronize()), (0, 0, 0, 0, 0, ILLEGAL_ADDRESS))
        cu.cuCtxDestroy_v2(context)

    def test_a_fault_is_an_event_once(self):
        create, event_set, event = self.ml.nvmlEventSetCreate, ctypes.c_void_p(), (ctypes.c_ulonglong * 4)()
        self.assertEqual(create(ctypes.byref(event_set)), 0)
        self.assertEqual(self.ml.nvmlDeviceRegisterEvents(self.device(1), ctypes.c_ulonglong(1), event_set), NOT_SUPPORTED)
        for index in range(2):
            self.assertEqual(self.ml.nvmlDeviceRegisterEvents(self.device(index), ctypes.c_ulonglong(XID_EVENT), event_set), 0)
        self.assertEqual(self.ml.nvmlEventSetWait_v2(event_set, event, 5), TIMEOUT)
        self.fault()
        self.assertEqual(self.ml.nvmlEventSetWait_v2(event_set, event, 5), 0)
        self.assertEqual(list(event), [self.device(1).value, XID_EVENT, XID_PAGE_FAULT, 0xffffffffffffffff])
        self.assertEqual(self.ml.nvmlEventSetWait_v2(event_set, event, 0), TIMEOUT)
        self.assertEqual((self.ml.nvmlEventSetFree(event_set), self.ml.nvmlEventSetFree(event_set)), (0, INVALID_ARGUMENT))
        self.assertEqual(self.ml.nvmlEventSetWait_v2(event_set, event, 0), INVALID_ARGUMENT)

    def test_devices_stay_bound_to_their_driver(self):
        create, data = (ctypes.c_ulonglong * 2)(16 | 1 << 24), (ctypes.c_ulonglong * 2)()
        self.assertEqual(self.ml.nvmlSystemEventSetCreate(create), 0)
        register = (ctypes.c_ulonglong * 3)(24 | 1 << 24, 3, create[1])
        self.assertEqual(self.ml.nvmlSystemRegisterEvents(register), 0)
        wait = (ctypes.c_ulonglong * 4)(32 | 1 << 24 | 5 << 32, create[1], ctypes.addressof(data), 1 | 9 << 32)
        self.assertEqual((self.ml.nvmlSystemEventSetWait(wait), wait[3] >> 32), (TIMEOUT, 0))
        self.assertEqual(self.ml.nvmlEventSetWait_v2(ctypes.c_void_p(create[1]), data, 0), INVALID_ARGUMENT)  # not a set for devices
        self.assertEqual((self.ml.nvmlSystemEventSetFree(create), self.ml.nvmlSystemEventSetFree(create)), (0, INVALID_ARGUMENT))
        self.assertEqual((self.ml.nvmlSystemRegisterEvents(register), self.ml.nvmlSystemEventSetWait(wait)), (INVALID_ARGUMENT, INVALID_ARGUMENT))
        self.assertEqual(self.ml.nvmlSystemEventSetCreate((ctypes.c_ulonglong * 2)(16)), VERSION_MISMATCH)

    def test_a_wait_ends_when_its_set_is_freed(self):
        create, data, results = (ctypes.c_ulonglong * 2)(16 | 1 << 24), (ctypes.c_ulonglong * 2)(), []
        self.assertEqual(self.ml.nvmlSystemEventSetCreate(create), 0)
        wait = (ctypes.c_ulonglong * 4)(32 | 1 << 24 | 3600000 << 32, create[1], ctypes.addressof(data), 1)
        waiter = threading.Thread(target=lambda: results.append(self.ml.nvmlSystemEventSetWait(wait)), daemon=True)
        waiter.start()
        time.sleep(0.1)
        self.assertEqual(self.ml.nvmlSystemEventSetFree(create), 0)
        waiter.join(120)
        self.assertEqual(results, [INVALID_ARGUMENT])

    def test_bad_calls_are_errors(self):
        short = ctypes.create_string_buffer(4)
        self.assertEqual(self.ml.nvmlDeviceGetName(self.device(0), short, 4), INSUFFICIENT_SIZE)
        self.assertEqual(self.ml.nvmlDeviceGetName(ctypes.c_void_p(8), short, 4), INVALID_ARGUMENT)
        self.assertEqual(self.ml.nvmlDeviceGetIndex(self.device(0), None), INVALID_ARGUMENT)
        self.assertEqual(self.ml.nvmlDeviceGetMemoryInfo_v2(self.device(0), ctypes.create_string_buffer(64)), VERSION_MISMATCH)

    def written(self, call, n_bytes, version=None, args=(), after=()):
        """Return (result, bytes) of a call that fills a structure; the test fails if the call writes behind the structure."""
        for pattern in (0xa5, 0x5a):
            out = (ctypes.c_ubyte * (n_bytes + 512))(*[pattern] * (n_bytes + 512))
            if version is not None:
                out[:4] = version.to_bytes(4, "little")
            result = getattr(self.ml, call)(self.device(0), *args, out, *after)
            self.assertEqual(bytes(out[n_bytes:]), bytes([pattern] * 512), f"{call} writes behind its structure of {n_bytes} bytes")
        return result, bytes(out[:n_bytes])

    def test_a_structure_of_an_older_version_is_not_overrun(self):
        for call, n_bytes in (("nvmlDeviceGetPciInfo", 32), ("nvmlDeviceGetPciInfo_v2", 52), ("nvmlDeviceGetPciInfo_v3", 68), ("nvmlDeviceGetMemoryInfo", 24),
                              ("nvmlDeviceGetUtilizationRates", 8), ("nvmlDeviceGetAttributes", 36), ("nvmlDeviceGetAttributes_v2", 36),
                              *((f"nvmlDeviceGetGridLicensableFeatures{v}", 8) for v in ("", "_v2", "_v3", "_v4"))):
            self.assertIn(self.written(call, n_bytes)[0], (0, NOT_SUPPORTED), call)
        legacy = self.written("nvmlDeviceGetPciInfo", 32)[1][:16]
        self.assertEqual({self.written(f"nvmlDeviceGetPciInfo_v{v}", n)[1][:16] for v, n in ((2, 52), (3, 68))}, {legacy})
        third = self.written("nvmlDeviceGetPciInfo_v3", 68)[1]
        self.assertEqual(third[36:53].rstrip(b"\0").decode().lstrip("0"), legacy.rstrip(b"\0").decode().lstrip("0"))
        self.assertEqual(third[53:], bytes([0x5a] * 15))   # an H200's library writes 53 of the 68 bytes
        self.assertEqual(self.written("nvmlDeviceGetPciInfo_v2", 52)[1][36:], bytes([0x5a] * 16))

    def test_several_devices_of_sm_90_are_connected_by_a_switch(self):
        code = (f"import ctypes; ml = ctypes.CDLL('{SOFT}/libnvidia-ml.so.1'); d, n, info = ctypes.c_void_p(), ctypes.c_int(9), ctypes.create_string_buffer(68)\n"
                "ml.nvmlInit_v2(), ml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(d))\n"
                "for call, args in (('State', ()), ('Version', ()), ('Capability', (0,)), ('Capability', (1,)), ('RemoteDeviceType', ())):\n"
                "    print(getattr(ml, 'nvmlDeviceGetNvLink' + call)(d, 17, *args, ctypes.byref(n)), n.value, end=' ')\n"
                "fields, status = (ctypes.c_ulonglong * 10)(91, 0, 0, 0, 0, 165 | 17 << 32), ctypes.c_int(-1)\n"
                "ml.nvmlDeviceGetFieldValues(d, 2, fields), ml.nvmlDeviceGetP2PStatus(d, d, 2, ctypes.byref(status))\n"
                "print(fields[3], fields[4], fields[8], fields[9], status.value, end=' ')\n"
                "print(ml.nvmlDeviceGetNvLinkRemotePciInfo_v2(d, 0, info), info.raw[36:].split(b'\\0')[0].decode(), ml.nvmlDeviceGetNvLinkState(d, 18, ctypes.byref(n)))")

        def links(devices, sm):
            env = {**os.environ, "GPULOAD_SOFT_DEVICES": devices, "GPULOAD_SOFT_SM": sm}
            return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env).stdout.split()
        self.assertEqual(links("2", "90"), ["0", "1", "0", "6", "0", "1", "0", "0", "0", "2", "1", "18", "1", "1", "0", "0", "0000FFFF:FF:00.0", "2"])
        self.assertEqual(links("1", "90")[0:2], ["3", "9"])
        self.assertEqual(links("2", "86")[0:2], ["3", "9"])

    def test_devices_with_links_are_in_a_fabric_of_one_machine(self):
        code = (f"import ctypes; ml = ctypes.CDLL('{SOFT}/libnvidia-ml.so.1'); d = ctypes.c_void_p()\n"
                "ml.nvmlInit_v2(), ml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(d))\n"
                "for call, version, n in (('', 0, 28), ('V', 2, 36), ('V', 3, 40), ('V', 1, 40), ('V', 0, 40)):\n"
                "    out = (ctypes.c_ubyte * 48)(*[0x5a] * 48); ctypes.c_uint.from_buffer(out).value = n | version << 24\n"
                "    print(getattr(ml, 'nvmlDeviceGetGpuFabricInfo' + call)(d, out), bytes(out[4:n] if version else out[:n]).hex(), set(out[n:]) == {0x5a})")

        def fabric(devices, sm):
            env = {**os.environ, "GPULOAD_SOFT_DEVICES": devices, "GPULOAD_SOFT_SM": sm}
            return [line.split() for line in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env).stdout.splitlines()]
        for devices, state in (("2", "03"), ("1", "00")):
            first, second, third, *others = fabric(devices, "90")
            for result, info, whole in (first, second, third):
                self.assertEqual((result, info[:50], whole), ("0", "00" * 24 + state, "True"))
            self.assertEqual((second[1][-8:], third[1][-16:-6]), ("00" * 4, "00" * 5))
            self.assertEqual([result for result, *_ in others], [str(VERSION_MISMATCH)] * 2)
        self.assertEqual([result for result, *_ in fabric("2", "86")[:3]], [str(NOT_SUPPORTED)] * 3)

    def test_the_texts_of_errors_are_those_of_an_h200(self):
        self.ml.nvmlErrorString.restype = ctypes.c_char_p
        texts = {0: "Success", 3: "Not Supported", 16: "GPU requires reset", 17: "GPU access blocked by the operating system",
                 18: "Driver/library version mismatch", 19: "In use by another client", 20: "Insufficient Memory", 21: "No data",
                 22: "vGPU ECC not supported", 23: "Insufficient Resources", 24: "Invalid Frequency", 25: "Argument version mismatch",
                 26: "Requested functionality has been deprecated", 27: "System is not in ready state", 28: "No supported GPUs were found",
                 29: "Resource not in correct state to perform requested operation", 30: "Reset type is not supported for given device",
                 31: "Unknown Error", 999: "Unknown Error"}
        self.assertEqual({error: self.ml.nvmlErrorString(error).decode() for error in texts}, texts)

    def test_a_list_of_processes_has_entries_of_its_version(self):
        cu, context, address = ctypes.CDLL(f"{SOFT}/libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
        self.assertEqual((cu.cuInit(0), cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cu.cuCtxSetCurrent(context),
                          cu.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20))), (0, 0, 0, 0))
        for kind in ("Compute", "Graphics", "MPSCompute"):
            for version, n_bytes in (("", 16), ("_v2", 24), ("_v3", 24)):
                out, n = (ctypes.c_ubyte * 256)(*[0xa5] * 256), ctypes.c_uint(4)
                call = f"nvmlDeviceGet{kind}RunningProcesses{version}"
                self.assertEqual(getattr(self.ml, call)(self.device(1), ctypes.byref(n), out), 0, call)
                self.assertEqual(n.value, kind == "Compute", call)
                self.assertEqual(bytes(out[n.value * n_bytes:]), bytes([0xa5] * (256 - n.value * n_bytes)), call)
        self.assertEqual(cu.cuMemFree_v2(address), 0)

    def test_a_structure_with_another_version_number_is_refused_untouched(self):
        for call, n_bytes, version in (("nvmlDeviceGetMemoryInfo_v2", 40, 2), ("nvmlDeviceGetCapabilities", 8, 1), ("nvmlDeviceGetPdi", 16, 1),
                                       ("nvmlDeviceGetPciInfoExt", 64, 1)):
            self.assertEqual(self.written(call, n_bytes, n_bytes | version << 24)[0], 0, call)
            for other in (0, version, version << 24, n_bytes, n_bytes | version + 1 << 24, n_bytes + 8 | version << 24, n_bytes - 4 | version << 24, 0xffffffff):
                result, content = self.written(call, n_bytes, other)
                self.assertEqual((result, content[4:]), (VERSION_MISMATCH, bytes([0x5a] * (n_bytes - 4))), f"{call} version {other:#x}")

    def test_what_a_cpu_does_not_have_is_refused_once_the_library_is_started(self):
        with open(f"{ROOT}/nvidia/nvml/refused_internal.h", encoding="utf-8") as f:
            names = re.findall(r"X\((nvml\w+)\)", f.read())
        self.assertGreater(len(names), 290)
        for name in names:
            self.assertEqual(getattr(self.ml, name)(None), NOT_SUPPORTED, name)
        code = f"import ctypes; ml = ctypes.CDLL('{SOFT}/libnvidia-ml.so.1'); print(ml.nvmlDeviceGetTemperature(None), ml.nvmlShutdown())"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout, "1 1\n")


if __name__ == "__main__":
    unittest.main()
