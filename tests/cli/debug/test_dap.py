#!/usr/bin/env python3
"""gpuload dap: sessions of a client that follows the Debug Adapter Protocol, and checks every message by the protocol's types.

`test_dap.py --record FILE` writes the messages of a session, for a check by the protocol's own schema.
"""
import base64, json, os, queue, subprocess, sys, tempfile, threading, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", "build"))
GPULOAD = os.path.join(BUILD, "gpuload")
HERE = f"{ROOT}/tests/cli/ptx"
ENVIRONMENT = dict(os.environ, GPULOAD_DRIVER="soft", GPULOAD_CACHE="off")
LIMIT_S = 120
RECORD = []

# ---- the protocol's types, for the messages that the adapter sends: name or name? (optional) to type ----------------------
SOURCE = {"name?": str, "path?": str, "sourceReference?": int}
BREAKPOINT = {"id?": int, "verified": bool, "message?": str, "line?": int}
BODIES = {
    "initialize": {f"{name}?": bool for name in (
        "supportsConfigurationDoneRequest", "supportsFunctionBreakpoints", "supportsConditionalBreakpoints", "supportsHitConditionalBreakpoints",
        "supportsEvaluateForHovers", "supportsStepBack", "supportsSteppingGranularity", "supportsDataBreakpoints", "supportsReadMemoryRequest",
        "supportsDisassembleRequest", "supportsExceptionInfoRequest", "supportsTerminateRequest", "supportTerminateDebuggee")},
    "threads": {"threads": [{"id": int, "name": str}]},
    "stackTrace": {"stackFrames": [{"id": int, "name": str, "source?": SOURCE, "line": int, "column": int, "instructionPointerReference?": str}],
                   "totalFrames?": int},
    "scopes": {"scopes": [{"name": str, "presentationHint?": str, "variablesReference": int, "expensive": bool}]},
    "variables": {"variables": [{"name": str, "value": str, "type?": str, "evaluateName?": str, "memoryReference?": str, "variablesReference": int,
                                 "indexedVariables?": int}]},
    "setBreakpoints": {"breakpoints": [BREAKPOINT]}, "setFunctionBreakpoints": {"breakpoints": [BREAKPOINT]},
    "setDataBreakpoints": {"breakpoints": [BREAKPOINT]},
    "dataBreakpointInfo": {"dataId": (str, type(None)), "description": str, "accessTypes?": [str]},
    "evaluate": {"result": str, "type?": str, "memoryReference?": str, "variablesReference": int},
    "continue": {"allThreadsContinued?": bool},
    "readMemory": {"address": str, "unreadableBytes?": int, "data?": str},
    "disassemble": {"instructions": [{"address": str, "instruction": str, "presentationHint?": str}]},
    "source": {"content": str, "mimeType?": str},
    "exceptionInfo": {"exceptionId": str, "description?": str, "breakMode": str},
}
EVENTS = {
    "stopped": {"reason": str, "description?": str, "text?": str, "threadId?": int, "allThreadsStopped?": bool, "hitBreakpointIds?": [int]},
    "output": {"category?": str, "output": str}, "exited": {"exitCode": int}, "terminated": {},
    "breakpoint": {"reason": str, "breakpoint": BREAKPOINT},
}


def check(value, kind, where):
    """Raise if the value is not of this type, or has members that the protocol does not know."""
    if isinstance(kind, list):
        if not isinstance(value, list):
            raise TypeError(f"{where}: an array is expected, not {value!r}")
        for k, element in enumerate(value):
            check(element, kind[0], f"{where}[{k}]")
    elif isinstance(kind, dict):
        known = {name.rstrip("?"): (kind[name], name.endswith("?")) for name in kind}
        if not isinstance(value, dict) or set(value) - set(known):
            raise TypeError(f"{where}: unknown members in {value!r}")
        for name, (inner, optional) in known.items():
            if name in value:
                check(value[name], inner, f"{where}.{name}")
            elif not optional:
                raise TypeError(f"{where}: {name} is missing in {value!r}")
    elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{where}: {kind} is expected, not {value!r}")


def check_message(m, last_seq, commands):
    """Check a message of the adapter; commands: the command of each request that was sent, by seq."""
    if m["seq"] != last_seq + 1:
        raise TypeError(f"seq {m['seq']} after {last_seq}")
    if m["type"] == "event":
        if m["event"] != "initialized":
            check(m.get("body", {}), EVENTS[m["event"]], m["event"])
        return
    command = commands[m["request_seq"]]
    if m["type"] != "response" or m["command"] != command:
        raise TypeError(f"not the response to {command}: {m}")
    if m["success"]:
        check(m.get("body", {}), BODIES.get(command, {}), command)
    else:
        check(m, {"seq": int, "type": str, "request_seq": int, "success": bool, "command": str, "message": str,
                  "body": {"error": {"id": int, "format": str, "showUser?": bool}}}, command)


class Client:
    """A client of the debug adapter, which sends requests, and keeps the events in their order."""

    def __init__(self, env=ENVIRONMENT):
        self.process = subprocess.Popen([GPULOAD, "dap"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=HERE)
        self.seq, self.last_seq, self.commands, self.events, self.output = 0, 0, {}, [], ""
        self.messages = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        out = self.process.stdout
        while header := out.readline():
            length = int(header.split(b":")[1])
            assert out.readline() == b"\r\n"
            self.messages.put(json.loads(out.read(length)))
        self.messages.put(None)

    def next_message(self):
        m = self.messages.get(timeout=LIMIT_S)
        assert m is not None, "the adapter has ended"
        RECORD.append(m)
        check_message(m, self.last_seq, self.commands)
        self.last_seq = m["seq"]
        if m.get("event") == "output":
            self.output += m["body"]["output"]
        elif m["type"] == "event":
            self.events.append(m)
        return m

    def send(self, command, **arguments):
        self.seq += 1
        self.commands[self.seq] = command
        m = {"seq": self.seq, "type": "request", "command": command, "arguments": arguments}
        RECORD.append(m)
        text = json.dumps(m).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        self.process.stdin.flush()
        return self.seq

    def ask(self, command, **arguments):
        """Return the body of the response; raise with its message if the request failed."""
        seq = self.send(command, **arguments)
        while True:
            m = self.next_message()
            if m["type"] == "response" and m["request_seq"] == seq:
                if not m["success"]:
                    raise RuntimeError(m["message"])
                return m.get("body", {})

    def wait(self, *events):
        """Return the body of the next event with one of these names; later events stay in the queue."""
        while True:
            for k, m in enumerate(self.events):
                if m["event"] in events:
                    del self.events[:k + 1]
                    return m.get("body", {})
            self.next_message()

    def go(self, command, thread=1, **arguments):
        self.events.clear()
        self.ask(command, threadId=thread, **arguments)
        return self.wait("stopped", "terminated")

    def top(self, thread):
        return self.ask("stackTrace", threadId=thread)["stackFrames"][0]

    def scope(self, frame, name):
        found = [s for s in self.ask("scopes", frameId=frame["id"])["scopes"] if s["name"] == name]
        return self.ask("variables", variablesReference=found[0]["variablesReference"])["variables"]

    def close(self):
        self.ask("disconnect")
        self.process.stdin.close()
        assert self.process.wait(timeout=LIMIT_S) == 0
        self.process.stdout.close()


def launched(lines=(), functions=(), **arguments):
    """Return a client whose program waits at a stop, or has ended, and the event that reported it."""
    c = Client()
    c.ask("initialize", adapterID="gpuload", linesStartAt1=True, columnsStartAt1=True, pathFormat="path")
    c.ask("launch", program="step.ptx", cwd=HERE, **arguments)
    c.wait("initialized")
    c.ask("setBreakpoints", source={"path": f"{HERE}/step.cu"}, breakpoints=[{"line": n} if isinstance(n, int) else n for n in lines])
    c.ask("setFunctionBreakpoints", breakpoints=[{"name": n} for n in functions])
    c.ask("configurationDone")
    return c, c.wait("stopped", "terminated")


class Sessions(unittest.TestCase):
    def test_a_breakpoint_in_the_cu_shows_lanes_registers_and_memory(self):
        c, stop = launched(lines=[15])
        self.assertEqual(stop["reason"], "breakpoint")
        threads = c.ask("threads")["threads"]
        self.assertEqual([t["name"] for t in threads if "lane" not in t["name"]], ["block 0 warp 0", "block 0 warp 1"])
        self.assertEqual(len([t for t in threads if "warp 0 lane" in t["name"]]), 32)
        frame = c.top(stop["threadId"])
        self.assertEqual((frame["name"], frame["line"], frame["source"]["path"]), ("steps", 15, f"{HERE}/step.cu"))
        lane9 = next(t["id"] for t in threads if t["name"] == "block 0 warp 0 lane 9")
        registers = {v["name"]: v for v in c.scope(c.top(lane9), "Registers")}
        self.assertEqual(registers["%r5"]["value"], "109")
        lanes = c.ask("variables", variablesReference=registers["%r5"]["variablesReference"])["variables"]
        self.assertEqual([v["value"] for v in lanes[6:10]], ["1006", "1007", "108", "109"])
        self.assertEqual([v["name"] for v in c.scope(frame, "Parameters")], ["out"])
        cells = next(v for v in c.scope(frame, "Shared memory") if v["name"] == "cells")
        elements = c.ask("variables", variablesReference=cells["variablesReference"], start=8, count=2)["variables"]
        self.assertEqual([v["name"] + v["value"].split()[0] for v in elements], ["[8]108", "[9]109"])
        self.assertEqual(c.ask("evaluate", expression="%r5 + 1", frameId=c.top(lane9)["id"])["result"], "110")
        self.assertEqual(next(v["value"] for v in c.scope(c.top(lane9), "Special registers") if v["name"] == "%tid.x"), "9")
        c.close()

    def test_steps_over_into_out_and_back(self):
        c, stop = launched(lines=[16])
        t = stop["threadId"]
        self.assertEqual(c.top(t)["line"], 16)
        c.go("stepIn", t)
        frames = c.ask("stackTrace", threadId=t)["stackFrames"]
        self.assertEqual([(f["name"], f["line"]) for f in frames], [("twice", 3), ("steps", 16)])
        c.go("stepOut", t)
        self.assertEqual(c.top(t)["line"], 16)
        c.go("next", t)
        self.assertEqual(c.top(t)["line"], 17)
        c.go("stepBack", t)
        self.assertEqual(c.top(t)["line"], 16)
        before = c.top(t)["instructionPointerReference"]
        c.go("next", t, granularity="instruction")
        self.assertNotEqual(c.top(t)["instructionPointerReference"], before)
        c.go("stepBack", t, granularity="instruction")
        self.assertEqual(c.top(t)["instructionPointerReference"], before)
        stop = c.go("reverseContinue", t)
        self.assertEqual(stop.get("text", ""), "")
        stop = c.go("reverseContinue", t)
        self.assertIn("beginning", stop["text"])
        c.close()

    def test_conditions_hit_counts_and_functions(self):
        c, stop = launched(lines=[{"line": 16, "condition": "lane == 3 && %r5 > 1000 && warp == 1"}])
        self.assertEqual(stop["hitBreakpointIds"], [1])
        self.assertEqual(c.ask("evaluate", expression="thread")["result"], "35")
        c.close()
        c, stop = launched(lines=[{"line": 15, "hitCondition": "3"}])
        self.assertEqual(c.ask("evaluate", expression="block")["result"], "1")
        c.close()
        c, stop = launched(functions=["twice"])
        self.assertEqual((stop["reason"], c.top(stop["threadId"])["name"]), ("function breakpoint", "twice"))
        c.close()

    def test_data_breakpoints_on_shared_memory_and_an_address(self):
        c, stop = launched(stopOnEntry=True)
        self.assertEqual(stop["reason"], "entry")
        frame = c.top(stop["threadId"])
        cells = next(v for v in c.scope(frame, "Shared memory") if v["name"] == "cells")
        info = c.ask("dataBreakpointInfo", variablesReference=cells["variablesReference"], name="[33]")
        self.assertEqual(info["dataId"], "shared[132] 4")
        c.ask("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"], "accessType": "write"}])
        stop = c.go("continue")
        self.assertEqual((stop["reason"], stop["text"]), ("data breakpoint", "lane 1 of warp 1 writes shared[132]"))
        self.assertIsNone(c.ask("dataBreakpointInfo", name="%nothing")["dataId"])
        c.close()

    def test_memory_disassembly_and_source(self):
        c, stop = launched(lines=[17])
        frame = c.top(stop["threadId"])
        out = next(v for v in c.scope(frame, "Parameters") if v["name"] == "out")
        data = c.ask("readMemory", memoryReference=out["memoryReference"], count=8)
        self.assertEqual(len(base64.b64decode(data["data"])), 8)
        self.assertEqual(c.ask("readMemory", memoryReference="0x10", count=8)["unreadableBytes"], 8)
        code = c.ask("disassemble", memoryReference=frame["instructionPointerReference"], instructionOffset=-1, instructionCount=3)["instructions"]
        self.assertEqual([i["instruction"] for i in code[1:]], ["mov.u32 %r10, %ctaid.x;", "mad.lo.u32 %r11, %r10, 64, %r1;"])
        self.assertIn(".entry steps", c.ask("source", sourceReference=1, source={"sourceReference": 1})["content"])
        c.close()

    def test_the_output_and_the_exit_status_of_the_program_arrive(self):
        c, event = launched(args=["--expect", "0=7"])
        while "exited" not in [m["event"] for m in c.events] and event != {}:
            event = c.wait("exited")
        self.assertIn("steps, grid 2", c.output)
        self.assertIn("not as expected", c.output)
        self.assertIn("launch of steps", c.output)
        c.close()

    def test_a_fault_is_an_exception_and_the_end_can_be_a_stop(self):
        c = Client()
        c.ask("initialize", adapterID="gpuload")
        c.ask("launch", program="faults.ptx", args=["--kernel", "traps", "--grid", "1", "--block", "32"], cwd=HERE)
        c.ask("configurationDone")
        stop = c.wait("stopped")
        self.assertEqual(stop["reason"], "exception")
        self.assertIn("trap executed", c.ask("exceptionInfo", threadId=stop["threadId"])["description"])
        c.close()
        c, stop = launched(stopAtEnd=True)
        self.assertIn("steps has ended", stop["text"])
        self.assertEqual(c.ask("threads")["threads"][0]["name"], "no kernel runs")
        c.close()

    def test_a_running_kernel_can_be_paused(self):
        c = Client()
        c.ask("initialize", adapterID="gpuload")
        c.ask("launch", program="faults.ptx", args=["--kernel", "endless", "--grid", "1", "--block", "32"], cwd=HERE)
        c.ask("configurationDone")
        c.ask("pause", threadId=1)
        self.assertEqual(c.wait("stopped")["reason"], "pause")
        c.ask("terminate")
        c.wait("terminated")
        c.close()

    def test_attaches_to_a_running_program(self):
        with tempfile.TemporaryDirectory() as folder:
            address = f"{folder}/socket"
            p = subprocess.Popen([GPULOAD, "run", "step.ptx", "--json"], stdout=subprocess.PIPE, cwd=HERE,
                                 env=dict(ENVIRONMENT, GPULOAD_SOFT_TOOLS=f"debug:listen={address}:wait"))
            c = Client()
            c.ask("initialize", adapterID="gpuload")
            for _ in range(1000):
                try:
                    c.ask("attach", address=address, cwd=HERE)
                    break
                except RuntimeError:
                    threading.Event().wait(0.05)
            c.ask("setBreakpoints", source={"path": f"{HERE}/step.cu"}, breakpoints=[{"line": 16}])
            c.ask("configurationDone")
            self.assertEqual(c.wait("stopped")["reason"], "breakpoint")
            c.close()  # the program runs on
            out, _ = p.communicate(timeout=LIMIT_S)
            self.assertEqual(p.returncode, 0)
            self.assertTrue(json.loads(out)["ok"])
            self.assertFalse(os.path.exists(address))

    def test_wrong_requests_are_refused_and_the_session_goes_on(self):
        c = Client()
        for command, text in (("stackTrace", "no program has been launched"), ("restart", "is not supported"), ("launch", 'launch needs "program"'),
                              ("attach", 'attach needs "address"')):
            with self.assertRaisesRegex(RuntimeError, text):
                c.ask(command)
        c.ask("launch", program="missing.ptx", cwd=HERE)
        c.send("configurationDone")
        c.wait("terminated")
        self.assertIn("missing.ptx: no such file", c.output)
        c.close()


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--record":
        path = sys.argv.pop()
        sys.argv.pop()
        unittest.main(exit=False)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(RECORD, f, indent=1)
    else:
        unittest.main()
