"""Asks an enumerator of executions (ptxdrf.py) about litmus programs, and prints more than it does by itself.

usage: python3 - PTXDRF SECONDS < paths, one a line

For each path, one block of lines:
  file PATH
  skip REASON               nothing is known; no more lines but `end`
  race SC KIND LOCATION TAB FIRST TAB SECOND
  state SC x=1 P0:r1=2 ...
  racy N M                  N of M executions are racy
  answer 0|1                whether the program's question is answered with yes
  end
SC is 1 if a sequentially consistent execution has it. The enumerator evaluates the condition once for each final state;
that call is where this looks at the execution.
"""
import importlib.util, itertools, os, signal, sys


def load(path):
    spec = importlib.util.spec_from_file_location('ptxdrf', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Late(Exception):
    pass


def late(*_):
    raise Late()


def contracted(f):
    """Events, with both halves of a read-modify-write as one."""
    E, off = f['E'], f['off']
    one = list(range(f['n']))
    for i, e in enumerate(E):
        if e.k == 'R' and e.rmw is not None and e.t >= 0:
            one[off[e.t] + e.rmw] = i
    return one


def consistent_orders(f):
    """All total orders of the writes of each location that make the execution sequentially consistent."""
    E, n, co, src = f['E'], f['n'], f['co'], f['src']
    one = contracted(f)
    base = [0] * n

    def add(adj, i, j):
        a, b = one[i], one[j]
        if a != b:
            adj[a] |= 1 << b

    def acyclic(adj):
        closed = f_closure(n, adj)
        return not any(closed[i] >> i & 1 and E[i].k != 'B' for i in range(n))

    for i in range(n):
        for j in f_bits(f['po'][i] | f['bsync'][i] | f['rf'][i] | co[i] | f['fr'][i]):
            add(base, i, j)
    if not acyclic(base):
        return
    orders = []
    for l in sorted(f['locs']):
        writes = [w for w in f['W'] if E[w].loc == l]
        rest = [w for w in writes if E[w].t >= 0]
        first = [w for w in writes if E[w].t < 0]
        fits = []
        for order in itertools.permutations(rest):
            place = {w: k for k, w in enumerate(order)}
            if all(place[a] < place[b] for a in rest for b in rest if co[a] >> b & 1):
                fits.append(first + list(order))
        orders.append(fits)
    for total in itertools.product(*orders):
        adj = base[:]
        for order in total:
            for k, w in enumerate(order):
                for later in order[k + 1:]:
                    add(adj, w, later)
                    for r, s in src.items():
                        if s == w:
                            add(adj, r, later)
        if acyclic(adj):
            yield total


def ask(module, path, seconds):
    races, states, sc_states, seen = {}, set(), set(), {'n': -1}

    def show(memory, registers):
        values = ['%s=%d' % item for item in sorted(memory.items())]
        return ' '.join(values + ['P%d:%s=%d' % (t, r, v) for (t, r), v in sorted(registers.items())])

    def hook(code, env):
        f = sys._getframe(1).f_locals
        memory = {l: env['M'](l) for l in f['locs']}
        states.add(show(memory, f['regsv']))
        if seen['n'] != f['res']['n']:
            seen['n'] = f['res']['n']
            sc = False
            for total in consistent_orders(f):
                sc = True
                last = {f['E'][order[-1]].loc: f['E'][order[-1]].val for order in total}
                sc_states.add(show(last, f['regsv']))
            for race in f['races']:
                races[race] = races.get(race, False) or sc
        return eval(code, env)

    module.eval = hook
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        result = module.analyse(path)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if module.CUT or not result['n']:
        print('skip ' + (', '.join(sorted(module.CUT)) or 'no complete execution'))
        return
    for (kind, loc, a, b), sc in sorted(races.items()):
        print('race %d %s %s\t%s\t%s' % (sc, kind, loc, a, b))
    for state in sorted(states):
        print('state %d %s' % (state in sc_states, state))
    print('racy %d %d' % (result['race_ex'], result['n']))
    print('answer %d' % result['verdict'])


module = load(sys.argv[1])
f_closure, f_bits = module.closure, module.bits
signal.signal(signal.SIGALRM, late)
for line in iter(sys.stdin.readline, ''):
    path = line.strip()
    print('file ' + path)
    try:
        ask(module, path, float(sys.argv[2]))
    except NotImplementedError as error:
        print('skip not covered: %s' % error)
    except Late:
        print('skip it takes too long')
    print('end', flush=True)
