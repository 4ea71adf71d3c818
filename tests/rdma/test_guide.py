#!/usr/bin/env python3
"""docs/rdma-send.md quotes the messages of the code: the table of completions is complete, and each quoted message exists.

A quotation is the text in backquotes in the first column of a table below "Setting up a connection", "Requests" and "libfabric".  It
may omit parts ("...") and has example values, so it is compared with the constant parts of the strings in rdma/.
"""
import glob, os, re, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEAST = 10  # characters of a constant part that identify a message


def read(path):
    with open(f"{ROOT}/{path}", encoding="utf-8") as f:
        return f.read()


def section(title):
    return re.search(rf"^### {title}\n(.*?)^##", read("docs/rdma-send.md"), re.M | re.S)[1]


def constant_parts():
    """Yield the strings in rdma/: adjacent literals are joined, and the result is split at its %-conversions."""
    text = "".join(read(os.path.relpath(path, ROOT)) for path in sorted(glob.glob(f"{ROOT}/rdma/**/*.c", recursive=True)))
    for strings in re.findall(r'"(?:[^"\\\n]|\\.)*"(?:\s*(?:PRI\w+\s*)?"(?:[^"\\\n]|\\.)*")*', text):
        joined = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', strings)).replace('\\"', '"')
        for part in re.split(r"%[-+ #0-9.*]*(?:hh|ll|[hlz])?[a-zA-Z]?", joined):
            if len(part.strip(" :,")) >= LEAST:
                yield part.strip(" :,")


def occurs(quotation, parts):
    return any(part in quotation or quotation in part for part in parts)


class Guide(unittest.TestCase):
    def test_the_table_of_completions_has_the_texts_of_the_code(self):
        advice = dict(re.findall(r'^\tSTATUS\((\w+),\s+"(.*)"\),$', read("rdma/verbs/verbs_error.c"), re.M))
        rows = re.findall(r"^\| \d+ \| (\w+) \| (.*) \|$", section("Completions of verbs"), re.M)
        self.assertGreater(len(advice), 20)
        self.assertEqual({name for name, _ in rows} | {"SUCCESS"}, set(advice))
        for name, text in rows:
            with self.subTest(name=name):
                self.assertTrue(advice[name] == text or not advice[name] and text.startswith("("), advice[name])

    def test_quoted_messages_exist(self):
        parts = list(constant_parts())
        for title in "Setting up a connection", "Requests", "libfabric":
            cells = re.findall(r"^\| (.*?) \|", section(title), re.M)
            self.assertGreater(len(cells), 4)
            for quotation in re.findall(r"`([^`]+)`", "\n".join(cells)):
                for piece in (p.strip(" :,") for p in quotation.split("...")):
                    if len(piece) >= LEAST + 4:
                        with self.subTest(quotation=piece):
                            self.assertTrue(occurs(piece, parts))


if __name__ == "__main__":
    unittest.main()
