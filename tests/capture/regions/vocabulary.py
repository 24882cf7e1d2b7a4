"""The words of random programs on tensors: expressions of each kind, statements, and pieces of several lines.

In a text, `{M}` is an expression of kind M, `{m}` a variable that takes one; `@` a new name. In a piece, `<block>` is
statements, `<loop>` statements in a loop, `<start>` the assignments with which a function of the program begins.
"""

from __future__ import annotations

__all__ = ["EXPRESSIONS", "GIVEN", "ITEMS", "METHODS", "NAMES", "OWN", "OWN_EXPRESSIONS", "PIECES", "REWRITING",
           "SELDOM", "START", "STATEMENTS"]

NAMES = {"M": ("x", "y", "z"), "V": ("v", "w"), "S": ("s",), "Q": ("h",), "K": ("t",), "N": ("i", "j"), "L": ("r",)}
GIVEN = {"M": ("a", "b"), "V": ("c",), "S": (), "Q": ("q",), "K": ("k",), "N": ("p",), "L": ()}

START = [("x", "a * 2"), ("y", "b.clone()"), ("z", "a + b"), ("v", "c * 0.5"), ("w", "a[0]"), ("s", "c.sum()"),
         ("h", "q + 1"), ("t", "k + 1"), ("i", "0"), ("j", "p"), ("r", "[a + 1]"), ("d", "{'k': b * 2}"),
         ("e", "collections.deque([a * 1], maxlen=3)"), ("m", "{1, 2}"), ("o", "Box(b + 1)")]

EXPRESSIONS: dict[str, tuple[str, ...]] = {
    "M": ("{M} + {M}", "{M} - {M}", "{M} * 0.5", "{M} + {V}", "{M} * {N}", "{M} + {N}", "{M} - {S}", "{M}.relu()",
          "{M}.abs()", "-{M}", "{M}.clone()", "torch.where({M} > 0, {M}, {M})", "torch.stack([{V}, {V}])",
          "{M}.clamp(-4, 4)", "{M} + {K}", "{V}.expand(2, 3)", "{M}.t().contiguous().t()", "torch.maximum({M}, {M})",
          "{r}[0]", "{r}[-1]", "{r}[{N} % 1]", "sum({r})", "{M}.detach()", "{M}.flip(0)", "({M} * {M}).clamp(-4, 4)",
          "{M}.view(2, 3)", "{M}[:]", "{M}.view(-1).view(2, 3)", "torch.full((2, 3), 0.5)", "{M} * {S}.item()",
          "helper({M})", "helper({M}, {N})", "F.pad({M}[:, 1:], (1, 0))", "{M} + torch.rand(2, 3).round()",
          "max({M}, {M}, key=total)", "d['k']", "d.get('k')", "descend({M}, {N})", "blind({M})", "blind({M}, {N})",
          "kept(helper)({M})", "scaled({N})(helper)({M})", "counted(helper)({M})", "{M} * float({S})", "e[0]", "e[-1]",
          "sum(e)", "o.x", "o.put({M})", "sorted([{M}, {M}, {M}], key=total)[1]", "{M}[{Q}[:2].abs() % 2]",
          "torch.stack([g for g in {M} if g.sum() > 0] + [{V}, {V}])[:2]", "{M}[:, :1] + {M}[{K} % 2:][:1]",
          "torch.stack([*pairs({M}), {V}])[:2]", "next(pairs({M})) + {M}", "(lambda g: g if g.sum() > 0 else -g)({M})",
          "{M}.masked_fill({M} > 1, 0.5)", "torch.stack(sorted({M}, key=total))", "sum(pairs({M}), {M})",
          "torch.cond({S} > 0, more, less, ({M} + 1, {V} * 1))", "each(row, {M} + 1, {V} * 1) + 0",
          "scan(carry, {V} * 1, {M} + 1)[1]", "while_loop(below, step, ({K} * 1, {M}.detach() + 1))[1]",
          "associative_scan(combine, {M} + 1, dim=0, combine_mode='generic')"),
    "V": ("{M}[0]", "{M}[1]", "{M}[{N} % 2]", "{M}[{K} % 2]", "{M}.sum(0)", "{V} + {V}", "{V} * 0.5", "{V}.clone()",
          "{V} - {N}", "{V}.abs()", "-{V}", "{M}[-1, :]", "{V}.flip(0)", "{Q} * 0.5", "{M}.amax(0)",
          "{V}[{Q}.abs() % 3]", "{M}.view(-1)[1:4]", "{M}.view(-1)[::2]", "{M}[{K} % 2:].sum(0)",
          "{M}[:int({K}) % 3].sum(0)", "max({M}, key=total)", "sum({M})", "sorted({M}, key=total)[0]",
          "{M}[{M}.sum(1) > 0].sum(0)", "{V} * float({K})", "min([*{M}], key=total)"),
    "S": ("{M}.sum()", "{V}.sum()", "{V}[0]", "{V}[{N} % 3]", "{V}[{K} % 3]", "{S} + {S}", "{S} * 0.5", "{M}.max()",
          "{V}.min()", "torch.tensor(1.5)", "{M}[0, 1]", "{S} - {N}", "max({S}, {S})", "abs({S})", "sum({V})",
          "min({S}, {S})", "min({V})", "max({V})", "sorted([{S}, {S}])[0]", "{V}[:{K} % 3].sum()",
          "{V}[int({K}) % 3:].sum()", "{V}[{V} > 0].sum()", "{S} + float({S})", "sum(g for g in {V} if g > {S})",
          "sorted({V})[1]", "min({S}, {S}, {S}) * 0.5", "{M}[{K} % 2, {K} % 3]"),
    "Q": ("{Q} + {N}", "{Q} * 2 - {K}", "{V}.round().long()", "{Q}.clone()", "{V}.argsort()", "torch.arange(3)",
          "torch.tensor(sorted({Q}.tolist()))", "torch.tensor({Q}.tolist())"),
    "K": ("{Q}.sum()", "{Q}[{N} % 3]", "({M} > 0).sum()", "{K} + 1", "{K} % 3", "{V}.argmax()", "{K} // 2",
          "torch.tensor({N})", "max({Q})", "sum({Q})"),
    "N": ("int({K})", "{K}.item()", "int({S}.clamp(-9, 9))", "{N} + 1", "{N} - {N}", "{N} % 3", "{N} // 2", "len({r})",
          "min({N}, {N})", "max({N}, 2)", "abs({N})", "{N} * 2 % 7", "{M}.shape[1]", "int({C})", "sum([{N}, {N}])",
          "round({S}.item())", "{M}.dim()", "len([g for g in {V} if g > 0])", "{M}.size(0) + {N}", "len({M})",
          "len({V}[{V} > 0])", "len(e)", "len(m)", "o.n", "max({Q}.tolist())", "sum({Q}.tolist()) % 5",
          "sorted([{N}, {N}, {N}])[1]", "min({N}, int({K}))", "sum({V} > 0).item()", "{Q}.tolist()[{N} % 3]",
          "int(float({S}.clamp(-4, 4)))", "len({V}.nonzero())", "tally", "d.get('n', 0)", "len(d)"),
    "C": ("{S} > 0", "{S} > {S}", "{N} > 1", "{N} == {N}", "{N} < {N}", "{K} == 2", "{K} > {N}", "({M} > 0).all()",
          "({M} > 2).any()", "{V}.sum() <= {S}", "bool({S} > 1)", "{S}.item() > 0.5", "{N} in (1, 3)", "{K} % 2",
          "{M} is {M}", "torch.equal({V}, {V})", "{N} % 2 == 0", "{N} % 2", "{S}", "{N} not in [0, 2]", "{r}",
          "bool({N})", "{M}.max() > 1", "{V}[0] >= {V}[1]", "{S} in {V}", "isinstance({N}, int)", "{N} in {Q}",
          "float({S}) > 0.5", "any({V} > 1)", "all({M}[0] > -2)", "{N} in m", "any(g > 0 for g in {V})",
          "all(g.sum() > 0 for g in {M})", "min({V}) > -1", "max({S}, 0) > 1", "len({V}[{V} > 0]) > 1", "{K} in {Q}",
          "{K} not in {Q}", "bool({K})", "x is not y", "0 < {S} < 2"),
}

STATEMENTS: tuple[str, ...] = (
    "{M}.add_({M})", "{M}.add_(1)", "{M}.mul_(0.5)", "{M}[0] = {V}", "{M}[{N} % 2] += {V}", "{V}.add_(1)",
    "{M}[{M} > 1] = 0.5", "{M}.copy_({M})", "{M}.zero_()", "{M}.t().add_(1)", "{M}.view(-1)[1:3].mul_(2)",
    "{M}[:, 1:].neg_()", "{M}[0, 1] = {S}", "{V}[{K} % 3] = 2.0", "{M}.fill_({N})", "{V}[1:] = {N}", "{S}.add_(1)",
    "{K}.add_(1)", "{Q}[0] = {N}", "{Q}.add_({K})", "torch.add({V}, 1, out={V})", "{M}.relu_()", "{M}[0].sub_({M}[1])",
    "{r}.append({M})", "{r}[0] = {M}", "{r}[-1].add_(1)", "{r}.pop()", "{r}.extend([{M}, {M}])",
    "{r}.insert(0, {M})", "{r} += [{M}]", "d['k'] = {M}", "d['k'].add_(1)", "d['n'] = {N}",
    "d.setdefault('m', {M})", "del {r}[1:]",
    "e.append({M})", "e.appendleft({M})", "e[0] = {M}", "e.rotate(1)", "e[-1].mul_(0.5)", "m.add({N})",
    "m.discard({N})", "m |= {1, {N}}", "d.pop('m', None)", "d.update(k={M}, n={N})", "o.x = {M}", "o.n += 1",
    "o.n = {N}", "o.x.add_(1)",
    "o.x[0] = {V}", "o.put({M})", "notes.append({N})", "notes.append('here')", "{M}[{K} % 2:].add_(1)",
    "{M}[{K} % 2] = {V}", "{M}.masked_fill_({M} > 1, 0.5)", "print('at', {N})", "setattr(o, 'n', {N})",
)

# What a module may do to itself.
OWN: tuple[str, ...] = (
    "self.count += 1", "self.total.add_(1)", "self.total.add_({V}.detach())", "self.count = {N}",
    "self.seen.append({N})", "self.last = {M}.detach()", "self.total[0] = {N}", "self.seen[:] = [self.count]",
)
OWN_EXPRESSIONS = {
    "V": ("self.total", "self.total + {V}", "self.scale * {V}"),
    "N": ("self.count", "len(self.seen)", "self.size"),
    "M": ("self.layer({M})", "self.last", "self.twice({M})", "self.own({M})", "self.own({M}, {N})", "self.made({M})",
          "self.halved({M})"),
}

# Targets and what a `for` runs over.
ITEMS: tuple[tuple[str, str], ...] = (
    ("i", "range({N} % 4)"), ("i", "range(int({K}) % 4)"), ("i", "range({K} % 3)"), ("i", "range({K}.item() % 4)"),
    ("j", "range(1, {N} % 6, 2)"), ("v", "{M}"), ("s", "{V}"), ("i", "range(3)"), ("t", "{Q}"),
    ("i, v", "enumerate({M})"), ("x", "r[:3]"), ("v, w", "zip({M}, {M})"), ("i", "reversed(range({N} % 4))"),
    ("t", "({V} > 0).nonzero().flatten()"), ("t", "{V}.nonzero()[:, 0]"), ("t,", "({V} > 0).nonzero().tolist()"),
    ("i, x", "enumerate(r[:2])"), ("i", "{Q}.tolist()"), ("j", "[0, {N}]"), ("i", "range({N} % 4, -1, -1)"),
    ("x", "[*e]"), ("i", "sorted(m)"), ("v", "pairs({M})"), ("i", "range(len({V}[{V} > 0]))"), ("v", "reversed({M})"),
)

# The construct each piece stands for, and its lines.
PIECES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("recursion", ("def @(a, n):", "    if n <= 0 or {C}:", "        return a", "    return @(a * 0.5 + {V}, n - 1)",
                   "{m} = @({M}, {N} % 4)")),
    ("recursion", ("def @(a, n=0):", "    if a.sum() < 1 or n > 4:", "        return a",
                   "    return @(a * 0.5 - 0.25, n + 1) + 1", "{m} = @({M})")),
    ("recursion", ("def @(a, n):", "    <start>", "    if n > 2:", "        return {M}", "    <block>",
                   "    return @({M}, n + 1)", "{m} = @({M}, 0)")),
    ("decorator", ("@kept", "def @(a, p=1):", "    <start>", "    <block>", "    return {M}", "{m} = @({M}, {N})")),
    ("decorator", ("@scaled({N})", "def @(a):", "    return a if {C} else -a", "{m} = @({M})")),
    ("decorator", ("@kept", "@counted", "def @(a, p=1):", "    if a.sum() > p:", "        return a - p", "    return a",
                   "{m} = @({M})")),
    ("closure", ("def @(n):", "    def inside(a):", "        if {C}:", "            return a + n",
                 "        return a - n", "    return inside", "{m} = @({N})({M})")),
    ("closure", ("@ = lambda g, n={N}: g + n if {C} else g - s", "{m} = @({M})")),
    ("generator", ("def @(a):", "    for g in range({N} % 4):", "        if {C}:", "            yield a + g",
                   "        a = a * 0.5", "for {m} in @({M}):", "    <loop>")),
    ("generator", ("def @(a):", "    try:", "        yield a", "        yield a + 1", "    finally:",
                   "        notes.append('closed')", "for {m} in @({M}):", "    if {C}:", "        break")),
    ("generator", ("def @(a):", "    yield {M}", "    yield from pairs(a)", "r = [*@({M})]")),
    ("with", ("with noted(d, {N}) as {n}:", "    <block>")),
    ("with", ("with Noted({N}) as {n}:", "    <block>")),
    ("with", ("with torch.no_grad(), Noted({M}) as {m}:", "    <block>")),
    ("try finally", ("try:", "    if {C}:", "        raise ValueError('no')", "    <block>", "except ValueError:",
                     "    {m} = {M}", "finally:", "    {n} = {N}")),
    ("try finally", ("try:", "    <block>", "finally:", "    notes.append({N})", "    {m}.add_(1)")),
    ("match", ("match d:", "    case {'n': 1}:", "        <block>", "    case {'n': int(i)} if {C}:", "        <block>",
               "    case _:", "        <block>")),
    ("long loop", ("for g in range(300):", "    {m} = {M} * 0.5 + {V}.clamp(-1, 1)")),
    ("long loop", ("for g in range(int({K}) % 5 * 60):", "    if x.sum() > 3:", "        x = x - 1", "    else:",
                   "        x = x + {V}")),
    ("long loop", ("j = 0", "while j < {K} % 4 * 50:", "    j += 1", "    v = v * 0.5 + {V}.clamp(-2, 2)",
                   "    if {C}:",
                   "        continue", "    i = j % 3")),
    ("long loop", ("for g in range(120):", "    x, y = y, x * 0.5 + 1", "    if g > 100 and y.sum() > 4:",
                   "        break")),
    ("long loop", ("x = x.clone()", "for g in range(250):", "    x[g % 2].mul_(0.5).add_(1)")),
    ("for over nonzero", ("for g in ({M} > 0).nonzero():", "    y = y.clone()", "    y[g[0], g[1]] = {S}")),
    ("for over nonzero", ("for g, h1 in ({M} > 0).nonzero().tolist():", "    s = s + x[g, h1]")),
    ("swapped carry", ("for g in range({N} % 4):", "    x, y = y, x + 1", "    i, j = j, i + 1", "    <loop>")),
    ("swapped carry", ("for g in range(3):", "    v, w = w, v", "    w.add_(1)", "    if {C}:", "        x, z = z, x")),
    ("view written later", ("g = {m}[0]", "<block>", "g.add_(1)")),
    ("view written later", ("if {C}:", "    g = x.view(-1)", "else:", "    g = y.view(-1)", "<block>", "g.mul_(0.5)")),
    ("view written later", ("g = x.t()", "for n9 in range({N} % 3):", "    g = g.t()", "    <loop>", "g.add_(1)")),
    ("attribute written", ("if {C}:", "    o.x = {M}", "    o.n += 1", "else:", "    o.x = o.x * 0.5", "{m} = o.x")),
    ("container changed", ("if {C}:", "    d['k'] = {M}", "    m.add(7)", "else:", "    d['k'] = d['k'] + 1")),
    ("container changed", ("for g in range({N} % 3):", "    r[0] = r[0] + {M}", "    e[0] = e[0] * 0.5")),
    ("global", ("def @():", "    global tally", "    if {C}:", "        tally += 1", "    return tally", "{n} = @()")),
    ("early return", ("if {C}:", "    return {M}, {V}")),
    ("torch.cond", ("{m} = torch.cond({S} > 0, more, less, ({M} + 1, {V} * 1))",)),
    ("torch.cond", ("{v} = torch.cond(({M} > 0).any(), lambda g: g.abs(), lambda g: g - 1, ({V} * 1,))",)),
    ("while_loop", ("{m} = while_loop(below, step, ({K} * 1, {M}.detach() + 1))[1]",)),
    ("map", ("{m} = each(row, {M} + 1, {V} * 1) + 0",)),
    ("scan", ("{v}, {m} = scan(carry, {V} * 1, {M} + 1)",)),
    ("associative_scan", ("{m} = associative_scan(combine, {M} + 1, dim=0, combine_mode='generic')",)),
    ("without source", ("{m} = blind({M}, {N})",)),
    ("without source", ("for g in range({N} % 3):", "    {m} = blind({M}, g)")),
    ("list built in a loop", ("r = []", "for g in range({N} % 4):", "    r.append({M} + g)", "r.append({M})")),
    ("list built in a loop", ("for g in {M}:", "    if g.sum() > {S}:", "        r += [{M} + g]", "    <loop>")),
    ("defined in one branch", ("if {C}:", "    u = {M}", "else:", "    u = {M} * 0.5", "{m} = u + 1")),
    ("defined in one branch", ("n9 = bool({C})", "if n9:", "    u = {M}", "<block>", "if n9:", "    {m} = u + 1")),
    ("continue", ("for g in {V}:", "    if g > {S}:", "        continue", "    s = s + g")),
    ("continue", ("for g in range({N} % 4):", "    if {C}:", "        continue", "    <loop>")),
    ("view written", ("if {C}:", "    {m}.view(-1)[1:3].add_(1)", "{m}.t().mul_(0.5)")),
    ("print", ("print('at', {N})",)),
    ("method", ("{m} = o.put({M})",)),
    ("closure", ("def @(a):", "    nonlocal x", "    if {C}:", "        x = x + a", "    return x * 0.5",
                 "{m} = @({M})")),
    (".tolist()", ("r = [{M} + g for g in {Q}.tolist()]",)),
    (".item()", ("i = {K}.item()", "if i > {N}:", "    <block>")),
    ("int(t)", ("for g in range(int({K})):", "    <loop>")),
    ("float(t)", ("if float({S}) > 0.5:", "    <block>")),
    ("slice by a tensor", ("{v} = {M}[{K} % 2:].sum(0)",)),
    ("len(t)", ("if len({V}[{V} > 0]) > 1:", "    <block>")),
)

# What random statements seldom come to: most programs begin with one of these.
SELDOM: tuple[str, ...] = (
    "torch.cond", "while_loop", "map", "scan", "associative_scan", "without source", "list built in a loop",
    "defined in one branch", "continue", "view written", "view written later", "print", "method", "closure", "closure",
    "decorator", "decorator", "recursion", ".tolist()", ".item()", "int(t)", "float(t)", "slice by a tensor", "len(t)",
    "swapped carry", "for over nonzero", "long loop",
)

# Methods that a program's class may have beside `forward`.
METHODS: tuple[tuple[str, ...], ...] = (
    ("def twice(self, x):", "    if x.sum() > 1:", "        return super().twice(x * 0.5)",
     "    return super().twice(x) + 1"),
    ("def own(self, a, p=1):", "    <start>", "    <block>", "    return super().own({M}, p)"),
    ("def own(self, a, p=1):", "    <start>", "    if p > 2 or {C}:", "        return a",
     "    return self.own(a * 0.5 + 1, p + 1)"),
    ("def twice(self, a):", "    <start>", "    <block>", "    return {M}"),
)

# Writes in place under autograd; the names are used nowhere else.
REWRITING: tuple[tuple[str, ...], ...] = (
    ("x = a * c", "if {C}:", "    x.mul_(c)", "else:", "    x[0].add_({V})", "y = x * 0.5 + b"),
    ("x = torch.zeros(2, 3)", "for g in range(int({K}) % 3):", "    x[g % 2] = {V} * c", "    x[g % 2] += c",
     "y = x + a"),
    ("x = b * c", "for g in range({K} % 3):", "    if {C}:", "        x.sub_({V})", "    else:",
     "        x[0, 1:].mul_(0.5)"),
    ("x = a * 2", "y = x[1]", "if {C}:", "    y.mul_(0.5)", "v = y + x[0]"),
    ("x = a * c", "if {C}:", "    x.detach_()", "y = x * c"),
    ("v = torch.zeros(3)", "for g in a:", "    if g.sum() > {N}:", "        v += g", "    <loop>"),
    ("x = a * 1", "if {C}:", "    with torch.no_grad():", "        x.mul_(0.5)", "y = x + b"),
    ("x = a * 2", "y = x * x", "if {C}:", "    x.add_(1)", "z = x + b"),
    ("if {C}:", "    a.mul_(c)", "else:", "    b[0] = {V}"),
    ("i = 0", "while i < {K} % 3:", "    i += 1", "    a.mul_(0.5)", "    a[0].add_(c)", "x = a * b"),
    ("x = a * b", "if {C}:", "    x.masked_fill_(x > 0.5, 0.25)", "else:", "    x.copy_({M}.detach())"),
    ("r = [a * 1, b * 1]", "if {C}:", "    r[0].add_({M})", "    r[1][0] = 0.5", "x = r[0] * r[1]"),
)
