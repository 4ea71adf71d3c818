#!/usr/bin/env python3
"""hashcat.py — hashcat recovers passwords on the software driver.

hashcat compiles its kernels with NVRTC and runs them through the driver API; it queries NVML for temperatures and the like.  Before each
attack, its self-test ends hashcat if a kernel computes a wrong digest.  Then hashcat must find the password of a hash that this script
makes, and must find none for a hash whose password is not among its candidates.  The script uses the hashcat in PATH, or else Debian's
package, which apt-get downloads without installing it.
"""
import base64, glob, hashlib, os, shutil, sys

import client  # in this folder

DEBIAN = ["hashcat", "hashcat-data", "libminizip1"]
CRACKED, EXHAUSTED = 0, 1   # exit statuses


def hex_of(name, text):
    return hashlib.new(name, text.encode()).hexdigest()


def pbkdf2(password, salt, iterations):
    key = hashlib.pbkdf2_hmac("sha256", password.encode(), salt.encode(), iterations)
    return f"sha256:{iterations}:{base64.b64encode(salt.encode()).decode()}:{base64.b64encode(key).decode()}"


# Name: (hashcat's mode, function password -> hash, the password, its mask or None for a word list, more options)
ATTACKS = {
    "md5": ("0", lambda p: hex_of("md5", p), "4711", "?d?d?d?d", ()),
    "md5-optimized": ("0", lambda p: hex_of("md5", p), "zx9", "?l?l?d", ("-O",)),
    "md5-words": ("0", lambda p: hex_of("md5", p), "sunflower", None, ()),
    "md5-salted": ("10", lambda p: hex_of("md5", p + "pepper") + ":pepper", "a7", "?l?d", ()),
    "md5-twice": ("2600", lambda p: hex_of("md5", hex_of("md5", p)), "q3", "?l?d", ()),
    "sha1": ("100", lambda p: hex_of("sha1", p), "b4d", "?l?d?l", ()),
    "sha256": ("1400", lambda p: hex_of("sha256", p), "X8", "?u?d", ()),
    "sha512": ("1700", lambda p: hex_of("sha512", p), "77", "?d?d", ()),
    "sha3-256": ("17400", lambda p: hex_of("sha3_256", p), "k2", "?l?d", ()),
    "pbkdf2-sha256": ("10900", lambda p: pbkdf2(p, "saltsalt", 3), "m5", "?l?d", ()),
}
SHORT = ("md5", "md5-words", "pbkdf2-sha256")
WORDS = ["apple", "river", "sunflower", "mountain"]


def debian_package(args):
    """Unpack hashcat from Debian's packages into a folder and return it: modules and kernels are next to the program, where hashcat
    searches for them, and libraries are in lib."""
    folder = f"{args.work}/hashcat"
    if os.path.exists(f"{folder}/done"):
        return folder
    package = client.debian_packages(args, DEBIAN)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(f"{package}/usr/share/hashcat", folder, symlinks=True, ignore=shutil.ignore_patterns("modules"))
    shutil.copytree(f"{package}/usr/lib/hashcat/modules", f"{folder}/modules")
    shutil.copytree(os.path.dirname(glob.glob(f"{package}/usr/lib/*/libminizip.so.1")[0]), f"{folder}/lib", symlinks=True)
    shutil.copy(f"{package}/usr/bin/hashcat", folder)
    open(f"{folder}/done", "w", encoding="utf-8").close()
    return folder


def attack(args, program, env, name, target, wanted):
    """Run one attack; return "" or the reason of the failure.  wanted: the password that hashcat must find; None: it must find none."""
    mode, _, _, mask, options = ATTACKS[name]
    found = f"{args.work}/{name}.found"
    if os.path.exists(found):
        os.remove(found)
    with open(f"{args.work}/words.txt", "w", encoding="utf-8") as f:
        f.write("\n".join(WORDS) + "\n")
    command = [*client.soft(args), program, "--potfile-disable", "--restore-disable", "--logfile-disable", "--backend-ignore-opencl", "-m", mode,
               "-o", found, "--outfile-format", "2", *options, *(["-a", "3", target, mask] if mask else ["-a", "0", target, f"{args.work}/words.txt"])]
    status, text = client.run(command, args.limit, cwd=args.work, env=env)
    with open(f"{args.work}/logs/{name}{'' if wanted else '-none'}.txt", "w", encoding="utf-8") as f:
        f.write(text)
    expected = CRACKED if wanted else EXHAUSTED
    if status != expected:
        return "did not end" if status is None else f"exit status {status}, not {expected}: {(text.strip().splitlines() or ['no output'])[-1]}"
    content = open(found, encoding="utf-8").read().split() if os.path.exists(found) else []
    return "" if content == ([wanted] if wanted else []) else f"found {content}, not {wanted}"


def main():
    a = client.parser(__doc__)
    a.set_defaults(limit=600)
    args = client.begin(a)
    program = shutil.which("hashcat")
    env = {**os.environ, "HOME": args.work, "XDG_DATA_HOME": f"{args.work}/data", "XDG_CACHE_HOME": f"{args.work}/cache"}
    if not program:
        folder = debian_package(args)
        program = f"{folder}/hashcat"
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [f"{folder}/lib", env.get("LD_LIBRARY_PATH")]))
    os.makedirs(f"{args.work}/logs", exist_ok=True)
    results = client.Results()
    for name in args.only or (SHORT if args.short else ATTACKS):
        _, hash_of, password, _, _ = ATTACKS[name]
        for target, wanted in ((hash_of(password), password), (hash_of(password + "-longer"), None)):
            why = attack(args, program, env, name, target, wanted)
            results.add(f"{name}{'' if wanted else ' (no password)'}", "failed" if why else "passed", why)
        print(f"{name}: done", flush=True)
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
