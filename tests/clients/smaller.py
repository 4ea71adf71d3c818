"""smaller.py — reduces the arguments of programs that are too slow on a CPU, and the constants in their sources.

It guesses the meaning of a number from its name: <repeat> in the text of the usage, `#define NUM_STEPS 2048` in the source.
"""
import math, os, re

REPEATS = re.compile(r"repeat|iter|^it_|_it$|maxit|itmax|repetition|trial|runs?$|times|loops?|reps?$|cycles|epochs?|generations?", re.I)
STEPS = re.compile(r"steps?$", re.I)   # a number of time steps, or a size
FIXED = re.compile(r"seed|bits|order|radius|align|shift|mask|unroll|thresh|version|stride|prime|mod$|id$", re.I)
OF_A_BLOCK = re.compile(r"block|thread|tile|warp|group|local|device|dimension", re.I)   # fixed up to 1,024, the limit of a block's threads
SIZES = re.compile(r"n|m|k|l|num.*|n_.*|n[A-Z0-9]\w*|.*(size|count|len|length|width|height|rows?|columns?|cols?|samples?|points?|particles?|atoms?|elements?|elems?|items?|"
                   r"options?|paths?|nodes?|cells?|max|volume|vol|batch|seq|total|n[xyz]|data|dim[xyz]?|steps?|lookups?|queries|events?|per_block)(_?[nN]|_\w+)?", re.I)

NUMBER = re.compile(r"(?<=[\s=])\d+(?=\s|$)")   # an argument, or the value of --option=N
LARGE, MEDIUM = 1024, 16
WORD = re.compile(r"(?<=\s)large(?=\s|$)")

SOURCES = (".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".c")
VALUE = r"\d+(?:[uUlL]*[ \t]*(?:\*|<<)[ \t]*\d+)*"
DEFINED = re.compile(rf"^([ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+\(?)({VALUE})(?=[uUlL]*\)?[ \t]*(?://.*|/\*.*)?$)", re.M)
DECLARED = re.compile(rf"((?:\b(?:int|long|unsigned|size_t|auto|u?int(?:32|64)_t)[ \t]+|\w\.|->)(\w+)[ \t]*=[ \t]*\(?)({VALUE})(?=[uUlL]*\)?[ \t]*[;,])")
STAGES = ((100, 1), (1000, 16), (10000, 256))   # divisors of (repetitions, sizes) in the source


def usage_names(folder):
    """Return the names of the arguments in the source's usage text, such as "Usage: %s <width> <height> <repeat>"; []: no such text."""
    for text in sources(folder).values():
        found = re.search(r'"[^"]*usage[^"<]*?(?:%s|main)((?:\s*<[^<>"]+>)+)\s*(?:\\n)*"', text, re.I)
        if found:
            return re.findall(r"<([^<>]+)>", found[1])
    return []


def is_fixed(name, value):
    return bool(FIXED.search(name) or (OF_A_BLOCK.search(name) and value <= 1024) or value >= 1 << 31)


def by_usage(command, names):
    """Return variants of the command with one repetition and with sizes divided by 1, 4, 16 and 64; [] if it has not one argument per
    name."""
    places = [m for m in re.finditer(r"(?<=\s)[^\s-]\S*", command)]
    if not names or len(places) != len(names):
        return []
    found = []
    for divisor in (1, 4, 16, 64):
        changed = command
        for m, name in reversed(list(zip(places, names))):
            if m[0].isdigit() and (REPEATS.search(name) or STEPS.search(name)):
                changed = f"{changed[:m.start()]}1{changed[m.end():]}"
            elif m[0].isdigit() and int(m[0]) >= MEDIUM and not is_fixed(name, int(m[0])):
                changed = f"{changed[:m.start()]}{max(1, int(m[0]) // divisor)}{changed[m.end():]}"
        if changed not in (command, *found):
            found.append(changed)
    return found


def commands(command, names=()):
    """Return variants of the command with smaller arguments: first those of by_usage().  The others ignore names.  The last number, in most
    programs the repetitions, becomes 1; next, numbers from LARGE on are divided by 16 or 256; the same with the last number divided, too,
    because in some programs it is a size; by 4096; and numbers from MEDIUM on are divided by 16, with both treatments of the last number,
    because some programs count in thousands.  The argument `large` becomes `small`."""
    command_of_make, command = command, WORD.sub("small", command)
    numbers = list(NUMBER.finditer(command))
    found = by_usage(command, names)
    for last, divisor, least in ((1, 1, LARGE), (1, 16, LARGE), (1, 256, LARGE), (None, 16, LARGE), (None, 256, LARGE), (1, 4096, LARGE), (1, 16, MEDIUM), (None, 16, MEDIUM)):
        changed = command
        for m in reversed(numbers):   # from the end, so that the positions of the other numbers do not change
            n = last if last and m is numbers[-1] else max(1, int(m[0]) // divisor) if int(m[0]) >= least else int(m[0])
            changed = f"{changed[:m.start()]}{n}{changed[m.end():]}"
        if changed not in (command, *found):
            found.append(changed)
    return [command, *found] if command != command_of_make else found


def work_of(command):
    """Return the product of the numbers in the command, as an estimate of its work."""
    return math.prod(max(1, int(n)) for n in NUMBER.findall(command))


def sources(folder):
    """Return {path: text} of all source files below a folder."""
    found = {}
    for at, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            if name.endswith(SOURCES):
                with open(f"{at}/{name}", encoding="utf-8", errors="surrogateescape") as f:
                    found[f"{at}/{name}"] = f.read()
    return found


def smaller_value(name, value, repeats_by, sizes_by):
    """Return a smaller value of a constant.  A size remains a multiple of every power of two up to 256 that divides it, because programs
    divide sizes into blocks."""
    if is_fixed(name, value):
        return value
    if REPEATS.search(name):
        return max(1, value // repeats_by) if value >= 10 else value
    if sizes_by == 1 or value < LARGE or not SIZES.fullmatch(name):
        return value
    unit = math.gcd(value, 256)
    return max(256, -(-value // sizes_by // unit) * unit)


def constants(text, repeats_by, sizes_by):
    """Return the text of a source file with smaller constants."""
    def change(m):
        value = eval(re.sub("[uUlL]", "", m[3]))   # DEFINED and DECLARED match only digits, * and <<
        n = smaller_value(m[2], value, repeats_by, sizes_by)
        return m[0] if n == value else f"{m[1]}{n}"

    return DECLARED.sub(change, DEFINED.sub(change, text))


def change_sources(folder, stage):
    """Make the constants in the sources of a program smaller; return the number of files that changed."""
    changed = 0
    for path, text in sources(folder).items():
        new = constants(text, *STAGES[stage])
        if new != text:
            changed += 1
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
                f.write(new)
    return changed
