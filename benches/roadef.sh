#!/bin/sh
# The table of machine reassignment: every instance of a directory, judged by an independent checker
# if there is one.
# usage: NOVAPLACE_DATA=DIR benches/roadef.sh [SECONDS [SEED...]]
#   DIR/roadef     model_NAME.txt[.gz] and assignment_NAME.txt (ROADEF/EURO challenge 2012)
#   ROADEF_CHECK   a program that takes model, initial and new assignment and prints OK and the cost
set -eu
data=${NOVAPLACE_DATA:?the directory that has roadef/ in it}/roadef
seconds=${1:-60}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- 1 2 3
novaplace=${NOVAPLACE:-target/release/novaplace}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "instance,seed,cost,bound,initial,moved,steps,checker"
for initial in "$data"/assignment_*.txt; do
    name=$(basename "$initial" .txt)
    name=${name#assignment_}
    model=$data/model_$name.txt
    if [ ! -e "$model" ]; then
        gzip -dc "$model.gz" >"$work/model.txt"
        model=$work/model.txt
    fi
    for seed in "$@"; do
        "$novaplace" solve roadef --model "$model" --initial "$initial" --output "$work/answer.txt" \
            --seconds "$seconds" --threads 2 --seed "$seed" >"$work/summary.json"
        verdict=unchecked
        [ -z "${ROADEF_CHECK:-}" ] || verdict=$("$ROADEF_CHECK" "$model" "$initial" "$work/answer.txt")
        tr -d '{}"' <"$work/summary.json" | tr ',' '\n' | awk -F: -v OFS=, -v n="$name" -v s="$seed" -v c="$verdict" \
            '{ v[$1] = $2 } END { print n, s, v["objective"], v["bound"], v["initial"], v["moved"], v["steps"], c }'
    done
done
