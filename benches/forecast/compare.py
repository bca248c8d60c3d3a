"""Forecasts the same hourly series with novaplace and with statsforecast, and prints both.

Called by `compare`, which has the peer's environment ready. Accuracy is that of the M4
competition: OWA relative to a seasonally adjusted naive forecast, MSIS and coverage of the 95 %
interval. Time is wall time on one thread; the peer's compiler is warmed up before the clock runs.
"""
import argparse, csv, gzip, math, subprocess, tempfile, time
from pathlib import Path

SEASON, HORIZON, ALPHA = 24, 48, 0.05


def read(path):
    rows = {}
    with gzip.open(path, "rt") as lines:
        for line in lines:
            name, *values = line.rstrip("\n").split(",")
            rows[name] = [float(value) for value in values if value not in ("", "NA")]
    return rows


def seasonal_scale(x):
    return sum(abs(x[i] - x[i - SEASON]) for i in range(SEASON, len(x))) / (len(x) - SEASON)


def is_seasonal(x):
    n, mean = len(x), sum(x) / len(x)
    c = [v - mean for v in x]
    power = sum(v * v for v in c)
    if n < 3 * SEASON or power == 0:
        return False
    r = [sum(c[i] * c[i - k] for i in range(k, n)) / power for k in range(1, SEASON + 1)]
    return abs(r[-1]) > 1.645 * math.sqrt((1 + 2 * sum(v * v for v in r[:-1])) / n)


def benchmark(x):
    if not is_seasonal(x):
        return [x[-1]] * HORIZON
    n, half = len(x), SEASON // 2
    ratios = [[] for _ in range(SEASON)]
    for t in range(half, n - half):
        level = (0.5 * x[t - half] + sum(x[t - half + 1:t + half]) + 0.5 * x[t + half]) / SEASON
        ratios[t % SEASON].append(x[t] / level)
    index = [sum(r) / len(r) for r in ratios]
    mean = sum(index) / SEASON
    level = x[-1] / (index[(n - 1) % SEASON] / mean)
    return [level * index[(n + k) % SEASON] / mean for k in range(HORIZON)]


def smape(y, f):
    return sum(0 if a == b == 0 else 200 * abs(a - b) / (abs(a) + abs(b)) for a, b in zip(y, f)) / len(y)


def score(train, test, forecasts):
    s = m = s0 = m0 = msis = inside = 0.0
    for name, y in test.items():
        x, scale = train[name], seasonal_scale(train[name])
        mean, lower, upper = forecasts[name]
        naive = benchmark(x)
        mae = lambda f: sum(abs(a - b) for a, b in zip(y, f)) / HORIZON / scale
        s, m, s0, m0 = s + smape(y, mean), m + mae(mean), s0 + smape(y, naive), m0 + mae(naive)
        width = sum((u - l) + 2 / ALPHA * (max(l - a, 0) + max(a - u, 0)) for a, l, u in zip(y, lower, upper))
        msis += width / HORIZON / scale
        inside += sum(l <= a <= u for a, l, u in zip(y, lower, upper)) / HORIZON
    n = len(test)
    return (s / s0 + m / m0) / 2, msis / n, inside / n


def ours(binary, model, train, folder):
    source, result = Path(folder) / "series.csv", Path(folder) / f"{model}.csv"
    source.write_text("".join(f"{n},{','.join(map(repr, v))}\n" for n, v in train.items()))
    start = time.perf_counter()
    subprocess.run([binary, "forecast", "--input", source, "--horizon", str(HORIZON), "--season", "24,168",
                    "--level", "95", "--model", model, "--threads", "1", "--output", result], check=True)
    seconds = time.perf_counter() - start
    forecasts = {}
    for row in csv.DictReader(result.open()):
        parts = forecasts.setdefault(row["id"], ([], [], []))
        for part, key in zip(parts, ("mean", "lower", "upper")):
            part.append(float(row[key]))
    return forecasts, seconds


def peers(model, train):
    import numpy as np
    from statsforecast.models import MSTL, AutoARIMA, AutoETS, AutoTheta
    make = {"arima": lambda: AutoARIMA(season_length=24), "ets": lambda: AutoETS(season_length=24),
            "mstl": lambda: MSTL(season_length=[24, 168], trend_forecaster=AutoETS(model="ZZN")),
            "theta": lambda: AutoTheta(season_length=24)}.get(model)
    if make is None:
        return None
    make().forecast(y=np.array(next(iter(train.values()))), h=HORIZON, level=[95])
    forecasts, start = {}, time.perf_counter()
    for name, values in train.items():
        f = make().forecast(y=np.array(values), h=HORIZON, level=[95])
        forecasts[name] = (list(f["mean"]), list(f["lo-95"]), list(f["hi-95"]))
    return forecasts, time.perf_counter() - start


def main():
    options = argparse.ArgumentParser()
    options.add_argument("binary")
    options.add_argument("data", type=Path)
    options.add_argument("--series", type=int, default=0, help="every k-th series, this many; 0 is all")
    options.add_argument("--models", default="arima,mstl,ets,theta,auto")
    given = options.parse_args()
    train, test = read(given.data / "m4_hourly_train.csv.gz"), read(given.data / "m4_hourly_test.csv.gz")
    names = sorted(test, key=lambda name: int(name[1:]))
    if given.series:
        names = names[::max(1, len(names) // given.series)][:given.series]
    train, test = {n: train[n] for n in names}, {n: test[n] for n in names}
    print(f"{len(names)} series, horizon {HORIZON}, one thread")
    print(f"{'model':10} {'who':14} {'OWA':>7} {'MSIS':>8} {'coverage':>9} {'ms/series':>10} {'faster':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for model in given.models.split(","):
            rows = [("novaplace", ours(given.binary, model, train, folder))]
            peer = peers(model, train)
            if peer:
                rows.append(("statsforecast", peer))
            for who, (forecasts, seconds) in rows:
                owa, msis, coverage = score(train, test, forecasts)
                faster = f"{peer[1] / seconds:6.1f}x" if peer and who == "novaplace" else ""
                print(f"{model:10} {who:14} {owa:7.4f} {msis:8.2f} {coverage:9.4f} "
                      f"{1000 * seconds / len(names):10.1f} {faster:>7}", flush=True)


main()
