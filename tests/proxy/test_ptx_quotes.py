#!/usr/bin/env python3
"""The lesson's quotes of proxy/fifo.ptx match the file: they have the same lines in the same order, without comments."""
import os, re, sys, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
QUOTE = re.compile(r"```ptx\n(.*?)```", re.S)


def code(path):
    with open(f"{ROOT}/{path}", encoding="utf-8") as f:
        return f.read()


def instructions(text):
    lines = (" ".join(line.split("//")[0].split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line) + "\n"


class Quotes(unittest.TestCase):
    def test_each_quote_is_in_the_file(self):
        whole, quotes = "\n" + instructions(code("proxy/fifo.ptx")), QUOTE.findall(code("examples/07-fifo/PTX.md"))
        self.assertGreater(len(quotes), 5)
        for quote in quotes:
            with self.subTest(quote=quote):
                self.assertIn("\n" + instructions(quote), whole)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
