#!/bin/sh
# The table of GPU allocation: every workload and seed of a directory, under each policy.
# usage: benches/gpu_trace.sh DIR [POLICY...]
#   DIR  openb_node_list_gpu_node.csv, openb_pod_list_*.csv.gz and orders/WORKLOAD.SEED.txt.gz
#        (github.com/alibaba/clusterdata, cluster-trace-gpu-v2023)
set -eu
data=$1
shift
[ $# -gt 0 ] || set -- default fgd first_fit best_fit dot_product packing
novaplace=${NOVAPLACE:-target/release/novaplace}
answers=$(mktemp)
trap 'rm -f "$answers"' EXIT
echo "workload,seed,policy,allocation_at_100,allocation_at_130,p99_us,seconds"
for order in "$data"/orders/*.txt.gz; do
    name=$(basename "$order" .txt.gz)
    for policy in "$@"; do
        "$novaplace" replay gpu --nodes "$data/openb_node_list_gpu_node.csv" \
            --pods "$data/openb_pod_list_${name%.*}.csv.gz" --order "$order" \
            --policy "$policy" --output "$answers" |
            tr -d '{}"' | tr ',' '\n' | awk -F: -v OFS=, -v w="${name%.*}" -v s="${name##*.}" -v p="$policy" \
            '{ v[$1] = $2 } END { print w, s, p, v["allocation_at_100"], v["allocation_at_130"], v["p99_us"], v["seconds"] }'
    done
done
