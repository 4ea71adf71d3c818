#!/usr/bin/env python3
"""docs/ptx-forms.md lists exactly the instruction forms that the driver refuses, and ptxas, where it is installed, accepts all forms."""
import importlib.util, subprocess, sys

ISA = "tests/softcuda/exec/isa/isa.py"


def load_isa():
    spec = importlib.util.spec_from_file_location("isa", ISA)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    isa = load_isa()
    if subprocess.run(["grep", "-q", "__asan_init\\|__tsan_init", isa.soft_driver()], check=False).returncode == 0:
        print("skipped: a library with a sanitizer cannot be loaded into Python")
        return 77
    forms = isa.all_forms()
    with open("docs/ptx-forms.md", encoding="utf-8") as f:
        want = f.read()
    if isa.page(forms, isa.refused(forms)) != want:
        print(f"docs/ptx-forms.md is out of date: run {ISA} page docs/ptx-forms.md")
        return 1
    assert isa.refused(["tcgen05.wait::ld.sync.aligned;"]), "an instruction of sm_100 is refused"
    assert not isa.refused(["add.u32 r0, r1, r2;"])
    ptxas = isa.find_ptxas()
    assert not ptxas or isa.assemble(ptxas, ["add.u32 r0, r1, r2;", "st.bulk.shared::cta [r1], 64, 0;"]), "ptxas refuses an instruction of sm_100"
    r = subprocess.run([sys.executable, ISA, "ptxas"], capture_output=True, text=True, check=False)
    print(r.stdout[-2000:] + r.stderr[-2000:])
    return r.returncode if r.returncode != 77 else 0


if __name__ == "__main__":
    sys.exit(main())
