"""The console blocks of Markdown files: commands after `$ `, each followed by its output.

In the output, a line `...` stands for any number of lines, and ` ...` at the end of a line for the rest of it.  Two
commands in the first line are two processes: the right one starts when the left one has printed its first line, and
their outputs stand below them, in two columns.
"""
import os, re, signal, subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def sessions(text):
    """Yield (commands, outputs) for each command, or for each pair of commands side by side."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for part in re.split(r"^ ?\$ ", block, flags=re.M)[1:]:
            command, _, printed = part.partition("\n")
            right = re.search(r" {2,}\$ ", command)
            if not right:
                yield [command], [printed]
                continue
            column = right.end() - 2 + (2 if "\n $ " in "\n" + block else 0)  # of the right `$`, in each line of the block
            lines = printed.splitlines()
            yield ([command[:right.start()], command[right.end():]],
                   ["\n".join(line[:column].strip() for line in lines), "\n".join(line[column:].strip() for line in lines)])


def without_numbers(text):
    """Replace numbers, addresses and the width of columns, which vary from run to run."""
    text = re.sub(r"\b0x[0-9a-f]+\b|\b(?:[0-9a-f]*:){2,}[0-9a-f.]*|(?<![A-Za-z_])\d+(?:[.,]\d+)*(?:e[+-]\d+)?", "#", text)
    text = text.replace("tcp;ofi_rxm", "tcp")  # as libfabric 2 names the provider
    return [re.sub(r"\s+", " ", line).strip() for line in text.strip().splitlines() if line.strip()]


def in_one_order(lines):
    """Sort consecutive lines `receiver: ...` and `sender: ...` by process, because the two processes print in any order."""
    result, run = [], []
    for line in [*lines, ""]:
        if line.startswith(("receiver:", "sender:")):
            run.append(line)
        else:
            result += sorted(run, key=lambda text: text.split(":")[0]) + [line]
            run = []
    return result[:-1]


def line_agrees(shown, printed):
    return printed.startswith(shown[:-3].rstrip()) if shown.endswith(" ...") else shown == printed


def first_difference(shown, printed):
    """Return None if the output agrees with the shown output, otherwise a sentence that says how it differs."""
    shown, printed = in_one_order(without_numbers(shown)), in_one_order(without_numbers(printed))
    groups = [[]]  # of lines that stand one below the other
    for line in shown:
        if line == "...":
            groups.append([])
        else:
            groups[-1].append(line)
    at = 0
    for k, group in enumerate(groups):
        last = len(printed) - len(group)
        places = range(at, last + 1) if k else range(at, min(at, last) + 1)
        if k and k == len(groups) - 1 and group:
            places = range(max(at, last), last + 1)  # the end of the output
        found = next((p for p in places if all(map(line_agrees, group, printed[p:]))), None)
        if found is None:
            return f"shown: {group}, printed: {printed[at:]}"
        at = found + len(group)
    if at < len(printed) and groups[-1]:
        return f"printed, but not shown: {printed[at:]}"
    return None


def run_one(command, folder, env):
    r = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True)
    return r.returncode, r.stdout + r.stderr


def run_pair(commands, shown, folder, env, timeout_s=60):
    """Starts the right command after the left one's first line; returns the outputs of both.  The left command is
    interrupted, as by a user, when it has printed what is shown, except for the last line, ENDED."""
    left = subprocess.Popen(["bash", "-c", f"exec {commands[0]}"], cwd=folder, env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)
    try:
        printed = left.stdout.readline()
        status, right = run_one(commands[1], folder, env)
        n_lines = len([line for line in shown[0].splitlines() if line.strip()]) - 1
        while status == 0 and printed.count("\n") < n_lines:
            line = left.stdout.readline()
            if not line:
                break
            printed += line
        left.send_signal(signal.SIGINT)
        return [printed + left.communicate(timeout=timeout_s)[0], right]
    finally:
        left.kill()
