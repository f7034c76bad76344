"""A PTX module of many forms, a kernel each, and its launch description.

All kernels read one buffer `in` and write one buffer `out`, at offsets of their own, so that one run and one dump
is enough for a module. Values take 8 bytes whatever their type; bytes that a kernel does not write stay 0.
"""

from . import trim, values


class Module:
    def __init__(self, forms, trimmed=False):
        self.forms = forms
        self.lanes = [trim.lanes(form, trimmed) for form in forms]
        self.inputs = {}
        at = 0
        for form, lanes in zip(forms, self.lanes):
            if form.sources and (form.sources, lanes) not in self.inputs:
                self.inputs[form.sources, lanes] = at
                at += 8 * len(lanes.run) * len(form.sources)
        self.input_bytes = max(at, 8)
        self.outputs = []
        at = 0
        for form, lanes in zip(forms, self.lanes):
            self.outputs.append(at)
            at += 8 * len(lanes.run) * len(form.results)
        self.output_bytes = at

    def write(self, folder):
        """Writes `module.ptx`, `module.toml` and `in.bin`."""
        version = max((form.version for form in self.forms), key=lambda v: tuple(map(int, v.split("."))))
        targets = {form.target for form in self.forms}
        target = targets.pop() if len(targets) == 1 else "sm_90"
        text = [f".version {version}\n.target {target}\n.address_size 64\n"]
        text += [self.kernel(index) for index in range(len(self.forms))]
        (folder / "module.ptx").write_text("\n".join(text))
        (folder / "in.bin").write_bytes(b"".join(values.packed(kinds, lanes.run) for kinds, lanes in self.inputs) or bytes(8))
        launches = []
        for index, form in enumerate(self.forms):
            args = '["@in", "@out"]'
            if index == 0:
                args = f'["in:u64[{self.input_bytes // 8}]=file:in.bin", "out:u64[{self.output_bytes // 8}]=0"]'
            grid, block = self.lanes[index].grid or form.grid, self.lanes[index].block or form.block
            launch = f'[[launch]]\nkernel = "k{index}"\ngrid = {list(grid)}\nblock = {list(block)}\nargs = {args}\n'
            launches.append(launch)
        (folder / "module.toml").write_text("\n".join(launches))

    def kernel(self, index):
        form, lanes = self.forms[index], self.lanes[index]
        stride = 8 * len(lanes.run)
        names, before, after = {"i": "%index"}, [], []
        declared = {"16": [], "32": [], "64": [], "1": []}
        for prefix, kinds in (("a", form.sources), ("d", form.results)):
            for at, kind in enumerate(kinds):
                name = f"%{prefix}{at}"
                names[f"{prefix}{at}"] = name
                declared[str(values.REGISTER[kind])].append(name)
        at = self.inputs.get((form.sources, lanes), 0)
        for position, kind in enumerate(form.sources):
            register = f"%a{position}"
            place = f"[%in+{at + stride * position}]"
            if kind == "pred":
                before += [f"ld.global.b32 %bit, {place};", f"setp.ne.u32 {register}, %bit, 0;"]
            else:
                before.append(f"ld.global.b{values.REGISTER[kind]} {register}, {place};")
        for position, kind in enumerate(form.results):
            register = f"%d{position}"
            place = f"[%out+{self.outputs[index] + stride * position}]"
            if kind == "pred":
                after += [f"selp.u32 %bit, 1, 0, {register};", f"st.global.b32 {place}, %bit;"]
            else:
                after.append(f"st.global.b{values.REGISTER[kind]} {place}, {register};")
        lines = [f".reg .pred {', '.join(declared['1'])};"] if declared["1"] else []
        lines += [f".reg .b{bits} {', '.join(declared[bits])};" for bits in ("16", "32", "64") if declared[bits]]
        lines += [".reg .b32 %index, %part, %bit;", ".reg .b64 %in, %out, %offset;"]
        if form.declare:
            lines.append(form.declare)
        lines += ["ld.param.u64 %in, [input];", "ld.param.u64 %out, [output];"]
        lines += ["cvta.to.global.u64 %in, %in;", "cvta.to.global.u64 %out, %out;"]
        lines += self.position(form)
        lines += ["mul.wide.u32 %offset, %index, 8;", "add.u64 %in, %in, %offset;", "add.u64 %out, %out, %offset;"]
        lines += before + [form.text().format(**names)] + after + ["ret;"]
        body = "".join(f"\t{line}\n" for line in lines)
        return f"// {form.name}\n.visible .entry k{index}(.param .u64 input, .param .u64 output)\n{{\n{body}}}\n"

    @staticmethod
    def position(form):
        """The number of this thread among all."""
        if form.grid[1:] == (1, 1) and form.block[1:] == (1, 1):
            lines = ["mov.u32 %index, %ctaid.x;", "mov.u32 %part, %ntid.x;", "mul.lo.u32 %index, %index, %part;"]
            return lines + ["mov.u32 %part, %tid.x;", "add.u32 %index, %index, %part;"]
        lines = ["mov.u32 %index, %ctaid.z;"]
        for size, part in (("%nctaid.y", "%ctaid.y"), ("%nctaid.x", "%ctaid.x"), ("%ntid.z", "%tid.z"),
                           ("%ntid.y", "%tid.y"), ("%ntid.x", "%tid.x")):  # fmt: skip
            lines += [f"mov.u32 %part, {size};", "mul.lo.u32 %index, %index, %part;"]
            lines += [f"mov.u32 %part, {part};", "add.u32 %index, %index, %part;"]
        return lines
