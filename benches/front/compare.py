"""Fronts of novaplace and of pymoo's NSGA-II on one placement instance; see `compare`.

Values, all better when smaller and worked out here from assignments alone: power in W, standard
deviation over hosts that are on of their highest utilisation, VMs that leave `current`. The
hypervolume is a share of the box that the worst cases span: every host on and every VM where it is
dearest, one half, every VM. pymoo's members start from `current` with up to a tenth of the VMs
elsewhere; its children mix two parents VM by VM and move one VM on average.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np


class Instance:
    def __init__(self, path):
        with open(path) as file:
            raw = json.load(file)
        self.shape_of = np.array(raw["vms"])
        self.demand = np.array(raw["flavours"])[self.shape_of]
        self.capacity = np.array([host["cap"] for host in raw["hosts"]])
        self.idle = np.array([host["idle_mw"] for host in raw["hosts"]])
        self.current = np.array(raw["current"])
        self.groups = raw["groups"]
        span = np.array([host["max_mw"] for host in raw["hosts"]]) - self.idle
        cpu = self.capacity[:, 0]
        # Milliwatts of each VM on each host, rounded half up.
        self.work = (2 * span[None, :] * self.demand[:, :1] + cpu) // (2 * cpu)
        self.worst = np.array(
            [(self.idle.sum() + self.work.max(axis=1).sum()) / 1000, 0.5, len(self.shape_of)]
        )

    def use(self, hosts):
        used = np.zeros_like(self.capacity)
        np.add.at(used, hosts, self.demand)
        return used

    def violation(self, hosts):
        over = np.maximum(self.use(hosts) / self.capacity - 1, 0).sum()
        met = sum(len(group) - len(set(hosts[group])) for group in self.groups)
        return over + 0.1 * met

    def values(self, hosts):
        used, on = self.use(hosts), np.unique(hosts)
        power = self.idle[on].sum() + self.work[np.arange(len(hosts)), hosts].sum()
        fill = (used[on] / self.capacity[on]).max(axis=1)
        return [power / 1000, fill.std(), int((hosts != self.current).sum())]


def hypervolume(points, worst):
    """Slice by slice along the last value, the area under the staircase of the points so far."""
    shares = sorted((tuple(point / worst) for point in points), key=lambda share: share[2])
    shares = [share for share in shares if max(share) < 1]
    volume = 0.0
    for row, share in enumerate(shares):
        end = shares[row + 1][2] if row + 1 < len(shares) else 1.0
        area, height = 0.0, 1.0
        for x, y, _ in sorted(shares[: row + 1]):
            if y < height:
                area += (1 - x) * (height - y)
                height = y
        volume += area * (end - share[2])
    return volume


def score(instance, assignments):
    allowed = [hosts for hosts in assignments if instance.violation(hosts) == 0]
    points = [np.array(instance.values(hosts)) for hosts in allowed]
    return hypervolume(points, instance.worst), len(allowed), len(assignments) - len(allowed)


def peer(instance, seed, population, generations):
    from pymoo.algorithms.moo.nsga2 import NSGA2
    from pymoo.core.mutation import Mutation
    from pymoo.core.problem import Problem
    from pymoo.core.sampling import Sampling
    from pymoo.operators.crossover.ux import UniformCrossover
    from pymoo.optimize import minimize

    vms, hosts = len(instance.shape_of), len(instance.idle)
    pairs = np.array([(a, b) for group in instance.groups for a in group for b in group if a < b])
    pairs = pairs.reshape(-1, 2)

    class Placement(Problem):
        """All members at once: the peer's best way in Python."""

        def __init__(self):
            super().__init__(n_var=vms, n_obj=3, n_ieq_constr=1, xl=0, xu=hosts - 1, vtype=int)

        def _evaluate(self, members, out, *_, **__):
            members = members.astype(int)
            rows = len(members)
            flat = (members + hosts * np.arange(rows)[:, None]).ravel()
            count = lambda weights: np.bincount(flat, weights, rows * hosts).reshape(rows, hosts)
            resources = range(instance.demand.shape[1])
            use = [count(np.tile(instance.demand[:, r], rows)) / instance.capacity[:, r] for r in resources]
            use = np.stack(use, axis=2)
            on = count(None) > 0
            fill, number = use.max(axis=2), on.sum(axis=1)
            mean = (fill * on).sum(axis=1) / number
            spread = np.sqrt((((fill - mean[:, None]) ** 2) * on).sum(axis=1) / number)
            power = (on * instance.idle).sum(axis=1) + instance.work[np.arange(vms), members].sum(axis=1)
            moved = (members != instance.current).sum(axis=1)
            out["F"] = np.stack([power / 1000, spread, moved], axis=1).astype(float)
            met = (members[:, pairs[:, 0]] == members[:, pairs[:, 1]]).sum(axis=1)
            out["G"] = (np.maximum(use - 1, 0).sum(axis=(1, 2)) + 0.1 * met)[:, None]

    class Nearby(Sampling):
        def _do(self, _, size, *__, **___):
            members = np.tile(instance.current, (size, 1))
            for member in members:
                moved = np.random.randint(0, vms // 10 + 1)
                member[np.random.randint(0, vms, moved)] = np.random.randint(0, hosts, moved)
            return members

    class Elsewhere(Mutation):
        def _do(self, _, members, *__, **___):
            moves = np.random.random(members.shape) < 1 / vms
            return np.where(moves, np.random.randint(0, hosts, members.shape), members)

    np.random.seed(seed)
    algorithm = NSGA2(population, sampling=Nearby(), crossover=UniformCrossover(prob=0.9), mutation=Elsewhere(prob=1.0))
    started = time.perf_counter()
    result = minimize(Placement(), algorithm, ("n_gen", generations), seed=seed, verbose=False)
    seconds = time.perf_counter() - started
    return result.pop.get("X").astype(int), seconds


def ours(novaplace, path, seed, population, generations, scorer):
    with tempfile.TemporaryDirectory() as folder:
        front = os.path.join(folder, "front.json")
        command = [novaplace, "solve", "placement", "--instance", path, "--engine", "nsga2"]
        command += ["--population", str(population), "--generations", str(generations)]
        command += ["--seed", str(seed), "--threads", "1", "--front", front]
        started = time.perf_counter()
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds = time.perf_counter() - started
        with open(front) as file:
            points = [np.array(point["assignment"]) for point in json.load(file)]
        if scorer:
            said = subprocess.run([sys.executable, scorer, "score", path, front], check=True, capture_output=True, text=True)
            print("  scorer:", said.stdout.strip())
    return points, seconds, json.loads(told.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("novaplace")
    parser.add_argument("--instance", default="b.json")
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--population", type=int, default=100)
    parser.add_argument("--generations", type=int, default=200)
    parser.add_argument("--scorer")
    options = parser.parse_args()
    path = options.instance
    if not os.path.exists(path):
        data = os.environ.get("NOVAPLACE_DATA")
        if data is None:
            sys.exit(f"{path} is not there; give its path, or set NOVAPLACE_DATA to a directory with placement/{path}")
        path = os.path.join(data, "placement", path)
        if not os.path.exists(path):
            sys.exit(f"{path} is not there; NOVAPLACE_DATA is {data}")
    instance = Instance(path)
    ratios, speeds = [], []
    for seed in map(int, options.seeds.split(",")):
        points, seconds, told = ours(options.novaplace, path, seed, options.population, options.generations, options.scorer)
        volume, allowed, refused = score(instance, points)
        print(f"seed {seed}: novaplace {volume:.6f} with {allowed} points ({refused} refused) in {seconds:.3f} s, "
              f"{told['evaluations']} evaluations, {told['delta_evaluations']} changes priced")
        members, peer_seconds = peer(instance, seed, options.population, options.generations)
        peer_volume, allowed, refused = score(instance, members)
        print(f"seed {seed}: pymoo     {peer_volume:.6f} with {allowed} points ({refused} refused) in {peer_seconds:.3f} s, "
              f"{options.population * options.generations} evaluations, imports not counted")
        ratios.append(volume / peer_volume)
        speeds.append(peer_seconds / seconds)
    print(f"hypervolume {min(ratios):.2f} to {max(ratios):.2f} times, {min(speeds):.1f} to {max(speeds):.1f} times faster")


main()
