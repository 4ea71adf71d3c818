#!/usr/bin/env python3
"""gpuload rdma devices in a guest: its rxe0 as the kernel and libibverbs report it."""
import json, os, unittest

import case  # in this folder

BUILD = os.environ.get("GPULOAD_BUILD", "build")
COMMAND = f"GPULOAD_DRIVER=soft {BUILD}/gpuload rdma devices"


class Devices(case.OneGuest):
    def test_rxe0_has_its_attributes_and_gids(self):
        listed = json.loads(self.check(f"{COMMAND} --json"))
        (rxe0,) = listed["devices"]
        (port,) = rxe0["verbs"]["ports"]
        self.assertEqual((rxe0["name"], listed["nic"], rxe0["verbs"]["usable"]), ("rxe0", "rxe0", True))
        self.assertEqual((rxe0["sysfs"]["pci"], rxe0["sysfs"]["ports"][0]["netdev"]), (None, "dummy0"))
        self.assertEqual((port["state"], port["physical_state"], port["link_layer"]), ("ACTIVE", "LinkUp", "Ethernet"))
        self.assertEqual((port["gbps"], rxe0["sysfs"]["ports"][0]["gbps"]), (2.5, 2.5))
        self.assertEqual([(g["index"], g["type"], g["link_local"]) for g in port["gids"]], [(0, "RoCE v2", True), (1, "RoCE v2", False)])
        self.assertEqual((port["gid"], port["gids"][1]["address"]), (1, "10.9.0.1"))
        self.assertFalse(rxe0["verbs"]["dmabuf"])
        self.assertGreater(rxe0["verbs"]["attributes"]["max_qp"], 1000)
        self.assertEqual(listed["gpus"][0]["distances"], {"rxe0": "virtual"})

    def test_without_a_device_libfabric_is_named(self):
        self.addCleanup(self.a.run, "rdma link add rxe0 type rxe netdev dummy0")
        text = self.check(f"rdma link delete rxe0; {COMMAND}")
        self.assertTrue(text.startswith("no RDMA NIC: messages go over libfabric, provider tcp\n"), text)


if __name__ == "__main__":
    unittest.main()
