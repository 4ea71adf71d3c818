"""browser.py — drives headless Chromium by the DevTools protocol (https://chromedevtools.github.io/devtools-protocol), with a websocket
client that is just large enough for it (RFC 6455)."""
import base64, json, os, shutil, socket, struct, subprocess, time, urllib.request

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 120  # seconds: a busy machine starts a browser slowly


def find():
    """Return the path of a browser, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Socket:
    """A websocket to 127.0.0.1, for text messages."""

    def __init__(self, url):
        host, path = url.removeprefix("ws://").split("/", 1)
        name, port = host.split(":")
        self.socket = socket.create_connection((name, int(port)), timeout=PATIENCE)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.file = self.socket.makefile("rb")
        while self.file.readline().strip():
            pass

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = len(data)
        head = struct.pack("!BB", 0x81, 0x80 | size) if size < 126 else struct.pack("!BBH", 0x81, 0xfe, size) if size < 65536 else \
            struct.pack("!BBQ", 0x81, 0xff, size)
        self.socket.sendall(head + mask + bytes(b ^ mask[k & 3] for k, b in enumerate(data)))

    def receive(self):
        """Receive the next text message, and join its frames."""
        text = b""
        while True:
            first, size = self.file.read(2)
            size &= 127
            if size > 125:
                size, = struct.unpack("!H" if size == 126 else "!Q", self.file.read(2 if size == 126 else 8))
            data = self.file.read(size)
            if first & 15 < 3:
                text += data
                if first & 128:
                    return text.decode()

    def close(self):
        self.file.close()
        self.socket.close()


class Browser:
    """A page in a separate browser process."""

    def __init__(self, program, folder):
        self.n, self.socket = 0, None
        self.process = subprocess.Popen([program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1000",
                                         "--no-first-run", "--disable-extensions", "--disable-background-networking",
                                         "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.connect(os.path.join(folder, "DevToolsActivePort"))
        except BaseException:
            self.close()
            raise

    def connect(self, port_file):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                with open(port_file, encoding="utf-8") as f:
                    port = int(f.readline())
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=PATIENCE) as reply:
                    url = next(t["webSocketDebuggerUrl"] for t in json.load(reply) if t["type"] == "page")
                break
            except (OSError, ValueError, StopIteration):
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.1)
        self.socket = Socket(url)

    def call(self, method, **parameters):
        self.n += 1
        self.socket.send(json.dumps({"id": self.n, "method": method, "params": parameters}))
        while True:
            reply = json.loads(self.socket.receive())
            if reply.get("id") == self.n:
                assert "error" not in reply, reply
                return reply["result"]

    def evaluate(self, expression):
        """Return the value of a JavaScript expression."""
        reply = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def open(self, url, ready):
        """Open a page, and wait until the expression `ready` is true."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.wait(ready)

    def wait(self, expression):
        end = time.monotonic() + PATIENCE
        while not self.evaluate(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.05)

    def press(self, key, shift=False):
        text = key if len(key) == 1 else ""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "", modifiers=8 if shift else 0)

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def close(self):
        if self.socket:
            self.socket.close()
        self.process.terminate()
        self.process.wait()
