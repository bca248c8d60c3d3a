#!/usr/bin/env python3
"""A plain policy to compare with: thresholds on the mean and deviation of the last hour.

usage: threshold.py DAY.csv.gz ORDER.txt.gz K EVERY MOVES.csv

VMs begin where what they ask for fits. Each step VMs leave hosts whose mean + K deviations exceed
capacity; every EVERY steps the least loaded hosts are emptied into others, up to 92 % of those.
"""
import gzip, sys

HOSTS, HOUR, FULL = 800, 12, 0.92
MIPS, SIZES = (3720, 5320), (2500, 2000, 1000, 500)


def main():
    day, order, k, every, output = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    with gzip.open(day, "rt") as f:
        rows = {p[0]: [int(v) for v in p[1:]] for p in (line.strip().split(",") for line in f)}
    with gzip.open(order, "rt") as f:
        names = [line.strip() for line in f if line.strip()]
    quarter = -(-len(names) // 4)
    size = [SIZES[i // quarter] for i in range(len(names))]
    used = [[v * size[i] / 100 for v in rows[name]] for i, name in enumerate(names)]
    room = [MIPS[h % 2] for h in range(HOSTS)]
    order_of_hosts = sorted(range(HOSTS), key=lambda h: (-(h % 2), h))
    at = []
    for need in size:
        host = next(h for h in order_of_hosts if room[h] >= need)
        room[host] -= need
        at.append(host)
    with open(output, "w") as moves:
        print("step,vm,host", file=moves)
        for vm, host in enumerate(at):
            print(f"0,{vm},{host}", file=moves)
        for step in range(1, len(used[0])):
            before = list(at)
            move(at, [window(u[max(0, step - HOUR):step]) for u in used], k, step % every == 0)
            for vm, host in enumerate(at):
                if host != before[vm]:
                    print(f"{step},{vm},{host}", file=moves)


def window(samples):
    mean = sum(samples) / len(samples)
    return mean, sum((s - mean) ** 2 for s in samples) / len(samples)


def move(at, vms, k, empties):
    on = {}
    for vm, host in enumerate(at):
        on.setdefault(host, set()).add(vm)
    total = {h: [sum(vms[v][i] for v in on[h]) for i in (0, 1)] for h in on}

    def need(host, vm=None):
        mean, var = total.get(host, (0, 0))
        if vm is not None:
            mean, var = mean + vms[vm][0], var + vms[vm][1]
        return (mean + k * var ** 0.5) / MIPS[host % 2]

    def go(vm, to):
        for host, sign in ((at[vm], -1), (to, 1)):
            sums = total.setdefault(host, [0, 0])
            sums[0] += sign * vms[vm][0]
            sums[1] += sign * vms[vm][1]
        on[at[vm]].discard(vm)
        on.setdefault(to, set()).add(vm)
        at[vm] = to

    def target(vm, closed):
        fits = [(need(h, vm), h) for h in on if on[h] and h != at[vm] and h not in closed]
        return max(((n, h) for n, h in fits if n <= FULL), default=(0, None))[1]

    for host in sorted(h for h in on if need(h) > 1):
        while need(host) > 1 and len(on[host]) > 1:
            vm = max(on[host], key=lambda v: (vms[v][0] + k * vms[v][1] ** 0.5, v))
            to = target(vm, ())
            if to is None:
                free = (h for h in range(HOSTS) if not on.get(h))
                to = min(free, key=lambda h: (-(h % 2), h))
            go(vm, to)
    closed = set()
    for host in sorted((h for h in on if on[h]), key=lambda h: (total[h][0] / MIPS[h % 2], h)) if empties else ():
        trail = []
        for vm in sorted(on[host], key=lambda v: (-vms[v][0], v)):
            to = target(vm, closed)
            if to is None:
                break
            trail.append(vm)
            go(vm, to)
        if on[host]:
            for vm in trail:
                go(vm, host)
        else:
            closed.add(host)


main()
