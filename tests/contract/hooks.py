"""Teaches schemathesis the bulk operations, whose bodies have one JSON object per line."""

import json

import schemathesis
from hypothesis import strategies

# A line of a bulk operation is the body of the operation on one thing.
SINGLE = {"/v1/hosts:bulk": "/v1/hosts", "/v1/vms:bulk": "/v1/vms"}


@schemathesis.serializer("application/x-ndjson")
def one_object_per_line(context, value):
    if isinstance(value, bytes):
        return value
    if isinstance(value, list):
        value = "\n".join(json.dumps(line, default=str) for line in value)
    elif not isinstance(value, str):
        value = json.dumps(value, default=str)
    return value.encode("utf-8", errors="surrogatepass")


@schemathesis.hook
def before_generate_body(context, strategy):
    single = SINGLE.get(context.operation.path)
    if single is None:
        return strategy
    bodies = context.operation.schema[single]["POST"].as_strategy().map(lambda case: case.body)
    return strategies.one_of(strategy, strategies.lists(bodies, min_size=1, max_size=5))
