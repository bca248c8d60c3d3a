#!/bin/sh
# Consolidation of every balcon instance of a directory, judged by an independent checker if there is
# one, with the mean time of a run.
# usage: NOVAPLACE_DATA=DIR benches/consolidation.sh
#   DIR/balcon     NUMBER.json.gz with hosts, vms and mapping
#   BALCON_CHECK   a program that takes pairs of instance and mapping and prints totals
set -eu
data=${NOVAPLACE_DATA:?the directory that has balcon/ in it}/balcon
novaplace=${NOVAPLACE:-target/release/novaplace}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
set --
for instance in "$data"/*.json.gz; do
    mapping=$work/$(basename "$instance" .json.gz).json
    "$novaplace" solve consolidation --instance "$instance" --output "$mapping" >>"$work/summaries"
    set -- "$@" "$instance" "$mapping"
done
[ -z "${BALCON_CHECK:-}" ] || "$BALCON_CHECK" "$@"
tr -d '{}"' <"$work/summaries" | tr ',' '\n' |
    awk -F: '$1 == "seconds" { sum += $2; n++ } END { printf "%d instances, mean %.0f ms\n", n, 1000 * sum / n }'
